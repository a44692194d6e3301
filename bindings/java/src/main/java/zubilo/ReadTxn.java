package zubilo;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A snapshot of the store: what it reads stays as it is until it is closed. It never waits and nobody waits
 * for it; but while it lives the pages of its snapshot are not reused, so close it.
 *
 * <p>One of {@link Env#read} belongs to the thread that began it; one of {@link Env#readShared} may be used by
 * all threads at once, also be closed by any. Closing a shared one costs more on JDK 22 and newer: all threads
 * of the JVM are asked whether they are just looking at one of its values.
 */
public final class ReadTxn extends Transaction {
    private final Leaks.Handle ending;
    private final Lifetime lifetime;
    /** The same where there are views. */
    private final Lifetime views;
    private final Map<String, Table> open = new ConcurrentHashMap<>();

    private ReadTxn(Env env, long handle, Lifetime lifetime, Thread owner) {
        super(env, handle, owner);
        this.lifetime = lifetime;
        views = Native.isMapped() ? lifetime : null;
        ending = new Leaks.Handle(handle, "a read transaction", null);
        ending.watch(lifetime.anchor());
    }

    static ReadTxn begin(Env env, boolean shared) {
        Lifetime lifetime = Lifetime.open(shared);
        long handle = Failures.check(Native.read(env.handle()));
        try {
            return new ReadTxn(env, handle, lifetime, shared ? null : Thread.currentThread());
        } catch (Throwable lost) {
            Native.end(handle);
            throw lost;
        }
    }

    @Override
    void check() {
        checkThread();
        if (ending.isEnded()) {
            throw new ZubiloException.Closed("the read transaction was closed");
        }
    }

    @Override
    Lifetime lifetime() {
        return views;
    }

    /**
     * Commits made since this snapshot.
     *
     * @return how many
     */
    public long lag() {
        check();
        return Failures.check(Native.txn(handle, 1));
    }

    @Override
    public Table table(String name) {
        check();
        Table known = open.get(name);
        return known != null ? known : open.computeIfAbsent(name, this::newTable);
    }

    private Table newTable(String name) {
        return new Table(this, name, open(name, 0, TableOptions.defaults()));
    }

    @Override
    public Table table(String name, TableOptions options) {
        Table table = table(name);
        if (!table.options().equals(options)) {
            throw new ZubiloException.Incompatible("the table was created with other options: " + table.options());
        }
        return table;
    }

    /**
     * Ends the snapshot. Bytes that it gave from the map throw from here on.
     *
     * @throws ZubiloException.WrongThread if it belongs to another thread
     * @throws IllegalStateException if the program has passed one of its segments to native code, which is at work
     */
    @Override
    public void close() {
        checkThread();
        if (ending.isEnded()) {
            return;
        }
        // First the views, so that nobody looks at pages that are not pinned any more.
        try {
            lifetime.close();
        } catch (IllegalStateException e) {
            // Closed by another thread, or by a call that did not come to its end.
            if (lifetime.isOpen()) {
                throw e;
            }
        }
        if (ending.claim()) {
            Failures.check(Native.end(handle));
        }
    }
}
