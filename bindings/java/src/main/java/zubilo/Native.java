package zubilo;

import java.nio.ByteBuffer;
import java.nio.file.Path;

/**
 * The native functions, by JNI. For JDK 22 and newer there is another class of this name, which calls the same
 * functions by the Foreign Function and Memory API.
 *
 * <p>All arguments are numbers: handles, numbers of tables, addresses and lengths of buffers. An answer below
 * 0 is a failure.
 */
final class Native {
    private Native() {}

    /** Whether read transactions give views of the map that end with them. No constant: it would be compiled in. */
    static boolean isMapped() {
        return false;
    }

    static {
        Path file = Loader.find();
        System.load(file.toString());
        Loader.loaded(file);
        Loader.checkVersion(version());
    }

    /** Whether the current thread may move between threads of the system. */
    static boolean isVirtual() {
        return false;
    }

    /** The address of a direct buffer. */
    static native long address(ByteBuffer buffer);

    /** A buffer over bytes of the map; it keeps nothing alive. */
    static native ByteBuffer buffer(long at, long len);

    static native long version();

    static native long stack();

    static native long failure(long failure, long out, long cap);

    static native long open(long at, long len);

    static native long close(long handle, long sync);

    static native long env(long handle, long op, long arg, long a, long aLen, long out, long cap);

    static native long read(long handle);

    static native long end(long handle);

    static native long write(long handle, long flags);

    static native long writeEnd(long handle, long commit);

    static native long nested(long handle, long op, long depth);

    static native long txn(long handle, long op);

    static native long table(long handle, long name, long len, long mode, long bits);

    static native long names(long handle, long op, long name, long len, long to, long toLen);

    static native long tables(long handle, long out, long cap);

    static native long get(long handle, long table, long key, long len, long out);

    static native long getCopy(long handle, long table, long key, long len, long out, long cap);

    static native long getMany(long handle, long table, long count, long keys, long len, long out, long cap, long copy);

    static native long scan(long handle, long table, long flags, long limit, long request, long len, long out, long cap);

    static native long values(long handle, long table, long flags, long limit, long request, long len, long out, long cap);

    static native long query(long handle, long table, long op, long key, long len, long value, long valueLen);

    static native long nth(long handle, long table, long op, long n, long key, long len, long out, long cap);

    static native long range(long handle, long table, long op, long request, long len);

    static native long stats(long handle, long table, long out, long cap);

    static native long change(long handle, long table, long op, long key, long len, long value, long valueLen);

    static native long sequence(long handle, long table, long count);

    static native long putMany(long handle, long table, long count, long records, long len);
}
