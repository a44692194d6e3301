package zubilo;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Ends what the program has lost. Each store and transaction registers how it is ended with an object that
 * lives as long as anything of it can be reached; if that goes before it was closed, it is ended and a
 * warning logged.
 */
final class Leaks {
    private Leaks() {}

    private static final Cleaner CLEANER = Cleaner.create();
    private static final System.Logger LOG = System.getLogger("zubilo");
    /** Whether to note where each was opened: costs time. */
    private static final boolean TRACE = Boolean.getBoolean("zubilo.traceLeaks");

    /** A handle and what must be known to end it; it must not refer to the object that it is registered with. */
    static final class Handle implements Runnable {
        final long handle;
        private final String what;
        private final Throwable opened;
        /** Whether it is a store, and whether that is made durable. */
        private final boolean env;
        private final boolean sync;
        /** What is given back when it has ended; may be null. */
        private final Runnable after;
        private final AtomicBoolean ended = new AtomicBoolean();
        private Cleaner.Cleanable cleanable;

        Handle(long handle, String what, Runnable after) {
            this(handle, what, false, false, after);
        }

        Handle(long handle, String what, boolean env, boolean sync, Runnable after) {
            this.handle = handle;
            this.what = what;
            this.env = env;
            this.sync = sync;
            this.after = after;
            opened = TRACE ? new Throwable("opened here") : null;
        }

        /** Watches over an object. */
        void watch(Object anchor) {
            cleanable = CLEANER.register(anchor, this);
        }

        /** True for the one call that may end it. */
        boolean claim() {
            boolean first = ended.compareAndSet(false, true);
            if (first && cleanable != null) {
                cleanable.clean();
            }
            return first;
        }

        boolean isEnded() {
            return ended.get();
        }

        /** The collector has found it, unless it was claimed before. */
        @Override
        public void run() {
            if (!ended.compareAndSet(false, true)) {
                return;
            }
            long answer = env ? Native.close(handle, sync ? 1 : 0) : Native.end(handle);
            if (after != null) {
                after.run();
            }
            String outcome = answer < 0 ? "; ending it failed: " + Failures.of(answer).getMessage() : "";
            LOG.log(System.Logger.Level.WARNING, what + " was lost without being closed, and was ended now"
                    + outcome + (opened == null ? "; -Dzubilo.traceLeaks=true tells where it was opened" : ""),
                    opened);
        }
    }
}
