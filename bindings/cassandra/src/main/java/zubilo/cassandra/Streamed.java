package zubilo.cassandra;

import java.io.IOException;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.io.sstable.Component;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableFormat.Components;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.metadata.MetadataType;
import org.apache.cassandra.io.sstable.metadata.StatsMetadata;

/**
 * The SSTables that Cassandra writes to stream rows of a memtable that stays in use, for a repair or a node that joins.
 *
 * <p>Cassandra does not delete them, and would take them for the table's own at the next start: rows that were deleted or
 * truncated since would be back. So they are marked, by an interval of the commit log that no log ever had, and what
 * bears the mark is removed before the table's SSTables are opened.
 */
final class Streamed {
    private static final Logger LOGGER = LoggerFactory.getLogger(Streamed.class);
    /** Numbers of segments are times in milliseconds; this one is of 1970. */
    private static final long SEGMENT = 0x7a756269;
    static final CommitLogPosition LOWER = new CommitLogPosition(SEGMENT, 1);
    static final Memtable.LastCommitLogPosition UPPER = new Memtable.LastCommitLogPosition(new CommitLogPosition(SEGMENT, 2));
    /** No stream opens files of an SSTable that is older; one that has them open may go on. */
    static final long STREAM_MILLIS_MAX = 24 * 3600 * 1000L;

    private Streamed() {}

    /** At the start of a node, before the table's SSTables are opened: nothing is being streamed. */
    static void removeAll(ColumnFamilyStore table) {
        remove(table.getDirectories(), Set.of(), Long.MAX_VALUE, true);
    }

    /** While the node runs: those that are older than so many milliseconds. */
    static void removeOld(ColumnFamilyStore table, long millis) {
        Set<Descriptor> live = new HashSet<>();
        for (SSTableReader sstable : table.getTracker().getView().allKnownSSTables()) {
            live.add(sstable.descriptor);
        }
        remove(table.getDirectories(), live, System.currentTimeMillis() - millis, false);
    }

    private static void remove(Directories directories, Set<Descriptor> live, long before, boolean atStart) {
        for (Map.Entry<Descriptor, Set<Component>> found : directories.sstableLister(Directories.OnTxnErr.IGNORE).skipTemporary(true).list().entrySet()) {
            Descriptor sstable = found.getKey();
            if (live.contains(sstable) || sstable.fileFor(Components.DATA).lastModified() >= before) {
                continue;
            }
            boolean whole = found.getValue().contains(Components.STATS);
            // Its writing was cut off by a kill; the end of the list of its files is written last.
            boolean cutOff = !whole && !found.getValue().contains(Components.TOC);
            if (whole ? isMarked(sstable) : atStart && cutOff) {
                LOGGER.info("removing {}, which was written to stream rows of the memtable", sstable);
                sstable.getFormat().delete(sstable);
            }
        }
    }

    static boolean isMarked(Descriptor sstable) {
        try {
            StatsMetadata stats = (StatsMetadata) sstable.getMetadataSerializer().deserialize(sstable, MetadataType.STATS);
            return stats != null && stats.commitLogIntervals.starts().contains(LOWER);
        } catch (IOException | RuntimeException e) {
            // Damaged; Cassandra will tell, or it is just being removed.
            LOGGER.warn("cannot read the statistics of {}: {}", sstable, e.toString());
            return false;
        }
    }
}
