package zubilo;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Many threads share one commit. Whoever finds no leader becomes one: it begins the write transaction, runs all
 * changes that wait, each in a nested level, commits once and hands out what came of them. While it waits for the disk
 * the next batch gathers.
 *
 * <p>The writer lock belongs to a thread of the system, so leaders are platform threads, with enough stack for the
 * changes of others. All other callers, and those who do not wait, are served by a thread of the library's.
 */
final class GroupCommit {
    /** Changes that share a commit, at most. */
    private static final int BATCH_MAX = 1024;
    /** Longest wait for changes that are likely to come: a fraction of a flush. */
    private static final long GATHER_NANOS = 50_000;
    private static final long IDLE_SECONDS = 10;

    private final Env env;
    private final ReentrantLock lock = new ReentrantLock();
    /** What the library's thread waits for. The others are parked, each with its ticket. */
    private final Condition work = lock.newCondition();
    private final ArrayDeque<Ticket<?>> waiting = new ArrayDeque<>();
    /** Set under the lock. */
    private volatile boolean leading;
    private boolean serving;
    private boolean closed;
    /** Changes that the last leader found: so many are likely to come again. */
    private volatile int expected;
    private volatile int queued;
    private volatile Thread running;

    GroupCommit(Env env) {
        this.env = env;
    }

    /** A change and what came of it. */
    private static final class Ticket<T> {
        final WriteTxn.Change<T, ?> change;
        /** Who gets the result, if nobody waits for it. */
        final CompletableFuture<T> future;
        /** Who waits for it, and whether that thread may lead. */
        final Thread waiter;
        final boolean mayLead;
        T result;
        Throwable thrown;
        /** The last thing that is written: result and exception can be read then. */
        volatile boolean ended;

        Ticket(WriteTxn.Change<T, ?> change, CompletableFuture<T> future) {
            this.change = change;
            this.future = future;
            waiter = future == null ? Thread.currentThread() : null;
            mayLead = future == null && !Native.isVirtual() && Stack.isAmple();
        }

        void run(WriteTxn txn) {
            try {
                result = change.apply(txn);
            } catch (Throwable t) {
                thrown = t;
            }
        }

        /** After the end: wakes who waits. */
        void tell() {
            if (waiter != null) {
                if (waiter != Thread.currentThread()) {
                    LockSupport.unpark(waiter);
                }
                return;
            }
            // Not on the thread that commits: what depends on it may take long.
            CompletableFuture.runAsync(() -> {
                if (thrown != null) {
                    future.completeExceptionally(thrown);
                } else {
                    future.complete(result);
                }
            });
        }
    }

    /** Whether a thread is just running changes. */
    boolean isRunning(Thread thread) {
        return running == thread;
    }

    <T, X extends Exception> T update(WriteTxn.Change<T, X> change) throws X {
        Stack.check();
        Ticket<T> ticket = new Ticket<>(change, null);
        lock.lock();
        try {
            env.handle();
            add(ticket, !ticket.mayLead);
        } finally {
            lock.unlock();
        }
        while (!ticket.ended) {
            if (ticket.mayLead && !leading) {
                leadIfNobodyDoes(ticket);
            } else {
                await(ticket);
            }
        }
        if (ticket.thrown != null) {
            GroupCommit.<X>rethrow(ticket.thrown);
        }
        return ticket.result;
    }

    private void leadIfNobodyDoes(Ticket<?> ticket) {
        lock.lock();
        try {
            if (!leading && !ticket.ended) {
                lead();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until the change is done, or until this thread can lead. Whoever ends a batch wakes the waiters of that batch
     * and one of those that are left: nobody else has anything to do.
     */
    private void await(Ticket<?> ticket) {
        boolean interrupted = false;
        while (!ticket.ended && (leading || !ticket.mayLead)) {
            LockSupport.park(this);
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    <T> CompletableFuture<T> updateAsync(WriteTxn.Change<T, ?> change) {
        Stack.check();
        CompletableFuture<T> future = new CompletableFuture<>();
        lock.lock();
        try {
            add(new Ticket<>(change, future), true);
        } finally {
            lock.unlock();
        }
        return future;
    }

    @SuppressWarnings("unchecked")
    private static <X extends Throwable> void rethrow(Throwable thrown) throws X {
        throw (X) thrown;
    }

    private void add(Ticket<?> ticket, boolean serve) {
        if (serve) {
            serve();
        }
        waiting.add(ticket);
        queued = waiting.size();
    }

    /** Sees to it that the library's thread runs. The lock is held. */
    private void serve() {
        if (serving) {
            work.signal();
            return;
        }
        Thread thread = new Thread(this::served, "zubilo-updates");
        thread.setDaemon(true);
        thread.start();
        serving = true;
    }

    private void served() {
        lock.lock();
        try {
            while (true) {
                if (!waiting.isEmpty() && !leading) {
                    lead();
                } else if (closed && waiting.isEmpty() || !idle()) {
                    return;
                }
            }
        } finally {
            serving = false;
            lock.unlock();
        }
    }

    /** Waits for work; false if none came for a while. */
    private boolean idle() {
        try {
            return work.await(IDLE_SECONDS, TimeUnit.SECONDS) || !waiting.isEmpty();
        } catch (InterruptedException e) {
            return true;
        }
    }

    /** Wakes the library's thread: the store was closed. What waits gets that error. */
    void close() {
        lock.lock();
        try {
            closed = true;
            work.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Takes a batch and commits it. The lock is held, given back meanwhile, and held again. */
    private void lead() {
        leading = true;
        List<Ticket<?>> batch = new ArrayList<>();
        Throwable failed = null;
        lock.unlock();
        try {
            gather();
            env.turn.acquireUninterruptibly();
            try {
                long txn = Failures.check(Native.write(env.handle(), 1));
                take(batch);
                running = Thread.currentThread();
                run(txn, batch);
            } finally {
                running = null;
                env.turn.release();
            }
        } catch (Throwable t) {
            failed = t;
        } finally {
            lock.lock();
            end(batch, failed);
            // Others may go on meanwhile.
            lock.unlock();
            batch.forEach(Ticket::tell);
            lock.lock();
        }
    }

    /** The batch is over; if it did not even begin, nobody waits for another leader. The lock is held. */
    private void end(List<Ticket<?>> batch, Throwable failed) {
        if (failed != null && batch.isEmpty()) {
            batch.addAll(waiting);
            waiting.clear();
            queued = 0;
        }
        for (Ticket<?> ticket : batch) {
            if (failed != null && ticket.thrown == null) {
                ticket.thrown = failed;
            }
            ticket.ended = true;
        }
        leading = false;
        Ticket<?> next = waiting.peek();
        if (next != null && next.mayLead) {
            LockSupport.unpark(next.waiter);
        } else if (next != null) {
            work.signal();
        }
    }

    /** Lets the threads that shared the last commit queue their next changes: they were woken just now. */
    private void gather() {
        int likely = expected;
        if (likely <= 1) {
            return;
        }
        long start = System.nanoTime();
        while (queued < likely && System.nanoTime() - start < GATHER_NANOS) {
            Thread.yield();
        }
    }

    private void take(List<Ticket<?>> batch) {
        lock.lock();
        try {
            while (!waiting.isEmpty() && batch.size() < BATCH_MAX) {
                batch.add(waiting.poll());
            }
            expected = batch.size();
            queued = waiting.size();
        } finally {
            lock.unlock();
        }
    }

    /** Runs the changes in a transaction and commits it, whatever they throw. */
    private void run(long handle, List<Ticket<?>> batch) {
        boolean commit = false;
        try {
            if (batch.size() == 1) {
                Ticket<?> only = batch.get(0);
                alone(handle, only);
                commit = only.thrown == null;
            } else {
                for (Ticket<?> ticket : batch) {
                    nested(handle, ticket);
                }
                commit = true;
            }
        } finally {
            Failures.check(Native.writeEnd(handle, commit ? 1 : 0));
        }
    }

    private void alone(long handle, Ticket<?> ticket) {
        WriteTxn txn = WriteTxn.partOf(env, handle);
        ticket.run(txn);
        txn.leave();
    }

    private void nested(long handle, Ticket<?> ticket) {
        long depth = Failures.check(Native.nested(handle, 0, 0));
        alone(handle, ticket);
        long ended = Native.nested(handle, ticket.thrown == null ? 1 : 2, depth);
        if (ended < 0 && ticket.thrown == null) {
            ticket.thrown = Failures.of(ended);
        }
    }
}
