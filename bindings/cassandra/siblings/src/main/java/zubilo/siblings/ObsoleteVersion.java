package zubilo.siblings;

/** A write knows less than a version that is stored: read again, resolve, write again. Nothing was written. */
public final class ObsoleteVersion extends RuntimeException {
    private static final long serialVersionUID = 1;

    ObsoleteVersion(VectorClock mine, VectorClock stored) {
        super("the clock " + mine.entries() + " is dominated by " + stored.entries() + ", which is stored");
    }
}
