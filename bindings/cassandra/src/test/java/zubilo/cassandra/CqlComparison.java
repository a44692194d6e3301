package zubilo.cassandra;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.transport.Dispatcher;
import org.apache.cassandra.utils.FBUtilities;

/**
 * Random CQL programs on a table with the stock memtable and on one with Zubilo's: all answers are compared.
 *
 * <pre>CqlComparison SEED STATEMENTS [again]</pre>
 *
 * With {@code again} the node has been started on the folder of an earlier run, whose process was ended without a
 * farewell: first everything is compared, then the program goes on. The process ends itself without a farewell.
 */
public final class CqlComparison {
    private static final String KEYSPACE = "compared";
    private final Random random;
    private final long seed;
    private long timestamp;
    private int statements;
    private int answers;
    private long rows;
    private final List<String> history = new ArrayList<>();

    private CqlComparison(long seed) {
        this.seed = seed;
        random = new Random(seed);
    }

    public static void main(String[] arguments) {
        long seed = Long.parseLong(arguments[0]);
        int count = Integer.parseInt(arguments[1]);
        boolean again = arguments.length > 2;
        Program.main(() -> {
            Node.start();
            new CqlComparison(again ? seed + 1 : seed).run(count, again);
        });
    }

    private void run(int count, boolean again) {
        System.out.println("seed " + seed + (again ? ", after the end of the process" : ""));
        if (!again) {
            schema();
        }
        timestamp = again ? 1_000_000 : 1;
        compareAll();
        for (int i = 0; i < count; i++) {
            if (i % 400 == 399) {
                alter();
            }
            if (random.nextInt(4) == 0) {
                compare(question());
            } else {
                change();
            }
            if (i % 500 == 499) {
                compareAll();
            }
        }
        compareAll();
        System.out.printf("%d changes, %d answers compared, %d rows in them: all equal%n", statements, answers, rows);
    }

    private static ColumnFamilyStore store(String table) {
        return Keyspace.open(KEYSPACE).getColumnFamilyStore(table);
    }

    private void schema() {
        execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        execute("CREATE TYPE " + KEYSPACE + ".place (city text, zip int)");
        for (String memtable : List.of("stock", "zubilo")) {
            String with = " AND memtable = '" + memtable + "' AND gc_grace_seconds = 864000";
            execute("CREATE TABLE " + KEYSPACE + ".kv_" + memtable + " (k text PRIMARY KEY, v blob, n int) WITH comment = ''" + with);
            execute("CREATE TABLE " + KEYSPACE + ".wide_" + memtable + " (k int, c1 int, c2 text, st text static, sset set<int> static, a int, b text,"
                    + " l list<int>, s set<text>, m map<int, text>, f frozen<list<int>>, u place, d decimal, PRIMARY KEY (k, c1, c2))"
                    + " WITH CLUSTERING ORDER BY (c1 ASC, c2 DESC)" + with);
            execute("CREATE TABLE " + KEYSPACE + ".odd_" + memtable + " (k1 blob, k2 double, c decimal, v text, PRIMARY KEY ((k1, k2), c))"
                    + " WITH CLUSTERING ORDER BY (c DESC)" + with);
            execute("CREATE TABLE " + KEYSPACE + ".counted_" + memtable + " (k int, c int, n counter, PRIMARY KEY (k, c)) WITH comment = ''" + with);
        }
        check(store("kv_zubilo").getTracker().getView().getCurrentMemtable() instanceof ZubiloMemtable, "the memtable is not ours");
        check(!(store("kv_stock").getTracker().getView().getCurrentMemtable() instanceof ZubiloMemtable), "the stock memtable is ours");
    }

    private static void execute(String cql) {
        QueryProcessor.executeInternal(cql);
    }

    private static void check(boolean yes, String otherwise) {
        if (!yes) {
            throw new AssertionError(otherwise);
        }
    }

    // ---- changes ----

    private void change() {
        statements++;
        String cql = switch (random.nextInt(10)) {
            case 0, 1 -> kv();
            case 2 -> odd();
            case 3 -> "UPDATE %t(counted) SET n = n + " + (random.nextInt(9) - 4) + " WHERE k = " + random.nextInt(4) + " AND c = " + random.nextInt(6);
            case 4 -> batch();
            default -> wide();
        };
        both(cql);
    }

    private void both(String cql) {
        history.add(cql);
        // Expiries are in seconds: both tables have to be written in the same one.
        boolean expiring = cql.contains("TTL");
        long before;
        do {
            before = FBUtilities.nowInSeconds();
            String one = outcome(table(cql, "stock"));
            String other = outcome(table(cql, "zubilo"));
            check(one.equals(other), describe("outcome of\n" + cql + "\nstock:  " + one + "\nzubilo: " + other));
        } while (expiring && before != FBUtilities.nowInSeconds());
    }

    private static String outcome(String cql) {
        try {
            UntypedResultSet result = QueryProcessor.executeInternal(cql);
            return result == null ? "" : text(result);
        } catch (RuntimeException refused) {
            return refused.getClass().getSimpleName();
        }
    }

    private static String table(String cql, String memtable) {
        return cql.replaceAll("%t\\((\\w+)\\)", KEYSPACE + ".$1_" + memtable);
    }

    private long stamp() {
        // Mostly later, at times earlier or the same: the order of writes must not matter.
        timestamp += random.nextInt(3);
        return random.nextInt(5) == 0 ? Math.max(1, timestamp - random.nextInt(200)) : timestamp;
    }

    private String using() {
        String ttl = random.nextInt(12) == 0 ? " AND TTL " + (1 + random.nextInt(3)) : random.nextInt(12) == 0 ? " AND TTL 100000" : "";
        return " USING TIMESTAMP " + stamp() + ttl;
    }

    private String kv() {
        String key = "'key" + random.nextInt(60) + "'";
        return switch (random.nextInt(8)) {
            case 0 -> "DELETE FROM %t(kv) USING TIMESTAMP " + stamp() + " WHERE k = " + key;
            case 1 -> "DELETE v FROM %t(kv) USING TIMESTAMP " + stamp() + " WHERE k = " + key;
            case 2 -> "UPDATE %t(kv)" + using() + " SET n = " + random.nextInt(100) + " WHERE k = " + key;
            case 3, 4 -> conditional();
            default -> "INSERT INTO %t(kv) (k, v, n) VALUES (" + key + ", " + blob(random.nextInt(10) == 0 ? 6000 : 40) + ", "
                    + random.nextInt(100) + ")" + using();
        };
    }

    /** Conditional changes have the clock's timestamps, so they have rows to themselves. */
    private String conditional() {
        String key = "'lwt" + random.nextInt(5) + "'";
        String row = " WHERE k = 9 AND c1 = " + random.nextInt(3) + " AND c2 = 'a'";
        int n = random.nextInt(4);
        return switch (random.nextInt(8)) {
            case 0 -> "INSERT INTO %t(kv) (k, n) VALUES (" + key + ", " + n + ") IF NOT EXISTS";
            case 1 -> "UPDATE %t(kv) SET n = " + n + " WHERE k = " + key + " IF n = " + random.nextInt(4);
            case 2 -> "DELETE FROM %t(kv) WHERE k = " + key + " IF EXISTS";
            case 3 -> "DELETE FROM %t(kv) WHERE k = " + key;
            case 4 -> "UPDATE %t(wide) SET a = " + n + row + " IF a = " + random.nextInt(4);
            case 5 -> "INSERT INTO %t(wide) (k, c1, c2, a) VALUES (9, " + n + ", 'a', 1) IF NOT EXISTS";
            case 6 -> "BEGIN BATCH UPDATE %t(wide) SET a = 0, l = l + [" + n + "]" + row + " IF a != 0; UPDATE %t(wide) SET st = 's" + n
                    + "' WHERE k = 9; APPLY BATCH";
            default -> "UPDATE %t(wide) SET a = 2, l = [" + n + "] + l" + row;
        };
    }

    private String blob(int limit) {
        StringBuilder text = new StringBuilder("0x");
        for (int i = random.nextInt(limit); i > 0; i--) {
            text.append(String.format("%02x", random.nextInt(4) == 0 ? 0 : random.nextInt(256)));
        }
        return text.toString();
    }

    private String odd() {
        String key = "k1 = " + List.of("0x", "0x00", "0x0000", "0x00ff", "0xff").get(random.nextInt(5)) + " AND k2 = "
                + List.of("0.0", "-1.5", "1e300").get(random.nextInt(3));
        // One spelling for each number: which one a row keeps that was deleted and written again is nobody's promise.
        String c = List.of("1.00", "-7", "0", "1e10", "2.50", "123456789012345678901234567890.5").get(random.nextInt(6));
        return switch (random.nextInt(5)) {
            case 0 -> "DELETE FROM %t(odd) USING TIMESTAMP " + stamp() + " WHERE " + key + " AND c = " + c;
            case 1 -> "DELETE FROM %t(odd) USING TIMESTAMP " + stamp() + " WHERE " + key + " AND c > " + c;
            default -> "UPDATE %t(odd)" + using() + " SET v = 'v" + random.nextInt(1000) + "' WHERE " + key + " AND c = " + c;
        };
    }

    private String row() {
        return "k = " + random.nextInt(5) + " AND c1 = " + random.nextInt(8) + " AND c2 = '" + (char) ('a' + random.nextInt(6)) + "'";
    }

    private String wide() {
        String delete = "DELETE FROM %t(wide) USING TIMESTAMP " + stamp() + " WHERE k = " + random.nextInt(5);
        int low = random.nextInt(8);
        return switch (random.nextInt(24)) {
            case 0 -> delete;
            case 1 -> delete + " AND c1 = " + low;
            case 2 -> delete + " AND c1 > " + low + " AND c1 <= " + (low + random.nextInt(4));
            case 3 -> delete + " AND c1 = " + low + " AND c2 >= '" + (char) ('a' + random.nextInt(6)) + "'";
            case 4, 5 -> "DELETE FROM %t(wide) USING TIMESTAMP " + stamp() + " WHERE " + row();
            case 6 -> "DELETE " + List.of("a", "b", "l", "s", "m", "u", "u.city", "m[2]", "s['x1']").get(random.nextInt(9))
                    + " FROM %t(wide) USING TIMESTAMP " + stamp() + " WHERE " + row();
            case 7 -> "UPDATE %t(wide)" + using() + " SET st = 'static" + random.nextInt(50) + "', sset = sset + {" + random.nextInt(9) + "} WHERE k = "
                    + random.nextInt(5);
            case 8 -> "DELETE st FROM %t(wide) USING TIMESTAMP " + stamp() + " WHERE k = " + random.nextInt(5);
            default -> "UPDATE %t(wide)" + using() + " SET " + assignments() + " WHERE " + row();
        };
    }

    private String assignments() {
        int n = random.nextInt(10);
        String one = switch (random.nextInt(12)) {
            case 0 -> "s = s + {'x" + n + "', 'x" + (n + 1) + "'}";
            case 1 -> "s = s - {'x" + n + "'}";
            case 2 -> "s = {'y" + n + "'}";
            case 3 -> "m = m + {" + n + ": 'm" + random.nextInt(99) + "'}";
            case 4 -> "m[" + n + "] = " + (random.nextBoolean() ? "null" : "'n'");
            case 5 -> "f = [" + n + ", " + n + "]";
            case 6 -> "u = {city: 'c" + n + "', zip: " + n + "}";
            case 7 -> "u.zip = " + random.nextInt(100);
            case 8 -> "d = 1." + "0".repeat(n);
            case 9 -> "l = [" + n + ", " + (n + 1) + "]";
            default -> "b = 'text" + "z".repeat(random.nextInt(30)) + n + "'";
        };
        return "a = " + random.nextInt(1000) + ", " + one;
    }

    private String batch() {
        int key = random.nextInt(5);
        StringBuilder text = new StringBuilder("BEGIN UNLOGGED BATCH USING TIMESTAMP " + stamp());
        for (int i = 0; i <= random.nextInt(5); i++) {
            String where = " WHERE k = " + key + " AND c1 = " + random.nextInt(8);
            text.append(switch (random.nextInt(3)) {
                case 0 -> " DELETE FROM %t(wide)" + where + ";";
                case 1 -> " UPDATE %t(wide) SET st = 'batch" + i + "' WHERE k = " + key + ";";
                default -> " UPDATE %t(wide) SET b = 'batch" + i + "'" + where + " AND c2 = '" + (char) ('a' + random.nextInt(6)) + "';";
            });
        }
        return text + " APPLY BATCH";
    }

    private void alter() {
        boolean there = Schema.instance.getTableMetadata(KEYSPACE, "wide_stock").getColumn(ByteBuffer.wrap("extra".getBytes())) != null;
        String cql = there ? "ALTER TABLE %t(wide) DROP extra" : "ALTER TABLE %t(wide) ADD extra text";
        history.add(cql);
        // Cells of a dropped column are told by their timestamps, so that statement's clock must not run ahead of it.
        execute(table(cql, "stock"));
        execute(table(cql, "zubilo"));
        if (!there) {
            for (int i = 0; i < 20; i++) {
                both("UPDATE %t(wide) USING TIMESTAMP " + FBUtilities.timestampMicros() + " SET extra = 'e" + i + "' WHERE " + row());
            }
        }
    }

    // ---- questions ----

    private String question() {
        int k = random.nextInt(5);
        int low = random.nextInt(8);
        char c = (char) ('a' + random.nextInt(6));
        String order = random.nextBoolean() ? " ORDER BY c1 DESC, c2 ASC" : "";
        String limit = random.nextInt(3) == 0 ? " LIMIT " + (1 + random.nextInt(7)) : "";
        return switch (random.nextInt(14)) {
            case 0 -> "SELECT * FROM %t(kv) WHERE k = 'key" + random.nextInt(60) + "'";
            case 1 -> "SELECT k, n, writetime(n) FROM %t(kv)" + limit;
            case 2 -> "SELECT * FROM %t(wide) WHERE k = " + k + order + limit;
            case 3 -> "SELECT * FROM %t(wide) WHERE k = " + k + " AND c1 > " + low + order + limit;
            case 4 -> "SELECT * FROM %t(wide) WHERE k = " + k + " AND c1 >= " + low + " AND c1 < " + (low + random.nextInt(5)) + order + limit;
            case 5 -> "SELECT a, b, writetime(b) FROM %t(wide) WHERE k = " + k + " AND c1 = " + low + " AND c2 < '" + c + "'" + order + limit;
            case 6 -> "SELECT a, st FROM %t(wide) WHERE k = " + k + " AND c1 IN (1, 3, " + low + ") AND c2 IN ('a', '" + c + "')";
            case 7 -> "SELECT DISTINCT k, st, sset FROM %t(wide)";
            case 8 -> "SELECT * FROM %t(wide) WHERE token(k) > " + random.nextLong() + limit;
            case 9 -> "SELECT k, c1, c2, a FROM %t(wide) WHERE token(k) >= token(" + k + ") AND token(k) < " + random.nextLong();
            case 10 -> "SELECT k, c1, c2, b FROM %t(wide) PER PARTITION LIMIT " + (1 + random.nextInt(3));
            case 11 -> "SELECT * FROM %t(odd)" + limit;
            case 12 -> "SELECT * FROM %t(counted) WHERE k = " + random.nextInt(4);
            default -> "SELECT count(*), sum(a) FROM %t(wide) WHERE c1 > " + low + " ALLOW FILTERING";
        };
    }

    private void compareAll() {
        for (String question : List.of("SELECT * FROM %t(kv)", "SELECT k, writetime(v), writetime(n) FROM %t(kv)", "SELECT * FROM %t(wide)",
                "SELECT k, c1, c2, writetime(a), writetime(b) FROM %t(wide)", "SELECT * FROM %t(odd)", "SELECT * FROM %t(counted)")) {
            compare(question);
            paged(question);
        }
    }

    private void compare(String cql) {
        long now = FBUtilities.nowInSeconds();
        answers++;
        String stock = text(QueryProcessor.executeInternalWithNow(now, Dispatcher.RequestTime.forImmediateExecution(), table(cql, "stock")));
        String ours = text(QueryProcessor.executeInternalWithNow(now, Dispatcher.RequestTime.forImmediateExecution(), table(cql, "zubilo")));
        same(cql, stock, ours);
        rows += ours.lines().count();
    }

    /** The same question in pages, whose states make Cassandra begin in the midst of partitions. */
    private void paged(String cql) {
        int page = 1 + random.nextInt(20);
        long now = FBUtilities.nowInSeconds();
        answers++;
        String stock = text(QueryProcessor.executeInternalWithPaging(table(cql, "stock"), page));
        String ours = text(QueryProcessor.executeInternalWithPaging(table(cql, "zubilo"), page));
        // Something may have expired in between.
        if (now == FBUtilities.nowInSeconds()) {
            same(cql + " in pages of " + page, stock, ours);
        }
    }

    private void same(String cql, String stock, String ours) {
        check(stock.equals(ours), describe(cql + "\nstock:\n" + stock + "\nzubilo:\n" + ours));
    }

    private String describe(String what) {
        int from = Math.max(0, history.size() - 30);
        return "seed " + seed + ", after " + history.size() + " changes: " + what + "\nlast changes:\n"
                + String.join("\n", history.subList(from, history.size()));
    }

    private static String text(UntypedResultSet result) {
        StringBuilder text = new StringBuilder();
        for (UntypedResultSet.Row row : result) {
            row.getColumns().forEach(column -> {
                String name = column.name.toString();
                // The name of the table is part of no answer; the outcome of a condition is.
                String value = row.has(name) ? column.type.getString(row.getBlob(name)) : "null";
                boolean isClock = name.startsWith("writetime") && value.length() > 12;
                text.append(name).append('=').append(isClock ? "the clock's" : value).append(' ');
            });
            text.append('\n');
        }
        return text.toString();
    }
}
