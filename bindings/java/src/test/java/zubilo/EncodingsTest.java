package zubilo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The encodings are those of zubilo-typed: one file of examples for both, and stores that both use. */
class EncodingsTest {
    private static final TableType<Codec.Tuple2<String, String>, Long> CITIES =
            TableType.table("cities", Codec.tuple(Codec.UTF8, Codec.UTF8), Codec.I64).counted();
    private static final TableType<String, Long> TAGS = TableType.multimap("tags", Codec.UTF8, Codec.U32);

    private static <T> void check(String tag, Codec<T> codec, T value, String hex) {
        assertEquals(tag, codec.tag());
        assertEquals(hex, HexFormat.of().formatHex(codec.encode(value)), tag + " " + value);
        T back = codec.decode(Bytes.of(HexFormat.of().parseHex(hex)));
        assertEquals(hex, HexFormat.of().formatHex(codec.encode(back)));
    }

    @Test
    void theExamples() throws Exception {
        int count = 0;
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(
                EncodingsTest.class.getResourceAsStream("encodings.txt"), StandardCharsets.UTF_8))) {
            for (String line : lines.lines().filter(l -> !l.startsWith("#")).collect(Collectors.toList())) {
                String[] fields = line.split("\t");
                example(fields[0], fields[1].replace('\u2400', '\u0000'), fields[2]);
                count++;
            }
        }
        assertTrue(count > 20);
    }

    private static void example(String tag, String v, String hex) {
        String[] p = v.split("\\|");
        HexFormat f = HexFormat.of();
        switch (tag) {
            case "i8": check(tag, Codec.I8, Byte.valueOf(v), hex); break;
            case "i16": check(tag, Codec.I16, Short.valueOf(v), hex); break;
            case "i32": check(tag, Codec.I32, Integer.valueOf(v), hex); break;
            case "i64": check(tag, Codec.I64, Long.valueOf(v), hex); break;
            case "u8": check(tag, Codec.U8, Integer.valueOf(v), hex); break;
            case "u16": check(tag, Codec.U16, Integer.valueOf(v), hex); break;
            case "u32": check(tag, Codec.U32, Long.valueOf(v), hex); break;
            case "u64": check(tag, Codec.U64, Long.parseUnsignedLong(v), hex); break;
            case "f32": check(tag, Codec.F32, Float.valueOf(v), hex); break;
            case "f64":
                check(tag, Codec.F64, v.equals("inf") ? Double.POSITIVE_INFINITY : Double.valueOf(v), hex);
                break;
            case "bool": check(tag, Codec.BOOL, Boolean.valueOf(v), hex); break;
            case "char": check(tag, Codec.CHAR, Integer.valueOf(v), hex); break;
            case "str": check(tag, Codec.UTF8, v, hex); break;
            case "bytes": check(tag, Codec.BYTES, f.parseHex(v), hex); break;
            case "option<i8>":
                check(tag, Codec.optional(Codec.I8), v.equals("none") ? Optional.empty() : Optional.of(Byte.valueOf(v)), hex);
                break;
            case "(str,u32)":
                check(tag, Codec.tuple(Codec.UTF8, Codec.U32), new Codec.Tuple2<>(p[0], Long.valueOf(p[1])), hex);
                break;
            case "(str,str)":
                check(tag, Codec.tuple(Codec.UTF8, Codec.UTF8), new Codec.Tuple2<>(p[0], p[1]), hex);
                break;
            case "(bytes,option<str>,i8)":
                check(tag, Codec.tuple(Codec.BYTES, Codec.optional(Codec.UTF8), Codec.I8),
                        new Codec.Tuple3<>(f.parseHex(p[0]), Optional.of(p[1]), Byte.valueOf(p[2])), hex);
                break;
            case "native-u32": check(tag, Codec.NATIVE_U32, Long.valueOf(v), hex); break;
            case "native-u64": check(tag, Codec.NATIVE_U64, Long.valueOf(v), hex); break;
            default: throw new AssertionError("no codec for " + tag);
        }
    }

    @Test
    void valuesWithoutAnEncoding() {
        assertThrows(IllegalArgumentException.class, () -> Codec.U8.encode(256));
        assertThrows(IllegalArgumentException.class, () -> Codec.U32.encode(-1L));
        assertThrows(IllegalArgumentException.class, () -> Codec.CHAR.encode(0xd800));
        assertThrows(IllegalArgumentException.class, () -> Codec.UTF8.encode("\ud800"));
        assertThrows(ZubiloException.Invalid.class, () -> Codec.tuple(Codec.NATIVE_U32, Codec.UTF8));
        Codec<String> own = Codec.value("mine", s -> s.getBytes(StandardCharsets.UTF_8), Bytes::utf8);
        assertEquals("x", own.decode(Bytes.of(own.encode("x"))));
        assertThrows(ZubiloException.Invalid.class, () -> TableType.table("t", own, Codec.UTF8));
        assertEquals("table<str, mine> 2", TableType.table("t", Codec.UTF8, own).version("2").types());
    }

    @Test
    void otherTypesAreRefused() {
        Path dir = Dirs.fresh();
        try (Env env = Env.open(dir.resolve("store"), Dirs.fast())) {
            env.update(txn -> {
                CITIES.open(txn).put(new Codec.Tuple2<>("fr", "Lyon"), 1L);
                return null;
            });
            TableType<String, Long> other = TableType.table("cities", Codec.UTF8, Codec.I64);
            assertThrows(ZubiloException.Types.class, () -> env.update(other::open));
            assertThrows(ZubiloException.Types.class, () -> env.update(txn -> CITIES.version("2").open(txn)));
            Dirs.put(env, "bare", "k", "v");
            TableType<String, String> bare = TableType.table("bare", Codec.UTF8, Codec.UTF8);
            try (ReadTxn txn = env.read()) {
                assertThrows(ZubiloException.Types.class, () -> bare.open(txn));
                assertThrows(ZubiloException.NoSuchTable.class, () -> TAGS.open(txn));
                assertThrows(ZubiloException.Invalid.class, () -> env.update(w -> TAGS.open(w).asMap()));
            }
            env.update(txn -> {
                bare.adopt(txn);
                return null;
            });
            try (ReadTxn txn = env.read()) {
                assertEquals("v", bare.open(txn).get("k"));
                assertEquals(1, CITIES.open(txn).rank(new Codec.Tuple2<>("x", "")));
            }
        } finally {
            Dirs.remove(dir);
        }
    }

    /** The test of the native library makes one store for us and reads another; {@code test.sh} runs all three. */
    @Test
    void storesSharedWithRust() {
        String folder = System.getenv("ZUBILO_SHARED_FOLDER");
        if (folder == null) {
            System.out.println("storesSharedWithRust: not asked for; test.sh sets ZUBILO_SHARED_FOLDER");
            return;
        }
        try (Env env = Env.open(Path.of(folder, "from-rust"), new Options().create(false)); ReadTxn txn = env.read()) {
            assertEquals(522_250, CITIES.open(txn).get(new Codec.Tuple2<>("fr", "Lyon")));
            assertEquals(-1, CITIES.open(txn).nth(0).getValue());
            assertEquals(List.of(10L, 20L, 30L), TAGS.open(txn).values("rust").stream().collect(Collectors.toList()));
        }
        try (Env env = Env.open(Path.of(folder, "from-java"))) {
            env.update(txn -> {
                TypedWriteTable<Codec.Tuple2<String, String>, Long> cities = CITIES.open(txn);
                cities.put(new Codec.Tuple2<>("fr", "Lyon"), 522_250L);
                cities.put(new Codec.Tuple2<>("at", "Graz"), -1L);
                TypedWriteTable<String, Long> tags = TAGS.open(txn);
                for (long tag : new long[] {4_000_000_000L, 1, 2}) {
                    tags.insertValue("java", tag);
                }
                return null;
            });
        }
    }
}
