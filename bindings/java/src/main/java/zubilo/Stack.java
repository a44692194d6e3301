package zubilo;

/**
 * Looks for room on the stack before something is begun that must not be left half-way: a lock that is taken and not
 * given back would stop all writers. A {@link StackOverflowError} comes from any call, so it must come before.
 */
final class Stack {
    private Stack() {}

    /** What the JVM keeps for itself and for native code at the end of a stack, and as much again as this package needs. */
    private static final long NEEDED = 136 << 10;
    /** Room for changes of others. */
    private static final long AMPLE = 384 << 10;

    /** What must be left to begin something, so that as deep as that it can also be ended. */
    private static final long NEEDED_TO_BEGIN = NEEDED + (64 << 10);

    /** Throws where there is too little to end a transaction. */
    static void checkEnd() {
        require(NEEDED);
    }

    /** Throws where there is too little to begin one. */
    static void check() {
        require(NEEDED_TO_BEGIN);
    }

    private static void require(long bytes) {
        if (Native.stack() < bytes) {
            throw new StackOverflowError("no room on the stack to begin or end a transaction");
        }
    }

    /** Whether there is so much that changes of other threads can be run here. */
    static boolean isAmple() {
        return Native.stack() >= AMPLE;
    }
}
