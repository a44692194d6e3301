package zubilo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static zubilo.Dirs.b;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What no sane program does. The JVM must live, and the store be whole. */
@Timeout(120)
class HostileTest {
    private Path dir;
    private Env env;

    @BeforeEach
    void open() {
        dir = Dirs.fresh();
        env = Env.open(dir.resolve("store"), Dirs.fast());
        env.update(txn -> {
            WriteTable t = txn.tableOrCreate("t");
            for (int i = 0; i < 3000; i++) {
                t.put(b("key" + i), b("value" + i));
            }
            return null;
        });
    }

    @AfterEach
    void close() {
        assertTrue(env.check().isOk());
        env.close();
        Dirs.remove(dir);
    }

    /** Runs work at every depth of the stack, down to where it overflows. */
    private static int deeper(Runnable work, int depth) {
        try {
            int below = deeper(work, depth + 1);
            if (depth % 64 == 0 || below < depth + 40) {
                work.run();
            }
            return below;
        } catch (StackOverflowError e) {
            return depth;
        }
    }

    @Test
    void theStackOverflowsEverywhere() throws Exception {
        Thread thread = new Thread(null, () -> {
            try (WriteTxn write = env.write(); ReadTxn read = env.readShared()) {
                WriteTable t = write.table("t");
                Table r = read.table("t");
                Random random = new Random(5);
                for (int round = 0; round < 30; round++) {
                    deeper(() -> {
                        t.put(b("key" + random.nextInt(5000)), new byte[random.nextInt(3000)]);
                        r.get(b("key7"));
                        r.all().iterator().next();
                        t.deleteRange(Range.from(b("key9")));
                        r.getMany(List.of(b("key1"), b("key2")));
                    }, 0);
                    deeper(() -> {
                        try (ReadTxn other = env.read()) {
                            other.table("t").view(b("key3"));
                        }
                    }, 0);
                }
            } catch (ZubiloException | IllegalStateException e) {
                // An overflow in the midst of a change may break the transaction; it says so.
                assertNotNull(e.getMessage());
            }
        }, "deep", 1 << 20);
        thread.start();
        thread.join();
        Thread updates = new Thread(null, () -> {
            for (int round = 0; round < 5; round++) {
                deeper(() -> Dirs.put(env, "t", "deep", "x"), 0);
            }
        }, "deep updates", 512 << 10);
        updates.start();
        updates.join(30_000);
        assertFalse(updates.isAlive());
        Thread writes = new Thread(null, () -> {
            for (int round = 0; round < 5; round++) {
                deeper(() -> {
                    try (WriteTxn txn = env.write()) {
                        txn.nested(level -> level.table("t").insert(b("deeper"), b("x")));
                        txn.commit();
                    }
                }, 0);
            }
        }, "deep writes", 512 << 10);
        writes.start();
        writes.join(30_000);
        assertFalse(writes.isAlive());
        Dirs.put(env, "t", "after", "x");
    }

    @Test
    void anyNumberIsAHandle() {
        long seed = new Random().nextLong();
        System.out.println("anyNumberIsAHandle: seed " + seed);
        Random random = new Random(seed);
        List<Long> handles = new ArrayList<>(List.of(0L, 1L, -1L, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 32, 1L << 52));
        try (ReadTxn read = env.read(); WriteTxn write = env.write()) {
            for (long handle : new long[] {read.handle, write.handle, env.handle()}) {
                handles.add(handle + (1L << 32));
                handles.add(handle - (1L << 32));
                handles.add(handle + (2L << 32));
                handles.add(handle ^ 255);
            }
            // No flips of their own: what is open stays out of reach.
            handles.removeIf(h -> h == read.handle || h == write.handle || h == env.handle());
            for (int i = 0; i < 20_000; i++) {
                handles.add(random.nextLong());
                handles.add((long) random.nextInt());
            }
            for (long handle : handles) {
                for (long answer : new long[] {Native.end(handle), Native.txn(handle, 0), Native.close(handle, 1),
                    Native.read(handle), Native.write(handle, 0), Native.writeEnd(handle, 1), Native.nested(handle, 0, 0),
                    Native.query(handle, 0, 0, 0, 0, 0, 0), Native.sequence(handle, 0, 1), Native.stats(handle, 0, 0, 0),
                    Native.env(handle, 0, 0, 0, 0, 0, 0)}) {
                    assertTrue(answer < 0, () -> handle + " was taken for a handle");
                    if (answer < -4096) {
                        Failures.of(answer);
                    }
                }
            }
            // Tables by numbers that they do not have; the wrong kind of transaction.
            for (long index : new long[] {-1, 99, Integer.MAX_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, (8L << 16) - 1, 8L << 16}) {
                assertTrue(Native.query(read.handle, index, 0, 0, 0, 0, 0) < 0);
                assertTrue(Native.query(write.handle, index, 0, 0, 0, 0, 0) < 0);
            }
            assertTrue(Native.change(read.handle, 0, 0, 0, 0, 0, 0) < 0);
            assertTrue(Native.writeEnd(read.handle, 1) < 0);
            assertTrue(Native.end(env.handle()) < 0);
            assertTrue(Native.close(read.handle, 0) < 0);
            assertTrue(Native.nested(write.handle, 1, 0) < 0);
            assertTrue(Native.nested(write.handle, 2, 7) < 0);
        }
        try (ReadTxn read = env.read()) {
            assertEquals("value7", read.table("t").view(b("key7")).utf8());
        }
    }

    @Test
    void nullsAndOddArguments() throws Exception {
        try (ReadTxn read = env.read(); WriteTxn write = env.write()) {
            List<Object> targets = List.of(env, read, write, read.table("t"), write.table("t"), write.table("t").cursor(),
                    read.table("t").view(b("key1")), Bytes.of(), new Options(), TableOptions.defaults(), Range.all());
            for (Object target : targets) {
                for (Method method : target.getClass().getMethods()) {
                    boolean own = method.getDeclaringClass().getName().startsWith("zubilo");
                    boolean ends = List.of("close", "commit").contains(method.getName());
                    if (!own || ends || method.getParameterCount() == 0) {
                        continue;
                    }
                    for (int variant = 0; variant < 4; variant++) {
                        method.setAccessible(true);
                        invoke(method, target, variant);
                    }
                }
            }
        }
    }

    private static void invoke(Method method, Object target, int variant) throws IllegalAccessException {
        Class<?>[] types = method.getParameterTypes();
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            if (types[i] == boolean.class) {
                arguments[i] = variant % 2 == 0;
            } else if (types[i] == int.class) {
                arguments[i] = new int[] {0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}[variant];
            } else if (types[i] == long.class) {
                arguments[i] = new long[] {0, -1, Long.MIN_VALUE, Long.MAX_VALUE}[variant];
            } else if (types[i] == byte[].class && variant > 0) {
                arguments[i] = new byte[][] {null, {}, new byte[511], new byte[70_000]}[variant];
            } else if (types[i] == String.class && variant > 0) {
                arguments[i] = new String[] {null, "", "t\u0000t", "x".repeat(5000)}[variant];
            } else if (types[i] == Range.class && variant > 0) {
                arguments[i] = Range.between(new byte[variant * 20_000], new byte[9]);
            } else if (types[i] == Iterable.class && variant > 0) {
                arguments[i] = List.of(Map.entry(new byte[variant * 300], new byte[variant]));
            }
        }
        try {
            method.invoke(method.getName().equals("open") ? null : target, arguments);
        } catch (InvocationTargetException e) {
            Throwable cause = e.getCause();
            boolean told = cause instanceof RuntimeException || cause instanceof Exception;
            assertTrue(told, () -> method + " threw " + cause);
        }
    }

    @Test
    void handlesByTheThousand() {
        List<ReadTxn> all = new ArrayList<>();
        try (Env small = Env.open(dir.resolve("small"), Dirs.fast().maxReaders(2000))) {
            Dirs.put(small, "t", "k", "v");
            assertThrows(ZubiloException.ReadersFull.class, () -> {
                for (int i = 0; i < 3000; i++) {
                    all.add(small.read());
                }
            });
            assertEquals(2000, all.size());
            for (int i = 0; i < all.size(); i += 2) {
                all.get(i).close();
            }
            for (int i = 1; i < all.size(); i += 2) {
                assertEquals("v", all.get(i).table("t").view(b("k")).utf8());
                all.get(i).close();
                all.get(i).close();
            }
        }
        try (ReadTxn txn = env.read(); WriteTxn write = env.write()) {
            for (int i = 0; i < 300; i++) {
                write.tableOrCreate("table" + i).put(b("k"), b("v" + i));
            }
            for (int i = 0; i < 100_000; i++) {
                write.table("table7");
            }
            assertEquals("v250", write.table("table250").view(b("k")).utf8());
            write.commit();
            assertFalse(txn.hasTable("table7"));
        }
        try (ReadTxn txn = env.read()) {
            for (int i = 0; i < 300; i++) {
                assertEquals("v" + i, txn.table("table" + i).view(b("k")).utf8());
            }
        }
    }

    @Test
    void changesThatThrowErrors() {
        assertThrows(StackOverflowError.class, () -> env.update(txn -> {
            txn.table("t").put(b("lost"), b("x"));
            throw new StackOverflowError();
        }));
        assertThrows(OutOfMemoryError.class, () -> env.update(txn -> txn.nested(level -> {
            level.table("t").put(b("lost"), b("x"));
            throw new OutOfMemoryError();
        })));
        assertThrows(AssertionError.class, () -> {
            try (WriteTxn txn = env.write()) {
                txn.nested(level -> {
                    level.close();
                    throw new AssertionError("closed inside");
                });
            }
        });
        assertThrows(ZubiloException.Closed.class, () -> {
            try (WriteTxn txn = env.write()) {
                txn.nested(level -> level.commit());
            }
        });
        try (ReadTxn txn = env.read()) {
            assertFalse(txn.table("t").containsKey(b("lost")));
        }
    }

    /** All of it at once, with transactions lost everywhere; and the collector ends them. */
    @Test
    void everythingAtOnce() throws Exception {
        long seed = new Random().nextLong();
        System.out.println("everythingAtOnce: seed " + seed);
        ExecutorService pool = Executors.newCachedThreadPool();
        AtomicBoolean over = new AtomicBoolean();
        AtomicLong done = new AtomicLong();
        List<Future<?>> all = new ArrayList<>();
        for (int thread = 0; thread < 6; thread++) {
            int id = thread;
            all.add(pool.submit(() -> {
                Random random = new Random(seed + id);
                while (!over.get()) {
                    try {
                        anything(random, pool, id);
                        done.incrementAndGet();
                    } catch (ZubiloException.Closed | IllegalStateException e) {
                        assertNotNull(e);
                    }
                }
                return null;
            }));
        }
        Thread.sleep(3000);
        over.set(true);
        for (Future<?> one : all) {
            one.get(60, TimeUnit.SECONDS);
        }
        pool.shutdown();
        assertTrue(done.get() > 0);
        for (int i = 0; i < 200 && !env.readers().isEmpty(); i++) {
            System.gc();
            Thread.sleep(20);
        }
        assertEquals(List.of(), env.readers());
    }

    private void anything(Random random, ExecutorService pool, int id) throws Exception {
        byte[] key = b("key" + random.nextInt(3000));
        switch (random.nextInt(9)) {
            case 0: env.read().table("t").containsKey(key); break;
            case 1: env.readShared().table("t").all().iterator().next(); break;
            case 2: {
                WriteTxn txn = env.tryWrite().orElse(null);
                if (txn != null) {
                    txn.table("t").put(key, new byte[random.nextInt(100_000)]);
                    int end = random.nextInt(3);
                    if (end == 0) {
                        txn.commit();
                    } else if (end == 1) {
                        txn.close();
                    }
                }
                break;
            }
            case 3:
                try (ReadTxn txn = env.read()) {
                    txn.table("t").range(Range.all().reversed()).stream().limit(2000).forEach(r -> r.value().size());
                }
                break;
            case 4: pool.submit(() -> env.updateAsync(txn -> txn.table("t").delete(key))).cancel(true); break;
            case 5: assertTrue(env.check().isOk()); break;
            case 6: {
                ReadTxn txn = env.readShared();
                pool.submit(txn::close);
                Bytes value = txn.table("t").getMany(List.of(b("key1"), key)).get(1);
                if (value != null) {
                    value.toByteArray();
                }
                break;
            }
            case 7: System.gc(); break;
            default: {
                Path copy = dir.resolve("copy" + id);
                env.copyTo(copy, random.nextBoolean());
                Files.delete(copy);
            }
        }
    }

    /** Two applications in one JVM, each with a jar of its own: the library is there twice, and they share a store. */
    @Test
    void twoClassLoaders() throws Exception {
        URL jar = Env.class.getProtectionDomain().getCodeSource().getLocation();
        List<Thread> threads = new ArrayList<>();
        List<Object> envs = new ArrayList<>();
        List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
        Path path = dir.resolve("two");
        for (int i = 0; i < 2; i++) {
            Class<?> type = new URLClassLoader(new URL[] {jar}, null).loadClass("zubilo.Env");
            Object other = type.getMethod("open", Path.class).invoke(null, path);
            assertFalse(other instanceof Env);
            envs.add(other);
            int id = i;
            Thread thread = new Thread(() -> {
                try {
                    for (int n = 0; n < 50; n++) {
                        Object txn = type.getMethod("write").invoke(other);
                        Object table = txn.getClass().getMethod("tableOrCreate", String.class).invoke(txn, "t");
                        table.getClass().getMethod("put", byte[].class, byte[].class).invoke(table, b(id + "-" + n), b("v"));
                        txn.getClass().getMethod("commit").invoke(txn);
                    }
                } catch (Throwable e) {
                    failures.add(e);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(List.of(), failures);
        for (Object other : envs) {
            other.getClass().getMethod("close").invoke(other);
        }
        try (Env both = Env.open(path); ReadTxn txn = both.read()) {
            assertEquals(100, txn.table("t").size());
            assertTrue(both.check().isOk());
        }
    }
}
