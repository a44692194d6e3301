package zubilo;

/**
 * A table of Java types that the write transaction sees and changes.
 *
 * @param <K> keys
 * @param <V> values
 */
public final class TypedWriteTable<K, V> extends TypedTable<K, V> {
    private final WriteTable writing;

    TypedWriteTable(TableType<K, V> type, WriteTable table) {
        super(type, table);
        writing = table;
    }

    @Override
    public WriteTable bytes() {
        return writing;
    }

    /**
     * Stores a value under a key, replacing what was there; in a multimap adds it to what is there.
     *
     * @param key the key
     * @param value the value
     */
    public void put(K key, V value) {
        writing.put(key(key), value(value));
    }

    /**
     * Stores a value under a key if the key is new.
     *
     * @param key the key
     * @param value the value
     * @return whether it did
     */
    public boolean insert(K key, V value) {
        return writing.insert(key(key), value(value));
    }

    /**
     * Adds a value to those under a key, in a multimap.
     *
     * @param key the key
     * @param value the value
     * @return whether it is new
     */
    public boolean insertValue(K key, V value) {
        return writing.insertValue(key(key), value(value));
    }

    /**
     * Removes a key with all its values.
     *
     * @param key the key
     * @return whether it was there
     */
    public boolean delete(K key) {
        return writing.delete(key(key));
    }

    /**
     * Removes a value from those under a key.
     *
     * @param key the key
     * @param value the value
     * @return whether it was there
     */
    public boolean deleteValue(K key, V value) {
        return writing.deleteValue(key(key), value(value));
    }

    /**
     * Removes all records whose keys lie in a range; {@link #rangeOf} makes ranges.
     *
     * @param range the range
     * @return how many there were
     */
    public long deleteRange(Range range) {
        return writing.deleteRange(range);
    }

    /** Removes all records. */
    public void clear() {
        writing.clear();
    }

    /**
     * Takes numbers of the table's sequence; see {@link WriteTable#nextSequence}.
     *
     * @param count how many
     * @return the first
     */
    public long nextSequence(long count) {
        return writing.nextSequence(count);
    }
}
