package zubilo.cassandra;

import java.nio.ByteBuffer;
import java.util.Arrays;

import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.IPartitioner;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.utils.bytecomparable.ByteComparable;
import org.apache.cassandra.utils.bytecomparable.ByteSource;
import org.apache.cassandra.utils.bytecomparable.ByteSourceInverse;

/**
 * The layout of keys. Byte order is Cassandra's order: by token, partition key, clustering.
 *
 * <pre>
 * key       = partition kind [clustering]
 * partition = token escaped(partition key)
 * kind      = 01 deletions of the partition and of ranges | 02 static row | 03 row
 * token     = 8 bytes, sign flipped (Murmur3); escaped comparable bytes (others: index tables)
 * escaped   = bytes with 00 as 00 FF, ended by 00 00
 * clustering= Cassandra's byte-comparable form
 * </pre>
 *
 * <p>No partition is a prefix of another one, so all records of a partition are those with its prefix.
 */
final class Keys {
    static final byte DELETIONS = 1;
    static final byte STATIC = 2;
    static final byte ROW = 3;
    /** Past all kinds. */
    private static final byte AFTER = 4;
    private static final ByteComparable.Version VERSION = ByteComparable.Version.OSS50;

    private final IPartitioner partitioner;
    private final boolean murmur;

    Keys(IPartitioner partitioner) {
        this.partitioner = partitioner;
        murmur = partitioner instanceof Murmur3Partitioner;
    }

    /** The prefix of all keys of a partition. */
    byte[] partition(DecoratedKey key) {
        byte[] token = token(key.getToken());
        ByteBuffer raw = key.getKey();
        byte[] made = Arrays.copyOf(token, token.length + escapedLength(raw));
        escape(raw, made, token.length);
        return made;
    }

    private byte[] token(Token token) {
        if (murmur) {
            return ByteBuffer.allocate(8).putLong(token.getLongValue() ^ Long.MIN_VALUE).array();
        }
        ByteBuffer raw = ByteBuffer.wrap(bytes(token.asComparableBytes(VERSION)));
        byte[] made = new byte[escapedLength(raw)];
        escape(raw, made, 0);
        return made;
    }

    private static int escapedLength(ByteBuffer raw) {
        int zeros = 0;
        for (int i = raw.position(); i < raw.limit(); i++) {
            zeros += raw.get(i) == 0 ? 1 : 0;
        }
        return raw.remaining() + zeros + 2;
    }

    private static void escape(ByteBuffer raw, byte[] to, int at) {
        for (int i = raw.position(); i < raw.limit(); i++) {
            byte b = raw.get(i);
            to[at++] = b;
            if (b == 0) {
                to[at++] = (byte) 0xff;
            }
        }
    }

    /** Where an escaped part that begins at {@code from} ends. */
    private static int escapedEnd(byte[] key, int from) {
        int i = from;
        while (true) {
            if (key[i] == 0) {
                if (key[i + 1] == 0) {
                    return i + 2;
                }
                i++;
            }
            i++;
        }
    }

    /** How long the partition's part of a key is. */
    int partitionLength(byte[] key) {
        return escapedEnd(key, murmur ? 8 : escapedEnd(key, 0));
    }

    /** The partition key of a record's key. */
    DecoratedKey decode(byte[] key) {
        int from = murmur ? 8 : escapedEnd(key, 0);
        int end = escapedEnd(key, from) - 2;
        byte[] raw = new byte[end - from];
        int length = 0;
        for (int i = from; i < end; i++) {
            raw[length++] = key[i];
            if (key[i] == 0) {
                i++;
            }
        }
        return partitioner.decorateKey(ByteBuffer.wrap(raw, 0, length).slice());
    }

    /** The key of a partition's record of a kind. */
    static byte[] of(byte[] partition, byte kind) {
        byte[] made = Arrays.copyOf(partition, partition.length + 1);
        made[partition.length] = kind;
        return made;
    }

    /** The first key after all of a partition. */
    static byte[] after(byte[] partition) {
        return of(partition, AFTER);
    }

    /** The key of a row, or the place of a bound between rows. */
    static byte[] row(byte[] partition, ClusteringComparator comparator, ClusteringPrefix<?> clustering) {
        byte[] tail = bytes(comparator.asByteComparable(clustering).asComparableBytes(VERSION));
        byte[] made = Arrays.copyOf(partition, partition.length + 1 + tail.length);
        made[partition.length] = ROW;
        System.arraycopy(tail, 0, made, partition.length + 1, tail.length);
        return made;
    }

    /** The key of a row, or of the static row. */
    static byte[] record(byte[] partition, ClusteringComparator comparator, Clustering<?> clustering) {
        return clustering == Clustering.STATIC_CLUSTERING ? of(partition, STATIC) : row(partition, comparator, clustering);
    }

    /**
     * The place of a bound of a range of partitions: keys from there on are behind the position, or at it.
     *
     * @param before whether keys that are at the position are behind the place
     */
    byte[] place(PartitionPosition position, boolean before) {
        if (position instanceof DecoratedKey key) {
            byte[] partition = partition(key);
            return before ? partition : after(partition);
        }
        // A bound of a token: before or after all its keys, whatever the range says of its ends.
        byte[] token = token(position.getToken());
        return position.kind() == PartitionPosition.Kind.MIN_BOUND ? token : successor(token);
    }

    /** The first bytes after all that begin with these; null if there are none. */
    private static byte[] successor(byte[] bytes) {
        for (int i = bytes.length - 1; i >= 0; i--) {
            if (bytes[i] != (byte) 0xff) {
                byte[] made = Arrays.copyOf(bytes, i + 1);
                made[i]++;
                return made;
            }
        }
        return null;
    }

    private static byte[] bytes(ByteSource source) {
        return source == null ? new byte[0] : ByteSourceInverse.readBytes(source);
    }
}
