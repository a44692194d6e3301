package zubilo.cassandra;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;

import zubilo.Durability;
import zubilo.Env;
import zubilo.Options;
import zubilo.ReadTxn;

/**
 * The store of a node: one file for all tables of a configuration, open until the process ends. It knows which
 * generations of each table there are.
 *
 * <p>A table begins a new generation where Cassandra switches its memtable, while the old one is still read. More than
 * one generation at the first opening means that the process ended in between; the older ones are merged into the
 * newest, as nobody knows whether they had been flushed.
 */
final class Store {
    private static final Logger LOGGER = LoggerFactory.getLogger(Store.class);
    private static final Map<Path, Store> OPEN = new HashMap<>();

    /**
     * How a store is opened.
     *
     * @param redoLog greatest length of the redo log in bytes; 0 for none
     */
    record Settings(Path folder, Durability durability, int pageSize, long redoLog) {
        Settings normalized() {
            return new Settings(folder.toAbsolutePath().normalize(), durability, pageSize, redoLog);
        }

        private Options options() {
            // Nobody else may change the tables of a running node.
            return new Options().durability(durability).pageSize(pageSize).redoLog(redoLog).exclusive(true).maxReaders(4096);
        }
    }

    final Env env;
    private final Settings settings;
    private final Map<String, Long> newest = new HashMap<>();

    private Store(Settings settings) {
        this.settings = settings;
        try {
            Files.createDirectories(settings.folder);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        env = Env.open(settings.folder.resolve("node.zubilo"), settings.options());
    }

    /** The store of these settings; opened at the first call. */
    static Store open(Settings settings) {
        Settings wanted = settings.normalized();
        synchronized (OPEN) {
            Store store = OPEN.computeIfAbsent(wanted.folder, folder -> new Store(wanted));
            if (!store.settings.equals(wanted)) {
                throw new IllegalStateException("two memtable configurations open " + wanted.folder + " with other settings; give each its own dir");
            }
            return store;
        }
    }

    /** The generation for a new memtable of a table: what is stored, or a new one beside that of a live memtable. */
    synchronized Generation generation(TableMetadataRef metadata) {
        String name = name(metadata.get());
        Long live = newest.get(name);
        if (live != null) {
            newest.put(name, live + 1);
            return make(metadata, name, live + 1);
        }
        TreeSet<Long> stored = stored(name);
        long number = stored.isEmpty() ? 1 : stored.pollLast();
        newest.put(name, number);
        Generation generation = make(metadata, name, number);
        for (long old : stored) {
            LOGGER.info("{} was switched when the node stopped; merging generation {} into {}", metadata.get(), old, number);
            generation.absorb(make(metadata, name, old));
        }
        return generation;
    }

    private Generation make(TableMetadataRef metadata, String name, long number) {
        return new Generation(env, name + number, number, metadata);
    }

    /** Index tables have their base table's id. */
    private static String name(TableMetadata table) {
        return table.keyspace + "." + table.name + "-" + table.id.toHexString() + "/";
    }

    private TreeSet<Long> stored(String name) {
        TreeSet<Long> numbers = new TreeSet<>();
        try (ReadTxn txn = env.read()) {
            for (String table : txn.tables()) {
                if (table.startsWith(name)) {
                    numbers.add(Long.parseLong(table.substring(name.length(), table.indexOf('/', name.length()))));
                }
            }
        }
        return numbers;
    }
}
