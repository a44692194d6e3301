package zubilo.cassandra;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.locator.TokenMetadata;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.FBUtilities;

import zubilo.KeyValue;
import zubilo.ReadTxn;
import zubilo.Table;

/**
 * Removes the partitions of one generation that lie in ranges of tokens which are not this node's. The ranges are
 * looked up in the tree, so rows that stay are not read. It works in small transactions, and asks before each whether
 * the ring is still the same; so it may be stopped at any moment.
 */
final class Cleanup {
    private static final int BATCH = 64;

    private final Generation generation;
    private final ColumnFamilyStore table;
    private final Supplier<Set<Range<Token>>> owned;
    private final Set<Range<Token>> kept;
    private long removed;

    /**
     * Prepares a pass.
     *
     * @param owned gives the ranges that stay, or null while they are changing
     */
    Cleanup(Generation generation, ColumnFamilyStore table, Supplier<Set<Range<Token>>> owned) {
        this.generation = generation;
        this.table = table;
        this.owned = owned;
        kept = owned.get();
    }

    /**
     * The ranges of a keyspace that this node has or is about to get.
     *
     * @return null if this node, or the ring, is between two states
     */
    static Set<Range<Token>> owned(String keyspace) {
        TokenMetadata ring = StorageService.instance.getTokenMetadata();
        boolean changing = !StorageService.instance.isNormal() || !ring.getBootstrapTokens().isEmpty() || ring.getSizeOfLeavingEndpoints() > 0
                || ring.getSizeOfMovingEndpoints() > 0;
        if (changing) {
            return null;
        }
        Set<Range<Token>> ranges = new HashSet<>(StorageService.instance.getLocalReplicas(keyspace).ranges());
        ranges.addAll(ring.getPendingRanges(keyspace, FBUtilities.getBroadcastAddressAndPort()).ranges());
        return ranges;
    }

    /** Makes a pass; gives how many records were removed. */
    long run() {
        if (kept == null) {
            return 0;
        }
        Token minimum = generation.metadata().partitioner.getMinimumToken();
        for (Range<Token> range : others(new Range<>(minimum, minimum), kept)) {
            byte[] from = generation.keys.place(range.left.maxKeyBound(), false);
            byte[] to = range.right.isMinimum() ? null : generation.keys.place(range.right.maxKeyBound(), false);
            if (from != null && !clean(from, to)) {
                break;
            }
        }
        if (removed > 0) {
            table.cleanupCache();
        }
        return removed;
    }

    private static List<Range<Token>> others(Range<Token> all, Collection<Range<Token>> kept) {
        List<Range<Token>> others = new ArrayList<>();
        for (Range<Token> range : all.subtractAll(kept)) {
            others.addAll(range.unwrap());
        }
        return others;
    }

    /** Empties a range of keys; gives whether it was emptied. */
    private boolean clean(byte[] from, byte[] to) {
        zubilo.Range left = to == null ? zubilo.Range.from(from) : zubilo.Range.between(from, to);
        while (true) {
            byte[] first = first(left);
            if (first == null) {
                return true;
            }
            if (!kept.equals(owned.get())) {
                return false;
            }
            zubilo.Range part = left;
            if (table.indexManager.hasIndexes()) {
                byte[] partition = Arrays.copyOf(first, generation.keys.partitionLength(first));
                forget(first, partition);
                part = zubilo.Range.between(partition, Keys.after(partition));
            }
            int count;
            do {
                zubilo.Range batch = part;
                count = generation.change(writer -> writer.remove(batch, BATCH));
                removed += count;
            } while (table.indexManager.hasIndexes() && count == BATCH);
        }
    }

    private byte[] first(zubilo.Range range) {
        try (ReadTxn txn = generation.env.read()) {
            Table rows = generation.rows(txn);
            KeyValue first = rows == null ? null : rows.first(range);
            return first == null ? null : first.key().toByteArray();
        }
    }

    /** Takes a partition out of the table's indexes. What is left of a row written meanwhile, reads pass over. */
    private void forget(byte[] record, byte[] partition) {
        PartitionReader.Query all = new PartitionReader.Query(Slices.ALL, ColumnFilter.all(generation.metadata()), false);
        try (UnfilteredRowIterator rows = PartitionReader.open(generation, generation.keys.decode(record), partition, all)) {
            if (rows != null) {
                table.indexManager.deletePartition(rows, FBUtilities.nowInSeconds());
            }
        }
    }
}
