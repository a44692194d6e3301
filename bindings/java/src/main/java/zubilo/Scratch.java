package zubilo;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Native memory in which a call's arguments and answers lie. A thread has one of its own; virtual threads,
 * which may be very many, borrow from a pool. Nothing of it is used after the call that took it, and no code
 * of the user's runs in between.
 */
final class Scratch {
    /** A buffer and its address. */
    static final class Room {
        final ByteBuffer buffer;
        final long at;
        final int size;

        Room(int size) {
            buffer = ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
            at = Native.address(buffer);
            this.size = size;
        }
    }

    private static final int IN = 4 << 10;
    private static final int OUT = 32 << 10;
    /** What has grown beyond this is not kept. */
    private static final int KEPT = 1 << 20;

    private static final ThreadLocal<Scratch> OWN = ThreadLocal.withInitial(() -> new Scratch(false));
    private static final ConcurrentLinkedQueue<Scratch> POOL = new ConcurrentLinkedQueue<>();

    private final boolean pooled;
    private Room in = new Room(IN);
    private Room out;

    private Scratch(boolean pooled) {
        this.pooled = pooled;
    }

    static Scratch take() {
        if (Native.isVirtual()) {
            Scratch scratch = POOL.poll();
            return scratch != null ? scratch : new Scratch(true);
        }
        return OWN.get();
    }

    /** To be called when the last answer has been read. */
    void give() {
        if (in.size > KEPT) {
            in = new Room(IN);
        }
        if (out != null && out.size > KEPT) {
            out = null;
        }
        if (pooled) {
            POOL.add(this);
        }
    }

    /** Room for arguments, of at least so many bytes. */
    Room in(long size) {
        if (in.size < size) {
            in = new Room(grown(size));
        }
        return in;
    }

    /** Room for answers; what was in it is lost if it grows. */
    Room out(long size) {
        if (out == null || out.size < size) {
            out = new Room(Math.max(grown(size), OUT));
        }
        return out;
    }

    Room out() {
        return out(16);
    }

    /** Puts one key, or name, and gives its address. */
    long put(byte[] bytes) {
        Room room = in(bytes.length);
        room.buffer.put(0, bytes, 0, bytes.length);
        return room.at;
    }

    /** Puts two, one after the other. */
    long put(byte[] a, byte[] b) {
        Room room = in((long) a.length + b.length);
        room.buffer.put(0, a, 0, a.length);
        room.buffer.put(a.length, b, 0, b.length);
        return room.at;
    }

    private static int grown(long size) {
        if (size > Integer.MAX_VALUE - 64) {
            throw new ZubiloException.Invalid("more than 2 GiB in one call; read it as a view in parts");
        }
        return (int) Math.min(Integer.MAX_VALUE - 64, Math.max(size, size + size / 2));
    }
}
