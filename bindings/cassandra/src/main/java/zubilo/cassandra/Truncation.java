package zubilo.cassandra;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.notifications.INotification;
import org.apache.cassandra.notifications.INotificationConsumer;
import org.apache.cassandra.notifications.TruncationNotification;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.ViewMetadata;

/**
 * Drops the generation of a memtable that was switched out when its table is truncated.
 *
 * <p>Cassandra discards such a memtable too, but not before all reads that may see it have ended, while TRUNCATE is
 * acknowledged without waiting for that. A node that was killed in between would find the rows again. What TRUNCATE
 * keeps is in SSTables when it tells of itself.
 */
final class Truncation implements INotificationConsumer {
    private final Generation generation;
    private final ColumnFamilyStore truncated;

    private Truncation(Generation generation, ColumnFamilyStore truncated) {
        this.generation = generation;
        this.truncated = truncated;
    }

    /** Begins to wait for a TRUNCATE of a table; an index or a view is truncated with its base table. */
    static Truncation await(ColumnFamilyStore table, Generation generation) {
        TableMetadata metadata = table.metadata();
        TableId base = metadata.id;
        if (metadata.isView()) {
            ViewMetadata view = table.keyspace.getMetadata().views.getNullable(metadata.name);
            base = view == null ? base : view.baseTableId;
        }
        // The table of an index has its base table's id.
        ColumnFamilyStore truncated = table.isIndex() || metadata.isView() ? ColumnFamilyStore.getIfExists(base) : table;
        Truncation waiting = new Truncation(generation, truncated == null ? table : truncated);
        waiting.truncated.getTracker().subscribe(waiting);
        return waiting;
    }

    void end() {
        truncated.getTracker().unsubscribe(this);
    }

    @Override
    public void handleNotification(INotification notification, Object sender) {
        if (notification instanceof TruncationNotification) {
            generation.drop();
        }
    }
}
