package zubilo.cassandra;

import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.HostDistance;
import com.datastax.driver.core.PoolingOptions;
import com.datastax.driver.core.QueryOptions;
import com.datastax.driver.core.policies.RoundRobinPolicy;
import com.datastax.driver.core.policies.WhiteListPolicy;

/** How the tests talk to nodes by the driver: to those that the system property {@code nodes} names, with commas. */
final class Remote {
    private static final String[] NODES = System.getProperty("nodes", "127.0.0.1").split(",");

    private Remote() {}

    static Cluster connect(ConsistencyLevel consistency) {
        return connect(consistency, NODES);
    }

    /** A connection that knows of these nodes only. */
    static Cluster connect(ConsistencyLevel consistency, String... nodes) {
        List<InetSocketAddress> addresses = Arrays.stream(nodes).map(node -> new InetSocketAddress(node, 9042)).toList();
        return Cluster.builder().addContactPoints(nodes).withoutJMXReporting().withoutMetrics()
                .withLoadBalancingPolicy(new WhiteListPolicy(new RoundRobinPolicy(), addresses))
                .withPoolingOptions(new PoolingOptions().setCoreConnectionsPerHost(HostDistance.LOCAL, 1))
                .withQueryOptions(new QueryOptions().setConsistencyLevel(consistency)).build();
    }

    /** Does something for each number below a count, on so many threads. */
    static void each(int threads, int count, IntConsumer work) throws InterruptedException {
        AtomicInteger next = new AtomicInteger();
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            all[t] = new Thread(() -> {
                for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
                    work.accept(i);
                }
            });
            all[t].start();
        }
        for (Thread thread : all) {
            thread.join();
        }
    }
}
