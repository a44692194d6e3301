package zubilo;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/**
 * Bytes to read: a key or a value. They are sorted and compared by content, byte by byte, unsigned, the
 * shorter first where one begins with the other.
 *
 * <p>What a read transaction gives on JDK 22 and newer lies in the memory map and is not copied
 * ({@link #isMapped}). It ends with its transaction: a later access throws
 * {@link IllegalStateException}, and of a transaction that belongs to a thread so does an access from
 * another one ({@code WrongThreadException}). All other bytes are copies, valid for ever.
 */
public abstract class Bytes implements Comparable<Bytes> {
    Bytes() {}

    /**
     * Bytes of an array, which is not copied: it must not change any more.
     *
     * @param array the bytes
     * @return the same bytes
     */
    public static Bytes of(byte... array) {
        return new HeapBytes(array, 0, array.length);
    }

    /**
     * The bytes of a text in UTF-8.
     *
     * @param text the text
     * @return its bytes
     */
    public static Bytes utf8(String text) {
        return of(text.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Number of bytes.
     *
     * @return bytes
     */
    public abstract long size();

    /**
     * One byte.
     *
     * @param index its place, from 0
     * @return the byte
     * @throws IndexOutOfBoundsException if there is none at this place
     */
    public abstract byte get(long index);

    /**
     * Four bytes as a number, the most significant first.
     *
     * @param index the place of the first, from 0
     * @return the number
     * @throws IndexOutOfBoundsException if there are not so many
     */
    public abstract int getInt(long index);

    /**
     * Eight bytes as a number, the most significant first.
     *
     * @param index the place of the first, from 0
     * @return the number
     * @throws IndexOutOfBoundsException if there are not so many
     */
    public abstract long getLong(long index);

    /**
     * Copies bytes into an array.
     *
     * @param from place of the first byte, from 0
     * @param target where to
     * @param start place in the array
     * @param length how many
     * @throws IndexOutOfBoundsException if there are not so many, or there is no room for them
     */
    public abstract void copyTo(long from, byte[] target, int start, int length);

    /**
     * A part of these bytes, with the same lifetime.
     *
     * @param from place of the first byte, from 0
     * @param length how many
     * @return the part
     * @throws IndexOutOfBoundsException if there are not so many
     */
    public abstract Bytes slice(long from, long length);

    /**
     * The bytes as a buffer to read, big-endian. If they lie in the map the buffer ends with the transaction
     * as they do.
     *
     * @return a buffer, from the first byte to the last
     * @throws ZubiloException.Invalid if there are more than 2 GiB
     */
    public abstract ByteBuffer asByteBuffer();

    /**
     * Whether the bytes lie in the map and end with their transaction.
     *
     * @return false for copies
     */
    public boolean isMapped() {
        return false;
    }

    /**
     * The bytes as a class of the platform: {@link ByteBuffer}, {@code byte[]}, and, if {@link #isMapped()},
     * {@code java.lang.foreign.MemorySegment}: read-only, with the transaction's arena as its scope.
     *
     * @param <T> the class
     * @param type the class
     * @return the bytes
     * @throws ZubiloException.Invalid if they cannot be had so
     */
    public <T> T unwrap(Class<T> type) {
        if (type == ByteBuffer.class) {
            return type.cast(asByteBuffer());
        }
        if (type == byte[].class) {
            return type.cast(toByteArray());
        }
        throw new ZubiloException.Invalid("these bytes cannot be had as " + type.getName());
    }

    /**
     * A copy in an array.
     *
     * @return a new array
     * @throws ZubiloException.Invalid if there are more than 2 GiB
     */
    public byte[] toByteArray() {
        byte[] copy = new byte[arrayLength(size())];
        copyTo(0, copy, 0, copy.length);
        return copy;
    }

    /**
     * The text that the bytes are in UTF-8.
     *
     * @return the text
     * @throws ZubiloException.Decode if they are no UTF-8
     */
    public String utf8() {
        byte[] copy = toByteArray();
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(copy)).toString();
        } catch (CharacterCodingException e) {
            throw new ZubiloException.Decode("the bytes are no UTF-8");
        }
    }

    static int arrayLength(long size) {
        if (size > Integer.MAX_VALUE - 8) {
            throw new ZubiloException.Invalid("more than 2 GiB cannot be one array; read a part of it");
        }
        return (int) size;
    }

    @Override
    public int compareTo(Bytes other) {
        long both = Math.min(size(), other.size());
        for (long i = 0; i < both; i++) {
            int order = Byte.compareUnsigned(get(i), other.get(i));
            if (order != 0) {
                return order;
            }
        }
        return Long.compare(size(), other.size());
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Bytes && size() == ((Bytes) other).size() && compareTo((Bytes) other) == 0;
    }

    @Override
    public int hashCode() {
        int hash = 1;
        long size = size();
        for (long i = 0; i < size; i++) {
            hash = 31 * hash + get(i);
        }
        return hash;
    }

    /** The first bytes in hexadecimal, and how many there are. */
    @Override
    public String toString() {
        long size = size();
        StringBuilder text = new StringBuilder();
        for (long i = 0; i < Math.min(size, 32); i++) {
            text.append(String.format("%02x", get(i)));
        }
        return text.append(size > 32 ? "... (" + size + " bytes)" : "").toString();
    }

    /** Bytes on Java's heap: a part of an array that nobody changes. */
    static final class HeapBytes extends Bytes {
        private final byte[] array;
        private final int start;
        private final int size;

        HeapBytes(byte[] array, int start, int size) {
            this.array = array;
            this.start = start;
            this.size = size;
        }

        @Override
        public long size() {
            return size;
        }

        @Override
        public byte get(long index) {
            return array[start + Objects.checkIndex((int) Objects.checkIndex(index, (long) size), size)];
        }

        @Override
        public int getInt(long index) {
            return at(index, 4).getInt();
        }

        @Override
        public long getLong(long index) {
            return at(index, 8).getLong();
        }

        private ByteBuffer at(long index, int length) {
            Objects.checkFromIndexSize(index, length, (long) size);
            return ByteBuffer.wrap(array, start + (int) index, length).order(ByteOrder.BIG_ENDIAN);
        }

        @Override
        public void copyTo(long from, byte[] target, int place, int length) {
            Objects.checkFromIndexSize(from, length, (long) size);
            System.arraycopy(array, start + (int) from, target, place, length);
        }

        @Override
        public Bytes slice(long from, long length) {
            Objects.checkFromIndexSize(from, length, (long) size);
            return new HeapBytes(array, start + (int) from, (int) length);
        }

        @Override
        public ByteBuffer asByteBuffer() {
            return ByteBuffer.wrap(array, start, size).slice().asReadOnlyBuffer();
        }

        @Override
        public int compareTo(Bytes other) {
            if (other instanceof HeapBytes) {
                HeapBytes heap = (HeapBytes) other;
                return Arrays.compareUnsigned(array, start, start + size,
                        heap.array, heap.start, heap.start + heap.size);
            }
            return super.compareTo(other);
        }
    }
}
