package zubilo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static zubilo.Dirs.b;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Many threads at once, closes at any moment. */
@Timeout(120)
class ThreadsTest {
    private static final int RECORDS = 2000;
    private Path dir;
    private Env env;

    @BeforeEach
    void open() {
        dir = Dirs.fresh();
        env = Env.open(dir.resolve("store"), Dirs.fast());
        env.update(txn -> {
            WriteTable t = txn.tableOrCreate("t");
            for (int i = 0; i < RECORDS; i++) {
                t.put(b("key" + i), b("value" + i));
            }
            return null;
        });
    }

    @AfterEach
    void close() {
        env.close();
        Dirs.remove(dir);
    }

    private interface Work {
        void run(int thread) throws Exception;
    }

    private static void threads(int count, Work work) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(count);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int thread = i;
            all.add(pool.submit(() -> {
                work.run(thread);
                return null;
            }));
        }
        pool.shutdown();
        for (Future<?> one : all) {
            one.get(100, TimeUnit.SECONDS);
        }
    }

    @Test
    void sharedReadersAreClosedUnderTheirUsers() throws Exception {
        long seed = new Random().nextLong();
        System.out.println("sharedReadersAreClosedUnderTheirUsers: seed " + seed);
        AtomicReference<ReadTxn> current = new AtomicReference<>(env.readShared());
        AtomicBoolean over = new AtomicBoolean();
        AtomicLong good = new AtomicLong();
        AtomicLong late = new AtomicLong();
        threads(5, thread -> {
            Random random = new Random(seed + thread);
            if (thread == 0) {
                for (int i = 0; i < 300; i++) {
                    ReadTxn old = current.getAndSet(env.readShared());
                    Thread.yield();
                    old.close();
                    if (i % 3 == 0) {
                        Dirs.put(env, "t", "key" + random.nextInt(RECORDS), "value" + i);
                    }
                }
                over.set(true);
                return;
            }
            while (!over.get()) {
                try {
                    ReadTxn txn = current.get();
                    Table t = txn.table("t");
                    switch (random.nextInt(4)) {
                        case 0:
                            assertTrue(t.view(b("key" + random.nextInt(RECORDS))).utf8().startsWith("value"));
                            break;
                        case 1:
                            long n = 0;
                            for (KeyValue record : t.range(Range.from(b("key" + random.nextInt(RECORDS))))) {
                                assertTrue(record.value().utf8().startsWith("value"));
                                if (n++ == 200) {
                                    break;
                                }
                            }
                            break;
                        case 2:
                            List<byte[]> keys = new ArrayList<>();
                            for (int k = 0; k < 50; k++) {
                                keys.add(b("key" + random.nextInt(RECORDS)));
                            }
                            t.getMany(keys).forEach(v -> assertTrue(v.utf8().startsWith("value")));
                            break;
                        default:
                            assertEquals(RECORDS, t.size());
                    }
                    good.incrementAndGet();
                } catch (ZubiloException.Closed | IllegalStateException e) {
                    late.incrementAndGet();
                }
            }
        });
        current.get().close();
        assertTrue(good.get() > 0);
        assertTrue(env.readers().isEmpty());
        assertTrue(env.check().isOk());
    }

    @Test
    void oneWriteTransactionInManyHands() throws Exception {
        long seed = new Random().nextLong();
        System.out.println("oneWriteTransactionInManyHands: seed " + seed);
        for (int round = 0; round < 20; round++) {
            WriteTxn txn = env.write();
            int ends = round;
            threads(4, thread -> {
                Random random = new Random(seed + thread);
                try {
                    WriteTable t = txn.table("t");
                    for (int i = 0; i < 200; i++) {
                        if (thread == 3 && i == 20 + ends) {
                            if (ends % 2 == 0) {
                                txn.commit();
                            } else {
                                txn.close();
                            }
                        }
                        switch (random.nextInt(5)) {
                            case 0: t.put(b("key" + random.nextInt(RECORDS)), b("value" + i)); break;
                            case 1: t.delete(b("key" + random.nextInt(RECORDS))); break;
                            case 2: t.all().stream().limit(20).forEach(r -> r.value().utf8()); break;
                            case 3: txn.tableOrCreate("new" + random.nextInt(3)).put(b("x"), b("y")); break;
                            default: t.get(b("key" + random.nextInt(RECORDS)));
                        }
                    }
                } catch (ZubiloException.Closed e) {
                    assertTrue(e.getMessage() != null);
                }
            });
        }
        assertTrue(env.check().isOk());
        env.tryWrite().orElseThrow().close();
    }

    @Test
    void changesShareCommits() throws Exception {
        long before = env.info().newest();
        env.update(txn -> txn.tableOrCreate("counts"));
        int each = 300;
        AtomicLong failed = new AtomicLong();
        threads(8, thread -> {
            for (int i = 0; i < each; i++) {
                int number = i;
                if (i % 10 == 9) {
                    assertThrows(IOException.class, () -> env.update(txn -> {
                        txn.table("counts").put(b("bad" + thread), b("x"));
                        txn.tableOrCreate("bad");
                        throw new IOException("no");
                    }));
                    failed.incrementAndGet();
                    continue;
                }
                String got = env.update(txn -> {
                    txn.table("counts").put(b(thread + "-" + number), b("x"));
                    return thread + "-" + number;
                });
                assertEquals(thread + "-" + number, got);
            }
        });
        try (ReadTxn txn = env.read()) {
            assertEquals(8 * each - failed.get(), txn.table("counts").size());
            assertNull(txn.table("counts").get(b("bad1")));
            assertTrue(!txn.hasTable("bad"));
        }
        assertTrue(env.info().newest() > before);
    }

    @Test
    void asyncChanges() throws Exception {
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            int number = i;
            all.add(env.updateAsync(txn -> {
                if (number % 7 == 3) {
                    throw new IOException("no " + number);
                }
                txn.tableOrCreate("async").put(b("k" + number), b("v"));
                return number;
            }));
        }
        int good = 0;
        for (int i = 0; i < all.size(); i++) {
            try {
                assertEquals(i, all.get(i).join());
                good++;
            } catch (CompletionException e) {
                assertEquals("no " + i, e.getCause().getMessage());
            }
        }
        try (ReadTxn txn = env.read()) {
            assertEquals(good, txn.table("async").size());
        }
        // What depends on one may change the store itself.
        assertEquals(2, env.updateAsync(txn -> 1).thenApply(n -> env.update(txn -> n + 1)).get(20, TimeUnit.SECONDS));
    }

    @Test
    void theStoreIsClosedWhileOthersChangeIt() throws Exception {
        for (int round = 0; round < 20; round++) {
            Env other = Env.open(dir.resolve("other" + round), Dirs.fast());
            threads(4, thread -> {
                try {
                    for (int i = 0; i < 500; i++) {
                        if (thread == 3 && i == 30) {
                            other.close();
                        }
                        int number = i;
                        switch (thread) {
                            case 0: Dirs.put(other, "t", "k" + i, "v"); break;
                            case 1: other.updateAsync(txn -> txn.tableOrCreate("t" + number % 5)); break;
                            case 2:
                                try (WriteTxn txn = other.write()) {
                                    txn.tableOrCreate("u").put(b("k"), b("v"));
                                    txn.commit();
                                }
                                break;
                            default:
                                try (ReadTxn txn = other.read()) {
                                    txn.tables();
                                }
                        }
                    }
                } catch (ZubiloException.Closed e) {
                    assertTrue(thread >= 0);
                }
            });
            assertThrows(ZubiloException.Closed.class, other::read);
        }
    }

    @Test
    void writersWaitForEachOther() throws Exception {
        AtomicLong inside = new AtomicLong();
        threads(6, thread -> {
            for (int i = 0; i < 100; i++) {
                if (thread % 2 == 0) {
                    try (WriteTxn txn = env.write()) {
                        assertEquals(1, inside.incrementAndGet());
                        WriteTable t = txn.tableOrCreate("n");
                        byte[] old = t.get(b("n"));
                        t.put(b("n"), b("" + (old == null ? 1 : Integer.parseInt(new String(old)) + 1)));
                        inside.decrementAndGet();
                        txn.commit();
                    }
                } else {
                    env.update(txn -> {
                        assertEquals(1, inside.incrementAndGet());
                        WriteTable t = txn.tableOrCreate("n");
                        byte[] old = t.get(b("n"));
                        t.put(b("n"), b("" + (old == null ? 1 : Integer.parseInt(new String(old)) + 1)));
                        inside.decrementAndGet();
                        return null;
                    });
                }
            }
        });
        try (ReadTxn txn = env.read()) {
            assertEquals("600", Dirs.s(txn.table("n").get(b("n"))));
        }
    }

    /** Threads that come and go: a store must not keep anything of them. */
    @Test
    void interruptedAndShortThreads() throws Exception {
        for (int i = 0; i < 200; i++) {
            int number = i;
            Thread thread = new Thread(() -> {
                Thread.currentThread().interrupt();
                Dirs.put(env, "t", "key" + number, "value");
                try (ReadTxn txn = env.read()) {
                    txn.table("t").get(b("key1"));
                }
                assertTrue(Thread.currentThread().isInterrupted());
            });
            thread.start();
            thread.join(20_000);
            assertTrue(!thread.isAlive());
        }
    }

    /** On JDK 21 and newer; by reflection, for the tests are compiled for 17. */
    @Test
    void virtualThreads() throws Exception {
        ThreadFactory factory;
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            factory = (ThreadFactory) type.getMethod("factory").invoke(builder);
        } catch (NoSuchMethodException | UnsupportedOperationException e) {
            return;
        }
        List<Thread> all = new ArrayList<>();
        AtomicLong done = new AtomicLong();
        List<Throwable> failures = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            int number = i;
            Thread thread = factory.newThread(() -> {
                try {
                    Dirs.put(env, "v", "k" + number, "v" + number);
                    try (WriteTxn txn = env.write()) {
                        txn.table("v").put(b("w" + number), b("x"));
                        Thread.sleep(1);
                        Thread.yield();
                        txn.commit();
                    }
                    try (ReadTxn txn = env.read()) {
                        Table v = txn.table("v");
                        Bytes view = v.view(b("k" + number));
                        Thread.sleep(2);
                        assertEquals("v" + number, view.utf8());
                        assertTrue(v.all().stream().count() > 0);
                    }
                    done.incrementAndGet();
                } catch (Throwable t) {
                    synchronized (failures) {
                        failures.add(t);
                    }
                }
            });
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) {
            thread.join(60_000);
        }
        assertEquals(List.of(), failures);
        assertEquals(300, done.get());
    }
}
