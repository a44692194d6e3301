package zubilo;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What both kinds of transactions have: tables, a number, an end. */
public abstract sealed class Transaction implements AutoCloseable permits ReadTxn, WriteTxn {
    final Env env;
    final long handle;
    /** The only thread that may use it; null if all may. */
    final Thread owner;
    /** Changes made so far, so that iterators notice. */
    int changes;

    Transaction(Env env, long handle, Thread owner) {
        this.env = env;
        this.handle = handle;
        this.owner = owner;
    }

    /** Refuses other threads, and what has ended. */
    abstract void check();

    /** Where values are views of the map: how long; else null. */
    abstract Lifetime lifetime();

    final void checkThread() {
        if (owner != null && Thread.currentThread() != owner) {
            throw new ZubiloException.WrongThread("the transaction belongs to " + owner
                    + "; Env.readShared gives one for all threads");
        }
    }

    /**
     * The number of the commit that this snapshot is, or that this transaction will be.
     *
     * @return the number
     */
    public long id() {
        check();
        try {
            return Failures.check(Native.txn(handle, 0));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The names of all tables, in order.
     *
     * @return the names
     */
    public List<String> tables() {
        check();
        Scratch scratch = Scratch.take();
        try {
            Scratch.Room out = scratch.out();
            long needed = Failures.check(Native.tables(handle, out.at, out.size));
            while (needed > out.size) {
                out = scratch.out(needed);
                needed = Failures.check(Native.tables(handle, out.at, out.size));
            }
            List<String> names = new ArrayList<>();
            ByteBuffer buffer = out.buffer.position(0);
            while (buffer.position() < needed) {
                byte[] name = new byte[buffer.getInt()];
                buffer.get(name);
                names.add(new String(name, StandardCharsets.UTF_8));
            }
            return names;
        } finally {
            scratch.give();
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Whether there is a table of this name.
     *
     * @param name the name
     * @return true if there is
     */
    public boolean hasTable(String name) {
        try {
            table(name);
            return true;
        } catch (ZubiloException.NoSuchTable e) {
            return false;
        }
    }

    /**
     * The table {@code name}, with the options that it has.
     *
     * @param name the name
     * @return the table, as long as this transaction lives
     * @throws ZubiloException.NoSuchTable if there is none
     */
    public abstract Table table(String name);

    /**
     * The table {@code name}, which must have been created with these options.
     *
     * @param name the name
     * @param options the options
     * @return the table, as long as this transaction lives
     * @throws ZubiloException.NoSuchTable if there is none
     * @throws ZubiloException.Incompatible if it has others
     */
    public abstract Table table(String name, TableOptions options);

    /** Opens a table natively and gives its number. */
    final long open(String name, int mode, TableOptions options) {
        check();
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        Scratch scratch = Scratch.take();
        try {
            return Failures.check(Native.table(handle, scratch.put(bytes), bytes.length, mode, options.bits));
        } finally {
            scratch.give();
            Reference.reachabilityFence(this);
        }
    }

    /** Ends the transaction. To close it again does nothing. */
    @Override
    public abstract void close();
}
