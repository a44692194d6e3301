package zubilo.siblings;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;

/**
 * A table of keys with versions: {@code PRIMARY KEY (k, clock)}, a row for each version. For all threads.
 *
 * <p>A write stores a version and removes those that its writer has seen, in one batch of one partition, so each replica
 * does both or nothing. Versions that were written apart stay beside each other: {@link #get} gives all of them and the
 * caller resolves. What was seen of a key goes from {@link #get} to {@link #put} and {@link #delete}.
 *
 * <p>A clock names one version for ever, so a version is never written twice and its removal is final: both have fixed
 * timestamps, and it does not matter how the clocks of machines differ.
 *
 * <p>How many replicas there are is a property of the keyspace; how many a read or a write waits for is said with each.
 */
public final class SiblingTable {
    /** More than half of the replicas. */
    public static final int QUORUM = -1;
    /** All replicas. */
    public static final int ALL = -2;

    private final CqlSession session;
    private final String writer;
    private final PreparedStatement select;
    private final PreparedStatement insert;
    private final PreparedStatement remove;
    /** The number of the last write. Begins with the clock's time, so that a name can be used again after a restart. */
    private final AtomicLong last = new AtomicLong();

    /**
     * Opens a table that is there.
     *
     * @param session a session of the driver's, which stays the caller's
     * @param table its name with the keyspace
     * @param writer a name that no other writer has at the time; each name that ever wrote a key takes some bytes in
     *         its clocks, so use few of them
     */
    public SiblingTable(CqlSession session, String table, String writer) {
        this.session = session;
        this.writer = writer;
        select = session.prepare("SELECT clock, v FROM " + table + " WHERE k = ?");
        insert = session.prepare("INSERT INTO " + table + " (k, clock, v) VALUES (?, ?, ?) USING TIMESTAMP 1");
        remove = session.prepare("DELETE FROM " + table + " USING TIMESTAMP 2 WHERE k = ? AND clock = ?");
    }

    /**
     * Opens a table with a name for this writer that nobody else has.
     *
     * @param session a session of the driver's, which stays the caller's
     * @param table its name with the keyspace
     */
    public SiblingTable(CqlSession session, String table) {
        this(session, table, UUID.randomUUID().toString());
    }

    /**
     * Creates a table if there is none.
     *
     * @param session a session of the driver's
     * @param table its name with the keyspace
     * @param memtable the name of a memtable configuration, such as {@code zubilo}
     */
    public static void create(CqlSession session, String table, String memtable) {
        session.execute("CREATE TABLE IF NOT EXISTS " + table + " (k blob, clock blob, v blob, PRIMARY KEY (k, clock)) WITH memtable = '"
                + memtable + "'");
    }

    /**
     * Reads a key.
     *
     * @param key the key
     * @param replicas how many replicas must answer: 1 to 3, or see {@link #QUORUM} and {@link #ALL}
     * @return all versions that no other one dominates
     */
    public Versions get(ByteBuffer key, int replicas) {
        List<Version> found = new ArrayList<>();
        for (Row row : session.execute(select.bind(key).setConsistencyLevel(consistency(replicas)))) {
            found.add(new Version(VectorClock.of(row.getByteBuffer("clock")), row.getByteBuffer("v")));
        }
        return Versions.of(found);
    }

    /**
     * Writes a value in the place of what was seen.
     *
     * @param key the key
     * @param value the value
     * @param seen what {@link #get} gave, or {@link Versions#NONE}
     * @param replicas how many replicas must have written
     * @return the new version as if it had been read, for the next write
     */
    public Versions put(ByteBuffer key, ByteBuffer value, Versions seen, int replicas) {
        VectorClock clock = seen.clock().with(writer, last.updateAndGet(number -> Math.max(number + 1, now())));
        write(key, new Version(clock, value), seen, replicas);
        return Versions.of(List.of(new Version(clock, value)));
    }

    /**
     * Writes a version whose clock the caller made. It replaces what it dominates of the versions that are found.
     *
     * @param key the key
     * @param version the version; its clock must be new, not even that of a version which was removed
     * @param reading how many replicas must answer when it is looked for what is there
     * @param writing how many replicas must have written
     * @throws ObsoleteVersion if a version that was found dominates this one
     */
    public void put(ByteBuffer key, Version version, int reading, int writing) {
        Versions found = get(key, reading);
        for (Version sibling : found.siblings()) {
            if (sibling.clock().dominates(version.clock())) {
                throw new ObsoleteVersion(version.clock(), sibling.clock());
            }
        }
        List<Version> dominated = found.siblings().stream().filter(sibling -> version.clock().dominates(sibling.clock())).toList();
        List<VectorClock> obsolete = found.obsolete().stream().filter(version.clock()::dominates).toList();
        write(key, version, new Versions(dominated, obsolete), writing);
    }

    /**
     * Removes what was seen of a key. Versions that were not seen stay.
     *
     * @param key the key
     * @param seen what {@link #get} gave
     * @param replicas how many replicas must have written
     */
    public void delete(ByteBuffer key, Versions seen, int replicas) {
        write(key, null, seen, replicas);
    }

    private void write(ByteBuffer key, Version version, Versions seen, int replicas) {
        List<VectorClock> rows = seen.rows();
        if (version == null && rows.isEmpty()) {
            return;
        }
        BatchStatementBuilder batch = BatchStatement.builder(BatchType.UNLOGGED).setConsistencyLevel(consistency(replicas));
        if (version != null) {
            batch.addStatement(insert.bind(key, version.clock().toBytes(), version.value()));
        }
        for (VectorClock row : rows) {
            batch.addStatement(remove.bind(key, row.toBytes()));
        }
        session.execute(batch.build());
    }

    private static long now() {
        return System.currentTimeMillis() * 1000;
    }

    private static ConsistencyLevel consistency(int replicas) {
        return switch (replicas) {
            case QUORUM -> DefaultConsistencyLevel.QUORUM;
            case ALL -> DefaultConsistencyLevel.ALL;
            case 1 -> DefaultConsistencyLevel.ONE;
            case 2 -> DefaultConsistencyLevel.TWO;
            case 3 -> DefaultConsistencyLevel.THREE;
            default -> throw new IllegalArgumentException("replicas is " + replicas + "; it can be 1, 2, 3, QUORUM or ALL");
        };
    }
}
