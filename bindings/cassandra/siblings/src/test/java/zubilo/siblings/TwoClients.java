package zubilo.siblings;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;

/**
 * Two clients, each with a node of its own, which the script parts from each other between the steps.
 *
 * <pre>
 * TwoClients create NODE                                     the table, with two replicas, and what both see first
 * TwoClients write NODE WRITER VALUE                         reads one replica and writes one
 * TwoClients expect NODE VALUE,VALUE,...                     waits until two replicas together give these siblings
 * TwoClients resolve NODE                                    writes all siblings joined in their place; obsolete writes are refused
 * TwoClients delete NODE                                     removes what is seen
 * </pre>
 */
public final class TwoClients {
    private static final ByteBuffer KEY = bytes("cart");
    private static final String TABLE = "siblings.carts";

    private TwoClients() {}

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static List<String> texts(Versions versions) {
        return versions.siblings().stream().map(version -> StandardCharsets.UTF_8.decode(version.value().duplicate()).toString()).sorted().toList();
    }

    private static void check(boolean yes, String otherwise) {
        if (!yes) {
            throw new AssertionError(otherwise);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        DriverConfigLoader options = DriverConfigLoader.programmaticBuilder()
                .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
                .withString(DefaultDriverOption.LOAD_BALANCING_LOCAL_DATACENTER, "datacenter1")
                .withString(DefaultDriverOption.LOAD_BALANCING_POLICY_CLASS, "com.datastax.oss.driver.internal.core.loadbalancing.BasicLoadBalancingPolicy")
                .withClass(DefaultDriverOption.LOAD_BALANCING_DISTANCE_EVALUATOR_CLASS, Only.class).build();
        Only.address = arguments[1];
        try (CqlSession session = CqlSession.builder().addContactPoint(new InetSocketAddress(arguments[1], 9042)).withConfigLoader(options).build()) {
            if (arguments[0].equals("create")) {
                create(session);
            } else {
                String writer = arguments.length > 3 ? arguments[2] : "another";
                run(new SiblingTable(session, TABLE, writer), arguments);
            }
        }
    }

    private static void create(CqlSession session) {
        session.execute("CREATE KEYSPACE siblings WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}");
        SiblingTable.create(session, TABLE, "zubilo");
        SiblingTable table = new SiblingTable(session, TABLE, "first");
        Versions seen = table.put(KEY, bytes("bread"), Versions.NONE, SiblingTable.ALL);
        seen = table.put(KEY, bytes("butter"), seen, SiblingTable.ALL);
        check(texts(table.get(KEY, 1)).equals(List.of("butter")), "a version that was replaced");
        check(session.execute("SELECT * FROM " + TABLE).all().size() == 1, "rows of replaced versions are left");
    }

    private static void run(SiblingTable table, String[] arguments) throws InterruptedException {
        switch (arguments[0]) {
            case "write" -> {
                Versions seen = table.get(KEY, 1);
                table.put(KEY, bytes(arguments[3]), seen, 1);
                System.out.println(arguments[2] + " saw " + texts(seen) + " and wrote " + arguments[3]);
            }
            case "expect" -> expect(table, arguments[2].isEmpty() ? List.of() : Arrays.asList(arguments[2].split(",")));
            case "resolve" -> resolve(table);
            case "delete" -> table.delete(KEY, table.get(KEY, 2), 2);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void expect(SiblingTable table, List<String> wanted) throws InterruptedException {
        List<String> found = List.of();
        for (int i = 0; i < 60; i++) {
            found = texts(table.get(KEY, 2));
            if (found.equals(wanted)) {
                System.out.println("both replicas: " + found);
                return;
            }
            Thread.sleep(500);
        }
        throw new AssertionError("siblings are " + found + " instead of " + wanted);
    }

    private static void resolve(SiblingTable table) {
        Versions conflict = table.get(KEY, 2);
        check(conflict.isConflict(), "no conflict: " + texts(conflict));
        VectorClock old = conflict.siblings().get(0).clock();
        Versions resolved = table.put(KEY, bytes(String.join("+", texts(conflict))), conflict, 2);
        check(resolved.clock().dominates(conflict.clock()), "the new version knows less than what it replaces");
        try {
            table.put(KEY, new Version(old, bytes("late")), 2, 2);
            throw new AssertionError("an obsolete write was taken");
        } catch (ObsoleteVersion expected) {
            check(texts(table.get(KEY, 1)).equals(texts(resolved)), "siblings: " + texts(table.get(KEY, 1)));
        }
        // With a clock of its own making, which dominates the stored one.
        table.put(KEY, new Version(resolved.clock().with("third", 1), bytes("resolved")), 2, 2);
        check(texts(table.get(KEY, 2)).equals(List.of("resolved")), "siblings: " + texts(table.get(KEY, 2)));
    }
}
