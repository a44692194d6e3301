package zubilo;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/** The codecs that {@link Codec} hands out. */
final class Codecs {
    private Codecs() {}

    static ZubiloException.Decode bad(String tag, String why) {
        return new ZubiloException.Decode("the bytes are no " + tag + ": " + why);
    }

    /** Bytes to be read from the front. */
    static final class Input {
        final byte[] bytes;
        int at;

        Input(byte[] bytes) {
            this.bytes = bytes;
        }

        int left() {
            return bytes.length - at;
        }

        byte[] rest() {
            return Arrays.copyOfRange(bytes, at, bytes.length);
        }
    }

    // ---- numbers ----

    static <T> Codec<T> number(String tag, int width, Function<T, Long> to, Function<Long, T> from,
            Comparator<T> order) {
        return new Numeric<>(tag, width, to, from, order);
    }

    static <T extends Comparable<T>> Codec<T> unsigned(String tag, int width, Function<T, Long> to,
            Function<Long, T> from) {
        Function<T, Long> checked = value -> {
            long number = to.apply(value);
            if (number < 0 || number >= 1L << 8 * width) {
                throw new IllegalArgumentException(number + " is no " + tag);
            }
            return number;
        };
        return new Numeric<>(tag, width, checked, from, Comparator.naturalOrder());
    }

    static long floatBits(float number) {
        int bits = Float.floatToRawIntBits(number);
        return (bits < 0 ? ~bits : bits ^ Integer.MIN_VALUE) & 0xffff_ffffL;
    }

    static float bitsFloat(long bits) {
        int raw = (int) bits;
        return Float.intBitsToFloat(raw < 0 ? raw ^ Integer.MIN_VALUE : ~raw);
    }

    static long doubleBits(double number) {
        long bits = Double.doubleToRawLongBits(number);
        return bits < 0 ? ~bits : bits ^ Long.MIN_VALUE;
    }

    static double bitsDouble(long bits) {
        return Double.longBitsToDouble(bits < 0 ? bits ^ Long.MIN_VALUE : ~bits);
    }

    static boolean truth(long number) {
        if (number > 1) {
            throw bad("bool", "neither 0 nor 1");
        }
        return number == 1;
    }

    static long character(int number) {
        if (!isCharacter(number)) {
            throw new IllegalArgumentException(number + " is the number of no character");
        }
        return number;
    }

    static int character(long number) {
        if (!isCharacter(number)) {
            throw bad("char", "no character has this number");
        }
        return (int) number;
    }

    private static boolean isCharacter(long number) {
        return number >= 0 && number <= Character.MAX_CODE_POINT && (number < 0xd800 || number > 0xdfff);
    }

    private static class Numeric<T> extends Codec<T> {
        final String tag;
        final int width;
        final Function<T, Long> to;
        final Function<Long, T> from;
        final Comparator<T> order;

        Numeric(String tag, int width, Function<T, Long> to, Function<Long, T> from, Comparator<T> order) {
            this.tag = tag;
            this.width = width;
            this.to = to;
            this.from = from;
            this.order = order;
        }

        @Override
        public String tag() {
            return tag;
        }

        @Override
        int width() {
            return width;
        }

        @Override
        public Comparator<T> comparator() {
            return order;
        }

        @Override
        void write(T value, ByteArrayOutputStream out) {
            long number = to.apply(value);
            for (int shift = 8 * width - 8; shift >= 0; shift -= 8) {
                out.write((int) (number >>> shift));
            }
        }

        @Override
        T read(byte[] bytes) {
            if (bytes.length != width) {
                throw bad(tag, "of another length");
            }
            return readPart(new Input(bytes));
        }

        @Override
        void writePart(T value, ByteArrayOutputStream out) {
            write(value, out);
        }

        @Override
        T readPart(Input in) {
            if (in.left() < width) {
                throw bad(tag, "too short");
            }
            long number = 0;
            for (int i = 0; i < width; i++) {
                number = number << 8 | in.bytes[in.at++] & 0xff;
            }
            return from.apply(number);
        }
    }

    /** Numbers of tables that the engine sorts as such. */
    static final class LittleEndian extends Codec<Long> {
        private final String tag;
        private final int width;

        LittleEndian(String tag, int width) {
            this.tag = tag;
            this.width = width;
        }

        @Override
        public String tag() {
            return tag;
        }

        @Override
        int width() {
            return width;
        }

        @Override
        KeyOrder order() {
            return KeyOrder.INTEGER;
        }

        @Override
        public Comparator<Long> comparator() {
            return Long::compareUnsigned;
        }

        @Override
        void write(Long value, ByteArrayOutputStream out) {
            if (width == 4 && (value < 0 || value > 0xffff_ffffL)) {
                throw new IllegalArgumentException(value + " is no " + tag);
            }
            for (int i = 0; i < width; i++) {
                out.write((int) (value >>> 8 * i));
            }
        }

        @Override
        Long read(byte[] bytes) {
            if (bytes.length != width) {
                throw bad(tag, "of another length");
            }
            long number = 0;
            for (int i = width - 1; i >= 0; i--) {
                number = number << 8 | bytes[i] & 0xff;
            }
            return number;
        }

        @Override
        void writePart(Long value, ByteArrayOutputStream out) {
            throw new ZubiloException.Invalid(tag + " cannot be a part of a tuple: its bytes do not sort like it");
        }

        @Override
        Long readPart(Input in) {
            throw new ZubiloException.Invalid(tag + " cannot be a part of a tuple: its bytes do not sort like it");
        }
    }

    // ---- strings ----

    /** Appends a byte string that tells its own end. */
    private static void escape(byte[] bytes, ByteArrayOutputStream out) {
        for (byte b : bytes) {
            out.write(b);
            if (b == 0) {
                out.write(255);
            }
        }
        out.write(0);
        out.write(0);
    }

    private static byte[] unescape(Input in, String tag) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        while (in.left() >= 2 || in.left() == 1 && in.bytes[in.at] != 0) {
            byte b = in.bytes[in.at++];
            if (b == 0) {
                int mark = in.bytes[in.at++] & 0xff;
                if (mark == 0) {
                    return out.toByteArray();
                }
                if (mark != 255) {
                    throw bad(tag, "with a 0 that is neither its end nor its own");
                }
            }
            out.write(b);
        }
        throw bad(tag, "without its end");
    }

    static final class ByteString extends Codec<byte[]> {
        @Override
        public String tag() {
            return "bytes";
        }

        @Override
        public Comparator<byte[]> comparator() {
            return Arrays::compareUnsigned;
        }

        @Override
        void write(byte[] value, ByteArrayOutputStream out) {
            out.writeBytes(value);
        }

        @Override
        byte[] read(byte[] bytes) {
            return bytes;
        }

        @Override
        void writePart(byte[] value, ByteArrayOutputStream out) {
            escape(value, out);
        }

        @Override
        byte[] readPart(Input in) {
            return unescape(in, tag());
        }
    }

    static final class Text extends Codec<String> {
        @Override
        public String tag() {
            return "str";
        }

        @Override
        public Comparator<String> comparator() {
            return Text::compare;
        }

        /** By the numbers of the characters, as UTF-8 sorts. */
        private static int compare(String a, String b) {
            int both = Math.min(a.length(), b.length());
            for (int i = 0; i < both; i++) {
                char x = a.charAt(i);
                char y = b.charAt(i);
                if (x != y) {
                    boolean pairs = Character.isSurrogate(x) != Character.isSurrogate(y);
                    return pairs ? Character.isSurrogate(x) ? 1 : -1 : Character.compare(x, y);
                }
            }
            return Integer.compare(a.length(), b.length());
        }

        private static byte[] bytes(String value) {
            try {
                ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(value));
                return Arrays.copyOf(bytes.array(), bytes.limit());
            } catch (CharacterCodingException e) {
                throw new IllegalArgumentException("the text has half a pair of surrogates", e);
            }
        }

        @Override
        void write(String value, ByteArrayOutputStream out) {
            out.writeBytes(bytes(value));
        }

        @Override
        String read(byte[] bytes) {
            return Bytes.of(bytes).utf8();
        }

        @Override
        void writePart(String value, ByteArrayOutputStream out) {
            escape(bytes(value), out);
        }

        @Override
        String readPart(Input in) {
            return read(unescape(in, tag()));
        }
    }

    // ---- compounds ----

    static final class Maybe<T> extends Codec<Optional<T>> {
        private final Codec<T> of;

        Maybe(Codec<T> of) {
            this.of = of;
        }

        @Override
        public String tag() {
            return "option<" + of.tag() + ">";
        }

        @Override
        void checkKey() {
            of.checkKey();
            if (of.order() != KeyOrder.BYTES) {
                throw new ZubiloException.Invalid(of.tag() + " cannot be a part: its bytes do not sort like it");
            }
        }

        @Override
        public Comparator<Optional<T>> comparator() {
            Comparator<T> inner = of.comparator();
            return (a, b) -> a.isPresent() && b.isPresent() ? inner.compare(a.get(), b.get())
                    : Boolean.compare(a.isPresent(), b.isPresent());
        }

        @Override
        void write(Optional<T> value, ByteArrayOutputStream out) {
            out.write(value.isPresent() ? 1 : 0);
            value.ifPresent(v -> of.write(v, out));
        }

        @Override
        Optional<T> read(byte[] bytes) {
            if (bytes.length == 1 && bytes[0] == 0) {
                return Optional.empty();
            }
            if (bytes.length == 0 || bytes[0] != 1) {
                throw bad("option", "neither none nor some");
            }
            return Optional.of(of.read(Arrays.copyOfRange(bytes, 1, bytes.length)));
        }

        @Override
        void writePart(Optional<T> value, ByteArrayOutputStream out) {
            out.write(value.isPresent() ? 1 : 0);
            value.ifPresent(v -> of.writePart(v, out));
        }

        @Override
        Optional<T> readPart(Input in) {
            if (in.left() == 0) {
                throw bad("option", "too short");
            }
            switch (in.bytes[in.at++]) {
                case 0: return Optional.empty();
                case 1: return Optional.of(of.readPart(in));
                default: throw bad("option", "neither none nor some");
            }
        }
    }

    @SuppressWarnings("unchecked")
    static <A, B> Codec.Tuple2<A, B> tuple2(List<Object> p) {
        return new Codec.Tuple2<>((A) p.get(0), (B) p.get(1));
    }

    @SuppressWarnings("unchecked")
    static <A, B, C> Codec.Tuple3<A, B, C> tuple3(List<Object> p) {
        return new Codec.Tuple3<>((A) p.get(0), (B) p.get(1), (C) p.get(2));
    }

    @SuppressWarnings("unchecked")
    static <A, B, C, D> Codec.Tuple4<A, B, C, D> tuple4(List<Object> p) {
        return new Codec.Tuple4<>((A) p.get(0), (B) p.get(1), (C) p.get(2), (D) p.get(3));
    }

    /** Parts that tell their own end, but for the last, which takes the rest. */
    static final class Tuple<T> extends Codec<T> {
        private final Function<T, Object[]> split;
        private final Function<List<Object>, T> join;
        private final Codec<Object>[] parts;

        @SuppressWarnings("unchecked")
        Tuple(Function<T, Object[]> split, Function<List<Object>, T> join, Codec<?>... parts) {
            this.split = split;
            this.join = join;
            this.parts = (Codec<Object>[]) parts.clone();
            for (Codec<Object> part : this.parts) {
                part.checkKey();
                if (part.order() != KeyOrder.BYTES) {
                    throw new ZubiloException.Invalid(part + " cannot be a part of a tuple");
                }
            }
        }

        @Override
        public String tag() {
            StringBuilder tag = new StringBuilder("(");
            for (Codec<Object> part : parts) {
                tag.append(tag.length() > 1 ? "," : "").append(part.tag());
            }
            return tag.append(")").toString();
        }

        @Override
        int width() {
            int width = 0;
            for (Codec<Object> part : parts) {
                width = width < 0 || part.width() < 0 ? -1 : width + part.width();
            }
            return width;
        }

        @Override
        public Comparator<T> comparator() {
            return (x, y) -> {
                Object[] a = split.apply(x);
                Object[] b = split.apply(y);
                int order = 0;
                for (int i = 0; i < parts.length && order == 0; i++) {
                    order = parts[i].comparator().compare(a[i], b[i]);
                }
                return order;
            };
        }

        @Override
        void write(T value, ByteArrayOutputStream out) {
            Object[] values = split.apply(value);
            for (int i = 0; i < parts.length - 1; i++) {
                parts[i].writePart(values[i], out);
            }
            parts[parts.length - 1].write(values[parts.length - 1], out);
        }

        @Override
        T read(byte[] bytes) {
            Input in = new Input(bytes);
            List<Object> values = new ArrayList<>();
            for (int i = 0; i < parts.length - 1; i++) {
                values.add(parts[i].readPart(in));
            }
            values.add(parts[parts.length - 1].read(in.rest()));
            return join.apply(values);
        }

        @Override
        void writePart(T value, ByteArrayOutputStream out) {
            Object[] values = split.apply(value);
            for (int i = 0; i < parts.length; i++) {
                parts[i].writePart(values[i], out);
            }
        }

        @Override
        T readPart(Input in) {
            List<Object> values = new ArrayList<>();
            for (Codec<Object> part : parts) {
                values.add(part.readPart(in));
            }
            return join.apply(values);
        }
    }

    /** A codec of the program's, for values. */
    static final class Own<T> extends Codec<T> {
        private final String tag;
        private final Function<T, byte[]> encode;
        private final Function<Bytes, T> decode;

        Own(String tag, Function<T, byte[]> encode, Function<Bytes, T> decode) {
            this.tag = tag;
            this.encode = encode;
            this.decode = decode;
        }

        @Override
        public String tag() {
            return tag;
        }

        @Override
        void checkKey() {
            throw new ZubiloException.Invalid(tag + " is for values: nothing is known of its order");
        }

        @Override
        public Comparator<T> comparator() {
            checkKey();
            return null;
        }

        @Override
        void write(T value, ByteArrayOutputStream out) {
            out.writeBytes(encode.apply(value));
        }

        @Override
        T read(byte[] bytes) {
            return decode.apply(Bytes.of(bytes));
        }

        @Override
        void writePart(T value, ByteArrayOutputStream out) {
            checkKey();
        }

        @Override
        T readPart(Input in) {
            checkKey();
            return null;
        }
    }
}
