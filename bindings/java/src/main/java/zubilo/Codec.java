package zubilo;

import java.io.ByteArrayOutputStream;
import java.util.Comparator;
import java.util.Optional;
import java.util.function.Function;

/**
 * How a type becomes bytes and comes back. The encodings are those of the Rust crate {@code zubilo-typed}, so that
 * both open the same tables. Encodings of keys, compared byte by byte, have the order of the values
 * ({@link #comparator}).
 *
 * <table>
 * <caption>Codecs and what they are in Rust</caption>
 * <tr><th>codec</th><th>Rust</th><th>encoding</th></tr>
 * <tr><td>{@link #BYTES}, {@link #UTF8}</td><td>{@code &[u8]}, {@code &str}</td><td>as they are; not last in a tuple 0
 * becomes 0 255, and 0 0 ends them</td></tr>
 * <tr><td>{@link #I8}, {@link #I16}, {@link #I32}, {@link #I64}</td><td>{@code i8} to {@code i64}</td><td>big-endian,
 * sign bit flipped</td></tr>
 * <tr><td>{@link #U8}, {@link #U16}, {@link #U32}, {@link #U64}</td><td>{@code u8} to {@code u64}</td><td>big-endian</td></tr>
 * <tr><td>{@link #F32}, {@link #F64}</td><td>{@code f32}, {@code f64}</td><td>big-endian; positive: sign bit flipped,
 * negative: all bits</td></tr>
 * <tr><td>{@link #BOOL}, {@link #CHAR}</td><td>{@code bool}, {@code char}</td><td>one byte; the number, 4 bytes</td></tr>
 * <tr><td>{@link #optional}</td><td>{@code Option}</td><td>0, or 1 and the value</td></tr>
 * <tr><td>{@link #tuple(Codec, Codec)}</td><td>tuples</td><td>one part after the other</td></tr>
 * <tr><td>{@link #NATIVE_U32}, {@link #NATIVE_U64}</td><td>{@code Native}</td><td>little-endian, in a table of
 * {@link KeyOrder#INTEGER}</td></tr>
 * </table>
 *
 * @param <T> the type
 */
public abstract class Codec<T> {
    /** Byte strings. */
    public static final Codec<byte[]> BYTES = new Codecs.ByteString();
    /** Texts, in UTF-8; sorted by the numbers of their characters, which is not quite the order of {@link String}. */
    public static final Codec<String> UTF8 = new Codecs.Text();
    /** Signed numbers of one byte. */
    public static final Codec<Byte> I8 = Codecs.number("i8", 1, n -> n.longValue() ^ 0x80, n -> (byte) (n ^ 0x80),
            Comparator.<Byte>naturalOrder());
    /** Signed numbers of two bytes. */
    public static final Codec<Short> I16 = Codecs.number("i16", 2, n -> n.longValue() ^ 0x8000,
            n -> (short) (n ^ 0x8000), Comparator.<Short>naturalOrder());
    /** Signed numbers of four bytes. */
    public static final Codec<Integer> I32 = Codecs.number("i32", 4, n -> n.longValue() ^ 0x8000_0000L,
            n -> (int) (n ^ 0x8000_0000L), Comparator.<Integer>naturalOrder());
    /** Signed numbers of eight bytes. */
    public static final Codec<Long> I64 = Codecs.number("i64", 8, n -> n ^ Long.MIN_VALUE, n -> n ^ Long.MIN_VALUE,
            Comparator.<Long>naturalOrder());
    /** Unsigned numbers of one byte, as 0 to 255. */
    public static final Codec<Integer> U8 = Codecs.unsigned("u8", 1, Integer::longValue, n -> (int) (long) n);
    /** Unsigned numbers of two bytes, as 0 to 65535. */
    public static final Codec<Integer> U16 = Codecs.unsigned("u16", 2, Integer::longValue, n -> (int) (long) n);
    /** Unsigned numbers of four bytes, as 0 to 4294967295. */
    public static final Codec<Long> U32 = Codecs.unsigned("u32", 4, n -> n, n -> n);
    /** Unsigned numbers of eight bytes: {@link Long#compareUnsigned} is their order. */
    public static final Codec<Long> U64 = Codecs.number("u64", 8, n -> n, n -> n, Long::compareUnsigned);
    /** Floating-point numbers of four bytes; in the order of {@link Float#compare}, and NaN with a sign before all. */
    public static final Codec<Float> F32 = Codecs.number("f32", 4, Codecs::floatBits, Codecs::bitsFloat,
            Comparator.comparingLong(Codecs::floatBits));
    /** Floating-point numbers of eight bytes; in the order of {@link Double#compare}, and NaN with a sign before all. */
    public static final Codec<Double> F64 = Codecs.number("f64", 8, Codecs::doubleBits, Codecs::bitsDouble,
            (a, b) -> Long.compareUnsigned(Codecs.doubleBits(a), Codecs.doubleBits(b)));
    /** Truth values. */
    public static final Codec<Boolean> BOOL = Codecs.number("bool", 1, b -> b ? 1L : 0L, Codecs::truth,
            Comparator.<Boolean>naturalOrder());
    /** Characters by their numbers ({@link String#codePointAt}); halves of pairs are none. */
    public static final Codec<Integer> CHAR = Codecs.number("char", 4, Codecs::character, Codecs::character,
            Comparator.<Integer>naturalOrder());
    /** Unsigned numbers of four bytes for tables shared with programs of LMDB's {@code INTEGERKEY}. Not in tuples. */
    public static final Codec<Long> NATIVE_U32 = new Codecs.LittleEndian("native-u32", 4);
    /** Unsigned numbers of eight bytes for such tables. Not in tuples. */
    public static final Codec<Long> NATIVE_U64 = new Codecs.LittleEndian("native-u64", 8);

    Codec() {}

    /**
     * A codec of the program's own, for values only: nothing is known of its order.
     *
     * @param <T> the type
     * @param tag what the encoding is called in the store; tables of another one are refused
     * @param encode gives the bytes
     * @param decode gives the value; what it throws reaches the caller
     * @return the codec
     */
    public static <T> Codec<T> value(String tag, Function<T, byte[]> encode, Function<Bytes, T> decode) {
        return new Codecs.Own<>(tag, encode, decode);
    }

    /**
     * A value that may be missing; missing sorts first.
     *
     * @param <T> the type
     * @param of its codec
     * @return the codec
     */
    public static <T> Codec<Optional<T>> optional(Codec<T> of) {
        return new Codecs.Maybe<>(of);
    }

    /**
     * Two parts, sorted by the first, then by the second.
     *
     * @param <A> the first type
     * @param <B> the second type
     * @param a codec of the first part
     * @param b codec of the second part
     * @return the codec
     */
    public static <A, B> Codec<Tuple2<A, B>> tuple(Codec<A> a, Codec<B> b) {
        return new Codecs.Tuple<>(t -> new Object[] {t.a(), t.b()}, Codecs::tuple2, a, b);
    }

    /**
     * Three parts, sorted one after the other.
     *
     * @param <A> the first type
     * @param <B> the second type
     * @param <C> the third type
     * @param a codec of the first part
     * @param b codec of the second part
     * @param c codec of the third part
     * @return the codec
     */
    public static <A, B, C> Codec<Tuple3<A, B, C>> tuple(Codec<A> a, Codec<B> b, Codec<C> c) {
        return new Codecs.Tuple<>(t -> new Object[] {t.a(), t.b(), t.c()}, Codecs::tuple3, a, b, c);
    }

    /**
     * Four parts, sorted one after the other.
     *
     * @param <A> the first type
     * @param <B> the second type
     * @param <C> the third type
     * @param <D> the fourth type
     * @param a codec of the first part
     * @param b codec of the second part
     * @param c codec of the third part
     * @param d codec of the fourth part
     * @return the codec
     */
    public static <A, B, C, D> Codec<Tuple4<A, B, C, D>> tuple(Codec<A> a, Codec<B> b, Codec<C> c, Codec<D> d) {
        return new Codecs.Tuple<>(t -> new Object[] {t.a(), t.b(), t.c(), t.d()}, Codecs::tuple4, a, b, c, d);
    }

    /**
     * Two values in one key or value.
     *
     * @param <A> the first type
     * @param <B> the second type
     * @param a the first part
     * @param b the second part
     */
    public record Tuple2<A, B>(A a, B b) {}

    /**
     * Three values in one key or value.
     *
     * @param <A> the first type
     * @param <B> the second type
     * @param <C> the third type
     * @param a the first part
     * @param b the second part
     * @param c the third part
     */
    public record Tuple3<A, B, C>(A a, B b, C c) {}

    /**
     * Four values in one key or value.
     *
     * @param <A> the first type
     * @param <B> the second type
     * @param <C> the third type
     * @param <D> the fourth type
     * @param a the first part
     * @param b the second part
     * @param c the third part
     * @param d the fourth part
     */
    public record Tuple4<A, B, C, D>(A a, B b, C c, D d) {}

    /**
     * What the encoding is called in the store.
     *
     * @return the tag
     */
    public abstract String tag();

    /**
     * Encodes a value.
     *
     * @param value the value
     * @return its bytes
     * @throws IllegalArgumentException if it has no encoding
     */
    public final byte[] encode(T value) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        write(value, out);
        return out.toByteArray();
    }

    /**
     * Reads an encoding back.
     *
     * @param bytes the bytes
     * @return the value
     * @throws ZubiloException.Decode if they are none that {@link #encode} gives
     */
    public final T decode(Bytes bytes) {
        return read(bytes.toByteArray());
    }

    /**
     * The order of the encodings, for the values.
     *
     * @return the order
     * @throws ZubiloException.Invalid if the codec is for values only
     */
    public abstract Comparator<T> comparator();

    abstract void write(T value, ByteArrayOutputStream out);

    abstract T read(byte[] bytes);

    /** Writes an encoding that tells its own end. */
    abstract void writePart(T value, ByteArrayOutputStream out);

    /** Reads it off the front. */
    abstract T readPart(Codecs.Input in);

    /** Length of each encoding, or -1. */
    int width() {
        return -1;
    }

    KeyOrder order() {
        return KeyOrder.BYTES;
    }

    /** Refuses to be a key, or a part of one. */
    void checkKey() {}

    @Override
    public String toString() {
        return tag();
    }
}
