package zubilo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static zubilo.Dirs.b;
import static zubilo.Dirs.s;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Durable commits in a redo log. The log itself is tested in Rust. */
class RedoLogTest {
    private static final int COMMITS = 50;
    /** In pages, until no meta is left that names no log. */
    private static final int FIRST = 5;

    private Path dir;
    private Path path;

    @BeforeEach
    void make() {
        dir = Dirs.fresh();
        path = dir.resolve("store");
    }

    @AfterEach
    void remove() {
        Dirs.remove(dir);
    }

    private static Options logged() {
        return new Options().redoLog(64 << 10);
    }

    /** What the power being cut now would leave at least: metas that were not flushed are gone. */
    private Path cut(String name) throws IOException {
        byte[] bytes = Files.readAllBytes(path);
        byte[] magic = "ZUBILO".getBytes(StandardCharsets.US_ASCII);
        for (int at = 0; at < 4 * 4096; at += 4096) {
            if (Arrays.equals(bytes, at + 8, at + 14, magic, 0, 6) && bytes[at + 21] == 0) {
                Arrays.fill(bytes, at, at + 4096, (byte) 0);
            }
        }
        return Files.write(dir.resolve(name), bytes);
    }

    private static void commits(Env env, String name, int count) {
        for (int i = 0; i < count; i++) {
            Dirs.put(env, "t", name + i, "value " + i);
        }
    }

    private static void expect(Env env, String name, int count) {
        try (ReadTxn txn = env.read()) {
            for (int i = 0; i < count; i++) {
                assertEquals("value " + i, s(txn.table("t").get(b(name + i))));
            }
        }
    }

    @Test
    void commitsNeedNoFlushesAndOutliveAPowerCut() throws IOException {
        Path cut;
        try (Env env = Env.open(path, logged())) {
            commits(env, "first", FIRST);
            Map<String, Long> before = env.counters();
            commits(env, "k", COMMITS);
            Map<String, Long> after = env.counters();
            assertEquals(COMMITS, after.get("commits") - before.get("commits"));
            assertTrue(after.get("flushes") - before.get("flushes") < COMMITS, after.toString());
            assertTrue(env.check().redoLogPages() > 0);
            cut = cut("cut");
        }
        try (Env env = Env.open(cut, new Options())) {
            expect(env, "k", COMMITS);
            assertTrue(env.check().isOk());
        }
        try (Env env = Env.open(cut, new Options().readOnly(true).create(false))) {
            expect(env, "k", COMMITS);
        }
    }

    @Test
    void theLogIsKeptUntilItIsGivenBack() {
        try (Env env = Env.open(path)) {
            commits(env, "old", 10);
            assertEquals(0, env.check().redoLogPages());
        }
        try (Env env = Env.open(path, logged())) {
            commits(env, "logged", 10);
            assertTrue(env.check().redoLogPages() > 0);
        }
        try (Env env = Env.open(path)) {
            commits(env, "unsaid", 10);
            assertTrue(env.check().redoLogPages() > 0);
        }
        try (Env env = Env.open(path, new Options().redoLog(0))) {
            commits(env, "without", 10);
            assertEquals(0, env.check().redoLogPages());
            for (String name : new String[] {"old", "logged", "unsaid", "without"}) {
                expect(env, name, 10);
            }
        }
    }

    @Test
    void withoutTheLogEachCommitIsFlushed() {
        try (Env env = Env.open(path)) {
            commits(env, "first", FIRST);
            Map<String, Long> before = env.counters();
            commits(env, "k", COMMITS);
            assertTrue(env.counters().get("flushes") - before.get("flushes") >= COMMITS);
        }
    }

    @Test
    void noNegativeLength() {
        assertThrows(IllegalArgumentException.class, () -> new Options().redoLog(-1));
    }
}
