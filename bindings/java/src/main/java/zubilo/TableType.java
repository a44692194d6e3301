package zubilo;

import java.nio.charset.StandardCharsets;

/**
 * The definition of a typed table: a name, the types of keys and values, the options that follow from them. The types
 * are noted in the store, in the table {@value #TYPES}, as the Rust crate {@code zubilo-typed} notes them; a
 * definition opens no table that was made for others. Definitions do not change, and are best constants.
 *
 * @param <K> keys
 * @param <V> values
 */
public final class TableType<K, V> {
    /** The table in which the types of all typed tables are noted: names and types as text. */
    public static final String TYPES = "zubilo.types";

    final Codec<K> keys;
    final Codec<V> values;
    private final String name;
    private final boolean multimap;
    private final boolean counted;
    private final String version;

    private TableType(String name, Codec<K> keys, Codec<V> values, boolean multimap, boolean counted, String version) {
        if (name.equals(TYPES)) {
            throw new ZubiloException.Invalid("the name is that of the table of types; choose another");
        }
        keys.checkKey();
        if (multimap) {
            values.checkKey();
        }
        this.name = name;
        this.keys = keys;
        this.values = values;
        this.multimap = multimap;
        this.counted = counted;
        this.version = version;
    }

    /**
     * A table with one value under a key.
     *
     * @param <K> keys
     * @param <V> values
     * @param name the table's name
     * @param keys codec of the keys
     * @param values codec of the values
     * @return the definition
     */
    public static <K, V> TableType<K, V> table(String name, Codec<K> keys, Codec<V> values) {
        return new TableType<>(name, keys, values, false, false, "");
    }

    /**
     * A table with many values under a key, sorted and each once.
     *
     * @param <K> keys
     * @param <V> values
     * @param name the table's name
     * @param keys codec of the keys
     * @param values codec of the values, which sort
     * @return the definition
     */
    public static <K, V> TableType<K, V> multimap(String name, Codec<K> keys, Codec<V> values) {
        return new TableType<>(name, keys, values, true, false, "");
    }

    /**
     * The same, with counted records; see {@link TableOptions#counted}.
     *
     * @return another definition
     */
    public TableType<K, V> counted() {
        return new TableType<>(name, keys, values, multimap, true, version);
    }

    /**
     * The same, with a word of the caller's noted with the types. A table of another version is refused.
     *
     * @param version the word
     * @return another definition
     */
    public TableType<K, V> version(String version) {
        return new TableType<>(name, keys, values, multimap, counted, version);
    }

    /**
     * The table's name.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * The types as they are noted in the store.
     *
     * @return a text
     */
    public String types() {
        return (multimap ? "multimap<" : "table<") + keys.tag() + ", " + values.tag() + ">"
                + (version.isEmpty() ? "" : " " + version);
    }

    /**
     * The options that the table has.
     *
     * @return the options
     */
    public TableOptions options() {
        TableOptions options = TableOptions.defaults().keyOrder(keys.order());
        if (counted) {
            options = options.counted();
        }
        if (!multimap) {
            return options;
        }
        options = values.width() > 0 ? options.fixedDuplicates() : options.duplicates();
        return options.valueOrder(values.order());
    }

    /**
     * Opens the table to read.
     *
     * @param txn the transaction
     * @return the table, as long as the transaction lives
     * @throws ZubiloException.NoSuchTable if there is none
     * @throws ZubiloException.Types if it was made for other types
     */
    public TypedTable<K, V> open(ReadTxn txn) {
        check(txn);
        return new TypedTable<>(this, txn.table(name, options()));
    }

    /**
     * Opens the table to read and change it, and makes it if there is none.
     *
     * @param txn the transaction
     * @return the table, as long as the transaction lives
     * @throws ZubiloException.Types if it was made for other types
     */
    public TypedWriteTable<K, V> open(WriteTxn txn) {
        if (!txn.hasTable(name)) {
            // All or nothing: a table without its types could not be opened again.
            txn.nested(level -> {
                note(level);
                return level.createTable(name, options());
            });
        }
        check(txn);
        return new TypedWriteTable<>(this, txn.table(name, options()));
    }

    private void check(Transaction txn) {
        if (!txn.hasTable(name)) {
            throw new ZubiloException.NoSuchTable("there is no table " + name);
        }
        byte[] noted = txn.hasTable(TYPES) ? txn.table(TYPES).get(bytes(name)) : null;
        String found = noted == null ? null : new String(noted, StandardCharsets.UTF_8);
        if (!types().equals(found)) {
            throw new ZubiloException.Types("the table " + name + " is of "
                    + (found == null ? "no types that are noted" : found) + ", not of " + types());
        }
    }

    private void note(WriteTxn txn) {
        txn.tableOrCreate(TYPES).put(bytes(name), bytes(types()));
    }

    /**
     * Notes the types of a table that was made without, or of another version. That its records are of these types
     * is the caller's promise.
     *
     * @param txn the transaction
     */
    public void adopt(WriteTxn txn) {
        txn.table(name, options());
        note(txn);
    }

    /**
     * Removes the table with all its records and what is noted about it.
     *
     * @param txn the transaction
     * @return whether there was one
     * @throws ZubiloException.Types if it was made for other types
     */
    public boolean drop(WriteTxn txn) {
        if (!txn.hasTable(name)) {
            return false;
        }
        check(txn);
        return txn.nested(level -> {
            level.table(TYPES).delete(bytes(name));
            level.dropTable(name);
            return true;
        });
    }

    boolean isMultimap() {
        return multimap;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Name and types. */
    @Override
    public String toString() {
        return name + ": " + types();
    }
}
