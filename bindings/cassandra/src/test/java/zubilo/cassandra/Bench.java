package zubilo.cassandra;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.IntConsumer;
import java.util.stream.Stream;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Session;

import org.apache.cassandra.tools.NodeProbe;

/**
 * Puts and gets of 1.5 KB on a table with the stock memtable, commit log and SSTables, and on one with Zubilo, of the
 * same nodes in turns: {@code Bench KEYS ROUNDS REPLICAS FOLDER PID...}. Each round overwrites each key once. A table's
 * row: processor time of all nodes for one operation, bytes that they wrote, latency at the client.
 *
 * <p>The stock table is flushed after each round and its compactions are waited for; what that takes is told apart.
 * Gets are done before that (the newest values are in the memtable) and after.
 *
 * <p>The bytes of a phase are those of /proc: pages that the nodes made dirty. Where the page cache has large folios, Linux
 * counts all of a folio for one page. So where the stores of Zubilo lie on block devices of their own, what
 * both devices were given is told, too, for the whole of the rounds: what is still in the page cache at their end included.
 */
public final class Bench {
    private static final int THREADS = 16;
    private static final int WARM_UP = 5;
    /** Gets of a round, for each put. */
    private static final int GETS = 5;
    private static final List<String> TABLES = List.of("stock", "zubilo");
    /** Ticks of /proc's times in a second. */
    private static final int TICKS = 100;

    private final int keys;
    private final Path folder;
    private final String[] processes;
    private final Map<String, List<Figures>> figures = new TreeMap<>();
    private final Random random = new Random(1);

    private Bench(int keys, Path folder, String[] processes) {
        this.keys = keys;
        this.folder = folder;
        this.processes = processes;
    }

    /** What a phase cost each of its operations: microseconds of processors, bytes written; and times at the client. */
    private record Figures(double cpu, double bytes, double median, double p99, double perSecond) {}

    private record Spent(double seconds, long bytes) {}

    public static void main(String[] arguments) {
        Program.main(() -> {
            int rounds = Integer.parseInt(arguments[1]);
            Bench bench = new Bench(Integer.parseInt(arguments[0]), Path.of(arguments[3]), Arrays.copyOfRange(arguments, 4, arguments.length));
            try (Cluster cluster = Remote.connect(ConsistencyLevel.QUORUM); Session session = cluster.connect()) {
                session.execute("CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': " + arguments[2] + "}");
                for (String table : TABLES) {
                    session.execute("CREATE TABLE bench." + table + " (k int PRIMARY KEY, v blob) WITH memtable = '" + table
                            + "' AND compression = {'enabled': false}");
                }
                long[] before = new long[TABLES.size()];
                for (int round = 1 - WARM_UP; round <= rounds; round++) {
                    if (round == 1) {
                        before = bench.devices();
                    }
                    for (String table : TABLES) {
                        bench.round(session, table, round);
                    }
                }
                bench.report(rounds, before, bench.devices());
            }
        });
    }

    private void round(Session session, String table, int round) throws Exception {
        PreparedStatement put = session.prepare("INSERT INTO bench." + table + " (k, v) VALUES (?, ?)");
        PreparedStatement get = session.prepare("SELECT v FROM bench." + table + " WHERE k = ?");
        IntConsumer read = i -> {
            int key = (int) (i * 2_654_435_761L % keys);
            if (session.execute(get.bind(key)).one().getBytes(0).remaining() != 1500) {
                throw new AssertionError("key " + key);
            }
        };
        ByteBuffer[] values = new ByteBuffer[keys];
        Arrays.setAll(values, key -> Kept.value(key, random.nextInt()));
        keep(round, table + " put", phase(keys, key -> session.execute(put.bind(key, values[key].duplicate()))));
        keep(round, table + " get", phase(keys * GETS, read));
        if (table.equals("stock")) {
            Spent before = spent();
            for (int node = 1; node <= processes.length; node++) {
                try (NodeProbe probe = new NodeProbe("127.0.0.1", 7200 + node)) {
                    probe.forceKeyspaceFlush("bench", table);
                    while (((Number) probe.getCompactionMetric("PendingTasks")).longValue() > 0) {
                        Thread.sleep(50);
                    }
                }
            }
            Spent after = spent();
            keep(round, "stock put: flush and compaction", new Figures((after.seconds - before.seconds) * 1e6 / keys,
                    (double) (after.bytes - before.bytes) / keys, 0, 0, 0));
            keep(round, "stock get after the flush", phase(keys * GETS, read));
        }
    }

    private void keep(int round, String name, Figures measured) {
        if (round > 0) {
            figures.computeIfAbsent(name, unused -> new ArrayList<>()).add(measured);
        }
    }

    private Figures phase(int count, IntConsumer operation) throws Exception {
        long[] nanos = new long[count];
        Spent before = spent();
        long start = System.nanoTime();
        Remote.each(THREADS, count, i -> {
            long begun = System.nanoTime();
            operation.accept(i);
            nanos[i] = System.nanoTime() - begun;
        });
        double seconds = (System.nanoTime() - start) / 1e9;
        Spent after = spent();
        Arrays.sort(nanos);
        return new Figures((after.seconds - before.seconds) * 1e6 / count, (double) (after.bytes - before.bytes) / count,
                nanos[count / 2] / 1e3, nanos[(int) (count * 99L / 100)] / 1e3, count / seconds);
    }

    /** Of all nodes since their start. */
    private Spent spent() throws IOException {
        double seconds = 0;
        long bytes = 0;
        for (String process : processes) {
            String stat = Files.readString(Path.of("/proc", process, "stat"));
            String[] words = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            seconds += (Long.parseLong(words[11]) + Long.parseLong(words[12])) / (double) TICKS;
            for (String line : Files.readAllLines(Path.of("/proc", process, "io"))) {
                bytes += line.startsWith("write_bytes: ") ? Long.parseLong(line.substring(13)) : 0;
            }
        }
        return new Spent(seconds, bytes);
    }

    /** Bytes that the devices below the folders of the tables were given, in the order of {@link #TABLES}; the page cache is written out. */
    private long[] devices() throws IOException, InterruptedException {
        long[] bytes = new long[TABLES.size()];
        for (int node = 1; node <= processes.length; node++) {
            Path home = folder.resolve("node" + node);
            bytes[0] += device(home.resolve("data"));
            bytes[1] += device(home.resolve("zubilo"));
        }
        return bytes;
    }

    private static long device(Path folder) throws IOException, InterruptedException {
        if (new ProcessBuilder("sync", "-f", folder.toString()).inheritIO().start().waitFor() != 0) {
            throw new IOException("cannot sync " + folder);
        }
        // The number of a device: the minor number is in bits 0 to 7 and 20 to 31, the major one in bits 8 to 19.
        long number = (long) Files.getAttribute(folder, "unix:dev");
        long minor = number & 0xff | number >> 12 & 0xfff00;
        Path stat = Path.of("/sys/dev/block/" + (number >> 8 & 0xfff) + ":" + minor + "/stat");
        return Files.exists(stat) ? 512 * Long.parseLong(Files.readString(stat).trim().split(" +")[6]) : 0;
    }

    private boolean haveOwnDevices() throws IOException {
        Path home = folder.resolve("node1");
        return !Files.getAttribute(home.resolve("data"), "unix:dev").equals(Files.getAttribute(home.resolve("zubilo"), "unix:dev"));
    }

    private void report(int rounds, long[] before, long[] after) throws IOException {
        System.out.printf("%d keys, %d rounds, %d threads; medians (least to most) of the rounds%n", keys, rounds, THREADS);
        figures.forEach((name, rows) -> {
            Map<String, String> cells = new LinkedHashMap<>();
            cells.put("CPU us", spread(rows.stream().mapToDouble(Figures::cpu)));
            cells.put("bytes", spread(rows.stream().mapToDouble(Figures::bytes)));
            cells.put("p50 us", spread(rows.stream().mapToDouble(Figures::median)));
            cells.put("p99 us", spread(rows.stream().mapToDouble(Figures::p99)));
            cells.put("a second", spread(rows.stream().mapToDouble(Figures::perSecond)));
            System.out.println(name + ": " + cells);
        });
        for (int table = 0; haveOwnDevices() && table < TABLES.size(); table++) {
            System.out.printf("%s put: %d bytes given to its device, all things included%n", TABLES.get(table),
                    (after[table] - before[table]) / ((long) keys * rounds));
        }
        for (int node = 1; node <= processes.length; node++) {
            Path home = folder.resolve("node" + node);
            System.out.printf("node %d: stock %.1f MB in SSTables and %.1f MB of commit log, zubilo %.1f MB; user data %.1f MB%n", node,
                    size(home.resolve("data/bench"), "/stock-"), size(home.resolve("commitlog"), ""), size(home.resolve("zubilo"), ""),
                    keys * 1504 / 1e6);
        }
    }

    private static String spread(java.util.stream.DoubleStream of) {
        double[] sorted = of.sorted().toArray();
        return String.format("%.0f (%.0f to %.0f)", sorted[sorted.length / 2], sorted[0], sorted[sorted.length - 1]);
    }

    /** Megabytes of the files whose path has a part. */
    private static double size(Path folder, String part) throws IOException {
        long bytes = 0;
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.filter(file -> file.toString().contains(part) && Files.isRegularFile(file)).toList()) {
                bytes += Files.size(file);
            }
        }
        return bytes / 1e6;
    }
}
