package zubilo.cassandra;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.PartitionRangeReadCommand;
import org.apache.cassandra.db.ReadCommand;
import org.apache.cassandra.db.ReadExecutionController;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.db.rows.UnfilteredRowIterators;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.concurrent.Refs;

import zubilo.Env;
import zubilo.ReadTxn;

/** What operators and changes of the schema do to a table; the clean-up of tombstones. */
public final class Operations {
    private static final String KEYSPACE = "operated";
    private int checks;

    private Operations() {}

    public static void main(String[] arguments) {
        Program.main(() -> {
            Node.start();
            Operations tests = new Operations();
            execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            create("anchor", "");
            tests.parameters();
            tests.truncate(true);
            tests.truncate(false);
            tests.truncateBesideAReader(true);
            tests.truncateBesideAReader(false);
            tests.drop();
            tests.snapshot();
            tests.index();
            tests.indexOnOldRows();
            tests.refusals();
            tests.otherMemtable();
            tests.purge();
            tests.purgeOfWidePartition();
            tests.widePartition();
            tests.cleanup();
            tests.cleanupWithIndex();
            tests.streamed();
            System.out.println("operations: " + tests.checks + " checks, all right");
        });
    }

    private static UntypedResultSet execute(String cql) {
        return QueryProcessor.executeInternal(cql.replaceAll("%(\\w+)", KEYSPACE + ".$1"));
    }

    private static ColumnFamilyStore store(String table) {
        return Keyspace.open(KEYSPACE).getColumnFamilyStore(table);
    }

    private static ZubiloMemtable memtable(String table) {
        return (ZubiloMemtable) store(table).getTracker().getView().getCurrentMemtable();
    }

    private static Env env() {
        return memtable("anchor").generation().env;
    }

    /** The tables of the store that belong to one of Cassandra's. */
    private static List<String> stored(String table) {
        try (ReadTxn txn = env().read()) {
            return txn.tables().stream().filter(name -> name.startsWith(KEYSPACE + "." + table + "-")).toList();
        }
    }

    private static long records(String table, String kind) {
        try (ReadTxn txn = env().read()) {
            long sum = 0;
            for (String name : stored(table)) {
                sum += name.endsWith(kind) ? txn.table(name).size() : 0;
            }
            return sum;
        }
    }

    private void check(boolean yes, String otherwise) {
        checks++;
        if (!yes) {
            throw new AssertionError(otherwise);
        }
    }

    /** What Cassandra does after those who ask for it have their answer. */
    private void eventually(BooleanSupplier yes, String otherwise) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!yes.getAsBoolean()) {
            check(System.nanoTime() < end, otherwise);
            Thread.sleep(20);
        }
        checks++;
    }

    private void count(long expected, String cql) {
        long found = execute(cql).size();
        check(found == expected, cql + " gave " + found + " rows instead of " + expected);
    }

    private static void fill(String table, int rows) {
        for (int i = 0; i < rows; i++) {
            execute("INSERT INTO %" + table + " (k, v) VALUES (" + i + ", 'value" + i % 10 + "')");
        }
    }

    private static void create(String table, String with) {
        execute("CREATE TABLE %" + table + " (k int PRIMARY KEY, v text) WITH memtable = 'zubilo'" + with);
    }

    private void parameters() {
        Path folder = Path.of(DatabaseDescriptor.getNonLocalSystemKeyspacesDataFileLocations()[0]).resolveSibling("other");
        for (Map<String, String> good : List.of(Map.<String, String>of(), Map.of("redo_log", "none"), Map.of("redo_log", "1GiB", "sync", "true"),
                Map.of("redo_log", "64KiB", "commitlog", "true"), Map.of("sync", "lazy", "cleanup_seconds", "never"))) {
            Map<String, String> given = new HashMap<>(good);
            given.put("dir", folder.toString());
            ZubiloMemtable.Factory factory = ZubiloMemtable.factory(given);
            check(given.isEmpty(), "parameters that were not taken: " + given);
            given.putAll(good);
            given.put("dir", folder.toString());
            check(factory.equals(ZubiloMemtable.factory(given)), "equal parameters make equal factories");
        }
        for (Map<String, String> bad : List.of(Map.of("redo_log", "64"), Map.of("redo_log", "63KiB"), Map.of("redo_log", "2GiB"), Map.of("redo_log", ""),
                Map.of("sync", "no"), Map.of("commitlog", "yes"), Map.of("cleanup_seconds", "-1"), Map.of("page_size", "5000"))) {
            try {
                ZubiloMemtable.factory(new HashMap<>(bad));
                check(false, "not refused: " + bad);
            } catch (ConfigurationException e) {
                check(e.getMessage().startsWith(bad.keySet().iterator().next() + " is \""), "refused for another reason: " + e);
            }
        }
    }

    private void truncate(boolean snapshot) {
        String table = "truncated_" + snapshot;
        DatabaseDescriptor.setAutoSnapshot(snapshot);
        create(table, "");
        fill(table, 300);
        count(300, "SELECT * FROM %" + table);
        check(memtable(table).partitionCount() == 300, "partitions: " + memtable(table).partitionCount());
        check(memtable(table).getLiveDataSize() > 300 * 10, "size: " + memtable(table).getLiveDataSize());
        store(table).forceBlockingFlush(ColumnFamilyStore.FlushReason.USER_FORCED);
        check(store(table).getLiveSSTables().isEmpty(), "a flush has moved rows to an SSTable");
        store(table).truncateBlocking();
        count(0, "SELECT * FROM %" + table);
        check(stored(table).isEmpty(), "left after TRUNCATE: " + stored(table));
        fill(table, 7);
        count(7, "SELECT * FROM %" + table);
        check(snapshot == !store(table).listSnapshots().isEmpty(), "snapshots: " + store(table).listSnapshots());
        DatabaseDescriptor.setAutoSnapshot(false);
    }

    /** A read that has not ended keeps Cassandra from discarding the old memtable, but its rows must not outlive TRUNCATE. */
    private void truncateBesideAReader(boolean snapshot) {
        String table = "truncated_beside_" + snapshot;
        DatabaseDescriptor.setAutoSnapshot(snapshot);
        create(table, "");
        execute("CREATE INDEX " + table + "_index ON %" + table + " (v) USING 'legacy_local_table'");
        execute("CREATE MATERIALIZED VIEW %" + table + "_view AS SELECT k, v FROM %" + table
                + " WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k) WITH memtable = 'zubilo'");
        fill(table, 50);
        String index = table + "." + table + "_index";
        for (String filled : List.of(table, index, table + "_view")) {
            check(records(filled, "/rows") == 50, "rows of " + filled + ": " + records(filled, "/rows"));
        }
        ColumnFamilyStore indexed = store(table).indexManager.getAllIndexColumnFamilyStores().iterator().next();
        try (var reading = store(table).readOrdering.start(); var too = indexed.readOrdering.start();
                var view = store(table + "_view").readOrdering.start()) {
            store(table).truncateBlocking();
            for (String emptied : List.of(table, index, table + "_view")) {
                check(records(emptied, "/rows") == 0, "rows of " + emptied + " left: " + records(emptied, "/rows"));
            }
        }
        count(0, "SELECT * FROM %" + table);
        count(0, "SELECT * FROM %" + table + "_view");
        execute("DROP MATERIALIZED VIEW %" + table + "_view");
        execute("DROP TABLE %" + table);
        DatabaseDescriptor.setAutoSnapshot(false);
    }

    private void drop() {
        create("dropped", "");
        fill("dropped", 100);
        check(stored("dropped").size() == 3, "tables: " + stored("dropped"));
        execute("DROP TABLE %dropped");
        check(stored("dropped").isEmpty(), "left after DROP TABLE: " + stored("dropped"));
    }

    private void snapshot() throws java.io.IOException {
        create("saved", "");
        fill("saved", 500);
        store("saved").snapshot("mine");
        Path folder = store("saved").getDirectories().getDirectoryForNewSSTables().toPath().resolve("snapshots/mine");
        try (Stream<Path> files = Files.list(folder)) {
            check(files.anyMatch(file -> file.toString().endsWith("Data.db")), "no SSTable in " + folder);
        }
        check(store("saved").getLiveSSTables().isEmpty(), "the snapshot is part of the table");
        // Restored as any other snapshot.
        store("saved").truncateBlocking();
        count(0, "SELECT * FROM %saved");
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.copy(file, folder.getParent().getParent().resolve(file.getFileName()), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
            }
        }
        ColumnFamilyStore.loadNewSSTables(KEYSPACE, "saved");
        count(500, "SELECT * FROM %saved");
        // Rows of an SSTable and of the memtable together.
        execute("DELETE FROM %saved WHERE k = 3");
        execute("UPDATE %saved SET v = 'new' WHERE k = 4");
        count(499, "SELECT * FROM %saved");
        check(execute("SELECT v FROM %saved WHERE k = 4").one().getString("v").equals("new"), "the newer value");
    }

    private void index() {
        create("indexed", "");
        execute("CREATE INDEX by_value ON %indexed (v) USING 'legacy_local_table'");
        fill("indexed", 100);
        count(10, "SELECT * FROM %indexed WHERE v = 'value3'");
        execute("UPDATE %indexed SET v = 'value3' WHERE k = 1");
        execute("DELETE FROM %indexed WHERE k = 13");
        execute("DELETE v FROM %indexed WHERE k = 23");
        count(9, "SELECT * FROM %indexed WHERE v = 'value3'");
        count(9, "SELECT * FROM %indexed WHERE v = 'value1'");
        store("indexed").truncateBlocking();
        count(0, "SELECT * FROM %indexed WHERE v = 'value3'");
        execute("DROP TABLE %indexed");
    }

    private void indexOnOldRows() throws InterruptedException {
        create("indexed_later", "");
        fill("indexed_later", 100);
        execute("CREATE INDEX later ON %indexed_later (v) USING 'legacy_local_table'");
        eventually(() -> store("indexed_later").indexManager.getBuiltIndexNames().contains("later"), "the index was not built");
        count(10, "SELECT * FROM %indexed_later WHERE v = 'value3'");
        execute("UPDATE %indexed_later SET v = 'value3' WHERE k = 1");
        count(11, "SELECT * FROM %indexed_later WHERE v = 'value3'");
        count(100, "SELECT * FROM %indexed_later");
    }

    private void refusals() {
        execute("CREATE TABLE %named (k text PRIMARY KEY, v text) WITH memtable = 'zubilo'");
        refused("INSERT INTO %named (k, v) VALUES ('" + "x".repeat(5000) + "', '')", "partition key and clustering have");
        count(0, "SELECT * FROM %named");
        execute("CREATE INDEX sai ON %named (v) USING 'sai'");
        refused("INSERT INTO %named (k, v) VALUES ('a', 'b')", "legacy_local_table");
        execute("DROP INDEX " + KEYSPACE + ".sai");
        execute("INSERT INTO %named (k, v) VALUES ('a', 'b')");
        count(1, "SELECT * FROM %named");
    }

    private void refused(String cql, String why) {
        try {
            execute(cql);
            check(false, "not refused: " + cql.substring(0, 60));
        } catch (InvalidRequestException e) {
            check(e.getMessage().contains(why), "refused for another reason: " + e);
        }
    }

    private void otherMemtable() throws InterruptedException {
        create("moved", "");
        fill("moved", 200);
        execute("ALTER TABLE %moved WITH memtable = 'stock'");
        store("moved").forceBlockingFlush(ColumnFamilyStore.FlushReason.USER_FORCED);
        check(!(store("moved").getTracker().getView().getCurrentMemtable() instanceof ZubiloMemtable), "the memtable has stayed");
        count(200, "SELECT * FROM %moved");
        eventually(() -> stored("moved").isEmpty(), "the old memtable's tables are left in the store");
        execute("UPDATE %moved SET v = 'stock' WHERE k = 5");
        execute("ALTER TABLE %moved WITH memtable = 'zubilo'");
        execute("UPDATE %moved SET v = 'again' WHERE k = 6");
        Memtable now = store("moved").getTracker().getView().getCurrentMemtable();
        check(now instanceof ZubiloMemtable, "the memtable is " + now);
        count(200, "SELECT * FROM %moved");
        check(execute("SELECT v FROM %moved WHERE k = 5").one().getString("v").equals("stock"), "what the other one had");
    }

    private void purge() throws InterruptedException {
        execute("CREATE TABLE %purged (k int, c int, v text, m map<int, text>, st text static, PRIMARY KEY (k, c)) WITH memtable = 'zubilo'"
                + " AND gc_grace_seconds = 1");
        for (int k = 0; k < 10; k++) {
            for (int c = 0; c < 20; c++) {
                execute("INSERT INTO %purged (k, c, v, m) VALUES (" + k + ", " + c + ", 'v', {1: 'a', 2: 'b'})");
            }
        }
        long kept = records("purged", "/rows");
        check(kept == 200, "rows: " + kept);
        execute("DELETE FROM %purged WHERE k = 1");
        execute("DELETE FROM %purged WHERE k = 2 AND c >= 5 AND c < 15");
        execute("DELETE FROM %purged WHERE k = 3 AND c = 4");
        execute("DELETE m[1] FROM %purged WHERE k = 4 AND c = 0");
        execute("INSERT INTO %purged (k, c, v) VALUES (50, 1, 'short') USING TTL 1");
        execute("UPDATE %purged USING TTL 1 SET st = 'short' WHERE k = 5");
        String question = "SELECT * FROM %purged";
        check(records("purged", "/expiry") >= 6, "entries: " + records("purged", "/expiry"));
        Thread.sleep(4000);
        long before = execute(question).size();
        check(before == 200 - 20 - 10 - 1, "visible rows: " + before);
        memtable("purged").upkeep().purge();
        count(before, question);
        check(records("purged", "/expiry") == 0, "entries left: " + records("purged", "/expiry"));
        check(records("purged", "/rows") == before, "records left: " + records("purged", "/rows"));
        check(execute("SELECT m FROM %purged WHERE k = 4 AND c = 0").one().getMap("m",
                org.apache.cassandra.db.marshal.Int32Type.instance, org.apache.cassandra.db.marshal.UTF8Type.instance).size() == 1, "the map");
    }

    /** More rows beneath a deletion than the write that brings it looks at. */
    private void purgeOfWidePartition() throws InterruptedException {
        int rows = Generation.SHADOWED_PER_WRITE * 2 + 100;
        execute("CREATE TABLE %swept (k int, c int, v text, PRIMARY KEY (k, c)) WITH memtable = 'zubilo' AND gc_grace_seconds = 1");
        for (int c = 0; c < rows; c++) {
            execute("INSERT INTO %swept (k, c, v) VALUES (1, " + c + ", 'v')");
        }
        execute("DELETE FROM %swept WHERE k = 1");
        execute("INSERT INTO %swept (k, c, v) VALUES (1, 5, 'later')");
        count(1, "SELECT * FROM %swept");
        check(records("swept", "/rows") > 1000, "the write has removed all: the test shows nothing");
        Thread.sleep(3000);
        memtable("swept").upkeep().purge();
        count(1, "SELECT * FROM %swept");
        check(records("swept", "/rows") == 1, "records left: " + records("swept", "/rows"));
        check(records("swept", "/expiry") == 0, "entries left: " + records("swept", "/expiry"));
    }

    private void widePartition() {
        int rows = 3000;
        execute("CREATE TABLE %wide (k int, c int, v text, PRIMARY KEY (k, c)) WITH memtable = 'zubilo'");
        for (int c = 0; c < rows; c++) {
            execute("INSERT INTO %wide (k, c, v) VALUES (" + c % 3 + ", " + c + ", '" + "v".repeat(c % 700) + "')");
        }
        count(rows, "SELECT * FROM %wide");
        count(rows / 3, "SELECT * FROM %wide WHERE k = 1");
        count(rows / 3, "SELECT * FROM %wide WHERE k = 1 ORDER BY c DESC");
        check(execute("SELECT c FROM %wide WHERE k = 1 ORDER BY c DESC LIMIT 1").one().getInt("c") == rows - 2, "the last row");
        count(3, "SELECT DISTINCT k FROM %wide");
        int paged = 0;
        for (UntypedResultSet.Row row : QueryProcessor.executeInternalWithPaging("SELECT * FROM " + KEYSPACE + ".wide", 17)) {
            check(row.getString("v").length() == row.getInt("c") % 700, "row " + row.getInt("c"));
            paged++;
        }
        check(paged == rows, "in pages " + paged + " rows");
        // A snapshot of nothing but large partitions has all of them.
        check(memtable("wide").getFlushSet(null, null).partitionCount() == 3, "partitions of the flush");
        store("wide").truncateBlockingWithoutSnapshot();
        count(0, "SELECT * FROM %wide");
        check(env().info().readers() == 0, "read transactions left: " + env().readers());
    }

    /** The tokens of the partitions, in the order of the ring. */
    private static List<Token> tokens(String table) {
        List<Token> tokens = new ArrayList<>();
        for (UntypedResultSet.Row row : execute("SELECT DISTINCT k FROM %" + table)) {
            tokens.add(DatabaseDescriptor.getPartitioner().getToken(row.getBlob("k")));
        }
        return tokens;
    }

    /** A clean-up as if the ring gave this node certain ranges. */
    private static Cleanup cleanup(String table, Supplier<Set<Range<Token>>> owned) {
        return new Cleanup(memtable(table).generation(), store(table), owned);
    }

    private void cleanup() {
        execute("CREATE TABLE %cleaned (k int, c int, v text, st text static, PRIMARY KEY (k, c)) WITH memtable = 'zubilo'");
        for (int k = 0; k < 50; k++) {
            for (int c = 0; c < 5; c++) {
                execute("INSERT INTO %cleaned (k, c, v) VALUES (" + k + ", " + c + ", 'v') USING TTL " + (c == 0 ? 100000 : 0));
            }
            execute("DELETE FROM %cleaned WHERE k = " + k + " AND c >= 3");
            execute("UPDATE %cleaned SET st = 's' WHERE k = " + k);
        }
        List<Token> tokens = tokens("cleaned");
        long before = records("cleaned", "/rows");
        check(before == 50 * 5, "records: " + before);
        check(cleanup("cleaned", () -> Cleanup.owned(KEYSPACE)).run() == 0, "a node alone owns everything");
        check(cleanup("cleaned", () -> null).run() == 0, "nothing is removed while the ring changes");
        count(150, "SELECT * FROM %cleaned");

        // From the 10th token, which is not in the range, to the 20th, and from the 40th around the ring to the 5th.
        Set<Range<Token>> two = Set.of(new Range<>(tokens.get(10), tokens.get(20)), new Range<>(tokens.get(40), tokens.get(5)));
        AtomicInteger asked = new AtomicInteger();
        long some = cleanup("cleaned", () -> asked.incrementAndGet() > 2 ? Set.of() : two).run();
        check(some > 0 && some < 25 * 5, "the ring changed after the first transaction, and removed were " + some);
        long rest = cleanup("cleaned", () -> two).run();
        check(some + rest == 25 * 5, "removed: " + some + " and " + rest);
        check(records("cleaned", "/expiry") == 2 * 25, "entries of the expiry index: " + records("cleaned", "/expiry"));
        List<Token> expected = new ArrayList<>(tokens.subList(0, 6));
        expected.addAll(tokens.subList(11, 21));
        expected.addAll(tokens.subList(41, 50));
        check(tokens("cleaned").equals(expected), "other partitions are left: " + tokens("cleaned"));
        count(75, "SELECT * FROM %cleaned");
        check(cleanup("cleaned", Set::of).run() == 25 * 5, "a node that owns nothing");
        count(0, "SELECT * FROM %cleaned");
        check(records("cleaned", "/rows") + records("cleaned", "/expiry") == 0, "left by a node that owns nothing");
    }

    private void cleanupWithIndex() {
        create("cleaned_indexed", "");
        execute("CREATE INDEX cleaned_by_value ON %cleaned_indexed (v) USING 'legacy_local_table'");
        fill("cleaned_indexed", 100);
        List<Token> tokens = tokens("cleaned_indexed");
        Set<Range<Token>> half = Set.of(new Range<>(tokens.get(24), tokens.get(74)));
        check(cleanup("cleaned_indexed", () -> half).run() == 50, "removed rows");
        count(50, "SELECT * FROM %cleaned_indexed");
        int found = 0;
        for (int i = 0; i < 10; i++) {
            found += execute("SELECT * FROM %cleaned_indexed WHERE v = 'value" + i + "'").size();
        }
        check(found == 50, "by the index: " + found);
        // The index itself has no entries for rows that are gone, but deletions of them.
        int live = 0;
        ColumnFamilyStore index = store("cleaned_indexed").indexManager.getAllIndexColumnFamilyStores().iterator().next();
        ReadCommand everything = PartitionRangeReadCommand.allDataRead(index.metadata(), FBUtilities.nowInSeconds());
        try (ReadExecutionController controller = everything.executionController(); var partitions = everything.executeLocally(controller)) {
            while (partitions.hasNext()) {
                try (var partition = UnfilteredRowIterators.filter(partitions.next(), everything.nowInSec())) {
                    while (partition.hasNext()) {
                        partition.next();
                        live++;
                    }
                }
            }
        }
        check(live == 50, "entries of the index: " + live);
    }

    /** What Cassandra writes to stream rows of the memtable must not become part of the table at the next start. */
    private void streamed() throws InterruptedException {
        create("streamed", "");
        fill("streamed", 100);
        ColumnFamilyStore table = store("streamed");
        Token minimum = DatabaseDescriptor.getPartitioner().getMinimumToken();
        List<Range<PartitionPosition>> all = List.of(Range.makeRowRange(new Range<>(minimum, minimum)));
        try (Refs<SSTableReader> streamed = new Refs<>()) {
            table.writeAndAddMemtableRanges(null, () -> all, streamed);
            check(streamed.size() == 1 && streamed.iterator().next().getTotalRows() == 100, "written for the stream: " + streamed);
        }
        check(table.getDirectories().sstableLister(Directories.OnTxnErr.THROW).list().size() == 1, "Cassandra removes it itself now");
        Streamed.removeOld(table, Streamed.STREAM_MILLIS_MAX);
        check(table.getDirectories().sstableLister(Directories.OnTxnErr.THROW).list().size() == 1, "removed while a stream may need it");
        // Another memtable does not know of it; what it was given by a flush stays.
        execute("ALTER TABLE %streamed WITH memtable = 'stock'");
        table.forceBlockingFlush(ColumnFamilyStore.FlushReason.USER_FORCED);
        check(table.getLiveSSTables().size() == 1, "SSTables of the table: " + table.getLiveSSTables());
        eventually(() -> table.getDirectories().sstableLister(Directories.OnTxnErr.THROW).list().size() == 1, "it was not removed");
        count(100, "SELECT * FROM %streamed");
        Streamed.removeAll(table);
        check(table.getDirectories().sstableLister(Directories.OnTxnErr.THROW).list().size() == 1, "the table's own was removed");
        check(!Streamed.isMarked(table.getLiveSSTables().iterator().next().descriptor), "the table's own was marked");
    }
}
