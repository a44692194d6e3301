package zubilo;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/** Bytes of the map. The segment of their own is made when somebody asks for it. */
final class MappedBytes extends Bytes {
    private static final ValueLayout.OfLong LONG =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private final MemorySegment memory;
    private final long at;
    private final long size;

    MappedBytes(MemorySegment memory, long at, long size) {
        this.memory = memory;
        this.at = at;
        this.size = size;
    }

    private MemorySegment segment() {
        return memory.asSlice(at, size);
    }

    @Override
    public long size() {
        return size;
    }

    @Override
    public byte get(long index) {
        Objects.checkIndex(index, size);
        return memory.get(ValueLayout.JAVA_BYTE, at + index);
    }

    @Override
    public int getInt(long index) {
        Objects.checkFromIndexSize(index, 4, size);
        return memory.get(INT, at + index);
    }

    @Override
    public long getLong(long index) {
        Objects.checkFromIndexSize(index, 8, size);
        return memory.get(LONG, at + index);
    }

    @Override
    public void copyTo(long from, byte[] target, int start, int length) {
        Objects.checkFromIndexSize(from, length, size);
        MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, at + from, target, start, length);
    }

    @Override
    public ByteBuffer asByteBuffer() {
        arrayLength(size);
        return segment().asByteBuffer().asReadOnlyBuffer();
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        if (type == MemorySegment.class) {
            return type.cast(segment());
        }
        return super.unwrap(type);
    }

    @Override
    public boolean isMapped() {
        return true;
    }

    @Override
    public Bytes slice(long from, long length) {
        Objects.checkFromIndexSize(from, length, size);
        return new MappedBytes(memory, at + from, length);
    }

    @Override
    public int compareTo(Bytes other) {
        if (other instanceof MappedBytes mapped) {
            long i = MemorySegment.mismatch(memory, at, at + size, mapped.memory, mapped.at, mapped.at + mapped.size);
            if (i < 0) {
                return 0;
            }
            if (i == size || i == mapped.size) {
                return Long.compare(size, mapped.size);
            }
            return Byte.compareUnsigned(get(i), mapped.get(i));
        }
        return super.compareTo(other);
    }
}
