package zubilo.cassandra;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Writes that were acknowledged: a line of output for each, and whether all that the lines say is there. */
final class Kept {
    private Kept() {}

    /** 1.5 KB that say whose they are. */
    static ByteBuffer value(int key, long version) {
        byte[] bytes = new byte[1500];
        new Random(key * 1_000_003L + version).nextBytes(bytes);
        return ByteBuffer.wrap(bytes);
    }

    static void acknowledged(int key, long version) {
        System.out.println("kept " + key + " " + version);
    }

    /** What a table holds for a key. */
    record Found(long version, ByteBuffer value) {}

    /** Reads a key; null if nothing is there. */
    interface Reader {
        Found read(int key);
    }

    /**
     * Fails unless each key has the value of its last acknowledged version or of a later one. A write that was not
     * acknowledged may have been done.
     */
    static void check(Path file, Reader table) throws IOException {
        Map<Integer, Long> acknowledged = new HashMap<>();
        String text = Files.readString(file);
        // The last line may have been cut off.
        text.substring(0, text.lastIndexOf('\n') + 1).lines().filter(line -> line.matches("kept \\d+ \\d+")).forEach(line -> {
            String[] words = line.split(" ");
            acknowledged.merge(Integer.parseInt(words[1]), Long.parseLong(words[2]), Math::max);
        });
        int lost = 0;
        int wrong = 0;
        for (Map.Entry<Integer, Long> entry : acknowledged.entrySet()) {
            Found found = table.read(entry.getKey());
            if (found == null || found.version < entry.getValue()) {
                lost++;
            } else if (!found.value.equals(value(entry.getKey(), found.version))) {
                wrong++;
            }
        }
        System.out.println("of " + acknowledged.size() + " acknowledged keys " + lost + " are lost, " + wrong + " are wrong");
        if (lost + wrong > 0 || acknowledged.isEmpty()) {
            throw new AssertionError("acknowledged writes are lost or wrong");
        }
    }
}
