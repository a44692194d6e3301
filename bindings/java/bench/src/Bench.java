import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Measures one engine and prints a line for each figure: engine, row, unit, median, least, greatest of the rounds.
 * Arguments: engine, folder, records, milliseconds a round, rounds.
 */
public final class Bench {
    private static final int VALUE = 100;
    private static final int BATCH = 32;

    private final Engine engine;
    private final String name;
    private final int records;
    private final long millis;
    private final int rounds;
    private final Random random = new Random(42);

    private Bench(String name, Engine engine, int records, long millis, int rounds) {
        this.name = name;
        this.engine = engine;
        this.records = records;
        this.millis = millis;
        this.rounds = rounds;
    }

    /** Keys of 16 bytes that are spread over their range and ascend with {@code i}. */
    static byte[] key(long i) {
        return ByteBuffer.allocate(16).putLong(i * 0x1_0001).putLong(i * 0x9E3779B97F4A7C15L).array();
    }

    static byte[] value(long i) {
        return ByteBuffer.allocate(VALUE).putLong(i * 31 + 7).array();
    }

    private interface Step {
        long run() throws Exception;
    }

    /** Rounds of a step that gives how much it did; nanoseconds for each. */
    private void row(String row, Step step) throws Exception {
        double[] figures = new double[rounds];
        for (int round = -1; round < rounds; round++) {
            long start = System.nanoTime();
            long end = start + millis * 1_000_000;
            long count = 0;
            long now;
            do {
                count += step.run();
                now = System.nanoTime();
            } while (now < end);
            if (round >= 0) {
                figures[round] = (now - start) / (double) count;
            }
        }
        print(row, "ns", figures);
    }

    private void print(String row, String unit, double[] figures) {
        java.util.Arrays.sort(figures);
        System.out.printf("%s\t%s\t%s\t%.1f\t%.1f\t%.1f%n", name, row, unit, figures[figures.length / 2], figures[0],
                figures[figures.length - 1]);
    }

    private void reads() throws Exception {
        engine.begin();
        byte[][] keys = new byte[1 << 16][];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = key(random.nextInt(records));
        }
        List<List<byte[]>> batches = new ArrayList<>();
        for (int i = 0; i < keys.length; i += BATCH) {
            batches.add(List.of(keys).subList(i, i + BATCH));
        }
        check(keys);
        int[] at = new int[1];
        long[] sum = new long[1];
        row("get, copied", () -> {
            for (int i = 0; i < 1000; i++) {
                sum[0] += engine.get(keys[at[0]++ & 0xffff]).length;
            }
            return 1000;
        });
        row("get, read in place", () -> {
            for (int i = 0; i < 1000; i++) {
                sum[0] ^= engine.peek(keys[at[0]++ & 0xffff]);
            }
            return 1000;
        });
        row("batched get of 32, a key", () -> {
            for (int i = 0; i < 32; i++) {
                sum[0] ^= engine.peekAll(batches.get(at[0]++ & 2047));
            }
            return 32 * BATCH;
        });
        row("scan, a record", () -> {
            sum[0] ^= engine.scan();
            return records;
        });
        engine.end();
        if (sum[0] == 42) {
            System.out.println("#");
        }
    }

    /** All engines must find the same. */
    private void check(byte[][] keys) throws Exception {
        long all = 0;
        for (long i = 0; i < records; i++) {
            all ^= i * 31 + 7;
        }
        if (engine.scan() != all) {
            throw new AssertionError(name + " scans something else");
        }
        List<byte[]> few = List.of(keys).subList(0, BATCH);
        long batch = 0;
        for (byte[] key : few) {
            batch ^= Engines.first(engine.get(key));
        }
        if (batch != engine.peekAll(few)) {
            throw new AssertionError(name + " finds something else in a batch");
        }
    }

    /** Durable puts of so many threads, as puts a second of all together. */
    private void puts(int threads) throws Exception {
        double[] figures = new double[rounds];
        AtomicLong next = new AtomicLong();
        for (int round = -1; round < rounds; round++) {
            long start = System.nanoTime();
            long end = start + millis * 2_000_000;
            AtomicLong done = new AtomicLong();
            List<Thread> all = new ArrayList<>();
            Throwable[] failed = new Throwable[1];
            for (int t = 0; t < threads; t++) {
                Thread thread = new Thread(() -> {
                    try {
                        while (System.nanoTime() < end) {
                            long i = next.getAndIncrement();
                            long place = Math.floorMod(i * 0x9E3779B97F4A7C15L, (long) records);
                            engine.put(key(place), value(i));
                            done.incrementAndGet();
                        }
                    } catch (Throwable e) {
                        failed[0] = e;
                    }
                });
                all.add(thread);
                thread.start();
            }
            for (Thread thread : all) {
                thread.join();
            }
            if (failed[0] != null) {
                throw new AssertionError(failed[0]);
            }
            if (round >= 0) {
                figures[round] = done.get() * 1e9 / (System.nanoTime() - start);
            }
        }
        print("durable puts, " + threads + (threads == 1 ? " thread" : " threads"), "puts/s", figures);
    }

    public static void main(String[] args) throws Exception {
        Path dir = Files.createTempDirectory(Path.of(args[1]), args[0]);
        int records = Integer.parseInt(args[2]);
        try (Engine engine = Engines.open(args[0], dir)) {
            engine.load(() -> new Iterator<>() {
                private long i;

                @Override
                public boolean hasNext() {
                    return i < records;
                }

                @Override
                public byte[][] next() {
                    return new byte[][] {key(i), value(i++)};
                }
            });
            Bench bench = new Bench(args[0], engine, records, Long.parseLong(args[3]), Integer.parseInt(args[4]));
            if (args.length < 6 || args[5].contains("r")) {
                bench.reads();
            }
            if (args.length < 6 || args[5].contains("w")) {
                bench.puts(1);
                bench.puts(8);
            }
        }
        // Some leave threads behind.
        System.exit(0);
    }
}
