package zubilo;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static zubilo.Dirs.b;
import static zubilo.Dirs.s;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What each operation does. */
class StoreTest {
    private Path dir;
    private Env env;

    @BeforeEach
    void open() {
        dir = Dirs.fresh();
        env = Env.open(dir.resolve("store"), Dirs.fast());
    }

    @AfterEach
    void close() {
        env.close();
        Dirs.remove(dir);
    }

    private static String text(Iterable<KeyValue> records) {
        List<String> all = new ArrayList<>();
        records.forEach(r -> all.add(r.key().utf8() + "=" + r.value().utf8()));
        return String.join(" ", all);
    }

    private void fill(String table, TableOptions options, String... pairs) {
        env.update(txn -> {
            WriteTable t = txn.tableOrCreate(table, options);
            for (String pair : pairs) {
                String[] kv = pair.split("=");
                t.put(b(kv[0]), b(kv[1]));
            }
            return null;
        });
    }

    @Test
    void firstSteps() {
        try (WriteTxn txn = env.write()) {
            WriteTable fruit = txn.tableOrCreate("fruit");
            fruit.put(b("apple"), b("red"));
            fruit.put(b("banana"), b("yellow"));
            assertEquals("red", s(fruit.get(b("apple"))));
            assertEquals(1, txn.id() - txnBefore());
            txn.commit();
        }
        try (ReadTxn txn = env.read()) {
            Table fruit = txn.table("fruit");
            assertEquals("yellow", s(fruit.get(b("banana"))));
            assertNull(fruit.get(b("cherry")));
            assertNull(fruit.view(b("cherry")));
            assertEquals("red", fruit.view(b("apple")).utf8());
            assertEquals("banana=yellow", text(fruit.range(Range.from(b("b")))));
            assertEquals(List.of("fruit"), txn.tables());
            assertEquals(0, txn.lag());
            assertEquals(Native.isMapped(), fruit.view(b("apple")).isMapped());
        }
    }

    private long txnBefore() {
        return env.info().newest();
    }

    @Test
    void rangesInBothDirections() {
        fill("t", TableOptions.defaults(), "a=1", "b=2", "c=3", "ca=4", "d=5");
        try (ReadTxn txn = env.read()) {
            Table t = txn.table("t");
            assertEquals("a=1 b=2 c=3 ca=4 d=5", text(t.all()));
            assertEquals("d=5 ca=4 c=3 b=2 a=1", text(t.range(Range.all().reversed())));
            assertEquals("b=2 c=3", text(t.range(Range.between(b("b"), b("ca")))));
            assertEquals("ca=4 c=3", text(t.range(Range.all().startingAfter(b("b")).endingWith(b("ca")).reversed())));
            assertEquals("c=3 ca=4", text(t.prefix(b("c"))));
            assertEquals("", text(t.range(Range.between(b("d"), b("a")))));
            assertEquals("a=1", t.first().key().utf8() + "=" + t.first().value().utf8());
            assertEquals("d", t.last().key().utf8());
            assertEquals("ca", t.first(Range.to(b("d")).reversed()).key().utf8());
            assertEquals(List.of("a", "b", "c", "ca", "d"),
                    t.all().stream().map(r -> r.key().utf8()).collect(Collectors.toList()));
        }
    }

    @Test
    void manyRecordsInBatches() {
        int n = 20_000;
        env.update(txn -> {
            WriteTable t = txn.tableOrCreate("t");
            List<Map.Entry<byte[], byte[]>> all = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                all.add(Map.entry(b(String.format("%08d", i)), b("value " + i)));
            }
            assertEquals(n, t.putAll(all));
            return null;
        });
        try (ReadTxn read = env.read(); WriteTxn write = env.write()) {
            for (Transaction txn : List.of(read, write)) {
                Table t = txn.table("t");
                int i = 0;
                for (KeyValue record : t.all()) {
                    assertEquals("value " + i, record.value().utf8());
                    i++;
                }
                assertEquals(n, i);
                for (KeyValue record : t.range(Range.all().reversed())) {
                    i--;
                    assertEquals(String.format("%08d", i), record.key().utf8());
                }
                List<byte[]> keys = new ArrayList<>();
                for (int k = 0; k < 5000; k++) {
                    keys.add(b(String.format("%08d", k * 7)));
                }
                List<Bytes> values = t.getMany(keys);
                for (int k = 0; k < keys.size(); k++) {
                    Bytes value = values.get(k);
                    assertEquals(k * 7 < n ? "value " + k * 7 : null, value == null ? null : value.utf8());
                }
            }
        }
    }

    @Test
    void largeValues() {
        byte[] large = new byte[3 << 20];
        for (int i = 0; i < large.length; i++) {
            large[i] = (byte) (i * 31);
        }
        try (WriteTxn txn = env.write()) {
            WriteTable t = txn.tableOrCreate("t");
            t.put(b("large"), large);
            t.put(b("empty"), new byte[0]);
            t.put(b("small"), b("x"));
            assertArrayEquals(large, t.get(b("large")));
            assertArrayEquals(large, t.getMany(List.of(b("small"), b("large"))).get(1).toByteArray());
            assertEquals(3, t.all().stream().count());
            txn.commit();
        }
        try (ReadTxn txn = env.read()) {
            Table t = txn.table("t");
            assertArrayEquals(large, t.get(b("large")));
            assertEquals(large.length, t.view(b("large")).size());
            assertEquals(0, t.view(b("empty")).size());
            assertArrayEquals(new byte[0], t.get(b("empty")));
            assertArrayEquals(large, t.cursor().seek(b("l")).value().toByteArray());
            assertEquals(List.of(0L, (long) large.length, 1L),
                    t.all().stream().map(r -> r.value().size()).collect(Collectors.toList()));
            assertEquals(large.length, t.unguardedBuffer(b("large")).remaining());
            assertEquals(large[77], t.unguardedBuffer(b("large")).get(77));
            assertEquals(0, t.unguardedBuffer(b("empty")).remaining());
        }
    }

    @Test
    void duplicates() {
        TableOptions options = TableOptions.defaults().duplicates();
        fill("t", options, "a=1", "a=3", "a=2", "b=1", "c=9", "c=8");
        try (WriteTxn txn = env.write()) {
            WriteTable t = txn.table("t", options);
            assertFalse(t.insertValue(b("a"), b("3")));
            assertTrue(t.insertValue(b("a"), b("0")));
            assertTrue(t.deleteValue(b("c"), b("8")));
            assertFalse(t.deleteValue(b("c"), b("8")));
            assertEquals("a=0 a=1 a=2 a=3 b=1 c=9", text(t.all()));
            txn.commit();
        }
        try (ReadTxn txn = env.read()) {
            Table t = txn.table("t");
            assertEquals(4, t.count(b("a")));
            assertTrue(t.contains(b("a"), b("2")));
            assertEquals(List.of("0", "1", "2", "3"),
                    t.values(b("a")).stream().map(Bytes::utf8).collect(Collectors.toList()));
            assertEquals("c=9 b=1 a=3 a=2 a=1 a=0", text(t.range(Range.all().reversed())));
            Cursor cursor = t.cursor();
            assertEquals("a", cursor.seekPair(b("a"), b("2")).key().utf8());
            assertEquals("3", cursor.next().value().utf8());
            assertEquals("b", cursor.next().key().utf8());
            assertEquals("3", cursor.previous().value().utf8());
            assertEquals("b", cursor.nextKey().key().utf8());
            assertEquals("3", cursor.previousKey().value().utf8());
            assertNull(cursor.previousKey());
            assertEquals("3", cursor.current().value().utf8());
        }
    }

    @Test
    void manyValuesOfOneKeyComeInBatches() {
        env.update(txn -> {
            WriteTable t = txn.tableOrCreate("t", TableOptions.defaults().fixedDuplicates());
            for (int key = 0; key < 3; key++) {
                for (int i = 0; i < 7000; i++) {
                    t.put(b("k" + key), b(String.format("%08d", i)));
                }
            }
            return null;
        });
        try (ReadTxn read = env.read(); WriteTxn write = env.write()) {
            for (Transaction txn : List.of(read, write)) {
                Table t = txn.table("t");
                int i = 0;
                for (Bytes value : t.values(b("k1"))) {
                    assertEquals(String.format("%08d", i++), value.utf8());
                }
                assertEquals(7000, i);
                for (KeyValue record : t.all()) {
                    assertEquals("k" + (i - 7000) / 7000, record.key().utf8());
                    assertEquals(String.format("%08d", i++ % 7000), record.value().utf8());
                }
                assertEquals(28_000, i);
                for (KeyValue record : t.range(Range.all().reversed())) {
                    assertEquals(String.format("%08d", --i % 7000), record.value().utf8());
                }
                assertEquals(7000, i);
            }
        }
    }

    @Test
    void countedTables() {
        fill("t", TableOptions.defaults().counted(), "a=1", "b=2", "c=3", "d=4");
        fill("plain", TableOptions.defaults(), "a=1");
        try (ReadTxn txn = env.read()) {
            Table t = txn.table("t");
            assertEquals("c", t.nth(2).key().utf8());
            assertNull(t.nth(4));
            assertEquals(2, t.rank(b("bb")));
            assertEquals(2, t.rangeSize(Range.between(b("b"), b("d"))));
            assertEquals(4, t.rangeSize(Range.all()));
            assertThrows(IndexOutOfBoundsException.class, () -> t.nth(-1));
            assertThrows(ZubiloException.class, () -> txn.table("plain").nth(0));
        }
        fill("d", TableOptions.defaults().duplicates().counted(), "a=1", "a=2", "b=3");
        try (ReadTxn txn = env.read()) {
            assertEquals("2", txn.table("d").nthValue(b("a"), 1).utf8());
            assertEquals(1, txn.table("d").rank(b("a"), b("2")));
        }
    }

    @Test
    void sequencesNestedLevelsAndNames() {
        try (WriteTxn txn = env.write()) {
            WriteTable t = txn.tableOrCreate("t");
            assertEquals(0, t.nextSequence(3));
            assertEquals(3, t.nextSequence(1));
            t.put(b("outer"), b("1"));
            WriteTable[] lost = new WriteTable[1];
            assertThrows(IOException.class, () -> txn.nested(level -> {
                level.table("t").put(b("inner"), b("2"));
                lost[0] = level.tableOrCreate("new");
                lost[0].put(b("x"), b("y"));
                throw new IOException("undo");
            }));
            assertThrows(ZubiloException.NoSuchTable.class, () -> lost[0].get(b("x")));
            assertEquals("outer=1", text(t.all()));
            assertEquals("yes", txn.nested(level -> {
                level.table("t").put(b("inner"), b("2"));
                return "yes";
            }));
            assertEquals("inner=2 outer=1", text(t.all()));
            txn.renameTable("t", "u");
            assertThrows(ZubiloException.NoSuchTable.class, () -> txn.table("t"));
            assertThrows(ZubiloException.TableExists.class,
                    () -> txn.createTable("u", TableOptions.defaults()));
            txn.commit();
        }
        try (ReadTxn txn = env.read()) {
            assertEquals(4, txn.table("u").sequence());
            assertEquals(2, txn.table("u").stats().entries());
            assertThrows(ZubiloException.Incompatible.class,
                    () -> txn.table("u", TableOptions.defaults().counted()));
        }
        env.update(txn -> {
            txn.dropTable("u");
            return null;
        });
        try (ReadTxn txn = env.read()) {
            assertFalse(txn.hasTable("u"));
        }
    }

    @Test
    void cursorsSeekAndDelete() {
        fill("t", TableOptions.defaults(), "a=1", "c=3", "e=5");
        try (WriteTxn txn = env.write()) {
            Cursor cursor = txn.table("t").cursor();
            assertEquals("c", cursor.seek(b("b")).key().utf8());
            assertEquals("a", cursor.seekBack(b("b")).key().utf8());
            assertNull(cursor.seek(b("f")));
            assertNull(cursor.next());
            assertEquals("e", cursor.previous().key().utf8());
            assertNull(cursor.seekExact(b("d")));
            assertEquals("a", cursor.next().key().utf8());
            assertEquals("c", cursor.seekExact(b("c")).key().utf8());
            assertTrue(cursor.delete());
            assertFalse(cursor.delete());
            assertEquals("e", cursor.next().key().utf8());
            assertNull(cursor.next());
            assertEquals("a", cursor.previous().key().utf8());
            assertNull(cursor.previous());
            assertEquals("a", cursor.current().key().utf8());
        }
        try (ReadTxn txn = env.read()) {
            Cursor cursor = txn.table("t").cursor();
            assertThrows(ZubiloException.ReadOnly.class, cursor::delete);
        }
    }

    @Test
    void iteratorsFollowChanges() {
        try (WriteTxn txn = env.write()) {
            WriteTable t = txn.tableOrCreate("t");
            for (int i = 0; i < 100; i++) {
                t.put(b(String.format("%03d", i)), b("x"));
            }
            List<String> seen = new ArrayList<>();
            for (KeyValue record : t.all()) {
                String key = record.key().utf8();
                seen.add(key);
                t.delete(record.key().toByteArray());
                if (key.equals("050")) {
                    t.deleteRange(Range.between(b("060"), b("099")));
                    t.put(b("055x"), b("y"));
                }
            }
            assertTrue(t.isEmpty());
            assertEquals(62, seen.size());
            assertTrue(seen.contains("055x"));
        }
    }

    @Test
    void otherOrders() {
        fill("r", TableOptions.defaults().keyOrder(KeyOrder.REVERSED), "ab=1", "ba=2", "ca=3", "b=4");
        try (ReadTxn txn = env.read()) {
            assertEquals("ba=2 ca=3 b=4 ab=1", text(txn.table("r").all()));
            assertEquals("ba=2 ca=3", text(txn.table("r").prefix(b("a"))));
            assertEquals("ca=3 ba=2", text(txn.table("r").range(Range.prefix(b("a"), KeyOrder.REVERSED).reversed())));
        }
        TableType<Long, String> numbers = TableType.table("n", Codec.NATIVE_U64, Codec.UTF8);
        env.update(txn -> {
            TypedWriteTable<Long, String> n = numbers.open(txn);
            for (long i : new long[] {300, 2, 70000, -1}) {
                n.put(i, "v" + i);
            }
            return null;
        });
        try (ReadTxn txn = env.read()) {
            assertEquals(List.of(2L, 300L, 70000L, -1L),
                    numbers.open(txn).all().stream().map(Map.Entry::getKey).collect(Collectors.toList()));
            assertEquals(70000L, numbers.open(txn).asMap().higherKey(300L));
            assertThrows(ZubiloException.Invalid.class, () -> txn.table("n").prefix(b("a")));
        }
    }

    @Test
    void copiesChecksAndCompaction() throws IOException {
        env.update(txn -> {
            WriteTable t = txn.tableOrCreate("t");
            for (int i = 0; i < 5000; i++) {
                t.put(b("key" + i), new byte[200]);
            }
            return null;
        });
        env.update(txn -> txn.table("t").deleteRange(Range.between(b("key1"), b("key4"))));
        CheckReport report = env.check();
        assertTrue(report.isOk(), report.toString());
        assertEquals(1, report.tables());
        Path copy = dir.resolve("copy");
        env.copyTo(copy, true);
        assertThrows(ZubiloException.Io.class, () -> env.copyTo(copy, false));
        try (Env other = Env.open(copy); ReadTxn txn = other.read()) {
            assertEquals(report.entries(), txn.table("t").size());
            assertTrue(other.check().isOk());
        }
        CompactReport gained = env.compact();
        assertTrue(gained.usedAfter() <= gained.usedBefore(), gained.toString());
        assertTrue(gained.finished());
        env.sync();
        assertEquals(env.info().newest(), env.info().steady());
        assertEquals(4096, env.pageSize());
        assertTrue(env.maxKeyLength() > 500);
        try (ReadTxn txn = env.read()) {
            assertEquals(1, env.readers().size());
            assertEquals(txn.id(), env.readers().get(0).snapshot());
            assertEquals(ProcessHandle.current().pid(), env.readers().get(0).process());
        }
        assertEquals(0, env.cleanReaders());
        env.close();
        assertTrue(Files.size(dir.resolve("store")) > 0);
        // Flip a byte in the midst of the file: the check names the page.
        byte[] bytes = Files.readAllBytes(copy);
        bytes[5 * 4096 + 100] ^= 1;
        Files.write(dir.resolve("damaged"), bytes);
        try (Env damaged = Env.open(dir.resolve("damaged"))) {
            CheckReport found = damaged.check();
            assertFalse(found.isOk());
            assertEquals(found.problemCount(), found.problems().size());
            assertTrue(found.problems().get(0).startsWith("page "), found.problems().toString());
        }
    }

    @Test
    void optionsReachTheStore() {
        Path path = dir.resolve("other");
        Options options = new Options().pageSize(16384).durability(Durability.LAZY).maxReaders(7)
                .reserve(1L << 30).geometry(1 << 20, 64 << 20, 1 << 20, 0).dirtyLimit(32 << 20).mode(0600)
                .verifyReads(Options.VerifyReads.FIRST_TOUCH).readAhead(false).writableMap(false);
        try (Env other = Env.open(path, options)) {
            Dirs.put(other, "t", "k", "v");
            EnvInfo info = other.info();
            assertEquals(16384, info.pageSize());
            assertEquals(7, info.maxReaders());
            assertEquals(1L << 30, info.reserved());
            assertTrue(info.fileLength() >= 1 << 20);
            assertThrows(ZubiloException.Full.class, () -> other.update(txn -> {
                WriteTable t = txn.table("t");
                for (int i = 0; i < 100; i++) {
                    t.put(b("k" + i), new byte[1 << 20]);
                }
                return null;
            }));
            try (ReadTxn txn = other.read()) {
                assertEquals("v", s(txn.table("t").get(b("k"))));
            }
        }
        try (Env other = Env.open(path, new Options().readOnly(true).create(false))) {
            assertThrows(ZubiloException.ReadOnly.class, other::write);
            assertThrows(ZubiloException.ReadOnly.class, () -> other.update(txn -> 1));
            try (ReadTxn txn = other.read()) {
                assertEquals("v", s(txn.table("t").get(b("k"))));
            }
        }
    }

    @Test
    void exceptionsByKind() throws IOException {
        assertThrows(ZubiloException.Io.class,
                () -> Env.open(dir.resolve("missing"), new Options().create(false)));
        Files.write(dir.resolve("text"), "no store ".repeat(2000).getBytes());
        assertThrows(ZubiloException.NotAStore.class, () -> Env.open(dir.resolve("text")));
        assertThrows(ZubiloException.class, () -> Env.open(dir.resolve("x"), new Options().pageSize(5000)));
        try (WriteTxn txn = env.write()) {
            WriteTable t = txn.tableOrCreate("t");
            ZubiloException.TooLong e = assertThrows(ZubiloException.TooLong.class, () -> t.put(new byte[5000], b("")));
            assertEquals(5000, e.length());
            assertEquals(env.maxKeyLength(), e.limit());
            assertThrows(ZubiloException.Busy.class, env::write);
            assertTrue(env.tryWrite().isEmpty());
        }
        try (ReadTxn txn = env.read()) {
            assertThrows(ZubiloException.NoSuchTable.class, () -> txn.table("nothing"));
        }
        ZubiloException.Io io = assertThrows(ZubiloException.Io.class, () -> Env.open(dir.resolve("no/such/folder")));
        assertEquals(2, io.errno());
        assertNotNull(io.getMessage());
    }
}
