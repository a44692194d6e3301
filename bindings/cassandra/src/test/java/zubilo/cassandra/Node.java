package zubilo.cassandra;

import org.apache.cassandra.service.CassandraDaemon;

/** A node inside of the test's process. It lives as long as that. */
final class Node {
    private Node() {}

    static void start() {
        CassandraDaemon daemon = new CassandraDaemon(true);
        daemon.activate();
    }
}
