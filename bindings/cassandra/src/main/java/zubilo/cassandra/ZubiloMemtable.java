package zubilo.cassandra;

import java.nio.file.Path;
import java.util.Iterator;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Lock;

import com.google.common.collect.Iterators;
import com.google.common.util.concurrent.Striped;

import org.apache.cassandra.config.DataStorageSpec;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ClusteringIndexFilter;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.memtable.AbstractMemtableWithCommitlog;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.AbstractBounds;
import org.apache.cassandra.dht.Bounds;
import org.apache.cassandra.dht.IncludingExcludingBounds;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.io.FSWriteError;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.schema.IndexMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.concurrent.OpOrder;

import zubilo.Durability;
import zubilo.TableStats;
import zubilo.ZubiloException;

/**
 * A memtable that is its table's primary store: durable when a write returns, never flushed, read as it lies.
 *
 * <p>This class is what Apache Cassandra 5.0 sees, and all that knows its memtable interface. It decides when Cassandra may
 * switch to a new memtable: see {@link #shouldSwitch}.
 */
public final class ZubiloMemtable extends AbstractMemtableWithCommitlog {
    private final Factory factory;
    private final Owner owner;
    private final Generation generation;
    /** The generation held data when this object was made, of which it knows no statistics. */
    private final boolean inherited;
    /** Partitions of tables with indexes, so that index and table see changes in one order. */
    private final Striped<Lock> indexed = Striped.lock(1024);
    /** Null where no table of Cassandra's owns this memtable. */
    private final Upkeep upkeep;
    private volatile boolean switched;
    /** Once this is switched out. */
    private volatile Truncation truncation;

    private ZubiloMemtable(Factory factory, AtomicReference<CommitLogPosition> lowerBound, TableMetadataRef metadata, Owner owner) {
        super(metadata, lowerBound);
        this.factory = factory;
        this.owner = owner;
        if (owner instanceof ColumnFamilyStore table && table.getTracker() == null) {
            Streamed.removeAll(table);
        }
        generation = Store.open(factory.settings).generation(metadata);
        inherited = !generation.isEmpty();
        upkeep = owner instanceof ColumnFamilyStore table ? new Upkeep(this, table, generation, factory.cleanupSeconds) : null;
    }

    Generation generation() {
        return generation;
    }

    /** What is done for this memtable in the background. */
    Upkeep upkeep() {
        return upkeep;
    }

    /**
     * Reads a configuration of {@code cassandra.yaml}. Cassandra calls it.
     *
     * @param parameters its parameters, which this removes
     * @return what makes memtables
     */
    public static Factory factory(Map<String, String> parameters) {
        return new Factory(parameters);
    }

    /** Makes memtables of one configuration. */
    public static final class Factory implements Memtable.Factory {
        private static final int CLEANUP_SECONDS = 3600;
        /** Takes a few seconds to replay when it is full; it is shorter while the store is small. */
        private static final String REDO_LOG = "1GiB";
        private final Store.Settings settings;
        private final boolean commitLog;
        private final int cleanupSeconds;

        private Factory(Map<String, String> parameters) {
            String folder = parameters.remove("dir");
            Path path = folder != null ? Path.of(folder)
                    : Path.of(DatabaseDescriptor.getNonLocalSystemKeyspacesDataFileLocations()[0]).toAbsolutePath().resolveSibling("zubilo");
            String sync = Objects.requireNonNullElse(parameters.remove("sync"), "true");
            Durability durability = switch (sync) {
                case "true" -> Durability.SYNC;
                case "lazy" -> Durability.LAZY;
                default -> throw new ConfigurationException("sync is \"" + sync + "\"; it can be \"true\" or \"lazy\"");
            };
            String log = Objects.requireNonNullElse(parameters.remove("commitlog"), "false");
            if (!log.equals("true") && !log.equals("false")) {
                throw new ConfigurationException("commitlog is \"" + log + "\"; it can be \"true\" or \"false\"");
            }
            commitLog = Boolean.parseBoolean(log);
            // A log is for commits that wait for the disk.
            String redoLog = parameters.remove("redo_log");
            settings = new Store.Settings(path, durability, pageSize(parameters.remove("page_size")),
                    durability == Durability.SYNC ? redoLog(redoLog) : 0);
            cleanupSeconds = cleanupSeconds(parameters.remove("cleanup_seconds"));
        }

        private static int cleanupSeconds(String text) {
            if ("never".equals(text)) {
                return Upkeep.NEVER;
            }
            try {
                int seconds = text == null ? CLEANUP_SECONDS : Integer.parseInt(text);
                if (seconds >= 0) {
                    return seconds;
                }
            } catch (NumberFormatException e) {
                // Said below.
            }
            throw new ConfigurationException("cleanup_seconds is \"" + text + "\"; it can be a number of seconds or \"never\"");
        }

        private static long redoLog(String text) {
            if ("none".equals(text)) {
                return 0;
            }
            long bytes = 0;
            try {
                bytes = new DataStorageSpec.LongBytesBound(Objects.requireNonNullElse(text, REDO_LOG)).toBytes();
            } catch (IllegalArgumentException | ConfigurationException e) {
                // Said below.
            }
            if (bytes < 64 << 10 || bytes > 1 << 30) {
                throw new ConfigurationException("redo_log is \"" + text + "\"; it can be \"none\", or a length from 64KiB to 1GiB, as 64MiB");
            }
            return bytes;
        }

        private static int pageSize(String text) {
            try {
                int size = text == null ? 4096 : Integer.parseInt(text);
                if (size >= 4096 && size <= 65536 && Integer.bitCount(size) == 1) {
                    return size;
                }
            } catch (NumberFormatException e) {
                // Said below.
            }
            throw new ConfigurationException("page_size is \"" + text + "\"; it can be 4096, 8192, 16384, 32768 or 65536");
        }

        @Override
        public Memtable create(AtomicReference<CommitLogPosition> lowerBound, TableMetadataRef metadata, Owner owner) {
            return new ZubiloMemtable(this, lowerBound, metadata, owner);
        }

        @Override
        public boolean writesAreDurable() {
            return true;
        }

        @Override
        public boolean writesShouldSkipCommitLog() {
            return !commitLog;
        }

        @Override
        public boolean streamToMemtable() {
            return true;
        }

        @Override
        public boolean streamFromMemtable() {
            return true;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Factory factory && settings.equals(factory.settings) && commitLog == factory.commitLog
                    && cleanupSeconds == factory.cleanupSeconds;
        }

        @Override
        public int hashCode() {
            return Objects.hash(settings, commitLog, cleanupSeconds);
        }
    }

    @Override
    public long put(PartitionUpdate update, UpdateTransaction indexer, OpOrder.Group group) {
        refuseIndexes();
        updateMin(minTimestamp, update.stats().minTimestamp);
        updateMin(minLocalDeletionTime, update.stats().minLocalDeletionTime);
        currentOperations.addAndGet(update.operationCount());
        try {
            if (indexer == UpdateTransaction.NO_OP) {
                return generation.put(update);
            }
            var lock = indexed.get(update.partitionKey());
            lock.lock();
            try {
                // The index first: an entry without its row is passed over, a row without its entry is not found.
                IndexFeed.tell(generation, update, indexer);
                return generation.put(update);
            } finally {
                lock.unlock();
            }
        } catch (ZubiloException.Io | ZubiloException.Corrupted | ZubiloException.Poisoned e) {
            // Cassandra does then what disk_failure_policy says.
            throw new FSWriteError(e, factory.settings.folder().toString());
        }
    }

    /** Indexes that keep their entries in the heap until a flush would lose them at a restart, as nothing is flushed here. */
    private void refuseIndexes() {
        TableMetadata table = metadata();
        for (IndexMetadata index : table.indexes) {
            if (index.isCustom()) {
                throw new InvalidRequestException("the index " + index.name + " of " + table
                        + " cannot be used with this memtable; use legacy_local_table (CREATE INDEX ... USING 'legacy_local_table')");
            }
        }
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key, Slices slices, ColumnFilter columns, boolean reversed,
            SSTableReadsListener listener) {
        return PartitionReader.open(generation, key, generation.keys.partition(key), new PartitionReader.Query(slices, columns, reversed));
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key) {
        return rowIterator(key, Slices.ALL, ColumnFilter.all(metadata()), false, SSTableReadsListener.NOOP_LISTENER);
    }

    @Override
    public UnfilteredPartitionIterator partitionIterator(ColumnFilter columns, DataRange range, SSTableReadsListener listener) {
        AbstractBounds<PartitionPosition> bounds = range.keyRange();
        boolean both = bounds instanceof Bounds;
        boolean withLeft = both || bounds instanceof IncludingExcludingBounds;
        boolean withRight = both || bounds instanceof Range;
        byte[] from = bounds.left.isMinimum() ? null : generation.keys.place(bounds.left, withLeft);
        byte[] to = bounds.right.isMinimum() ? null : generation.keys.place(bounds.right, !withRight);
        return new RangeScan(generation, from, to, key -> {
            ClusteringIndexFilter filter = range.clusteringIndexFilter(key);
            return new PartitionReader.Query(filter.getSlices(metadata()), columns, filter.isReversed());
        });
    }

    @Override
    public FlushablePartitionSet<?> getFlushSet(PartitionPosition from, PartitionPosition to) {
        byte[] start = from == null || from.isMinimum() ? null : generation.keys.place(from, true);
        byte[] end = to == null || to.isMinimum() ? null : generation.keys.place(to, true);
        return new FlushSet(from, to, start, end);
    }

    /** All partitions of a range, each read when it is asked for. */
    private final class FlushSet extends AbstractFlushablePartitionSet<Partition> {
        private final PartitionPosition from;
        private final PartitionPosition to;
        private final byte[] start;
        private final byte[] end;
        private final Generation.Counted counted;
        /** What is written is for a stream: the memtable stays. */
        private final boolean streamed = !switched;

        FlushSet(PartitionPosition from, PartitionPosition to, byte[] start, byte[] end) {
            this.from = from;
            this.to = to;
            this.start = start;
            this.end = end;
            counted = generation.count(start, end);
        }

        @Override
        public Iterator<Partition> iterator() {
            PartitionReader.Query query = new PartitionReader.Query(Slices.ALL, ColumnFilter.all(ZubiloMemtable.this.metadata()), false);
            return Iterators.transform(new RangeScan(generation, start, end, key -> query), StoredPartition::new);
        }

        @Override
        public Memtable memtable() {
            return ZubiloMemtable.this;
        }

        @Override
        public PartitionPosition from() {
            return from;
        }

        @Override
        public PartitionPosition to() {
            return to;
        }

        @Override
        public long partitionCount() {
            return counted.partitions();
        }

        @Override
        public long partitionKeysSize() {
            return counted.keyBytes();
        }

        @Override
        public RegularAndStaticColumns columns() {
            return ZubiloMemtable.this.metadata().regularAndStaticColumns();
        }

        @Override
        public EncodingStats encodingStats() {
            return EncodingStats.NO_STATS;
        }

        @Override
        public CommitLogPosition commitLogLowerBound() {
            return streamed ? Streamed.LOWER : super.commitLogLowerBound();
        }

        @Override
        public LastCommitLogPosition commitLogUpperBound() {
            return streamed ? Streamed.UPPER : super.commitLogUpperBound();
        }
    }

    @Override
    public boolean shouldSwitch(ColumnFamilyStore.FlushReason reason) {
        return switch (reason) {
            // With false TRUNCATE would do nothing where auto_snapshot is on.
            case TRUNCATE -> true;
            // These read SSTables only, so that what is here has to become one.
            case INDEX_BUILD_STARTED, VIEW_BUILD_STARTED -> true;
            // The table was given another memtable: Cassandra moves what is here to SSTables.
            case SCHEMA_CHANGE -> !factory.equals(metadata().params.memtable.factory());
            default -> false;
        };
    }

    @Override
    public void metadataUpdated() {
        // Rows name their layout, and layouts are resolved against the schema when they are used.
    }

    @Override
    public void localRangesUpdated() {
        if (upkeep != null) {
            upkeep.ringChanged();
        }
    }

    @Override
    public void performSnapshot(String name) {
        Snapshots.write((ColumnFamilyStore) owner, this, name);
    }

    @Override
    public void switchOut(OpOrder.Barrier barrier, AtomicReference<CommitLogPosition> upperBound) {
        super.switchOut(barrier, upperBound);
        switched = true;
        if (upkeep != null) {
            upkeep.end();
            truncation = Truncation.await((ColumnFamilyStore) owner, generation);
        }
    }

    @Override
    public void discard() {
        super.discard();
        if (truncation != null) {
            truncation.end();
        }
        generation.drop();
        if (upkeep != null && !factory.equals(metadata().params.memtable.factory())) {
            // The next memtable does not know of them.
            Streamed.removeOld((ColumnFamilyStore) owner, 0);
        }
    }

    @Override
    public LastCommitLogPosition getFinalCommitLogUpperBound() {
        // Streaming asks a memtable that is in use, too.
        return switched ? super.getFinalCommitLogUpperBound() : new LastCommitLogPosition(CommitLog.instance.getCurrentPosition());
    }

    @Override
    public boolean isClean() {
        return generation.isEmpty();
    }

    @Override
    public long getMinTimestamp() {
        return inherited ? Long.MIN_VALUE : super.getMinTimestamp();
    }

    @Override
    public long getMinLocalDeletionTime() {
        return inherited ? 0 : super.getMinLocalDeletionTime();
    }

    /** Exact for tables without clustering columns and deletions; else an estimate from the first records. */
    @Override
    public long partitionCount() {
        return generation.estimatePartitions();
    }

    /** Bytes of the pages that the records take. */
    @Override
    public long getLiveDataSize() {
        TableStats stats = generation.stats();
        return stats == null ? 0 : (stats.leafPages() + stats.branchPages() + stats.runPages()) * generation.env.pageSize();
    }

    @Override
    public void addMemoryUsageTo(MemoryUsage usage) {
        // Nothing of Cassandra's memtable memory: the operating system caches the file.
    }

    @Override
    public void markExtraOnHeapUsed(long additionalSpace, OpOrder.Group group) {
        // Nothing is accounted for here.
    }

    @Override
    public void markExtraOffHeapUsed(long additionalSpace, OpOrder.Group group) {
        // Nothing is accounted for here.
    }
}
