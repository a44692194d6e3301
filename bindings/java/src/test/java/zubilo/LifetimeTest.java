package zubilo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static zubilo.Dirs.b;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What has ended, or is another thread's, says so; it never crashes. */
class LifetimeTest {
    private Path dir;
    private Env env;

    @BeforeEach
    void open() {
        dir = Dirs.fresh();
        env = Env.open(dir.resolve("store"), Dirs.fast());
        env.update(txn -> {
            WriteTable t = txn.tableOrCreate("t");
            for (int i = 0; i < 1000; i++) {
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

    private static <T> T elsewhere(Callable<T> work) throws Throwable {
        ExecutorService one = Executors.newSingleThreadExecutor();
        try {
            return one.submit(work).get();
        } catch (ExecutionException e) {
            throw e.getCause();
        } finally {
            one.shutdown();
        }
    }

    @Test
    void viewsEndWithTheirTransaction() {
        for (boolean shared : new boolean[] {false, true}) {
            ReadTxn txn = shared ? env.readShared() : env.read();
            Table t = txn.table("t");
            Bytes view = t.view(b("key5"));
            Bytes part = view.slice(1, 3);
            ByteBuffer buffer = view.asByteBuffer();
            Iterator<KeyValue> records = t.all().iterator();
            KeyValue first = records.next();
            Iterator<Bytes> values = t.values(b("key1")).iterator();
            Cursor cursor = t.cursor();
            cursor.first();
            txn.close();
            txn.close();
            if (Native.isMapped()) {
                assertThrows(IllegalStateException.class, () -> view.get(0));
                assertThrows(IllegalStateException.class, view::toByteArray);
                assertThrows(IllegalStateException.class, view::hashCode);
                assertThrows(IllegalStateException.class, () -> view.equals(Bytes.of(new byte[6])));
                assertThrows(IllegalStateException.class, () -> part.get(0));
                assertThrows(IndexOutOfBoundsException.class, () -> part.getLong(0));
            } else {
                assertEquals("value5", view.utf8());
            }
            assertThrows(ZubiloException.Closed.class, () -> t.get(b("key5")));
            assertThrows(ZubiloException.Closed.class, () -> t.view(b("key5")));
            assertThrows(ZubiloException.Closed.class, t::size);
            assertThrows(ZubiloException.Closed.class, t::stats);
            assertThrows(ZubiloException.Closed.class, () -> t.range(Range.all()).iterator().hasNext());
            assertThrows(ZubiloException.Closed.class, records::next);
            assertThrows(ZubiloException.Closed.class, values::hasNext);
            assertThrows(ZubiloException.Closed.class, cursor::next);
            assertThrows(ZubiloException.Closed.class, cursor::current);
            assertThrows(ZubiloException.Closed.class, () -> txn.table("t"));
            assertThrows(ZubiloException.Closed.class, txn::tables);
            assertThrows(ZubiloException.Closed.class, txn::id);
            assertThrows(ZubiloException.Closed.class, txn::lag);
            if (Native.isMapped()) {
                assertThrows(IllegalStateException.class, () -> buffer.get(0));
                assertThrows(IllegalStateException.class, () -> first.key().utf8());
            }
        }
    }

    @Test
    void aTransactionOfAThreadRefusesOthers() throws Throwable {
        try (ReadTxn txn = env.read()) {
            Table t = txn.table("t");
            Bytes view = t.view(b("key5"));
            assertThrows(ZubiloException.WrongThread.class, () -> elsewhere(() -> t.get(b("key5"))));
            assertThrows(ZubiloException.WrongThread.class, () -> elsewhere(() -> {
                txn.close();
                return null;
            }));
            if (Native.isMapped()) {
                assertThrows(RuntimeException.class, () -> elsewhere(() -> view.get(0)));
            }
            assertEquals("value5", view.utf8());
        }
        try (ReadTxn txn = env.readShared()) {
            Table t = txn.table("t");
            assertEquals("value5", elsewhere(() -> t.view(b("key5"))).utf8());
            elsewhere(() -> {
                txn.close();
                return null;
            });
            assertThrows(ZubiloException.Closed.class, () -> t.get(b("key5")));
        }
    }

    @Test
    void aClosedStoreEndsNoTransaction() throws Throwable {
        ReadTxn read = env.read();
        WriteTxn write = env.write();
        write.table("t").put(b("late"), b("x"));
        env.close();
        env.close();
        assertThrows(ZubiloException.Closed.class, env::read);
        assertThrows(ZubiloException.Closed.class, env::sync);
        assertThrows(ZubiloException.Closed.class, env::info);
        assertThrows(ZubiloException.Closed.class, () -> env.update(txn -> 1));
        assertThrows(ZubiloException.Closed.class, () -> env.updateAsync(txn -> 1));
        assertEquals("value5", read.table("t").view(b("key5")).utf8());
        assertTrue(write.commit() > read.id());
        read.close();
        try (Env again = Env.open(dir.resolve("store")); ReadTxn txn = again.read()) {
            assertEquals("x", txn.table("t").view(b("late")).utf8());
        }
    }

    @Test
    void aWriteTransactionIsHandedOn() throws Throwable {
        WriteTxn txn = env.write();
        elsewhere(() -> {
            txn.table("t").put(b("other"), b("thread"));
            return null;
        });
        elsewhere(txn::commit);
        assertThrows(ZubiloException.Closed.class, txn::commit);
        assertThrows(ZubiloException.Closed.class, () -> txn.table("t"));
        txn.close();
        WriteTxn lost = env.write();
        WriteTable t = lost.table("t");
        t.put(b("gone"), b("x"));
        elsewhere(() -> {
            lost.close();
            return null;
        });
        assertThrows(ZubiloException.Closed.class, () -> t.get(b("gone")));
        assertThrows(ZubiloException.Closed.class, () -> t.put(b("gone"), b("x")));
        assertThrows(ZubiloException.Closed.class, () -> t.nextSequence(1));
        assertThrows(ZubiloException.Closed.class, () -> t.deleteRange(Range.all()));
        assertThrows(ZubiloException.Closed.class, () -> lost.nested(level -> 1));
        try (ReadTxn read = env.read()) {
            assertEquals("thread", read.table("t").view(b("other")).utf8());
            assertNull(read.table("t").get(b("gone")));
        }
    }

    @Test
    void theTransactionOfAChangeEndsWithIt() throws Throwable {
        WriteTxn[] kept = new WriteTxn[1];
        WriteTable[] table = new WriteTable[1];
        env.update(txn -> {
            kept[0] = txn;
            table[0] = txn.table("t");
            assertThrows(ZubiloException.Invalid.class, txn::commit);
            assertThrows(ZubiloException.Invalid.class, txn::close);
            assertThrows(ZubiloException.Busy.class, env::write);
            assertThrows(ZubiloException.Busy.class, () -> env.update(inner -> 1));
            assertThrows(ZubiloException.Busy.class, env::compact);
            assertTrue(env.tryWrite().isEmpty());
            assertThrows(ZubiloException.WrongThread.class, () -> elsewhere(() -> txn.table("t")));
            return null;
        });
        assertThrows(ZubiloException.Closed.class, () -> kept[0].table("t"));
        env.update(txn -> {
            assertThrows(ZubiloException.Closed.class, () -> table[0].put(b("x"), b("y")));
            return null;
        });
    }

    @Test
    void theMapCannotBeWritten() {
        if (!Native.isMapped()) {
            return;
        }
        try (ReadTxn txn = env.read()) {
            Bytes view = txn.table("t").view(b("key5"));
            assertTrue(view.asByteBuffer().isReadOnly());
            assertThrows(java.nio.ReadOnlyBufferException.class, () -> view.asByteBuffer().put(0, (byte) 1));
            assertThrows(IndexOutOfBoundsException.class, () -> view.get(6));
            assertThrows(IndexOutOfBoundsException.class, () -> view.get(-1));
            assertThrows(IndexOutOfBoundsException.class, () -> view.getLong(0));
            assertThrows(IndexOutOfBoundsException.class, () -> view.slice(5, 2));
            assertThrows(IndexOutOfBoundsException.class, () -> view.slice(0, Long.MAX_VALUE));
            assertThrows(IndexOutOfBoundsException.class, () -> view.copyTo(0, new byte[3], 0, 6));
            assertThrows(IndexOutOfBoundsException.class, () -> view.copyTo(-1, new byte[9], 0, 3));
        }
    }

    private static void await(BooleanSupplier what) throws InterruptedException {
        for (int i = 0; i < 200 && !what.getAsBoolean(); i++) {
            System.gc();
            Thread.sleep(20);
        }
        assertTrue(what.getAsBoolean(), "the collector did not end it");
    }

    private Bytes lose() {
        env.read().table("t").get(b("key1"));
        env.readShared().table("t").all().iterator().next();
        return env.readShared().table("t").view(b("key7"));
    }

    @Test
    void lostTransactionsAreEnded() throws Exception {
        Bytes kept = lose();
        if (Native.isMapped()) {
            // A view that is still held keeps its transaction, and no other.
            await(() -> env.readers().size() <= 1);
            for (int i = 0; i < 5; i++) {
                System.gc();
                Thread.sleep(10);
            }
            assertEquals(1, env.readers().size());
        }
        assertEquals("value7", kept.utf8());
        Reference.reachabilityFence(kept);
        kept = null;
        await(() -> env.readers().isEmpty());
        loseWriter();
        await(() -> env.tryWrite().map(txn -> {
            txn.close();
            return true;
        }).orElse(false));
        assertNull(readKey("lost"));
    }

    private void loseWriter() {
        WriteTxn txn = env.write();
        txn.table("t").put(b("lost"), b("x"));
    }

    private String readKey(String key) {
        try (ReadTxn txn = env.read()) {
            byte[] value = txn.table("t").get(b(key));
            return value == null ? null : new String(value);
        }
    }

    @Test
    void aLostStoreIsClosed() throws Exception {
        Path path = dir.resolve("lost");
        loseStore(path);
        Options alone = new Options().exclusive(true);
        await(() -> {
            try (Env other = Env.open(path, alone); ReadTxn txn = other.read()) {
                return txn.hasTable("t");
            } catch (ZubiloException.Busy e) {
                return false;
            }
        });
    }

    private static void loseStore(Path path) {
        Dirs.put(Env.open(path), "t", "k", "v");
    }
}
