package zubilo;

import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.function.Function;

/**
 * A table of Java types in a transaction. It lives as long as that; what it gives are Java's own objects, which stay.
 *
 * @param <K> keys
 * @param <V> values
 */
public sealed class TypedTable<K, V> permits TypedWriteTable {
    final TableType<K, V> type;
    final Table table;

    TypedTable(TableType<K, V> type, Table table) {
        this.type = type;
        this.table = table;
    }

    /**
     * The same table as bytes.
     *
     * @return the table
     */
    public Table bytes() {
        return table;
    }

    final byte[] key(K key) {
        return type.keys.encode(key);
    }

    final byte[] value(V value) {
        return type.values.encode(value);
    }

    final V decoded(Bytes value) {
        return value == null ? null : type.values.decode(value);
    }

    final Map.Entry<K, V> decoded(KeyValue entry) {
        return entry == null ? null
                : new AbstractMap.SimpleImmutableEntry<>(type.keys.decode(entry.key()), decoded(entry.value()));
    }

    private static <A, B> Sequence<B> mapped(Sequence<A> from, Function<A, B> by) {
        return () -> {
            Iterator<A> records = from.iterator();
            return new Iterator<>() {
                @Override
                public boolean hasNext() {
                    return records.hasNext();
                }

                @Override
                public B next() {
                    return by.apply(records.next());
                }
            };
        };
    }

    /**
     * The value under a key, of several the first.
     *
     * @param key the key
     * @return the value, or null if there is none
     */
    public V get(K key) {
        return decoded(table.view(key(key)));
    }

    /**
     * The values under many keys; see {@link Table#getMany}.
     *
     * @param keys the keys
     * @return as many values, null where there is none
     */
    public List<V> getMany(List<K> keys) {
        List<byte[]> encoded = new ArrayList<>(keys.size());
        keys.forEach(key -> encoded.add(key(key)));
        List<V> values = new ArrayList<>(keys.size());
        table.getMany(encoded).forEach(value -> values.add(decoded(value)));
        return values;
    }

    /**
     * Whether a key is there.
     *
     * @param key the key
     * @return true if it is
     */
    public boolean containsKey(K key) {
        return table.containsKey(key(key));
    }

    /**
     * Whether a value is one of those under a key.
     *
     * @param key the key
     * @param value the value
     * @return true if it is
     */
    public boolean contains(K key, V value) {
        return table.contains(key(key), value(value));
    }

    /**
     * The number of values under a key.
     *
     * @param key the key
     * @return 0 if there is none
     */
    public long count(K key) {
        return table.count(key(key));
    }

    /**
     * The number of records; each value of a key is one.
     *
     * @return records
     */
    public long size() {
        return table.size();
    }

    /**
     * The values under a key, in order.
     *
     * @param key the key
     * @return values to go through while the transaction lives
     */
    public Sequence<V> values(K key) {
        return mapped(table.values(key(key)), this::decoded);
    }

    /**
     * All records in order.
     *
     * @return records to go through while the transaction lives
     */
    public Sequence<Map.Entry<K, V>> all() {
        return mapped(table.all(), this::decoded);
    }

    /**
     * The records whose keys lie in a range; {@link #rangeOf} makes ranges.
     *
     * @param range the range
     * @return records to go through while the transaction lives
     */
    public Sequence<Map.Entry<K, V>> range(Range range) {
        return mapped(table.range(range), this::decoded);
    }

    /**
     * A range of keys.
     *
     * @param from the first key that is in it; null for the first of all
     * @param to the first key that is not in it any more; null if there is none
     * @return the range
     */
    public Range rangeOf(K from, K to) {
        Range range = Range.all();
        range = from == null ? range : range.startingAt(key(from));
        return to == null ? range : range.endingBefore(key(to));
    }

    /**
     * The first record.
     *
     * @return the record, or null in an empty table
     */
    public Map.Entry<K, V> first() {
        return decoded(table.first());
    }

    /**
     * The last record.
     *
     * @return the record, or null in an empty table
     */
    public Map.Entry<K, V> last() {
        return decoded(table.last());
    }

    /**
     * Record {@code n} in order, from 0. Only in counted tables.
     *
     * @param n its number
     * @return the record, or null if there are not so many
     */
    public Map.Entry<K, V> nth(long n) {
        return decoded(table.nth(n));
    }

    /**
     * The number of records before those of a key. Only in counted tables.
     *
     * @param key the key
     * @return records
     */
    public long rank(K key) {
        return table.rank(key(key));
    }

    /**
     * The number of records in a range. Only in counted tables.
     *
     * @param range the range
     * @return records
     */
    public long rangeSize(Range range) {
        return table.rangeSize(range);
    }

    /**
     * The table as a map, sorted by {@link Codec#comparator}. It is a view, as long as the transaction lives: it
     * changes with the table, and the table through it in a write transaction. Its iterators go on after the key that
     * they gave last, whatever changes meanwhile. Keys and values cannot be null.
     *
     * @return the map
     * @throws ZubiloException.Invalid for a table with many values under a key
     */
    public NavigableMap<K, V> asMap() {
        if (type.isMultimap()) {
            throw new ZubiloException.Invalid("a table with many values under a key is no map");
        }
        return new TableMap<>(this, Range.all());
    }
}
