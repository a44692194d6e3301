package zubilo.cassandra;

import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.schema.TableMetadata;

import zubilo.ReadTxn;
import zubilo.Table;

/** Tells the secondary indexes what an update is going to change. The caller keeps others from the partition. */
final class IndexFeed {
    private IndexFeed() {}

    static void tell(Generation generation, PartitionUpdate update, UpdateTransaction indexer) {
        TableMetadata schema = generation.metadata();
        byte[] partition = generation.keys.partition(update.partitionKey());
        indexer.start();
        try {
            DeletionInfo deletions = update.deletionInfo();
            if (!deletions.getPartitionDeletion().isLive()) {
                indexer.onPartitionDeletion(deletions.getPartitionDeletion());
            }
            if (deletions.hasRanges()) {
                deletions.rangeIterator(false).forEachRemaining(indexer::onRangeTombstone);
            }
            if (!update.staticRow().isEmpty()) {
                tell(generation, schema, partition, update.staticRow(), indexer);
            }
            for (Row row : update) {
                tell(generation, schema, partition, row, indexer);
            }
        } finally {
            indexer.commit();
        }
    }

    private static void tell(Generation generation, TableMetadata schema, byte[] partition, Row row, UpdateTransaction indexer) {
        byte[] stored = null;
        try (ReadTxn txn = generation.env.read()) {
            Table table = generation.rows(txn);
            if (table != null) {
                stored = table.get(Keys.record(partition, schema.comparator, row.clustering()));
            }
        }
        Row existing = stored == null ? null : generation.codec.row(schema, stored, row.isStatic(), null);
        if (existing == null) {
            indexer.onInserted(row);
        } else {
            indexer.onUpdated(existing, Rows.merge(existing, row));
        }
    }
}
