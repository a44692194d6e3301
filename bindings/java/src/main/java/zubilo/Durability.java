package zubilo;

import java.time.Duration;

/** What a commit promises when it returns. In each mode the end of the process loses no commit. */
public final class Durability {
    /** On disk: nothing acknowledged is lost, whatever happens. One flush a commit. */
    public static final Durability SYNC = new Durability(0, 0, 0);

    /** {@link #lazy} with 32 MiB and one second. */
    public static final Durability LAZY = lazy(32 << 20, Duration.ofSeconds(1));

    /** In the kernel; flushed only by {@link Env#sync} and {@link Env#close}. */
    public static final Durability NO_SYNC = new Durability(2, 0, 0);

    final long kind;
    final long bytes;
    final long millis;

    private Durability(long kind, long bytes, long millis) {
        this.kind = kind;
        this.bytes = bytes;
        this.millis = millis;
    }

    /**
     * In the kernel; a thread of the library flushes. After a power cut the store is in the state of a recent
     * commit, at most as old as these bounds and the time of one flush.
     *
     * @param bytes flush after so many bytes were committed
     * @param period flush when a commit has waited so long; milliseconds count
     * @return the mode
     */
    public static Durability lazy(long bytes, Duration period) {
        if (bytes < 0 || period.isNegative()) {
            throw new IllegalArgumentException("bounds of a lazy commit cannot be negative");
        }
        return new Durability(1, bytes, period.toMillis());
    }

    @Override
    public String toString() {
        return kind == 0 ? "SYNC" : kind == 2 ? "NO_SYNC" : "LAZY[" + bytes + " bytes, " + millis + " ms]";
    }
}
