package zubilo.cassandra;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;

import com.google.common.collect.AbstractIterator;
import com.google.common.collect.Iterators;

import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.RowAndDeletionMergeIterator;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.schema.TableMetadata;

import zubilo.Range;
import zubilo.ReadTxn;
import zubilo.Table;

/** Slices of one partition as Cassandra wants them: rows and range tombstones in order, nothing that is shadowed. */
final class PartitionReader extends AbstractUnfilteredRowIterator {
    private final Records records;
    private final Iterator<Unfiltered> merged;

    private PartitionReader(TableMetadata schema, DecoratedKey key, DeletionInfo deletions, Row staticRow, ColumnFilter columns,
            boolean reversed, Records records, Iterator<Unfiltered> merged) {
        super(schema, key, deletions.getPartitionDeletion(), columns.fetchedColumns(), staticRow, reversed, EncodingStats.NO_STATS);
        this.records = records;
        this.merged = merged;
    }

    /** What is read of a partition. */
    record Query(Slices slices, ColumnFilter columns, boolean reversed) {
        Slice slice(int i) {
            return slices.get(reversed ? slices.size() - 1 - i : i);
        }
    }

    /**
     * Reads a partition from the newest snapshot.
     *
     * @return null if nothing of it is there
     */
    static PartitionReader open(Generation generation, DecoratedKey key, byte[] partition, Query query) {
        ReadTxn txn = generation.env.readShared();
        PartitionReader reader = null;
        try {
            Table table = generation.rows(txn);
            if (table != null) {
                reader = open(generation, key, partition, query, txn, table);
            }
            return reader;
        } finally {
            if (reader == null) {
                txn.close();
            }
        }
    }

    private static PartitionReader open(Generation generation, DecoratedKey key, byte[] partition, Query query, ReadTxn txn, Table table) {
        TableMetadata schema = generation.metadata();
        // One row at most, or all of the partition: deletions, static row and rows lie beside each other.
        boolean whole = query.slices == Slices.ALL && !query.reversed;
        if (whole || schema.comparator.size() == 0 && !query.slices.isEmpty()) {
            Range all = Range.between(Keys.of(partition, Keys.DELETIONS), Keys.after(partition));
            Records records = new Records(generation, txn, List.of(all), false);
            if (!records.prefetch()) {
                return null;
            }
            byte[] deletions = records.take(partition.length, Keys.DELETIONS);
            byte[] staticRow = records.take(partition.length, Keys.STATIC);
            return make(generation, schema, key, query, deletions, staticRow, records);
        }
        byte[] deletions = table.get(Keys.of(partition, Keys.DELETIONS));
        byte[] staticRow = schema.hasStaticColumns() || isOldStatic(schema) ? table.get(Keys.of(partition, Keys.STATIC)) : null;
        List<Range> ranges = new ArrayList<>();
        for (int i = 0; i < query.slices.size(); i++) {
            ranges.add(range(schema.comparator, partition, query.slice(i), query.reversed));
        }
        Records records = new Records(generation, txn, ranges, query.reversed);
        if (!records.prefetch() && deletions == null && staticRow == null) {
            return null;
        }
        return make(generation, schema, key, query, deletions, staticRow, records);
    }

    /** Whether there may be static rows of columns that were dropped since. */
    private static boolean isOldStatic(TableMetadata schema) {
        return schema.droppedColumns.values().stream().anyMatch(dropped -> dropped.column.isStatic());
    }

    /** Reads a partition whose records are all at hand, in order. */
    static PartitionReader of(Generation generation, DecoratedKey key, byte[] partition, Query query, List<Records.Record> all) {
        TableMetadata schema = generation.metadata();
        byte[] deletions = null;
        byte[] staticRow = null;
        int first = 0;
        for (Records.Record record : all) {
            byte kind = record.key()[partition.length];
            if (kind == Keys.ROW) {
                break;
            }
            deletions = kind == Keys.DELETIONS ? record.value() : deletions;
            staticRow = kind == Keys.STATIC ? record.value() : staticRow;
            first++;
        }
        List<Records.Record> rows = all.subList(first, all.size());
        return make(generation, schema, key, query, deletions, staticRow, new Records(chosen(schema, partition, query, rows)));
    }

    /** The rows that lie in the slices, in the order of the query. */
    private static List<Records.Record> chosen(TableMetadata schema, byte[] partition, Query query, List<Records.Record> rows) {
        List<Records.Record> chosen = new ArrayList<>();
        if (query.slices == Slices.ALL) {
            chosen.addAll(rows);
        } else {
            for (Slice slice : query.slices) {
                byte[] from = Keys.row(partition, schema.comparator, slice.start());
                byte[] to = Keys.row(partition, schema.comparator, slice.end());
                for (Records.Record row : rows) {
                    if (java.util.Arrays.compareUnsigned(row.key(), from) >= 0
                            && java.util.Arrays.compareUnsigned(row.key(), to) < 0) {
                        chosen.add(row);
                    }
                }
            }
        }
        if (query.reversed) {
            Collections.reverse(chosen);
        }
        return chosen;
    }

    private static PartitionReader make(Generation generation, TableMetadata schema, DecoratedKey key, Query query, byte[] deletions,
            byte[] staticRow, Records records) {
        DeletionInfo info = generation.codec.deletions(schema, deletions);
        Row visible = visibleStatic(schema, query.columns, info.getPartitionDeletion(),
                generation.codec.staticRow(schema, staticRow, query.columns));
        Iterator<Row> rows = new AbstractIterator<>() {
            @Override
            protected Row computeNext() {
                while (records.hasNext()) {
                    Row row = generation.codec.row(schema, records.next().value(), false, query.columns);
                    if (row != null) {
                        return row;
                    }
                }
                return endOfData();
            }
        };
        List<Iterator<RangeTombstone>> ranges = new ArrayList<>();
        for (int i = 0; info.hasRanges() && i < query.slices.size(); i++) {
            ranges.add(info.rangeIterator(query.slice(i), query.reversed));
        }
        Iterator<Unfiltered> merged = new RowAndDeletionMergeIterator(schema, key, info.getPartitionDeletion(), query.columns,
                Rows.EMPTY_STATIC_ROW, query.reversed, EncodingStats.NO_STATS, rows, Iterators.concat(ranges.iterator()), true);
        return new PartitionReader(schema, key, info, visible, query.columns, query.reversed, records, merged);
    }

    private static Row visibleStatic(TableMetadata schema, ColumnFilter columns, DeletionTime deletion, Row row) {
        if (row.isEmpty() || columns.fetchedColumns().statics.isEmpty()) {
            return Rows.EMPTY_STATIC_ROW;
        }
        Row visible = row.filter(columns, deletion, false, schema);
        return visible == null ? Rows.EMPTY_STATIC_ROW : visible;
    }

    private static Range range(ClusteringComparator comparator, byte[] partition, Slice slice, boolean reversed) {
        Range range = slice.start().isBottom() && slice.end().isTop()
                ? Range.between(Keys.of(partition, Keys.ROW), Keys.after(partition))
                : Range.between(Keys.row(partition, comparator, slice.start()), Keys.row(partition, comparator, slice.end()));
        return reversed ? range.reversed() : range;
    }

    @Override
    protected Unfiltered computeNext() {
        return merged.hasNext() ? merged.next() : endOfData();
    }

    @Override
    public void close() {
        records.close();
    }
}
