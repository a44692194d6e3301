package zubilo;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A table in a transaction: records of bytes, sorted by key. It lives as long as its transaction, and may be used by
 * the threads that may use that.
 *
 * <p>Methods that give {@code byte[]} copy. Those that give {@link Bytes} do not, in a read transaction on JDK 22
 * and newer; see there how long they are valid.
 */
public sealed class Table permits WriteTable {
    /** "None", where the native side gives a length. */
    private static final long NONE = Long.MAX_VALUE;
    private static final byte[] NOTHING = new byte[0];
    /** Keys that are looked up in one call, at most. */
    private static final int BATCH = 1024;

    final Transaction txn;
    final long handle;
    final long index;
    private final String name;
    private TableOptions options;

    Table(Transaction txn, String name, long index) {
        this.txn = txn;
        this.name = name;
        this.index = index;
        handle = txn.handle;
    }

    /**
     * The table's name.
     *
     * @return the name that it was opened by
     */
    public String name() {
        return name;
    }

    /**
     * What was fixed when the table was created.
     *
     * @return the options
     */
    public TableOptions options() {
        TableOptions known = options;
        if (known == null) {
            options = known = new TableOptions(query(6, NOTHING, NOTHING));
        }
        return known;
    }

    final long query(int op, byte[] key, byte[] value) {
        txn.check();
        Scratch scratch = Scratch.take();
        try {
            long at = scratch.put(key, value);
            return Failures.check(Native.query(handle, index, op, at, key.length, at + key.length, value.length));
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }

    /**
     * The value under a key, of several the first.
     *
     * @param key the key
     * @return a copy, or null if there is none
     */
    public byte[] get(byte[] key) {
        txn.check();
        Lifetime lifetime = txn.lifetime();
        Scratch scratch = Scratch.take();
        try {
            if (lifetime == null) {
                return copied(scratch, key);
            }
            Scratch.Room out = scratch.out();
            long found = Native.get(handle, index, scratch.put(key), key.length, out.at);
            return Failures.check(found) == 0 ? null : lifetime.copy(out.buffer.getLong(0), out.buffer.getLong(8));
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }

    private byte[] copied(Scratch scratch, byte[] key) {
        long at = scratch.put(key);
        Scratch.Room out = scratch.out();
        long len = Failures.check(Native.getCopy(handle, index, at, key.length, out.at, out.size));
        while (len != NONE && len > out.size) {
            out = scratch.out(len);
            len = Failures.check(Native.getCopy(handle, index, at, key.length, out.at, out.size));
        }
        if (len == NONE) {
            return null;
        }
        byte[] value = new byte[(int) len];
        out.buffer.get(0, value);
        return value;
    }

    /**
     * The value under a key, of several the first, without a copy where that is possible.
     *
     * @param key the key
     * @return the value, or null if there is none
     */
    public Bytes view(byte[] key) {
        txn.check();
        Lifetime lifetime = txn.lifetime();
        Scratch scratch = Scratch.take();
        try {
            if (lifetime == null) {
                byte[] copy = copied(scratch, key);
                return copy == null ? null : Bytes.of(copy);
            }
            Scratch.Room out = scratch.out();
            long found = Native.get(handle, index, scratch.put(key), key.length, out.at);
            return Failures.check(found) == 0 ? null : lifetime.view(out.buffer.getLong(0), out.buffer.getLong(8));
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }

    /**
     * The value under a key as a buffer over the map. On JDK 22 and newer it is that of {@link #view}: it ends with
     * the transaction and throws later. On JDK 17 to 21 <b>nothing guards it</b>: whoever reads it after the
     * transaction was closed gets bytes of other records or ends the JVM. Elsewhere than in a read transaction it is a
     * copy.
     *
     * @param key the key
     * @return the value, or null if there is none
     */
    public ByteBuffer unguardedBuffer(byte[] key) {
        if (Native.isMapped() || txn instanceof WriteTxn) {
            Bytes value = view(key);
            return value == null ? null : value.asByteBuffer();
        }
        txn.check();
        Scratch scratch = Scratch.take();
        try {
            Scratch.Room out = scratch.out();
            long found = Native.get(handle, index, scratch.put(key), key.length, out.at);
            if (Failures.check(found) == 0) {
                return null;
            }
            long at = out.buffer.getLong(0);
            int len = Bytes.arrayLength(out.buffer.getLong(8));
            return len == 0 ? ByteBuffer.allocate(0) : Native.buffer(at, len).asReadOnlyBuffer();
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }

    /**
     * The values under many keys. Several times faster a key than {@link #get} where the table is larger than the
     * CPU's caches.
     *
     * @param keys the keys, in any order
     * @return as many values, null where there is none, without copies where that is possible
     */
    public List<Bytes> getMany(List<byte[]> keys) {
        txn.check();
        List<Bytes> values = new ArrayList<>(keys.size());
        for (int i = 0; i < keys.size(); i += BATCH) {
            getBatch(keys.subList(i, Math.min(keys.size(), i + BATCH)), values);
        }
        return values;
    }

    private void getBatch(List<byte[]> keys, List<Bytes> into) {
        Lifetime lifetime = txn.lifetime();
        long size = 0;
        for (byte[] key : keys) {
            size += 4L + key.length;
        }
        Scratch scratch = Scratch.take();
        try {
            Scratch.Room in = scratch.in(size);
            ByteBuffer buffer = in.buffer.position(0);
            for (byte[] key : keys) {
                buffer.putInt(key.length).put(key);
            }
            if (lifetime != null) {
                mapped(lifetime, scratch, in.at, size, keys.size(), into);
            } else {
                copied(scratch, in, size, keys, into);
            }
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }

    private void mapped(Lifetime lifetime, Scratch scratch, long at, long size, int count, List<Bytes> into) {
        Scratch.Room out = scratch.out(count * 16L);
        long done = Native.getMany(handle, index, count, at, size, out.at, count * 16L, 0);
        if (Failures.check(done) != count) {
            throw new ZubiloException.Internal("a batch of look-ups was cut off");
        }
        for (int i = 0; i < count; i++) {
            long place = out.buffer.getLong(i * 16);
            into.add(place == 0 ? null : lifetime.view(place, out.buffer.getLong(i * 16 + 8)));
        }
    }

    private void copied(Scratch scratch, Scratch.Room in, long size, List<byte[]> keys, List<Bytes> into) {
        long at = in.at;
        long left = keys.size();
        Scratch.Room out = scratch.out();
        while (left > 0) {
            long done = Native.getMany(handle, index, left, at, in.at + size - at, out.at, out.size, 1);
            if (Failures.check(done) == 0) {
                out = scratch.out(out.buffer.getLong(0));
                continue;
            }
            ByteBuffer answers = out.buffer.position(0);
            for (long i = 0; i < done; i++) {
                int len = answers.getInt();
                byte[] value = len < 0 ? null : new byte[len];
                if (value != null) {
                    answers.get(value);
                }
                at += 4L + keys.get(into.size() % BATCH).length;
                into.add(value == null ? null : Bytes.of(value));
            }
            left -= done;
        }
    }

    /**
     * Whether a key is there.
     *
     * @param key the key
     * @return true if it is
     */
    public boolean containsKey(byte[] key) {
        return query(7, key, NOTHING) != 0;
    }

    /**
     * Whether a value is one of those under a key.
     *
     * @param key the key
     * @param value the value
     * @return true if it is
     */
    public boolean contains(byte[] key, byte[] value) {
        return query(2, key, value) != 0;
    }

    /**
     * The number of values under a key.
     *
     * @param key the key
     * @return 0 if there is none
     */
    public long count(byte[] key) {
        return query(1, key, NOTHING);
    }

    /**
     * The number of records; each value of a key is one.
     *
     * @return records
     */
    public long size() {
        return query(0, NOTHING, NOTHING);
    }

    /**
     * Whether there are no records.
     *
     * @return true without
     */
    public boolean isEmpty() {
        return size() == 0;
    }

    /**
     * The values under a key, in order.
     *
     * @param key the key
     * @return values to go through, as often as wanted while the transaction lives
     */
    public Sequence<Bytes> values(byte[] key) {
        byte[] own = key.clone();
        return () -> new Scanner.Values(new Scanner(this, own));
    }

    /**
     * All records in order; a key with many values comes with each of them.
     *
     * @return records to go through, as often as wanted while the transaction lives
     */
    public Sequence<KeyValue> all() {
        return range(Range.all());
    }

    /**
     * The records whose keys lie in a range, in its direction.
     *
     * <p>An iterator over a table that changes meanwhile goes on after the record that it gave last.
     *
     * @param range the range
     * @return records to go through, as often as wanted while the transaction lives
     */
    public Sequence<KeyValue> range(Range range) {
        return () -> new Scanner(this, range, null);
    }

    /**
     * The records whose keys start with a prefix; in a table of {@link KeyOrder#REVERSED} those whose keys end with it.
     *
     * @param prefix the prefix
     * @return records to go through, as often as wanted while the transaction lives
     * @throws ZubiloException.Invalid in a table of {@link KeyOrder#INTEGER}
     */
    public Sequence<KeyValue> prefix(byte[] prefix) {
        return range(Range.prefix(prefix, options().keyOrder()));
    }

    /**
     * The first record.
     *
     * @return the record, or null in an empty table
     */
    public KeyValue first() {
        return one(Range.all());
    }

    /**
     * The last record.
     *
     * @return the record, or null in an empty table
     */
    public KeyValue last() {
        return one(Range.all().reversed());
    }

    /**
     * The first record of a range, in its direction.
     *
     * @param range the range
     * @return the record, or null if there is none
     */
    public KeyValue first(Range range) {
        return one(range);
    }

    private KeyValue one(Range range) {
        return new Scanner(this, range, null).one();
    }

    /**
     * A cursor that stands nowhere yet.
     *
     * @return a new cursor
     */
    public Cursor cursor() {
        txn.check();
        return new Cursor(this);
    }

    /**
     * Record {@code n} in order, from 0; each value of a key is one. Only in counted tables.
     *
     * @param n its number
     * @return a copy of the record, or null if there are not so many
     */
    public KeyValue nth(long n) {
        return nth(0, n, NOTHING);
    }

    /**
     * Value {@code n} of a key, from 0. Only in counted tables.
     *
     * @param key the key
     * @param n its number
     * @return a copy of the value, or null if there are not so many
     */
    public Bytes nthValue(byte[] key, long n) {
        KeyValue entry = nth(1, n, key);
        return entry == null ? null : entry.value();
    }

    private KeyValue nth(int op, long n, byte[] key) {
        txn.check();
        if (n < 0) {
            throw new IndexOutOfBoundsException("record " + n);
        }
        Scratch scratch = Scratch.take();
        try {
            Scratch.Room out = scratch.out();
            while (true) {
                long at = scratch.put(key);
                long answer = Native.nth(handle, index, op, n, at, key.length, out.at, out.size);
                if (Failures.check(answer) == 1) {
                    return null;
                }
                if (answer != 0) {
                    return copiedEntry(out.buffer.position(0));
                }
                out = scratch.out(out.buffer.getLong(0));
            }
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }

    private static KeyValue copiedEntry(ByteBuffer from) {
        byte[] key = new byte[from.getInt()];
        byte[] value = new byte[from.getInt()];
        from.get(key).get(value);
        return new KeyValue(Bytes.of(key), Bytes.of(value));
    }

    /**
     * The number of records before those of a key, which need not be there. Only in counted tables.
     *
     * @param key the key
     * @return records
     */
    public long rank(byte[] key) {
        return query(3, key, NOTHING);
    }

    /**
     * The number of records before that with this key and value, which need not be there. Only in counted tables.
     *
     * @param key the key
     * @param value the value
     * @return records
     */
    public long rank(byte[] key, byte[] value) {
        return query(4, key, value);
    }

    /**
     * The number of records in a range. Only in counted tables.
     *
     * @param range the range
     * @return records
     */
    public long rangeSize(Range range) {
        return range(0, range);
    }

    final long range(int op, Range range) {
        txn.check();
        Scratch scratch = Scratch.take();
        try {
            long size = range.length(null);
            Scratch.Room in = scratch.in(size);
            range.write(in.buffer, null);
            return Failures.check(Native.range(handle, index, op, in.at, size));
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }

    /**
     * The number that the table's sequence gives next.
     *
     * @return the number
     */
    public long sequence() {
        return query(5, NOTHING, NOTHING);
    }

    /**
     * Figures of the table.
     *
     * @return the figures, as of now
     */
    public TableStats stats() {
        txn.check();
        Scratch scratch = Scratch.take();
        try {
            Scratch.Room out = scratch.out();
            Failures.check(Native.stats(handle, index, out.at, out.size));
            ByteBuffer b = out.buffer.position(0);
            return new TableStats(b.getLong(), (int) b.getLong(), b.getLong(), b.getLong(), b.getLong(),
                    b.getLong(), b.getLong());
        } finally {
            scratch.give();
            Reference.reachabilityFence(txn);
        }
    }
}
