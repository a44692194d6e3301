package zubilo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

/** Random programs, compared with Java's own maps. */
class ModelTest {
    private static final TableType<String, Long> MAP = TableType.table("map", Codec.UTF8, Codec.I64);
    private static final TableType<String, Integer> MANY = TableType.multimap("many", Codec.UTF8, Codec.I32);
    private static Path dir;
    private static Env env;

    @BeforeContainer
    static void open() {
        dir = Dirs.fresh();
        env = Env.open(dir.resolve("store"), Dirs.fast());
    }

    @AfterContainer
    static void close() {
        assertTrue(env.check().isOk());
        env.close();
        Dirs.remove(dir);
    }

    /** A step: what, a key, another key, a number. */
    record Step(int op, String key, String other, long number, boolean yes, boolean no) {}

    @Provide
    Arbitrary<List<Step>> steps() {
        // Few keys, so that they meet; with what is sorted in unusual ways.
        Arbitrary<String> keys = Arbitraries.of("", "a", "aa", "ab", "b", "ba", "\u0000", "z\u0000", "\uffff", "\ud83d\ude00", "k1",
                "k2", "k3", "k4", "k5", "k6", "k7");
        return Combinators.combine(Arbitraries.integers().between(0, 24), keys, keys, Arbitraries.longs(),
                Arbitraries.of(true, false), Arbitraries.of(true, false)).as(Step::new).list().ofMaxSize(60);
    }

    private static <K, V> List<Map.Entry<K, V>> list(Iterable<Map.Entry<K, V>> entries) {
        List<Map.Entry<K, V>> all = new ArrayList<>();
        entries.forEach(e -> all.add(new AbstractMap.SimpleImmutableEntry<>(e.getKey(), e.getValue())));
        return all;
    }

    private static void same(NavigableMap<String, Long> model, NavigableMap<String, Long> map) {
        assertEquals(list(model.entrySet()), list(map.entrySet()));
        assertEquals(list(model.descendingMap().entrySet()), list(map.descendingMap().entrySet()));
        assertEquals(model.size(), map.size());
        assertEquals(model.isEmpty(), map.isEmpty());
        assertEquals(model, map);
        assertEquals(model.hashCode(), map.hashCode());
        assertEquals(new ArrayList<>(model.keySet()), new ArrayList<>(map.navigableKeySet()));
        assertEquals(new ArrayList<>(model.values()), new ArrayList<>(map.values()));
    }

    @Property(tries = 300)
    void aTableIsATreeMap(@ForAll("steps") List<Step> steps) {
        TreeMap<String, Long> model = new TreeMap<>(Codec.UTF8.comparator());
        env.update(txn -> MAP.drop(txn));
        WriteTxn txn = env.write();
        try {
            NavigableMap<String, Long> map = MAP.open(txn).asMap();
            for (Step step : steps) {
                if (step.op == 23) {
                    txn.commit();
                    try (ReadTxn read = env.read()) {
                        same(model, MAP.open(read).asMap());
                        NavigableMap<String, Long> fixed = MAP.open(read).asMap();
                        assertThrows(UnsupportedOperationException.class, () -> fixed.put("x", 1L));
                    }
                    txn = env.write();
                    map = MAP.open(txn).asMap();
                } else {
                    step(step, model, map);
                }
            }
            same(model, map);
        } finally {
            txn.close();
        }
    }

    private static void step(Step s, NavigableMap<String, Long> model, NavigableMap<String, Long> map) {
        switch (s.op) {
            case 0: case 1: case 2: case 3: case 4: case 5:
                assertEquals(model.put(s.key, s.number), map.put(s.key, s.number));
                break;
            case 6: case 7: assertEquals(model.remove(s.key), map.remove(s.key)); break;
            case 8: assertEquals(model.get(s.key), map.get(s.key)); break;
            case 9: assertEquals(model.containsKey(s.key), map.containsKey(s.key)); break;
            case 10: assertEquals(model.floorEntry(s.key), map.floorEntry(s.key)); break;
            case 11: assertEquals(model.ceilingEntry(s.key), map.ceilingEntry(s.key)); break;
            case 12: assertEquals(model.lowerEntry(s.key), map.lowerEntry(s.key)); break;
            case 13: assertEquals(model.higherEntry(s.key), map.higherEntry(s.key)); break;
            case 14: assertEquals(model.firstEntry(), map.firstEntry()); break;
            case 15: assertEquals(model.lastEntry(), map.lastEntry()); break;
            case 16: assertEquals(model.pollFirstEntry(), map.pollFirstEntry()); break;
            case 17: part(s, model.headMap(s.key, s.yes), map.headMap(s.key, s.yes)); break;
            case 18: part(s, model.tailMap(s.key, s.yes), map.tailMap(s.key, s.yes)); break;
            case 19:
                boolean inOrder = Codec.UTF8.comparator().compare(s.key, s.other) <= 0;
                String from = inOrder ? s.key : s.other;
                String to = inOrder ? s.other : s.key;
                part(s, model.subMap(from, s.yes, to, s.no), map.subMap(from, s.yes, to, s.no));
                if (!inOrder) {
                    assertThrows(IllegalArgumentException.class, () -> map.subMap(s.key, s.other));
                }
                break;
            case 20: part(s, model.descendingMap().tailMap(s.key, s.yes), map.descendingMap().tailMap(s.key, s.yes)); break;
            case 21:
                model.entrySet().removeIf(e -> e.getValue() % 3 == 0);
                map.entrySet().removeIf(e -> e.getValue() % 3 == 0);
                break;
            case 22:
                for (Iterator<Map.Entry<String, Long>> i = map.entrySet().iterator(); i.hasNext();) {
                    i.next().setValue(s.number);
                }
                model.replaceAll((k, v) -> s.number);
                break;
            default:
                if (s.yes && s.no) {
                    model.clear();
                    map.clear();
                }
        }
    }

    private static void part(Step s, NavigableMap<String, Long> model, NavigableMap<String, Long> map) {
        same(model, map);
        for (String key : List.of(s.other, "aa", "k3", "\uffff")) {
            assertEquals(model.floorEntry(key), map.floorEntry(key));
            assertEquals(model.higherKey(key), map.higherKey(key));
            assertEquals(model.ceilingKey(key), map.ceilingKey(key));
            assertEquals(model.lowerKey(key), map.lowerKey(key));
            assertEquals(model.get(key), map.get(key));
            boolean inside = true;
            try {
                model.put(key, s.number);
            } catch (IllegalArgumentException e) {
                inside = false;
                assertThrows(IllegalArgumentException.class, () -> map.put(key, s.number));
            }
            if (inside) {
                map.put(key, s.number);
            }
        }
        if (s.no) {
            model.clear();
            map.clear();
        }
    }

    @Property(tries = 200)
    void aMultimapIsATreeOfSets(@ForAll("steps") List<Step> steps) {
        TreeMap<String, TreeSet<Integer>> model = new TreeMap<>(Codec.UTF8.comparator());
        env.update(txn -> MANY.drop(txn));
        try (WriteTxn txn = env.write()) {
            TypedWriteTable<String, Integer> table = MANY.open(txn);
            for (Step s : steps) {
                int value = (int) (s.number % 5);
                TreeSet<Integer> values = model.getOrDefault(s.key, new TreeSet<>());
                if (s.op < 14) {
                    assertEquals(values.add(value), table.insertValue(s.key, value));
                    model.put(s.key, values);
                } else if (s.op < 19) {
                    assertEquals(values.remove(value), table.deleteValue(s.key, value));
                    if (values.isEmpty()) {
                        model.remove(s.key);
                    }
                } else if (s.op < 21) {
                    assertEquals(model.remove(s.key) != null, table.delete(s.key));
                } else {
                    assertEquals(values.size(), table.count(s.key));
                    assertEquals(values.contains(value), table.contains(s.key, value));
                    assertEquals(new ArrayList<>(values), table.values(s.key).stream().toList());
                    assertEquals(values.isEmpty() ? null : values.first(), table.get(s.key));
                }
            }
            List<Map.Entry<String, Integer>> all = new ArrayList<>();
            model.forEach((k, vs) -> vs.forEach(v -> all.add(Map.entry(k, v))));
            assertEquals(all, list(table.all()));
            Collections.reverse(all);
            assertEquals(all, list(table.range(Range.all().reversed())));
            walk(table.bytes(), all);
        }
    }

    /** A cursor there and back again, with turns in the midst. */
    private static void walk(Table table, List<Map.Entry<String, Integer>> backwards) {
        Cursor cursor = table.cursor();
        int n = backwards.size();
        for (int i = 0; i < n; i++) {
            assertEquals(backwards.get(n - 1 - i).getKey(), cursor.next().key().utf8());
            if (i % 3 == 2) {
                assertEquals(backwards.get(n - i).getKey(), cursor.previous().key().utf8());
                assertEquals(backwards.get(n - 1 - i).getKey(), cursor.next().key().utf8());
            }
        }
        assertNull(cursor.next());
    }

    // ---- orders and encodings ----

    private static <T> void sortsLike(Codec<T> codec, T a, T b) {
        byte[] x = codec.encode(a);
        byte[] y = codec.encode(b);
        assertEquals(Integer.signum(codec.comparator().compare(a, b)), Integer.signum(Arrays.compareUnsigned(x, y)));
        T back = codec.decode(Bytes.of(x));
        assertEquals(0, codec.comparator().compare(a, back));
    }

    @Property(tries = 300)
    void numbersSort(@ForAll long a, @ForAll long b, @ForAll double x, @ForAll double y) {
        sortsLike(Codec.I64, a, b);
        sortsLike(Codec.U64, a, b);
        sortsLike(Codec.I32, (int) a, (int) b);
        sortsLike(Codec.I16, (short) a, (short) b);
        sortsLike(Codec.I8, (byte) a, (byte) b);
        sortsLike(Codec.U8, (int) a & 0xff, (int) b & 0xff);
        sortsLike(Codec.U16, (int) a & 0xffff, (int) b & 0xffff);
        sortsLike(Codec.U32, a & 0xffff_ffffL, b & 0xffff_ffffL);
        sortsLike(Codec.F64, x, y);
        sortsLike(Codec.F32, (float) x, (float) y);
        sortsLike(Codec.F64, Double.longBitsToDouble(a), Double.longBitsToDouble(b));
        assertEquals(Integer.signum(Double.compare(x, y)), Integer.signum(Codec.F64.comparator().compare(x, y)));
    }

    @Provide
    Arbitrary<String> texts() {
        return Arbitraries.strings().withChars("ab\u0000\u0001\u00ff\uffff\u4e2d").ofMaxLength(4);
    }

    @Property(tries = 500)
    void compoundsSort(@ForAll("texts") String a, @ForAll("texts") String b, @ForAll("texts") String c,
            @ForAll("texts") String d, @ForAll int m, @ForAll int n) {
        sortsLike(Codec.UTF8, a, b);
        sortsLike(Codec.tuple(Codec.UTF8, Codec.UTF8), new Codec.Tuple2<>(a, b), new Codec.Tuple2<>(c, d));
        sortsLike(Codec.tuple(Codec.UTF8, Codec.I32, Codec.UTF8), new Codec.Tuple3<>(a, m % 2, b),
                new Codec.Tuple3<>(c, n % 2, d));
        Codec<Codec.Tuple2<Codec.Tuple2<String, byte[]>, Optional<String>>> nested =
                Codec.tuple(Codec.tuple(Codec.UTF8, Codec.BYTES), Codec.optional(Codec.UTF8));
        sortsLike(nested, new Codec.Tuple2<>(new Codec.Tuple2<>(a, Dirs.b(b)), Optional.of(c)),
                new Codec.Tuple2<>(new Codec.Tuple2<>(a, Dirs.b(d)), m % 2 == 0 ? Optional.of(b) : Optional.empty()));
        Comparator<Bytes> order = Comparator.naturalOrder();
        assertEquals(Integer.signum(Codec.UTF8.comparator().compare(a, b)),
                Integer.signum(order.compare(Bytes.utf8(a), Bytes.utf8(b))));
    }

    @Property(tries = 500)
    void foreignBytesAreRefusedOrRead(@ForAll byte[] bytes) {
        for (Codec<?> codec : List.of(Codec.UTF8, Codec.I64, Codec.BOOL, Codec.CHAR, Codec.optional(Codec.I8),
                Codec.tuple(Codec.UTF8, Codec.UTF8), Codec.tuple(Codec.BYTES, Codec.optional(Codec.BOOL), Codec.F32))) {
            roundTrip(codec, bytes);
        }
    }

    private static <T> void roundTrip(Codec<T> codec, byte[] bytes) {
        T value;
        try {
            value = codec.decode(Bytes.of(bytes));
        } catch (ZubiloException.Decode e) {
            return;
        }
        assertEquals(Bytes.of(bytes), Bytes.of(codec.encode(value)));
    }
}
