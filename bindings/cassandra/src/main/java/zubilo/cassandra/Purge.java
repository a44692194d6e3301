package zubilo.cassandra;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.cassandra.db.DeletionPurger;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;

import zubilo.KeyValue;
import zubilo.Range;
import zubilo.ReadTxn;
import zubilo.Table;

/**
 * Removes expired values and old tombstones of one generation. The expiry index tells where they are, so nothing else
 * is read. It works in small transactions, each of which looks at a record anew; so it may be stopped at any moment, and
 * writers come between.
 *
 * <p>A tombstone goes when it is older than the grace period and nothing outside of the store can hold what it deletes.
 * A deletion of rows goes after the rows beneath it.
 */
final class Purge {
    private static final int BATCH = 64;

    private final Generation generation;
    private final long now;
    private final long gcBefore;
    private final DeletionPurger purger;
    private long entries;

    /**
     * Prepares a pass.
     *
     * @param now the time in seconds
     * @param gcBefore tombstones deleted before this, in seconds, are old
     * @param oldestElsewhere the least timestamp of data of this table outside of the store
     */
    Purge(Generation generation, long now, long gcBefore, long oldestElsewhere) {
        this.generation = generation;
        this.now = now;
        this.gcBefore = gcBefore;
        purger = (timestamp, deleted) -> deleted < gcBefore && timestamp < oldestElsewhere;
    }

    /** Makes a pass; gives how many entries of the index were dealt with. */
    long run() {
        pass(Marks.EXPIRY, now);
        pass(Marks.TOMBSTONE, gcBefore - 1);
        return entries;
    }

    /** Deals with the entries of a kind whose time is not after the last one. */
    private void pass(byte kind, long last) {
        byte[] after = null;
        byte[] end = Marks.entry(kind, last + 1, new byte[0]);
        while (true) {
            Range range = Range.between(Marks.entry(kind, 0, new byte[0]), end);
            List<byte[]> due = due(after == null ? range : range.startingAfter(after));
            if (due.isEmpty()) {
                return;
            }
            after = due.get(due.size() - 1);
            entries += due.size();
            for (byte[] entry : generation.change(writer -> rows(writer, due))) {
                deletions(Marks.key(entry));
            }
        }
    }

    private List<byte[]> due(Range range) {
        List<byte[]> due = new ArrayList<>();
        try (ReadTxn txn = generation.env.read()) {
            Table index = generation.expiry(txn);
            if (index != null) {
                for (KeyValue entry : index.range(range)) {
                    due.add(entry.key().toByteArray());
                    if (due.size() == BATCH) {
                        break;
                    }
                }
            }
        }
        return due;
    }

    /** Cleans up the rows of some entries; gives the entries of deletions. */
    private List<byte[]> rows(Generation.Writer writer, List<byte[]> due) {
        List<byte[]> deletions = new ArrayList<>();
        TableMetadata schema = generation.metadata();
        for (byte[] entry : due) {
            byte[] key = Marks.key(entry);
            byte kind = key[generation.keys.partitionLength(key)];
            if (kind == Keys.DELETIONS) {
                deletions.add(entry);
                continue;
            }
            byte[] value = writer.get(key);
            Row row = value == null ? null : generation.codec.row(schema, value, kind == Keys.STATIC, null);
            if (row == null || !hasEntry(row, entry)) {
                // Of a record that is gone, or whose columns were dropped.
                writer.unmark(entry);
            } else {
                writer.replace(key, value, row, row.purge(purger, now, schema.enforceStrictLiveness()));
            }
        }
        return deletions;
    }

    private static boolean hasEntry(Row row, byte[] entry) {
        Marks marks = Marks.of(row);
        long time = entry[0] == Marks.EXPIRY ? marks.expiry() : marks.tombstone();
        return Arrays.equals(entry, Marks.entry(entry[0], time, Marks.key(entry)));
    }

    /** Drops old deletions of a partition, first what they shadow, then themselves. */
    private void deletions(byte[] key) {
        byte[] partition = Arrays.copyOf(key, key.length - 1);
        MutableDeletionInfo info = generation.change(writer -> writer.deletions(partition));
        if (purger.shouldPurge(info.getPartitionDeletion())) {
            sweep(Range.between(Keys.of(partition, Keys.STATIC), Keys.after(partition)), info.getPartitionDeletion());
        }
        List<RangeTombstone> ranges = new ArrayList<>();
        info.rangeIterator(false).forEachRemaining(ranges::add);
        for (RangeTombstone range : ranges) {
            if (purger.shouldPurge(range.deletionTime())) {
                sweep(generation.range(partition, range), range.deletionTime());
            }
        }
        generation.change(writer -> {
            // What was added meanwhile is younger, so it stays; rows written meanwhile beneath an old deletion are as
            // good as written after its end.
            MutableDeletionInfo present = writer.deletions(partition);
            Marks marks = Marks.of(present);
            DeletionTime whole = present.getPartitionDeletion();
            MutableDeletionInfo left = new MutableDeletionInfo(purger.shouldPurge(whole) ? DeletionTime.LIVE : whole);
            present.rangeIterator(false).forEachRemaining(range -> {
                if (!purger.shouldPurge(range.deletionTime())) {
                    left.add(range, generation.metadata().comparator);
                }
            });
            if (!left.equals(present)) {
                writer.store(partition, marks, left);
            }
            return null;
        });
    }

    private void sweep(Range range, DeletionTime deletion) {
        Range left = range;
        while (true) {
            Range part = left;
            Generation.Looked looked = generation.change(writer -> writer.removeShadowed(part, deletion, BATCH));
            if (looked.looked() < BATCH) {
                return;
            }
            left = left.startingAfter(looked.last());
        }
    }
}
