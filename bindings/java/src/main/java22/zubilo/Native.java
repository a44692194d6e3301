package zubilo;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;

/** The native functions, by the Foreign Function and Memory API. See the class of this name for JDK 17. */
final class Native {
    private Native() {}

    static boolean isMapped() {
        return true;
    }

    private static final SymbolLookup LIBRARY;

    static {
        Path file = Loader.find();
        LIBRARY = SymbolLookup.libraryLookup(file, Arena.global());
        Loader.loaded(file);
    }

    private static MethodHandle function(String name, int arguments) {
        MemorySegment address = LIBRARY.find(name)
                .orElseThrow(() -> new UnsatisfiedLinkError("the native library lacks " + name));
        MemoryLayout[] numbers = new MemoryLayout[arguments];
        Arrays.fill(numbers, ValueLayout.JAVA_LONG);
        FunctionDescriptor type = FunctionDescriptor.of(ValueLayout.JAVA_LONG, numbers);
        return Linker.nativeLinker().downcallHandle(address, type);
    }

    private static Error rethrown(Throwable thrown) {
        if (thrown instanceof RuntimeException exception) {
            throw exception;
        }
        return thrown instanceof Error error ? error : new AssertionError(thrown);
    }

    static boolean isVirtual() {
        return Thread.currentThread().isVirtual();
    }

    static long address(ByteBuffer buffer) {
        return MemorySegment.ofBuffer(buffer).address();
    }

    static ByteBuffer buffer(long at, long len) {
        throw new AssertionError("only for JDK 17 to 21");
    }

    private static final MethodHandle INTERFACE = function("zj_interface", 0);

    static long version() {
        try {
            return (long) INTERFACE.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle STACK = function("zj_stack", 0);

    static long stack() {
        try {
            return (long) STACK.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle FAILURE = function("zj_failure", 3);

    static long failure(long failure, long out, long cap) {
        try {
            return (long) FAILURE.invokeExact(failure, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle OPEN = function("zj_open", 2);

    static long open(long at, long len) {
        try {
            return (long) OPEN.invokeExact(at, len);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle CLOSE = function("zj_close", 2);

    static long close(long handle, long sync) {
        try {
            return (long) CLOSE.invokeExact(handle, sync);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle ENV = function("zj_env", 7);

    static long env(long handle, long op, long arg, long a, long aLen, long out, long cap) {
        try {
            return (long) ENV.invokeExact(handle, op, arg, a, aLen, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle READ = function("zj_read", 1);

    static long read(long handle) {
        try {
            return (long) READ.invokeExact(handle);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle END = function("zj_end", 1);

    static long end(long handle) {
        try {
            return (long) END.invokeExact(handle);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle WRITE = function("zj_write", 2);

    static long write(long handle, long flags) {
        try {
            return (long) WRITE.invokeExact(handle, flags);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle WRITE_END = function("zj_write_end", 2);

    static long writeEnd(long handle, long commit) {
        try {
            return (long) WRITE_END.invokeExact(handle, commit);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle NESTED = function("zj_nested", 3);

    static long nested(long handle, long op, long depth) {
        try {
            return (long) NESTED.invokeExact(handle, op, depth);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle TXN = function("zj_txn", 2);

    static long txn(long handle, long op) {
        try {
            return (long) TXN.invokeExact(handle, op);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle TABLE = function("zj_table", 5);

    static long table(long handle, long name, long len, long mode, long bits) {
        try {
            return (long) TABLE.invokeExact(handle, name, len, mode, bits);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle NAMES = function("zj_names", 6);

    static long names(long handle, long op, long name, long len, long to, long toLen) {
        try {
            return (long) NAMES.invokeExact(handle, op, name, len, to, toLen);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle TABLES = function("zj_tables", 3);

    static long tables(long handle, long out, long cap) {
        try {
            return (long) TABLES.invokeExact(handle, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle GET = function("zj_get", 5);

    static long get(long handle, long table, long key, long len, long out) {
        try {
            return (long) GET.invokeExact(handle, table, key, len, out);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle GET_COPY = function("zj_get_copy", 6);

    static long getCopy(long handle, long table, long key, long len, long out, long cap) {
        try {
            return (long) GET_COPY.invokeExact(handle, table, key, len, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle GET_MANY = function("zj_get_many", 8);

    static long getMany(long handle, long table, long count, long keys, long len, long out, long cap, long copy) {
        try {
            return (long) GET_MANY.invokeExact(handle, table, count, keys, len, out, cap, copy);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle SCAN = function("zj_scan", 8);

    static long scan(long handle, long table, long flags, long limit, long request, long len, long out, long cap) {
        try {
            return (long) SCAN.invokeExact(handle, table, flags, limit, request, len, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle VALUES = function("zj_values", 8);

    static long values(long handle, long table, long flags, long limit, long request, long len, long out, long cap) {
        try {
            return (long) VALUES.invokeExact(handle, table, flags, limit, request, len, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle QUERY = function("zj_query", 7);

    static long query(long handle, long table, long op, long key, long len, long value, long valueLen) {
        try {
            return (long) QUERY.invokeExact(handle, table, op, key, len, value, valueLen);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle NTH = function("zj_nth", 8);

    static long nth(long handle, long table, long op, long n, long key, long len, long out, long cap) {
        try {
            return (long) NTH.invokeExact(handle, table, op, n, key, len, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle RANGE = function("zj_range", 5);

    static long range(long handle, long table, long op, long request, long len) {
        try {
            return (long) RANGE.invokeExact(handle, table, op, request, len);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle STATS = function("zj_stats", 4);

    static long stats(long handle, long table, long out, long cap) {
        try {
            return (long) STATS.invokeExact(handle, table, out, cap);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle CHANGE = function("zj_change", 7);

    static long change(long handle, long table, long op, long key, long len, long value, long valueLen) {
        try {
            return (long) CHANGE.invokeExact(handle, table, op, key, len, value, valueLen);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle SEQUENCE = function("zj_sequence", 3);

    static long sequence(long handle, long table, long count) {
        try {
            return (long) SEQUENCE.invokeExact(handle, table, count);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static final MethodHandle PUT_MANY = function("zj_put_many", 5);

    static long putMany(long handle, long table, long count, long records, long len) {
        try {
            return (long) PUT_MANY.invokeExact(handle, table, count, records, len);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static {
        Loader.checkVersion(version());
    }
}
