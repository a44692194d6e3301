package zubilo;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.Map;

/** A table that the write transaction sees and changes. */
public final class WriteTable extends Table {
    private static final byte[] NOTHING = new byte[0];
    /** Bytes of records that are handed over in one call, about. */
    private static final int BATCH = 64 << 10;

    private final WriteTxn writing;

    WriteTable(WriteTxn txn, String name, long index) {
        super(txn, name, index);
        writing = txn;
    }

    private boolean change(int op, byte[] key, byte[] value) {
        writing.check();
        Scratch scratch = Scratch.take();
        try {
            writing.changes++;
            long at = scratch.put(key, value);
            return Failures.check(
                    Native.change(handle, index, op, at, key.length, at + key.length, value.length)) != 0;
        } finally {
            scratch.give();
            Reference.reachabilityFence(writing);
        }
    }

    /**
     * Stores a value under a key, replacing what was there; in a table with duplicates adds it to what is there.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        change(0, key, value);
    }

    /**
     * Stores a value under a key if the key is new.
     *
     * @param key the key
     * @param value the value
     * @return whether it did
     */
    public boolean insert(byte[] key, byte[] value) {
        return change(1, key, value);
    }

    /**
     * Adds a value to those under a key, in a table with duplicates.
     *
     * @param key the key
     * @param value the value
     * @return whether it is new
     */
    public boolean insertValue(byte[] key, byte[] value) {
        return change(2, key, value);
    }

    /**
     * Stores many records, as {@link #put} does, with fewer calls.
     *
     * @param records keys and values
     * @return how many
     */
    public long putAll(Iterable<? extends Map.Entry<byte[], byte[]>> records) {
        long count = 0;
        Iterator<? extends Map.Entry<byte[], byte[]>> left = records.iterator();
        Map.Entry<byte[], byte[]> next = left.hasNext() ? left.next() : null;
        while (next != null) {
            // Collected before the buffer is taken: the iterator is the user's.
            java.util.ArrayList<byte[]> batch = new java.util.ArrayList<>();
            long size = 0;
            do {
                batch.add(next.getKey());
                batch.add(next.getValue());
                size += 8L + next.getKey().length + next.getValue().length;
                next = left.hasNext() ? left.next() : null;
            } while (next != null && size < BATCH);
            putBatch(batch, size);
            count += batch.size() / 2;
        }
        return count;
    }

    private void putBatch(java.util.List<byte[]> batch, long size) {
        writing.check();
        Scratch scratch = Scratch.take();
        try {
            writing.changes++;
            Scratch.Room in = scratch.in(size);
            ByteBuffer buffer = in.buffer.position(0);
            for (int i = 0; i < batch.size(); i += 2) {
                byte[] key = batch.get(i);
                byte[] value = batch.get(i + 1);
                buffer.putInt(key.length).putInt(value.length).put(key).put(value);
            }
            Failures.check(Native.putMany(handle, index, batch.size() / 2, in.at, size));
        } finally {
            scratch.give();
            Reference.reachabilityFence(writing);
        }
    }

    /**
     * Removes a key with all its values.
     *
     * @param key the key
     * @return whether it was there
     */
    public boolean delete(byte[] key) {
        return change(3, key, NOTHING);
    }

    /**
     * Removes a value from those under a key; without duplicates, the record if it has this value.
     *
     * @param key the key
     * @param value the value
     * @return whether it was there
     */
    public boolean deleteValue(byte[] key, byte[] value) {
        return change(4, key, value);
    }

    /**
     * Removes all records whose keys lie in a range. The cost follows the pages, not the records.
     *
     * @param range the range
     * @return how many there were
     */
    public long deleteRange(Range range) {
        writing.changes++;
        return range(1, range);
    }

    /** Removes all records. */
    public void clear() {
        change(5, NOTHING, NOTHING);
    }

    /**
     * Takes numbers of the table's sequence. They are this transaction's if it commits, and free again if it, or its
     * nested level, is undone. The sequence of a new table begins at 0.
     *
     * @param count how many
     * @return the first
     * @throws ZubiloException.Invalid if there are not so many left
     */
    public long nextSequence(long count) {
        writing.check();
        try {
            return Failures.check(Native.sequence(handle, index, count));
        } finally {
            Reference.reachabilityFence(writing);
        }
    }
}
