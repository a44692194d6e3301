package zubilo.cassandra;

import java.util.Set;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;

import com.codahale.metrics.Counter;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.apache.cassandra.concurrent.ScheduledExecutors;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.metrics.CassandraMetricsRegistry;
import org.apache.cassandra.metrics.DefaultNameFactory;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.MBeanWrapper;

/**
 * What is done for a memtable in the background: the {@link Purge} each minute, and the {@link Cleanup} once the ring
 * has been the same for some time. It ends with the memtable.
 */
final class Upkeep {
    private static final Logger LOGGER = LoggerFactory.getLogger(Upkeep.class);
    private static final int SECONDS = 60;
    /** Cleanups are off. */
    static final int NEVER = -1;
    /** Entries of expiry indexes that were dealt with, of all tables. */
    private static final Counter PURGED = counter("Purged");
    /** Records of ranges that were not the node's, of all tables. */
    private static final Counter CLEANED_UP = counter("CleanedUp");

    static {
        MBeanWrapper.instance.registerMBean(new Bean(), "org.apache.cassandra.db:type=ZubiloMemtable");
    }

    private final Memtable memtable;
    private final ColumnFamilyStore table;
    private final Generation generation;
    private final int cleanupSeconds;
    private final ScheduledFuture<?> task;
    private volatile boolean ended;
    /** The ranges at the last look, since when they have been the same; null after a change. */
    private volatile Set<Range<Token>> ranges;
    /** Of the background task alone. */
    private long since;

    Upkeep(Memtable memtable, ColumnFamilyStore table, Generation generation, int cleanupSeconds) {
        this.memtable = memtable;
        this.table = table;
        this.generation = generation;
        this.cleanupSeconds = cleanupSeconds;
        int seconds = cleanupSeconds == NEVER ? SECONDS : Math.max(1, Math.min(SECONDS, cleanupSeconds));
        task = ScheduledExecutors.optionalTasks.scheduleWithFixedDelay(this::run, seconds, seconds, TimeUnit.SECONDS);
    }

    private static Counter counter(String name) {
        return CassandraMetricsRegistry.Metrics.counter(new DefaultNameFactory("ZubiloMemtable").createMetricName(name));
    }

    void end() {
        ended = true;
        task.cancel(false);
    }

    private void run() {
        if (!table.isValid()) {
            // The table was dropped.
            end();
        }
        attempt(this::purge);
        attempt(this::cleanUpInTime);
        attempt(() -> Streamed.removeOld(table, Streamed.STREAM_MILLIS_MAX));
    }

    private void attempt(Runnable work) {
        if (ended) {
            return;
        }
        try {
            work.run();
        } catch (RuntimeException e) {
            if (!ended) {
                LOGGER.warn("the clean-up of {} will be tried again: {}", generation.metadata(), e.toString());
            }
        }
    }

    /** Removes what has expired and old tombstones; gives how many entries of the index were dealt with. */
    long purge() {
        if (table.getNeverPurgeTombstones()) {
            return 0;
        }
        for (Memtable other : table.getTracker().getView().getAllMemtables()) {
            if (other != memtable) {
                return 0;
            }
        }
        long oldestElsewhere = Long.MAX_VALUE;
        for (SSTableReader sstable : table.getTracker().getView().liveSSTables()) {
            oldestElsewhere = Math.min(oldestElsewhere, sstable.getMinTimestamp());
        }
        long now = FBUtilities.nowInSeconds();
        long entries = new Purge(generation, now, table.gcBefore(now), oldestElsewhere).run();
        PURGED.inc(entries);
        return entries;
    }

    /** The ring has changed, or may have. */
    void ringChanged() {
        ranges = null;
    }

    private void cleanUpInTime() {
        if (cleanupSeconds == NEVER) {
            return;
        }
        Set<Range<Token>> now = Cleanup.owned(table.getKeyspaceName());
        if (now == null || !now.equals(ranges)) {
            ranges = now;
            since = System.nanoTime();
        } else if (!now.isEmpty() && System.nanoTime() - since >= TimeUnit.SECONDS.toNanos(cleanupSeconds)) {
            // Where nothing is this node's, as after a slip in the replication, an operator has to ask for it.
            // And again after as much time: another node may have sent a write before it knew of the change.
            since = System.nanoTime();
            cleanup();
        }
    }

    /** Removes what lies in ranges that are not this node's; gives how many records. */
    long cleanup() {
        String keyspace = table.getKeyspaceName();
        if (table.isIndex() || SchemaConstants.isLocalSystemKeyspace(keyspace)) {
            return 0;
        }
        long records = new Cleanup(generation, table, () -> ended ? null : Cleanup.owned(keyspace)).run();
        CLEANED_UP.inc(records);
        if (records > 0) {
            LOGGER.info("removed {} records of {} from ranges that are not this node's", records, generation.metadata());
        }
        return records;
    }

    private static final class Bean implements UpkeepMXBean {
        @Override
        public long cleanup(String keyspace) {
            if (Cleanup.owned(keyspace) == null) {
                throw new IllegalStateException("the ring is changing; try again when nodetool status shows all nodes as UN");
            }
            return each(keyspace, Upkeep::cleanup);
        }

        @Override
        public long purge(String keyspace) {
            return each(keyspace, Upkeep::purge);
        }

        private static long each(String keyspace, ToLongFunction<Upkeep> work) {
            Keyspace found = Keyspace.open(keyspace);
            if (found == null) {
                throw new InvalidRequestException("there is no keyspace " + keyspace);
            }
            long sum = 0;
            for (ColumnFamilyStore table : found.getColumnFamilyStores()) {
                for (ColumnFamilyStore store : table.concatWithIndexes()) {
                    if (store.getTracker().getView().getCurrentMemtable() instanceof ZubiloMemtable memtable) {
                        sum += work.applyAsLong(memtable.upkeep());
                    }
                }
            }
            return sum;
        }
    }
}
