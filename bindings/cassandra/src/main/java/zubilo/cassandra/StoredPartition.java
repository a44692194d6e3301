package zubilo.cassandra;

import java.util.NavigableSet;

import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;

/** A partition that is on its way to an SSTable. It can be gone through once; nothing else is asked of it. */
final class StoredPartition implements Partition {
    private final UnfilteredRowIterator rows;

    StoredPartition(UnfilteredRowIterator rows) {
        this.rows = rows;
    }

    @Override
    public TableMetadata metadata() {
        return rows.metadata();
    }

    @Override
    public DecoratedKey partitionKey() {
        return rows.partitionKey();
    }

    @Override
    public DeletionTime partitionLevelDeletion() {
        return rows.partitionLevelDeletion();
    }

    @Override
    public RegularAndStaticColumns columns() {
        return rows.columns();
    }

    @Override
    public EncodingStats stats() {
        return rows.stats();
    }

    @Override
    public boolean isEmpty() {
        return rows.isEmpty();
    }

    @Override
    public boolean hasRows() {
        return rows.hasNext();
    }

    @Override
    public UnfilteredRowIterator unfilteredIterator() {
        return rows;
    }

    @Override
    public Row getRow(Clustering<?> clustering) {
        throw new UnsupportedOperationException("a partition of a flush is gone through once");
    }

    @Override
    public UnfilteredRowIterator unfilteredIterator(ColumnFilter columns, Slices slices, boolean reversed) {
        throw new UnsupportedOperationException("a partition of a flush is gone through once");
    }

    @Override
    public UnfilteredRowIterator unfilteredIterator(ColumnFilter columns, NavigableSet<Clustering<?>> clusterings, boolean reversed) {
        throw new UnsupportedOperationException("a partition of a flush is gone through once");
    }
}
