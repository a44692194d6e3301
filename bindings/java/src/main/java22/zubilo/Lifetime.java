package zubilo;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** How long views of the map are valid: as long as an arena, which a transaction closes when it ends. */
final class Lifetime {
    private final Arena arena;
    /**
     * All of memory, to read. It never leaves the package: what users get are parts of it that are values.
     * They share its scope, so they end with the arena, and they cannot be made larger without native access.
     */
    private final MemorySegment memory;

    private Lifetime(Arena arena) {
        this.arena = arena;
        memory = MemorySegment.NULL.reinterpret(Long.MAX_VALUE, arena, null).asReadOnly();
    }

    static Lifetime open(boolean shared) {
        return new Lifetime(shared ? Arena.ofShared() : Arena.ofConfined());
    }

    Object anchor() {
        return arena.scope();
    }

    Bytes view(long at, long len) {
        return new MappedBytes(memory, at, len);
    }

    byte[] copy(long at, long len) {
        byte[] copy = new byte[Bytes.arrayLength(len)];
        MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, at, copy, 0, copy.length);
        return copy;
    }

    boolean isOpen() {
        return arena.scope().isAlive();
    }

    void close() {
        arena.close();
    }
}
