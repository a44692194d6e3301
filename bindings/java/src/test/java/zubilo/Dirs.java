package zubilo;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** Folders of tests, and what all of them need. */
final class Dirs {
    private Dirs() {}

    static Path fresh() {
        try {
            return Files.createTempDirectory("zubilo-test");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void remove(Path dir) {
        try (Stream<Path> all = Files.walk(dir)) {
            all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Commits that need no disk: most tests are not about durability. */
    static Options fast() {
        return new Options().durability(Durability.NO_SYNC);
    }

    static byte[] b(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String s(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** What a test tried in vain. */
    static void put(Env env, String table, String key, String value) {
        env.update(txn -> {
            txn.tableOrCreate(table).put(b(key), b(value));
            return null;
        });
    }
}
