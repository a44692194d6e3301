package zubilo.cassandra;

import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;

/**
 * A client of a cluster. Values have 1.5 KB and follow from key and version.
 *
 * <pre>
 * Client schema MEMTABLE                creates the keyspace (three replicas) and the table
 * Client load KEYS VERSION              writes a version of each key at QUORUM; a line for each write that was acknowledged
 * Client check QUORUM|ONE FILE          all that the lines of a file say is there, and nothing older
 * Client truncate                       removes all rows
 * Client count                          rows of the table
 * </pre>
 */
public final class Client {
    private static final int THREADS = 8;

    private Client() {}

    public static void main(String[] arguments) {
        Program.main(() -> {
            boolean one = arguments.length > 1 && arguments[1].equals("ONE");
            try (Cluster cluster = Remote.connect(one ? ConsistencyLevel.ONE : ConsistencyLevel.QUORUM); Session session = cluster.connect()) {
                switch (arguments[0]) {
                    case "schema" -> schema(session, arguments[1]);
                    case "load" -> load(session, Integer.parseInt(arguments[1]), Long.parseLong(arguments[2]));
                    case "check" -> check(session, Path.of(arguments[2]));
                    case "truncate" -> session.execute("TRUNCATE cluster.kv");
                    case "count" -> System.out.println(session.execute("SELECT count(*) FROM cluster.kv").one().getLong(0));
                    default -> throw new IllegalArgumentException(arguments[0]);
                }
            }
        });
    }

    private static void schema(Session session, String memtable) {
        session.execute("CREATE KEYSPACE cluster WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
        session.execute("CREATE TABLE cluster.kv (k int PRIMARY KEY, version bigint, v blob) WITH memtable = '" + memtable + "'");
    }

    private static void load(Session session, int keys, long version) throws InterruptedException {
        PreparedStatement insert = session.prepare("INSERT INTO cluster.kv (k, version, v) VALUES (?, ?, ?)");
        AtomicInteger failures = new AtomicInteger();
        Remote.each(THREADS, keys, key -> {
            try {
                session.execute(insert.bind(key, version, Kept.value(key, version)));
                Kept.acknowledged(key, version);
            } catch (DriverException e) {
                failures.incrementAndGet();
            }
        });
        System.err.println("version " + version + ": " + (keys - failures.get()) + " of " + keys + " writes acknowledged");
    }

    private static void check(Session session, Path file) throws Exception {
        PreparedStatement select = session.prepare("SELECT version, v FROM cluster.kv WHERE k = ?");
        Kept.check(file, key -> {
            Row row = session.execute(select.bind(key)).one();
            return row == null ? null : new Kept.Found(row.getLong("version"), row.getBytes("v"));
        });
    }
}
