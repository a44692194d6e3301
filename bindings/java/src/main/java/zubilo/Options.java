package zubilo;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** How a store is opened. The defaults need no thought. Each method changes these options and gives them back. */
public final class Options {
    private boolean readOnly;
    private boolean create = true;
    private boolean exclusive;
    private boolean lockFile = true;
    private boolean hugePages;
    private Durability durability = Durability.SYNC;
    private int pageSize;
    private long reserve;
    private int maxReaders;
    private long dirtyLimit;
    private int mode;
    private VerifyReads verifyReads = VerifyReads.NEVER;
    private Boolean writableMap;
    private Boolean readAhead;
    private long[] geometry;
    /** Less than 0: nothing is said of it. */
    private long redoLog = -1;

    /** The defaults: pages of 4 KiB, {@link Durability#SYNC}, created if missing. */
    public Options() {}

    /** When readers verify the checksums of pages. */
    public enum VerifyReads {
        /** Not on reads; {@link Env#check} does it. */
        NEVER,
        /** Each page when it is first read after the store was opened. */
        FIRST_TOUCH,
        /** Each page each time it is read. */
        ALWAYS
    }

    /**
     * Opens for reading only; works on a read-only file system too.
     *
     * @param yes whether
     * @return this
     */
    public Options readOnly(boolean yes) {
        readOnly = yes;
        return this;
    }

    /**
     * Whether a missing store is created (default true).
     *
     * @param yes whether
     * @return this
     */
    public Options create(boolean yes) {
        create = yes;
        return this;
    }

    /**
     * Keeps every other process out while the store is open.
     *
     * @param yes whether
     * @return this
     */
    public Options exclusive(boolean yes) {
        exclusive = yes;
        return this;
    }

    /**
     * False: no lock file; the caller promises that no other process uses the store.
     *
     * @param yes whether there is a lock file
     * @return this
     */
    public Options lockFile(boolean yes) {
        lockFile = yes;
        return this;
    }

    /**
     * Asks the kernel for huge pages under the map: faster reads of read-mostly stores, slower scattered writes.
     *
     * @param yes whether
     * @return this
     */
    public Options hugePages(boolean yes) {
        hugePages = yes;
        return this;
    }

    /**
     * What commits promise.
     *
     * @param durability the mode
     * @return this
     */
    public Options durability(Durability durability) {
        this.durability = durability;
        return this;
    }

    /**
     * Page size of a new store: 4, 8, 16, 32 or 64 KiB. An existing store keeps its own.
     *
     * @param bytes the size
     * @return this
     */
    public Options pageSize(int bytes) {
        pageSize = bytes;
        return this;
    }

    /**
     * Address space to reserve (default 1 TiB; costs no memory). The file cannot grow beyond it while open.
     *
     * @param bytes the size
     * @return this
     */
    public Options reserve(long bytes) {
        reserve = bytes;
        return this;
    }

    /**
     * Slots of a new reader table (default 1024).
     *
     * @param slots how many
     * @return this
     */
    public Options maxReaders(int slots) {
        maxReaders = slots;
        return this;
    }

    /**
     * Memory for the pages that a transaction has changed; a larger one writes finished pages early. Unless
     * told, an eighth of the memory that the process may use, from 16 MiB to 4 GiB.
     *
     * @param bytes the size
     * @return this
     */
    public Options dirtyLimit(long bytes) {
        dirtyLimit = bytes;
        return this;
    }

    /**
     * Permission bits of new files (default 0644, less the umask).
     *
     * @param bits the bits
     * @return this
     */
    public Options mode(int bits) {
        mode = bits;
        return this;
    }

    /**
     * When readers verify checksums (default {@link VerifyReads#NEVER}).
     *
     * @param when when
     * @return this
     */
    public Options verifyReads(VerifyReads when) {
        verifyReads = when;
        return this;
    }

    /**
     * Whether pages are written through a writable map, with {@link Durability#NO_SYNC}. Unless told, where it is safe
     * and fast. A stray pointer of native code in this process can damage such a store.
     *
     * @param yes whether
     * @return this
     */
    public Options writableMap(boolean yes) {
        writableMap = yes;
        return this;
    }

    /**
     * Whether the kernel reads ahead. Unless told, as long as the file is not longer than memory.
     *
     * @param yes whether
     * @return this
     */
    public Options readAhead(boolean yes) {
        readAhead = yes;
        return this;
    }

    /**
     * Bounds and steps of the file's size, in bytes; stored with the next commit.
     *
     * @param lower the file is not cut below this
     * @param upper the file does not grow beyond this; 0 is as far as the reserved address space goes
     * @param growth least growth; 0 lets the store choose
     * @param shrink the file is cut when so much at its end is free; 0 lets the store choose
     * @return this
     */
    public Options geometry(long lower, long upper, long growth, long shrink) {
        geometry = new long[] {lower, upper, growth, shrink};
        return this;
    }

    /**
     * With a number of bytes, durable commits ({@link Durability#SYNC}) append what they changed to a redo log inside the file,
     * where that is less than their pages, and flush only that. Small commits are faster then, and write less. After a
     * power cut the next open makes the commits anew that are in the log only, which takes about as long as they
     * took without their flushes.
     *
     * <p>The store gets its log with the next durable commit and keeps it when it is closed. Opened without this option it
     * is left alone, and nothing is appended. 0 gives it back with the next commit: programs that write to one store in turn
     * should say the same. It begins short and grows with the store. A longer log means fewer writes, and a
     * longer open after a power cut.
     *
     * <p>Such a store has version 3 of the file format. After a power cut it cannot be opened for reading only before
     * it was opened for writing. Without a lock file nothing is appended. With {@link #writableMap} the pages of
     * such commits are stored through the map.
     *
     * @param bytes its greatest length, from 64 KiB to 1 GiB (8 MiB is a good one); 0 for none
     * @return this
     */
    public Options redoLog(long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException("a redo log cannot have " + bytes + " bytes");
        }
        redoLog = bytes;
        return this;
    }

    boolean isReadOnly() {
        return readOnly;
    }

    private static long choice(Boolean chosen) {
        return chosen == null ? 0 : chosen ? 2 : 1;
    }

    /** Opens the store natively and gives its handle. */
    long open(Path path) {
        byte[] name = path.toAbsolutePath().toString().getBytes(StandardCharsets.UTF_8);
        long flags = (readOnly ? 1 : 0) | (create ? 2 : 0) | (exclusive ? 4 : 0) | (lockFile ? 8 : 0)
                | (hugePages ? 16 : 0);
        long[] bounds = geometry == null ? new long[4] : geometry;
        long[] numbers = {flags, durability.kind, durability.bytes, durability.millis, pageSize, reserve,
            maxReaders, dirtyLimit, mode, verifyReads.ordinal(), choice(writableMap), choice(readAhead),
            geometry == null ? 0 : 1, bounds[0], bounds[1], bounds[2], bounds[3], redoLog};
        int size = numbers.length * 8 + name.length;
        Scratch scratch = Scratch.take();
        try {
            Scratch.Room in = scratch.in(size);
            ByteBuffer buffer = in.buffer.position(0);
            for (long number : numbers) {
                buffer.putLong(number);
            }
            buffer.put(name);
            return Failures.check(Native.open(in.at, size));
        } finally {
            scratch.give();
        }
    }
}
