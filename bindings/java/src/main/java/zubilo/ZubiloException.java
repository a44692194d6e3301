package zubilo;

/**
 * What can go wrong in a store. The message says what happened and what to do. After an exception store
 * and transaction are in a defined state: nothing of the failed operation was done, unless its
 * description says otherwise.
 *
 * <p>Each kind is a class of its own, nested in this one.
 */
public class ZubiloException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * An exception with a message.
     *
     * @param message what happened and what to do
     */
    protected ZubiloException(String message) {
        super(message);
    }

    /** A system call failed. */
    public static final class Io extends ZubiloException {
        private static final long serialVersionUID = 1L;
        /** The system's number of the error. */
        private final int errno;

        Io(String message, long errno) {
            super(message);
            this.errno = (int) errno;
        }

        /**
         * The system's number of the error.
         *
         * @return the number ({@code errno}), 0 if there is none
         */
        public int errno() {
            return errno;
        }
    }

    /** The process gets no more native memory. */
    public static final class OutOfNativeMemory extends ZubiloException {
        private static final long serialVersionUID = 1L;

        OutOfNativeMemory(String message) {
            super(message);
        }
    }

    /** A page holds what no writer of this format writes. Check the store; restore it from a copy. */
    public static final class Corrupted extends ZubiloException {
        private static final long serialVersionUID = 1L;
        /** Number of the damaged page. */
        private final long page;

        Corrupted(String message, long page) {
            super(message);
            this.page = page;
        }

        /**
         * The damaged page.
         *
         * @return its number
         */
        public long page() {
            return page;
        }
    }

    /** The file is no store; it was left as it is. */
    public static final class NotAStore extends ZubiloException {
        private static final long serialVersionUID = 1L;

        NotAStore(String message) {
            super(message);
        }
    }

    /** The store has a newer format than this library knows. */
    public static final class NewerFormat extends ZubiloException {
        private static final long serialVersionUID = 1L;

        NewerFormat(String message) {
            super(message);
        }
    }

    /** An option or argument cannot be used. */
    public static final class Invalid extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Invalid(String message) {
            super(message);
        }
    }

    /** A key, or one of many values of a key, is too long for this page size. */
    public static final class TooLong extends ZubiloException {
        private static final long serialVersionUID = 1L;
        /** Bytes that were given. */
        private final long length;
        /** Bytes at most. */
        private final long limit;

        TooLong(String message, long length, long limit) {
            super(message);
            this.length = length;
            this.limit = limit;
        }

        /**
         * The length that was given.
         *
         * @return bytes
         */
        public long length() {
            return length;
        }

        /**
         * The greatest length.
         *
         * @return bytes
         */
        public long limit() {
            return limit;
        }
    }

    /** The key has several values, and the change does not say which one it means. */
    public static final class ManyValues extends ZubiloException {
        private static final long serialVersionUID = 1L;

        ManyValues(String message) {
            super(message);
        }
    }

    /** The store has reached its upper bound. Abort, free something or raise the bound. */
    public static final class Full extends ZubiloException {
        private static final long serialVersionUID = 1L;
        /** Bytes at most. */
        private final long limit;

        Full(String message, long limit) {
            super(message);
            this.limit = limit;
        }

        /**
         * The upper bound.
         *
         * @return bytes
         */
        public long limit() {
            return limit;
        }
    }

    /** All slots of the reader table are taken. Close readers, or open with more. */
    public static final class ReadersFull extends ZubiloException {
        private static final long serialVersionUID = 1L;

        ReadersFull(String message) {
            super(message);
        }
    }

    /** Somebody else holds what the call needs, and waiting would never end or was not asked for. */
    public static final class Busy extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Busy(String message) {
            super(message);
        }
    }

    /** A flush failed earlier, so nothing more is acknowledged. Close and open the store. */
    public static final class Poisoned extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Poisoned(String message) {
            super(message);
        }
    }

    /** The store was opened for reading only. */
    public static final class ReadOnly extends ZubiloException {
        private static final long serialVersionUID = 1L;

        ReadOnly(String message) {
            super(message);
        }
    }

    /** No table has this name, or it was dropped, or its nested level was undone. */
    public static final class NoSuchTable extends ZubiloException {
        private static final long serialVersionUID = 1L;

        NoSuchTable(String message) {
            super(message);
        }
    }

    /** A table of this name exists. */
    public static final class TableExists extends ZubiloException {
        private static final long serialVersionUID = 1L;

        TableExists(String message) {
            super(message);
        }
    }

    /** The table has other options than those asked for, or needs a comparator, which Java cannot give. */
    public static final class Incompatible extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Incompatible(String message) {
            super(message);
        }
    }

    /** An earlier error ended the transaction; it can only be closed. */
    public static final class Broken extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Broken(String message) {
            super(message);
        }
    }

    /** The store or transaction was closed. */
    public static final class Closed extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Closed(String message) {
            super(message);
        }
    }

    /** The transaction belongs to another thread. */
    public static final class WrongThread extends ZubiloException {
        private static final long serialVersionUID = 1L;

        WrongThread(String message) {
            super(message);
        }
    }

    /** Bytes in the store are no value of the type that they are read as. */
    public static final class Decode extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Decode(String message) {
            super(message);
        }
    }

    /** The table was made for other types. */
    public static final class Types extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Types(String message) {
            super(message);
        }
    }

    /** A bug in the library. */
    public static final class Internal extends ZubiloException {
        private static final long serialVersionUID = 1L;

        Internal(String message) {
            super(message);
        }
    }
}
