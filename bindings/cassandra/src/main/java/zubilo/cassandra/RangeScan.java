package zubilo.cassandra;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;

import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.partitions.AbstractUnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;

import zubilo.KeyValue;
import zubilo.Range;
import zubilo.ReadTxn;
import zubilo.Table;

/**
 * The partitions of a range in the order of their tokens. They are read in chunks, each in a snapshot of its own that
 * ends with the chunk. A chunk consists of whole partitions; one that is larger than a chunk is read by itself.
 */
final class RangeScan extends AbstractUnfilteredPartitionIterator {
    /** A partition whose records are at hand, or one that is yet to be read. */
    private record Found(byte[] partition, DecoratedKey key, List<Records.Record> records) {}

    private final Generation generation;
    private final TableMetadata schema;
    private final Function<DecoratedKey, PartitionReader.Query> queries;
    private final ArrayDeque<Found> found = new ArrayDeque<>();
    private byte[] from;
    private final byte[] to;
    private boolean ended;
    private UnfilteredRowIterator next;

    /**
     * Reads the partitions of a range.
     *
     * @param from the first key; null for the start
     * @param to the first key that is not in it; null for the end
     * @param queries what to read of each partition
     */
    RangeScan(Generation generation, byte[] from, byte[] to, Function<DecoratedKey, PartitionReader.Query> queries) {
        this.generation = generation;
        this.schema = generation.metadata();
        this.queries = queries;
        this.from = from == null ? new byte[0] : from;
        this.to = to;
    }

    @Override
    public TableMetadata metadata() {
        return schema;
    }

    @Override
    public boolean hasNext() {
        while (next == null) {
            Found partition = found.poll();
            if (partition != null) {
                next = open(partition);
            } else if (ended) {
                return false;
            } else {
                fill();
            }
        }
        return true;
    }

    private UnfilteredRowIterator open(Found partition) {
        PartitionReader.Query query = queries.apply(partition.key);
        return partition.records == null
                ? PartitionReader.open(generation, partition.key, partition.partition, query)
                : PartitionReader.of(generation, partition.key, partition.partition, query, partition.records);
    }

    @Override
    public UnfilteredRowIterator next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        UnfilteredRowIterator partition = next;
        next = null;
        return partition;
    }

    private void fill() {
        try (ReadTxn txn = generation.env.read()) {
            Table table = generation.rows(txn);
            if (table == null) {
                ended = true;
                return;
            }
            int count = 0;
            int bytes = 0;
            Found last = null;
            Range range = to == null ? Range.from(from) : Range.between(from, to);
            for (KeyValue record : table.range(range)) {
                if (count++ == Records.CHUNK || bytes > Records.CHUNK_BYTES) {
                    cut(last);
                    return;
                }
                Records.Record copy = Records.Record.of(record);
                bytes += copy.key().length + copy.value().length;
                if (last == null || !startsWith(copy.key(), last.partition)) {
                    byte[] partition = Arrays.copyOf(copy.key(), generation.keys.partitionLength(copy.key()));
                    last = new Found(partition, generation.keys.decode(copy.key()), new ArrayList<>());
                    found.add(last);
                }
                last.records.add(copy);
            }
            ended = true;
        }
    }

    /** The chunk ends inside of a partition, or after it: nobody has looked. The next one begins there. */
    private void cut(Found last) {
        if (found.size() > 1) {
            found.removeLast();
            from = last.partition;
        } else {
            found.clear();
            found.add(new Found(last.partition, last.key, null));
            from = Keys.after(last.partition);
        }
    }

    private static boolean startsWith(byte[] key, byte[] prefix) {
        return key.length > prefix.length && Arrays.equals(key, 0, prefix.length, prefix, 0, prefix.length);
    }

    @Override
    public void close() {
        if (next != null) {
            next.close();
            next = null;
        }
        found.clear();
        ended = true;
    }
}
