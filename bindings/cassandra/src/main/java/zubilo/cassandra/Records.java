package zubilo.cassandra;

import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.TimeUnit;

import zubilo.KeyValue;
import zubilo.Range;
import zubilo.ReadTxn;
import zubilo.Table;

/**
 * Records of one partition, in the order of some ranges. Either they are at hand already, or they are read from a
 * snapshot that this owns.
 *
 * <p>The snapshot ends with the last record: after {@link #prefetch} in most cases. A long read keeps it, so that
 * nobody sees half of an atomic change, but at most for {@link #SNAPSHOT_NANOS_MAX}; then it goes on in a newer one.
 */
final class Records implements Iterator<Records.Record>, AutoCloseable {
    /** A stored key and value. */
    record Record(byte[] key, byte[] value) {
        static Record of(KeyValue record) {
            return new Record(record.key().toByteArray(), record.value().toByteArray());
        }
    }

    /** Longer than the timeouts of client reads, which thus see one state of a partition. */
    private static final long SNAPSHOT_NANOS_MAX = TimeUnit.SECONDS.toNanos(30);
    static final int CHUNK = 128;
    static final int CHUNK_BYTES = 256 << 10;

    private final ArrayDeque<Record> ready = new ArrayDeque<>();
    private final Generation generation;
    private final List<Range> ranges;
    private final boolean reversed;
    private ReadTxn txn;
    private long begun;
    private int at;
    private Iterator<KeyValue> run;
    /** The last key that {@link #run} gave; null if none. */
    private byte[] last;

    /** Records that are at hand. */
    Records(List<Record> records) {
        generation = null;
        ranges = List.of();
        reversed = false;
        ready.addAll(records);
    }

    /** The records of ranges, all in one direction, in a snapshot, which is this object's from here on. */
    Records(Generation generation, ReadTxn txn, List<Range> ranges, boolean reversed) {
        this.generation = generation;
        this.ranges = ranges;
        this.reversed = reversed;
        this.txn = txn;
        begun = System.nanoTime();
    }

    /** Reads a chunk; gives whether anything was found. */
    boolean prefetch() {
        int bytes = 0;
        while (txn != null && ready.size() < CHUNK && bytes < CHUNK_BYTES) {
            if (run == null) {
                Table table = at < ranges.size() ? generation.rows(txn) : null;
                if (table == null) {
                    close();
                    break;
                }
                run = table.range(ranges.get(at)).iterator();
                last = null;
            }
            if (run.hasNext()) {
                Record record = Record.of(run.next());
                last = record.key;
                bytes += record.key.length + record.value.length;
                ready.add(record);
            } else {
                run = null;
                at++;
            }
        }
        if (txn != null && System.nanoTime() - begun > SNAPSHOT_NANOS_MAX) {
            renew();
        }
        return !ready.isEmpty();
    }

    /** Takes the next record if its key has a byte at a place; gives its value, or null. */
    byte[] take(int at, byte kind) {
        Record next = ready.peek();
        return next != null && next.key[at] == kind ? ready.poll().value : null;
    }

    /** Goes on in a new snapshot after the last record that was read. */
    private void renew() {
        txn.close();
        txn = generation.env.readShared();
        begun = System.nanoTime();
        Table table = generation.rows(txn);
        if (table == null) {
            close();
        } else if (run != null) {
            Range range = ranges.get(at);
            if (last != null) {
                range = reversed ? range.endingBefore(last) : range.startingAfter(last);
            }
            run = table.range(range).iterator();
        }
    }

    @Override
    public boolean hasNext() {
        return !ready.isEmpty() || txn != null && prefetch();
    }

    @Override
    public Record next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return ready.poll();
    }

    /** Ends the snapshot. What was prefetched stays. */
    @Override
    public void close() {
        ReadTxn ending = txn;
        txn = null;
        run = null;
        if (ending != null) {
            ending.close();
        }
    }
}
