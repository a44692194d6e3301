package zubilo.cassandra;

import java.nio.file.Path;

import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.UntypedResultSet;

/**
 * Whether acknowledged writes outlive the node.
 *
 * <pre>
 * Acknowledged write          writes from 16 threads until it is killed; a line on the output for each write that returned
 * Acknowledged check FILE     after a restart: everything that the lines say is there, with the right bytes
 * </pre>
 */
public final class Acknowledged {
    private static final int THREADS = 16;
    private static final int KEYS = 3200;

    private Acknowledged() {}

    public static void main(String[] arguments) {
        Program.main(() -> {
            Node.start();
            switch (arguments[0]) {
                case "write" -> write();
                case "check" -> Kept.check(Path.of(arguments[1]), Acknowledged::read);
                default -> throw new IllegalArgumentException(arguments[0]);
            }
        });
    }

    private static void write() throws InterruptedException {
        QueryProcessor.executeInternal("CREATE KEYSPACE kept WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        QueryProcessor.executeInternal("CREATE TABLE kept.kv (k int PRIMARY KEY, version bigint, v blob) WITH memtable = 'zubilo'");
        for (long version = 1;; version++) {
            long written = version;
            Remote.each(THREADS, KEYS, key -> {
                QueryProcessor.executeInternal("INSERT INTO kept.kv (k, version, v) VALUES (?, ?, ?)", key, written, Kept.value(key, written));
                Kept.acknowledged(key, written);
            });
        }
    }

    private static Kept.Found read(int key) {
        UntypedResultSet found = QueryProcessor.executeInternal("SELECT version, v FROM kept.kv WHERE k = ?", key);
        return found.isEmpty() ? null : new Kept.Found(found.one().getLong("version"), found.one().getBytes("v"));
    }
}
