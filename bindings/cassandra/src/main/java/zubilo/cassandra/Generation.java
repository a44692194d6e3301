package zubilo.cassandra;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.net.MessagingService;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;

import zubilo.Env;
import zubilo.KeyValue;
import zubilo.Range;
import zubilo.ReadTxn;
import zubilo.Table;
import zubilo.TableStats;
import zubilo.WriteTable;
import zubilo.WriteTxn;
import zubilo.ZubiloException;

/**
 * What one memtable stores: three tables of the store, with records, the expiry index and layouts. They are created by
 * the first write, so one that was never written leaves nothing behind.
 *
 * <p>Every write is one change of {@link Env#update}: atomic, durable when it returns, and it shares its commit with
 * those of other threads. Reads, merges and writes of a record happen inside of the change, so no locks are needed.
 *
 * <p>A deletion may still have rows beneath it: readers hide them. Whoever drops a deletion removes them first.
 */
final class Generation {
    /** Rows that a write with a deletion looks at to remove what it shadows; the rest is left for the purge. */
    static final int SHADOWED_PER_WRITE = 1000;
    private static final int ESTIMATE = 1000;
    private static final int VERSION = MessagingService.current_version;

    final Env env;
    final Keys keys;
    final RowCodec codec = new RowCodec();
    final long number;
    private final String rows;
    private final String expiry;
    private final String layouts;
    private final TableMetadataRef metadata;
    private final int keyLimit;
    private volatile boolean created;
    private volatile boolean dropped;

    /**
     * Opens what is stored under a name.
     *
     * @param name the table's, with the number of the generation at its end
     */
    Generation(Env env, String name, long number, TableMetadataRef metadata) {
        this.env = env;
        this.number = number;
        this.metadata = metadata;
        rows = name + "/rows";
        expiry = name + "/expiry";
        layouts = name + "/layouts";
        keys = new Keys(metadata.get().partitioner);
        keyLimit = env.maxKeyLength() - Marks.PREFIX;
        try (ReadTxn txn = env.read()) {
            created = txn.hasTable(rows);
            if (created) {
                for (KeyValue layout : txn.table(layouts).all()) {
                    codec.add(RowCodec.Layout.of(layout.key().getInt(0), layout.value().toByteArray()));
                }
            }
        }
    }

    TableMetadata metadata() {
        return metadata.get();
    }

    /** The table of records, or null before the first write and after the end. */
    Table rows(ReadTxn txn) {
        if (!created || dropped) {
            return null;
        }
        try {
            return txn.table(rows);
        } catch (ZubiloException.NoSuchTable e) {
            return null;
        }
    }

    /** The layout for a write of these columns; stores a new one where none fits. */
    private RowCodec.Layout layout(RegularAndStaticColumns columns) {
        RowCodec.Layout fitting = codec.fitting(columns, VERSION);
        return fitting != null ? fitting : newLayout(columns);
    }

    private synchronized RowCodec.Layout newLayout(RegularAndStaticColumns columns) {
        RowCodec.Layout fitting = codec.fitting(columns, VERSION);
        if (fitting != null) {
            return fitting;
        }
        RowCodec.Layout layout = codec.extended(columns.mergeTo(metadata().regularAndStaticColumns()), VERSION);
        env.update(txn -> {
            txn.tableOrCreate(rows);
            txn.tableOrCreate(expiry);
            byte[] key = ByteBuffer.allocate(4).putInt(layout.number).array();
            txn.tableOrCreate(layouts).put(key, layout.toBytes());
            return null;
        });
        created = true;
        codec.add(layout);
        return layout;
    }

    /** Applies an update; gives the least distance between timestamps of a cell that it met, as Cassandra's metric wants. */
    long put(PartitionUpdate update) {
        TableMetadata schema = metadata();
        byte[] partition = keys.partition(update.partitionKey());
        RowCodec.Layout layout = layout(update.columns());
        List<Prepared> prepared = new ArrayList<>();
        if (!update.staticRow().isEmpty()) {
            prepared.add(prepare(schema, layout, partition, update.staticRow()));
        }
        for (Row row : update) {
            prepared.add(prepare(schema, layout, partition, row));
        }
        checkLength(partition.length + 1);
        return env.update(txn -> {
            Writer writer = new Writer(schema, layout, txn.table(rows), txn.table(expiry));
            if (!update.deletionInfo().isLive()) {
                writer.delete(partition, update.deletionInfo());
            }
            for (Prepared row : prepared) {
                writer.merge(row);
            }
            return writer.timeDelta;
        });
    }

    /** A row of an update, encoded as it is stored where there is none yet. */
    private record Prepared(byte[] key, Row row, byte[] value, Marks marks) {}

    private Prepared prepare(TableMetadata schema, RowCodec.Layout layout, byte[] partition, Row row) {
        byte[] key = Keys.record(partition, schema.comparator, row.clustering());
        checkLength(key.length);
        return new Prepared(key, row, codec.row(schema, layout, row), Marks.of(row));
    }

    private void checkLength(int length) {
        if (length > keyLimit) {
            throw new InvalidRequestException("partition key and clustering have " + length + " bytes together; the memtable of "
                    + metadata() + " stores at most " + keyLimit + " (see page_size in its configuration)");
        }
    }

    /** Changes of records inside of a transaction. It keeps the expiry index in step. */
    final class Writer implements ColumnData.PostReconciliationFunction {
        private final TableMetadata schema;
        private final RowCodec.Layout layout;
        private final WriteTable records;
        private final WriteTable index;
        long timeDelta = Long.MAX_VALUE;

        Writer(TableMetadata schema, RowCodec.Layout layout, WriteTable records, WriteTable index) {
            this.schema = schema;
            this.layout = layout;
            this.records = records;
            this.index = index;
        }

        private void merge(Prepared prepared) {
            byte[] old = records.get(prepared.key);
            Row existing = old == null ? null : codec.row(schema, old, prepared.row.isStatic(), null);
            if (existing == null) {
                records.put(prepared.key, prepared.value);
                remark(prepared.key, Marks.NONE, prepared.marks);
                return;
            }
            Row merged = Rows.merge(existing, prepared.row, this);
            replace(prepared.key, old, existing, merged);
        }

        /** Stores what became of a row; null removes it. */
        void replace(byte[] key, byte[] old, Row existing, Row row) {
            if (row == null || row.isEmpty()) {
                records.delete(key);
                remark(key, Marks.of(existing), Marks.NONE);
                return;
            }
            byte[] value = codec.row(schema, layout, row);
            if (!Arrays.equals(value, old)) {
                records.put(key, value);
                remark(key, Marks.of(existing), Marks.of(row));
            }
        }

        private void remark(byte[] key, Marks old, Marks marks) {
            remark(Marks.EXPIRY, key, old.expiry(), marks.expiry());
            remark(Marks.TOMBSTONE, key, old.tombstone(), marks.tombstone());
        }

        private void remark(byte kind, byte[] key, long old, long time) {
            if (old != time) {
                if (old != Marks.NEVER) {
                    index.delete(Marks.entry(kind, old, key));
                }
                if (time != Marks.NEVER) {
                    index.put(Marks.entry(kind, time, key), new byte[0]);
                }
            }
        }

        private void absorb(RowCodec codecOfOld, Records.Record record) {
            byte[] partition = Arrays.copyOf(record.key(), keys.partitionLength(record.key()));
            byte kind = record.key()[partition.length];
            if (kind == Keys.DELETIONS) {
                delete(partition, codecOfOld.deletions(schema, record.value()));
                return;
            }
            Row row = codecOfOld.row(schema, record.value(), kind == Keys.STATIC, null);
            if (row != null) {
                merge(new Prepared(record.key(), row, codec.row(schema, layout, row), Marks.of(row)));
            }
        }

        MutableDeletionInfo deletions(byte[] partition) {
            return codec.deletions(schema, records.get(Keys.of(partition, Keys.DELETIONS)));
        }

        /** Adds deletions to a partition and removes what they shadow, up to a limit. */
        private void delete(byte[] partition, DeletionInfo added) {
            MutableDeletionInfo old = deletions(partition);
            Marks marks = Marks.of(old);
            if (!added.mayModify(old)) {
                return;
            }
            MutableDeletionInfo merged = old.mutableCopy();
            merged.add(added);
            store(partition, marks, merged);
            int budget = SHADOWED_PER_WRITE;
            if (!added.getPartitionDeletion().isLive()) {
                budget -= removeShadowed(Range.between(Keys.of(partition, Keys.STATIC), Keys.after(partition)),
                        added.getPartitionDeletion(), budget).looked;
            }
            for (var ranges = added.rangeIterator(false); ranges.hasNext() && budget > 0;) {
                RangeTombstone range = ranges.next();
                budget -= removeShadowed(range(partition, range), range.deletionTime(), budget).looked;
            }
        }

        byte[] get(byte[] key) {
            return records.get(key);
        }

        /** Removes an entry of the expiry index that belongs to nothing. */
        void unmark(byte[] entry) {
            index.delete(entry);
        }

        void store(byte[] partition, Marks old, DeletionInfo info) {
            byte[] key = Keys.of(partition, Keys.DELETIONS);
            if (info.isLive()) {
                records.delete(key);
            } else {
                records.put(key, codec.deletions(schema, layout, info));
            }
            remark(key, old, info.isLive() ? Marks.NONE : Marks.of(info));
        }

        private List<KeyValue> first(Range range, int limit) {
            List<KeyValue> found = new ArrayList<>();
            for (KeyValue record : records.range(range)) {
                if (found.size() == limit) {
                    break;
                }
                found.add(record);
            }
            return found;
        }

        /** Removes the first records of a range, whatever they hold, so many at most; gives how many. */
        int remove(Range range, int limit) {
            List<KeyValue> found = first(range, limit);
            for (KeyValue record : found) {
                byte[] key = record.key().toByteArray();
                records.delete(key);
                remark(key, marks(key, record.value().toByteArray()), Marks.NONE);
            }
            return found.size();
        }

        private Marks marks(byte[] key, byte[] value) {
            byte kind = key[keys.partitionLength(key)];
            if (kind == Keys.DELETIONS) {
                return Marks.of(codec.deletions(schema, value));
            }
            Row row = codec.row(schema, value, kind == Keys.STATIC, null);
            // An entry of dropped columns points to nothing then: the purge removes it.
            return row == null ? Marks.NONE : Marks.of(row);
        }

        /** Removes what a deletion shadows from the rows of a range, looking at so many at most. */
        Looked removeShadowed(Range range, DeletionTime deletion, int limit) {
            List<KeyValue> found = first(range, limit);
            byte[] last = null;
            for (KeyValue record : found) {
                last = record.key().toByteArray();
                byte[] value = record.value().toByteArray();
                boolean isStatic = last[keys.partitionLength(last)] == Keys.STATIC;
                Row row = codec.row(schema, value, isStatic, null);
                Row left = row == null ? null : row.filter(ColumnFilter.all(schema), deletion, false, schema);
                if (row == null) {
                    records.delete(last);
                } else if (left != row) {
                    replace(last, value, row, left);
                }
            }
            return new Looked(found.size(), last);
        }

        @Override
        public Cell<?> merge(Cell<?> previous, Cell<?> insert) {
            if (previous != insert) {
                timeDelta = Math.min(timeDelta, Math.abs(insert.timestamp() - previous.timestamp()));
            }
            return insert;
        }

        @Override
        public ColumnData insert(ColumnData insert) {
            return insert;
        }

        @Override
        public void delete(ColumnData existing) {}

        @Override
        public void onAllocatedOnHeap(long delta) {}
    }

    /** The rows that a range tombstone covers. */
    Range range(byte[] partition, RangeTombstone tombstone) {
        return Range.between(Keys.row(partition, metadata().comparator, tombstone.deletedSlice().start()),
                Keys.row(partition, metadata().comparator, tombstone.deletedSlice().end()));
    }

    /** How many rows were looked at, and the key of the last one. */
    record Looked(int looked, byte[] last) {}

    /** Makes a change of records, with the newest layout. */
    <T> T change(Function<Writer, T> change) {
        TableMetadata schema = metadata();
        RowCodec.Layout layout = layout(schema.regularAndStaticColumns());
        return env.update(txn -> change.apply(new Writer(schema, layout, txn.table(rows), txn.table(expiry))));
    }

    /** The expiry index, or null before the first write. */
    Table expiry(ReadTxn txn) {
        return rows(txn) == null ? null : txn.table(expiry);
    }

    boolean isEmpty() {
        if (!created || dropped) {
            return true;
        }
        try (ReadTxn txn = env.read()) {
            Table table = rows(txn);
            return table == null || table.isEmpty();
        }
    }

    /** Figures of the table of records, or null if there is none. */
    TableStats stats() {
        if (!created || dropped) {
            return null;
        }
        try (ReadTxn txn = env.read()) {
            Table table = rows(txn);
            return table == null ? null : table.stats();
        }
    }

    /** Partitions, estimated from the first records where a partition can have more than one. */
    long estimatePartitions() {
        if (!created || dropped) {
            return 0;
        }
        try (ReadTxn txn = env.read()) {
            Table table = rows(txn);
            if (table == null) {
                return 0;
            }
            long looked = 0;
            long partitions = 0;
            byte[] last = new byte[0];
            for (KeyValue record : table.all()) {
                byte[] key = record.key().toByteArray();
                int length = keys.partitionLength(key);
                if (!Arrays.equals(key, 0, length, last, 0, last.length)) {
                    partitions++;
                    last = Arrays.copyOf(key, length);
                }
                if (++looked == ESTIMATE) {
                    break;
                }
            }
            return looked < ESTIMATE ? partitions : Math.max(partitions, Math.round((double) table.size() * partitions / looked));
        }
    }

    /** Partitions between two keys, and the bytes of their keys. Goes from one to the next without reading their rows. */
    Counted count(byte[] from, byte[] to) {
        long partitions = 0;
        long keyBytes = 0;
        byte[] next = from == null ? new byte[0] : from;
        while (next != null) {
            try (ReadTxn txn = env.read()) {
                Table table = rows(txn);
                for (int i = 0; i < ESTIMATE && next != null; i++) {
                    KeyValue first = table == null ? null : table.first(to == null ? Range.from(next) : Range.between(next, to));
                    if (first == null) {
                        next = null;
                    } else {
                        byte[] key = first.key().toByteArray();
                        partitions++;
                        keyBytes += keys.decode(key).getKeyLength();
                        next = Keys.after(Arrays.copyOf(key, keys.partitionLength(key)));
                    }
                }
            }
        }
        return new Counted(partitions, keyBytes);
    }

    /** How many partitions, and how many bytes their keys have. */
    record Counted(long partitions, long keyBytes) {}

    /** Merges another generation of the same table into this one, in small transactions, and drops it. */
    void absorb(Generation old) {
        TableMetadata schema = metadata();
        byte[] after = new byte[0];
        while (true) {
            List<Records.Record> chunk = new ArrayList<>();
            try (ReadTxn txn = env.read()) {
                Table table = old.rows(txn);
                if (table != null) {
                    for (KeyValue record : table.range(Range.all().startingAfter(after))) {
                        chunk.add(Records.Record.of(record));
                        if (chunk.size() == Records.CHUNK) {
                            break;
                        }
                    }
                }
            }
            if (chunk.isEmpty()) {
                break;
            }
            after = chunk.get(chunk.size() - 1).key();
            change(writer -> {
                chunk.forEach(record -> writer.absorb(old.codec, record));
                return null;
            });
        }
        old.drop();
    }

    /** Removes everything; its space is free for others at once. */
    synchronized void drop() {
        dropped = true;
        if (created) {
            env.update((WriteTxn txn) -> {
                for (String name : List.of(rows, expiry, layouts)) {
                    if (txn.hasTable(name)) {
                        txn.dropTable(name);
                    }
                }
                return null;
            });
        }
    }
}
