package zubilo.cassandra;

import java.util.Collection;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.commitlog.IntervalSet;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.lifecycle.LifecycleNewTracker;
import org.apache.cassandra.db.memtable.Flushing;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.io.sstable.SSTable;
import org.apache.cassandra.io.sstable.SSTableMultiWriter;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.service.ActiveRepairService;

/** Snapshots of a table: SSTables in the folder of the snapshot, which Cassandra's own tools restore. */
final class Snapshots {
    private static final LifecycleNewTracker UNTRACKED = new LifecycleNewTracker() {
        @Override
        public void trackNew(SSTable table) {}

        @Override
        public void untrackNew(SSTable table) {}

        @Override
        public OperationType opType() {
            return OperationType.FLUSH;
        }
    };

    private Snapshots() {}

    static void write(ColumnFamilyStore table, Memtable memtable, String name) {
        Memtable.FlushablePartitionSet<?> all = memtable.getFlushSet(null, null);
        if (all.partitionCount() == 0) {
            return;
        }
        File home = table.getDirectories().getDirectoryForNewSSTables();
        File folder = Directories.getSnapshotDirectory(home, name);
        SSTableMultiWriter writer = table.createSSTableMultiWriter(table.newSSTableDescriptor(folder), all.partitionCount(),
                ActiveRepairService.UNREPAIRED_SSTABLE, ActiveRepairService.NO_PENDING_REPAIR, false, IntervalSet.empty(),
                new SerializationHeader(true, all.metadata(), all.columns(), all.encodingStats()), UNTRACKED);
        Collection<SSTableReader> written;
        try {
            new Flushing.FlushRunnable(all, writer, table.metric, false).call();
            written = writer.finish(true);
        } catch (RuntimeException | Error e) {
            writer.abort(e);
            throw e;
        }
        for (SSTableReader reader : written) {
            reader.selfRef().release();
        }
    }
}
