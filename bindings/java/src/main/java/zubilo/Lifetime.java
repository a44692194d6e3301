package zubilo;

/**
 * How long views of the map are valid. On JDK 17 to 21, this class, there are none: values are copies. For
 * JDK 22 and newer there is another class of this name, with an arena.
 */
final class Lifetime {
    private Lifetime() {}

    static Lifetime open(boolean shared) {
        return new Lifetime();
    }

    /** Becomes unreachable when nothing can reach the map any more. */
    Object anchor() {
        return this;
    }

    /** A view of bytes of the map. */
    Bytes view(long at, long len) {
        throw new AssertionError("only on JDK 22 and newer");
    }

    /** A copy of bytes of the map. */
    byte[] copy(long at, long len) {
        throw new AssertionError("only on JDK 22 and newer");
    }

    boolean isOpen() {
        return true;
    }

    /** Ends the views: later accesses throw. */
    void close() {}
}
