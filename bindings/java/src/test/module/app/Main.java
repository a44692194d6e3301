package app;

import java.nio.file.Path;
import java.util.NavigableMap;
import zubilo.Codec;
import zubilo.Env;
import zubilo.ReadTxn;
import zubilo.TableType;

/** Arguments: the store to make, and whether values should be views of the map. */
public final class Main {
    private static final TableType<String, Long> FRUIT = TableType.table("fruit", Codec.UTF8, Codec.I64);

    private Main() {}

    /**
     * Runs it.
     *
     * @param args see above
     */
    public static void main(String[] args) {
        try (Env env = Env.open(Path.of(args[0]))) {
            env.update(txn -> FRUIT.open(txn).asMap().put("apple", 5L));
            try (ReadTxn txn = env.read()) {
                NavigableMap<String, Long> fruit = FRUIT.open(txn).asMap();
                boolean mapped = txn.table("fruit").view("apple".getBytes()).isMapped();
                if (fruit.get("apple") != 5 || mapped != args[1].equals("mapped")) {
                    throw new AssertionError(fruit + ", mapped: " + mapped);
                }
            }
        }
        System.out.println("module: works, values are " + args[1]);
    }
}
