package zubilo;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;

/**
 * An open store, for all threads. Any number of processes and of {@code Env}s may have a store open; those of one
 * process share it, with the options of the first.
 *
 * <p>Closing it ends no transaction: those that live go on, and the store is closed with the last of them.
 */
public final class Env implements AutoCloseable {
    private static final byte[] NOTHING = new byte[0];

    private final Leaks.Handle ending;
    private final Path path;
    private final boolean readOnly;
    private final GroupCommit group = new GroupCommit(this);
    final Semaphore turn;
    /** The thread that began the write transaction which is out: it must not wait for itself. */
    private volatile Thread writer;

    private Env(Path path, Options options) {
        this.path = path;
        readOnly = options.isReadOnly();
        long handle = options.open(path);
        turn = Turns.of(path);
        ending = new Leaks.Handle(handle, "the store " + path, true, !readOnly, null);
        ending.watch(this);
    }

    /**
     * Opens a store, creating it if there is none.
     *
     * @param path the file; its lock file lies beside it, with {@code -lock} added
     * @return the open store
     */
    public static Env open(Path path) {
        return open(path, new Options());
    }

    /**
     * Opens a store.
     *
     * @param path the file; its lock file lies beside it, with {@code -lock} added
     * @param options how
     * @return the open store
     */
    public static Env open(Path path, Options options) {
        return new Env(path, options);
    }

    long handle() {
        if (ending.isEnded()) {
            throw new ZubiloException.Closed("the store was closed");
        }
        return ending.handle;
    }

    /**
     * The data file.
     *
     * @return the path that it was opened by
     */
    public Path path() {
        return path;
    }

    /**
     * Begins a read transaction of the newest commit, for this thread alone. Never waits.
     *
     * @return the transaction
     */
    public ReadTxn read() {
        return ReadTxn.begin(this, false);
    }

    /**
     * Begins a read transaction of the newest commit, for all threads. Never waits.
     *
     * @return the transaction
     */
    public ReadTxn readShared() {
        return ReadTxn.begin(this, true);
    }

    /**
     * Begins the write transaction; waits while another thread or process has it.
     *
     * @return the transaction
     * @throws ZubiloException.Busy if this thread began the one that is under way, or runs a change of {@link #update}
     */
    public WriteTxn write() {
        refuseWriter();
        Stack.check();
        turn.acquireUninterruptibly();
        return begin(true);
    }

    /**
     * Begins the write transaction if nobody else has it.
     *
     * @return the transaction
     */
    public Optional<WriteTxn> tryWrite() {
        handle();
        Stack.check();
        return turn.tryAcquire() ? Optional.ofNullable(begin(false)) : Optional.empty();
    }

    /** Begins the write transaction; the turn is had, and given back if there is none. */
    private WriteTxn begin(boolean wait) {
        WriteTxn txn = null;
        try {
            txn = WriteTxn.begin(this, wait);
            writer = txn == null ? null : Thread.currentThread();
            return txn;
        } finally {
            if (txn == null) {
                turn.release();
            }
        }
    }

    /** The transaction that {@link #write} gave is over. */
    void writeEnded() {
        writer = null;
        turn.release();
    }

    /** Refuses a thread that would wait for itself. */
    void refuseWriter() {
        handle();
        if (writer == Thread.currentThread() || group.isRunning(Thread.currentThread())) {
            throw new ZubiloException.Busy("this thread is already in a write transaction");
        }
    }

    /**
     * Makes a change and commits it. Changes of threads that come while a commit is under way are gathered: they share
     * one commit and one flush, each in a nested level of its own. If one throws, only what it did is undone.
     *
     * <p>The change may run on another thread, one that is in {@code update} itself. It must not wait for other
     * threads that write, and its transaction ends with it.
     *
     * @param <T> what it gives
     * @param <X> what it throws
     * @param change the change
     * @return what it gave, once it is committed, durable as the store's {@link Durability} says
     * @throws X what it threw; nothing of it was done
     * @throws ZubiloException if the commit failed; nothing of it was done
     */
    public <T, X extends Exception> T update(WriteTxn.Change<T, X> change) throws X {
        refuseWriter();
        return group.update(change);
    }

    /**
     * As {@link #update}, on a thread of the library's. That thread ends when it has had nothing to do for a while.
     *
     * @param <T> what the change gives
     * @param change the change
     * @return what it gave, once it is committed; or what it threw
     */
    public <T> CompletableFuture<T> updateAsync(WriteTxn.Change<T, ? extends Exception> change) {
        handle();
        return group.updateAsync(change);
    }

    /** Makes everything that was committed durable. Waits for the disk, not for transactions. */
    public void sync() {
        call(0, 0, NOTHING, null);
    }

    private long call(int op, long arg, byte[] given, Scratch.Room out) {
        long handle = handle();
        Scratch.Room in = new Scratch.Room(Math.max(1, given.length));
        in.buffer.put(0, given, 0, given.length);
        try {
            return Failures.check(Native.env(handle, op, arg, in.at, given.length, out == null ? 0 : out.at,
                    out == null ? 0 : out.size));
        } finally {
            Reference.reachabilityFence(in);
            Reference.reachabilityFence(out);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * State and size of the store.
     *
     * @return the state, as of now
     */
    public EnvInfo info() {
        Scratch.Room out = new Scratch.Room(128);
        call(1, 0, NOTHING, out);
        ByteBuffer b = out.buffer;
        ByteBuffer id = b.duplicate().position(64);
        return new EnvInfo((int) b.getLong(0), b.getLong(8), b.getLong(16), b.getLong(24), b.getLong(32), b.getLong(40),
                (int) b.getLong(48), (int) b.getLong(56), new UUID(id.getLong(), id.getLong()));
    }

    /**
     * What this process has done with the store since it opened it: commits, pages copied and written, bytes, flushes
     * and the time in them, waits for the writer. Names and units are those of the Rust library's {@code EnvCounters}.
     *
     * @return each counter by its name, in the library's order
     */
    public Map<String, Long> counters() {
        Scratch.Room out = new Scratch.Room(4096);
        byte[] text = new byte[(int) call(9, 0, NOTHING, out)];
        out.buffer.get(0, text);
        Map<String, Long> counters = new LinkedHashMap<>();
        for (String line : new String(text, StandardCharsets.UTF_8).split("\n")) {
            int space = line.indexOf(' ');
            counters.put(line.substring(0, space), Long.valueOf(line.substring(space + 1)));
        }
        return counters;
    }

    /**
     * The live read transactions of all processes.
     *
     * @return one for each
     */
    public List<ReaderInfo> readers() {
        int slots = 256;
        while (true) {
            Scratch.Room out = new Scratch.Room(slots * 32);
            long count = call(8, 0, NOTHING, out);
            if (count <= slots) {
                List<ReaderInfo> readers = new ArrayList<>();
                ByteBuffer b = out.buffer;
                for (int i = 0; i < count; i++) {
                    readers.add(new ReaderInfo(b.getLong(), b.getLong(), b.getLong(), b.getLong()));
                }
                return readers;
            }
            slots = (int) count;
        }
    }

    /**
     * Copies the newest commit to a new file. Others go on reading and writing meanwhile.
     *
     * @param target the file, which must not exist; on disk when this returns
     * @param compact leaves out free pages and fills the others
     * @return the number of the commit
     */
    public long copyTo(Path target, boolean compact) {
        byte[] name = target.toAbsolutePath().toString().getBytes(StandardCharsets.UTF_8);
        return call(2, compact ? 1 : 0, name, null);
    }

    /**
     * Checks the newest commit, all of it: reads every page.
     *
     * @return what was found
     */
    public CheckReport check() {
        Scratch.Room out = new Scratch.Room(256 << 10);
        long problems = call(3, 0, NOTHING, out);
        ByteBuffer b = out.buffer;
        long[] n = new long[11];
        for (int i = 0; i < n.length; i++) {
            n[i] = b.getLong();
        }
        byte[] text = new byte[(int) b.getLong()];
        b.get(text);
        List<String> lines = text.length == 0 ? List.of()
                : List.of(new String(text, StandardCharsets.UTF_8).split("\n"));
        return new CheckReport(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], problems,
                lines);
    }

    /**
     * Makes the store smaller while it is used, in many small write transactions.
     *
     * @return what was gained
     */
    public CompactReport compact() {
        refuseWriter();
        Scratch.Room out = new Scratch.Room(64);
        call(4, 0, NOTHING, out);
        ByteBuffer b = out.buffer;
        return new CompactReport(b.getLong(), b.getLong(), b.getLong(), b.getLong(), b.getLong(), b.getLong() != 0);
    }

    /**
     * Clears the slots of readers whose processes are gone. Writers do so by themselves where such a reader is in
     * their way.
     *
     * @return how many
     */
    public int cleanReaders() {
        return (int) call(5, 0, NOTHING, null);
    }

    /**
     * Size of a page.
     *
     * @return bytes
     */
    public int pageSize() {
        return (int) call(6, 0, NOTHING, null);
    }

    /**
     * Longest key.
     *
     * @return bytes
     */
    public int maxKeyLength() {
        return (int) call(7, 0, NOTHING, null);
    }

    /**
     * Makes what was committed durable and closes the store for new transactions; those that live go on. To close it
     * again does nothing.
     *
     * @throws ZubiloException if it could not be made durable; it is closed all the same
     */
    @Override
    public void close() {
        if (ending.claim()) {
            group.close();
            Failures.check(Native.close(ending.handle, readOnly ? 0 : 1));
        }
    }

    /** The path, and whether it is open. */
    @Override
    public String toString() {
        return "Env[" + path + (ending.isEnded() ? ", closed]" : "]");
    }
}
