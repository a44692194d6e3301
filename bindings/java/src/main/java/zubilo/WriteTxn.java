package zubilo;

import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;

/**
 * The transaction that changes the store. There is one at a time, over all threads and processes; nobody sees
 * its changes before {@link #commit}. Closed without a commit it leaves no trace.
 *
 * <p>One of {@link Env#write} may be used by any thread, one at a time, and be handed on. One that
 * {@link Env#update} gives belongs to the thread that runs the change, and ends with it.
 *
 * <p>What it reads are copies, which stay valid.
 */
public final class WriteTxn extends Transaction {
    /**
     * A change of the store.
     *
     * @param <T> what it gives
     * @param <X> what it throws
     */
    @FunctionalInterface
    public interface Change<T, X extends Exception> {
        /**
         * Makes the change.
         *
         * @param txn the transaction
         * @return anything
         * @throws X to undo it
         */
        T apply(WriteTxn txn) throws X;
    }

    private final Leaks.Handle ending;
    /** Part of a group: it is committed by others. */
    private final boolean part;
    private volatile boolean over;

    private WriteTxn(Env env, long handle, Thread owner, boolean part) {
        super(env, handle, owner);
        this.part = part;
        ending = part ? null : new Leaks.Handle(handle, "a write transaction", env::writeEnded);
        if (!part) {
            ending.watch(this);
        }
    }

    /** The transaction, or null if somebody else has it and {@code wait} is false. The turn is had. */
    static WriteTxn begin(Env env, boolean wait) {
        long handle = Failures.check(Native.write(env.handle(), wait ? 0 : 2));
        if (handle == 0) {
            return null;
        }
        try {
            return new WriteTxn(env, handle, null, false);
        } catch (Throwable lost) {
            Native.end(handle);
            throw lost;
        }
    }

    /** A transaction for one change of a group, on this thread. */
    static WriteTxn partOf(Env env, long handle) {
        return new WriteTxn(env, handle, Thread.currentThread(), true);
    }

    @Override
    void check() {
        checkThread();
        if (over) {
            throw new ZubiloException.Closed("the write transaction has ended");
        }
    }

    @Override
    Lifetime lifetime() {
        return null;
    }

    @Override
    public WriteTable table(String name) {
        return new WriteTable(this, name, open(name, 0, TableOptions.defaults()));
    }

    @Override
    public WriteTable table(String name, TableOptions options) {
        return new WriteTable(this, name, open(name, 1, options));
    }

    /**
     * The table {@code name}, created with default options if there is none.
     *
     * @param name the name
     * @return the table, as long as this transaction lives
     */
    public WriteTable tableOrCreate(String name) {
        try {
            return table(name);
        } catch (ZubiloException.NoSuchTable e) {
            try {
                return createTable(name, TableOptions.defaults());
            } catch (ZubiloException.TableExists other) {
                // Another thread has created it between the two calls.
                return table(name);
            }
        }
    }

    /**
     * The table {@code name}, created with these options if there is none.
     *
     * @param name the name
     * @param options the options
     * @return the table, as long as this transaction lives
     * @throws ZubiloException.Incompatible if it was created with others
     */
    public WriteTable tableOrCreate(String name, TableOptions options) {
        return new WriteTable(this, name, open(name, 2, options));
    }

    /**
     * Creates the table {@code name}.
     *
     * @param name the name
     * @param options its options
     * @return the table, as long as this transaction lives
     * @throws ZubiloException.TableExists if there is one
     */
    public WriteTable createTable(String name, TableOptions options) {
        return new WriteTable(this, name, open(name, 3, options));
    }

    /**
     * Removes a table with all its records.
     *
     * @param name the name
     * @throws ZubiloException.NoSuchTable if there is none
     */
    public void dropTable(String name) {
        names(0, name, "");
    }

    /**
     * Gives a table another name, which must be free.
     *
     * @param from the name that it has
     * @param to the name that it gets
     * @throws ZubiloException.NoSuchTable if there is none
     * @throws ZubiloException.TableExists if the other name is taken
     */
    public void renameTable(String from, String to) {
        names(1, from, to);
    }

    private void names(int op, String name, String to) {
        check();
        byte[] first = name.getBytes(StandardCharsets.UTF_8);
        byte[] second = to.getBytes(StandardCharsets.UTF_8);
        Scratch scratch = Scratch.take();
        try {
            changes++;
            long at = scratch.put(first, second);
            Failures.check(Native.names(handle, op, at, first.length, at + first.length, second.length));
        } finally {
            scratch.give();
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Runs a change in a nested level: if it throws, what it did is undone, and this transaction goes on as before.
     * Tables that it opened are closed then.
     *
     * @param <T> what it gives
     * @param <X> what it throws
     * @param change the change
     * @return what it gave
     * @throws X what it threw
     */
    public <T, X extends Exception> T nested(Change<T, X> change) throws X {
        check();
        Stack.check();
        long depth = Failures.check(Native.nested(handle, 0, 0));
        T result;
        try {
            result = change.apply(this);
        } catch (Throwable thrown) {
            changes++;
            long undone = over ? 0 : Native.nested(handle, 2, depth);
            if (undone < 0) {
                thrown.addSuppressed(Failures.of(undone));
            }
            throw thrown;
        }
        check();
        Failures.check(Native.nested(handle, 1, depth));
        return result;
    }

    /**
     * Makes the changes the newest state of the store, durable as the store's {@link Durability} says, and ends
     * this transaction.
     *
     * @return the number of the commit
     * @throws ZubiloException if nothing was committed; the transaction has ended all the same
     * @throws ZubiloException.Invalid in {@link Env#update}, which commits by itself
     */
    public long commit() {
        check();
        if (part) {
            throw new ZubiloException.Invalid("Env.update commits by itself, when the change returns");
        }
        return end(1);
    }

    /**
     * Ends the transaction without a trace, unless it was committed.
     *
     * @throws ZubiloException.Invalid in {@link Env#update}: throw something to undo the change
     */
    @Override
    public void close() {
        checkThread();
        if (over) {
            return;
        }
        if (part) {
            throw new ZubiloException.Invalid("Env.update ends by itself; throw an exception to undo the change");
        }
        end(0);
    }

    private long end(long commit) {
        Stack.checkEnd();
        over = true;
        if (!ending.claim()) {
            return 0;
        }
        try {
            return Failures.check(Native.writeEnd(handle, commit));
        } finally {
            env.writeEnded();
        }
    }

    /** The change of a group is over. */
    void leave() {
        over = true;
    }
}
