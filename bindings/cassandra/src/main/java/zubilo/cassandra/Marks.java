package zubilo.cassandra;

import java.nio.ByteBuffer;
import java.util.Arrays;

import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.ComplexColumnData;
import org.apache.cassandra.db.rows.Row;

/**
 * When something of a record can be cleaned up: the earliest expiry of a value, and the earliest local deletion time
 * of a tombstone, in seconds. {@link #NEVER} where there is none. The expiry index has an entry for each of the two:
 *
 * <pre>
 * entry = kind (01 expiry, 02 tombstone) time (8 bytes) key of the record
 * </pre>
 *
 * <p>An expired value can be cleaned up at once (it becomes a tombstone); a tombstone after {@code gc_grace_seconds}.
 */
record Marks(long expiry, long tombstone) {
    static final long NEVER = Long.MAX_VALUE;
    static final Marks NONE = new Marks(NEVER, NEVER);
    static final byte EXPIRY = 1;
    static final byte TOMBSTONE = 2;
    /** Bytes of an entry before the key. */
    static final int PREFIX = 9;

    static Marks of(DeletionInfo info) {
        long tombstone = time(info.getPartitionDeletion());
        for (var ranges = info.rangeIterator(false); ranges.hasNext();) {
            tombstone = Math.min(tombstone, time(ranges.next().deletionTime()));
        }
        return new Marks(NEVER, tombstone);
    }

    private static long time(DeletionTime deletion) {
        return deletion.isLive() ? NEVER : deletion.localDeletionTime();
    }

    static Marks of(Row row) {
        long expiry = row.primaryKeyLivenessInfo().isExpiring() ? row.primaryKeyLivenessInfo().localExpirationTime() : NEVER;
        long tombstone = time(row.deletion().time());
        for (ColumnData data : row) {
            if (data instanceof ComplexColumnData complex) {
                tombstone = Math.min(tombstone, time(complex.complexDeletion()));
            }
        }
        for (Cell<?> cell : row.cells()) {
            if (cell.isExpiring()) {
                expiry = Math.min(expiry, cell.localDeletionTime());
            } else if (cell.isTombstone()) {
                tombstone = Math.min(tombstone, cell.localDeletionTime());
            }
        }
        return expiry == NEVER && tombstone == NEVER ? NONE : new Marks(expiry, tombstone);
    }

    static byte[] entry(byte kind, long time, byte[] key) {
        return ByteBuffer.allocate(PREFIX + key.length).put(kind).putLong(time).put(key).array();
    }

    static byte[] key(byte[] entry) {
        return Arrays.copyOfRange(entry, PREFIX, entry.length);
    }
}
