package zubilo;

import java.util.AbstractCollection;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.SortedSet;

/**
 * A part of a table as a map. All that it knows is the table and a range, whose direction is the map's: so parts of parts
 * are other ranges.
 */
final class TableMap<K, V> extends AbstractMap<K, V> implements NavigableMap<K, V> {
    private final TypedTable<K, V> table;
    private final Range range;

    TableMap(TypedTable<K, V> table, Range range) {
        this.table = table;
        this.range = range;
    }

    private Comparator<K> order() {
        return table.type.keys.comparator();
    }

    private TypedWriteTable<K, V> writing() {
        if (table instanceof TypedWriteTable<K, V> writing) {
            return writing;
        }
        throw new UnsupportedOperationException("the map of a read transaction cannot be changed");
    }

    @SuppressWarnings("unchecked")
    private byte[] encoded(Object key) {
        return table.key((K) Objects.requireNonNull(key));
    }

    // ---- bounds ----

    private int compare(byte[] a, byte[] b) {
        return table.type.keys.order() == KeyOrder.INTEGER ? integers(a, b) : Arrays.compareUnsigned(a, b);
    }

    private static int integers(byte[] a, byte[] b) {
        int order = 0;
        for (int i = a.length - 1; i >= 0 && order == 0; i--) {
            order = Byte.compareUnsigned(a[i], b[i]);
        }
        return order;
    }

    private boolean within(byte[] key) {
        return isAboveStart(key) && isBelowEnd(key);
    }

    /** A bound of a part may be the bound of the whole, also where that is not in it. */
    private byte[] bound(byte[] key, boolean inclusive) {
        boolean atStart = range.startKind == 2 && Arrays.equals(key, range.start);
        boolean atEnd = range.endKind == 2 && Arrays.equals(key, range.end);
        if (!within(key) && (inclusive || !atStart && !atEnd)) {
            throw new IllegalArgumentException("the key is outside of this part of the map");
        }
        return key;
    }

    /** Narrowed at the start as the map goes: at the end of the range if it goes backwards. */
    private Range starting(Range of, byte[] key, boolean inclusive) {
        if (of.reversed) {
            return inclusive ? of.endingWith(key) : of.endingBefore(key);
        }
        return inclusive ? of.startingAt(key) : of.startingAfter(key);
    }

    private Range ending(Range of, byte[] key, boolean inclusive) {
        if (of.reversed) {
            return inclusive ? of.startingAt(key) : of.startingAfter(key);
        }
        return inclusive ? of.endingWith(key) : of.endingBefore(key);
    }

    // ---- look-ups ----

    @Override
    public V get(Object key) {
        byte[] bytes = encoded(key);
        return within(bytes) ? table.decoded(table.table.view(bytes)) : null;
    }

    @Override
    public boolean containsKey(Object key) {
        byte[] bytes = encoded(key);
        return within(bytes) && table.table.containsKey(bytes);
    }

    @Override
    public int size() {
        long size = range.startKind == 0 && range.endKind == 0 ? table.size() : counted();
        return (int) Math.min(Integer.MAX_VALUE, size);
    }

    private long counted() {
        if (table.table.options().isCounted()) {
            return table.rangeSize(range);
        }
        long size = 0;
        for (KeyValue entry : table.table.range(range)) {
            size++;
        }
        return size;
    }

    @Override
    public boolean isEmpty() {
        return table.table.first(range) == null;
    }

    @Override
    public Comparator<? super K> comparator() {
        return range.reversed ? order().reversed() : order();
    }

    private Map.Entry<K, V> one(Range of) {
        return table.decoded(table.table.first(of));
    }

    private static <K> K keyOf(Map.Entry<K, ?> entry) {
        return entry == null ? null : entry.getKey();
    }

    private static <K> K keyOrThrow(Map.Entry<K, ?> entry) {
        if (entry == null) {
            throw new NoSuchElementException("the map is empty");
        }
        return entry.getKey();
    }

    /** The first record, as the map goes, after a key or on it. */
    private Map.Entry<K, V> after(K key, boolean inclusive) {
        byte[] bytes = encoded(key);
        if (within(bytes)) {
            return one(starting(range, bytes, inclusive));
        }
        // Before the range: all of it is after the key; else nothing is.
        boolean before = range.reversed ? !isBelowEnd(bytes) : !isAboveStart(bytes);
        return before ? firstEntry() : null;
    }

    private boolean isAboveStart(byte[] key) {
        int low = range.startKind == 0 ? 1 : compare(key, range.start);
        return low > 0 || low == 0 && range.startKind == 1;
    }

    private boolean isBelowEnd(byte[] key) {
        int high = range.endKind == 0 ? -1 : compare(key, range.end);
        return high < 0 || high == 0 && range.endKind == 1;
    }

    private TableMap<K, V> turned() {
        return new TableMap<>(table, range.reversed());
    }

    @Override
    public Map.Entry<K, V> firstEntry() {
        return one(range);
    }

    @Override
    public Map.Entry<K, V> lastEntry() {
        return one(range.reversed());
    }

    @Override
    public Map.Entry<K, V> ceilingEntry(K key) {
        return after(key, true);
    }

    @Override
    public Map.Entry<K, V> higherEntry(K key) {
        return after(key, false);
    }

    @Override
    public Map.Entry<K, V> floorEntry(K key) {
        return turned().after(key, true);
    }

    @Override
    public Map.Entry<K, V> lowerEntry(K key) {
        return turned().after(key, false);
    }

    @Override
    public K firstKey() {
        return keyOrThrow(firstEntry());
    }

    @Override
    public K lastKey() {
        return keyOrThrow(lastEntry());
    }

    @Override
    public K lowerKey(K key) {
        return keyOf(lowerEntry(key));
    }

    @Override
    public K floorKey(K key) {
        return keyOf(floorEntry(key));
    }

    @Override
    public K ceilingKey(K key) {
        return keyOf(ceilingEntry(key));
    }

    @Override
    public K higherKey(K key) {
        return keyOf(higherEntry(key));
    }

    // ---- changes ----

    @Override
    public V put(K key, V value) {
        TypedWriteTable<K, V> writing = writing();
        byte[] bytes = encoded(key);
        Objects.requireNonNull(value);
        if (!within(bytes)) {
            throw new IllegalArgumentException("the key is outside of this part of the map");
        }
        V old = table.decoded(table.table.view(bytes));
        writing.bytes().put(bytes, table.value(value));
        return old;
    }

    @Override
    public V remove(Object key) {
        TypedWriteTable<K, V> writing = writing();
        byte[] bytes = encoded(key);
        if (!within(bytes)) {
            return null;
        }
        V old = table.decoded(table.table.view(bytes));
        writing.bytes().delete(bytes);
        return old;
    }

    @Override
    public void clear() {
        writing().deleteRange(range);
    }

    private Map.Entry<K, V> poll(Range of) {
        TypedWriteTable<K, V> writing = writing();
        KeyValue entry = table.table.first(of);
        if (entry != null) {
            writing.bytes().delete(entry.key().toByteArray());
        }
        return table.decoded(entry);
    }

    @Override
    public Map.Entry<K, V> pollFirstEntry() {
        return poll(range);
    }

    @Override
    public Map.Entry<K, V> pollLastEntry() {
        return poll(range.reversed());
    }

    // ---- views ----

    @Override
    public NavigableMap<K, V> descendingMap() {
        return turned();
    }

    @Override
    public NavigableMap<K, V> subMap(K from, boolean fromInclusive, K to, boolean toInclusive) {
        @SuppressWarnings("unchecked")
        Comparator<K> order = (Comparator<K>) comparator();
        if (order.compare(from, to) > 0) {
            throw new IllegalArgumentException("the start is past the end");
        }
        Range part = starting(range, bound(encoded(from), fromInclusive), fromInclusive);
        return new TableMap<>(table, ending(part, bound(encoded(to), toInclusive), toInclusive));
    }

    @Override
    public NavigableMap<K, V> headMap(K to, boolean inclusive) {
        return new TableMap<>(table, ending(range, bound(encoded(to), inclusive), inclusive));
    }

    @Override
    public NavigableMap<K, V> tailMap(K from, boolean inclusive) {
        return new TableMap<>(table, starting(range, bound(encoded(from), inclusive), inclusive));
    }

    @Override
    public NavigableMap<K, V> subMap(K from, K to) {
        return subMap(from, true, to, false);
    }

    @Override
    public NavigableMap<K, V> headMap(K to) {
        return headMap(to, false);
    }

    @Override
    public NavigableMap<K, V> tailMap(K from) {
        return tailMap(from, true);
    }

    /** An iterator that removes through its map. */
    private <T> Iterator<T> iterator(java.util.function.Function<KeyValue, T> by) {
        Iterator<KeyValue> records = table.table.range(range).iterator();
        return new Iterator<>() {
            private byte[] last;

            @Override
            public boolean hasNext() {
                return records.hasNext();
            }

            @Override
            public T next() {
                KeyValue entry = records.next();
                last = table instanceof TypedWriteTable ? entry.key().toByteArray() : null;
                return by.apply(entry);
            }

            @Override
            public void remove() {
                TypedWriteTable<K, V> writing = writing();
                if (last == null) {
                    throw new IllegalStateException("there is nothing to remove");
                }
                writing.bytes().delete(last);
                last = null;
            }
        };
    }

    @Override
    public Set<Map.Entry<K, V>> entrySet() {
        return new AbstractSet<>() {
            @Override
            public Iterator<Map.Entry<K, V>> iterator() {
                return TableMap.this.iterator(TableMap.this::settable);
            }

            @Override
            public int size() {
                return TableMap.this.size();
            }

            @Override
            public boolean isEmpty() {
                return TableMap.this.isEmpty();
            }

            @Override
            public boolean contains(Object object) {
                return object instanceof Map.Entry<?, ?> entry && entry.getKey() != null
                        && Objects.equals(get(entry.getKey()), entry.getValue()) && containsKey(entry.getKey());
            }

            @Override
            public boolean remove(Object object) {
                return contains(object) && TableMap.this.remove(((Map.Entry<?, ?>) object).getKey()) != null;
            }

            @Override
            public void clear() {
                TableMap.this.clear();
            }
        };
    }

    /** An entry whose new value goes into the table. */
    private Map.Entry<K, V> settable(KeyValue entry) {
        Map.Entry<K, V> decoded = table.decoded(entry);
        return new SimpleEntry<>(decoded.getKey(), decoded.getValue()) {
            private static final long serialVersionUID = 1L;

            @Override
            public V setValue(V value) {
                TableMap.this.put(getKey(), value);
                return super.setValue(value);
            }
        };
    }

    @Override
    public Collection<V> values() {
        return new AbstractCollection<>() {
            @Override
            public Iterator<V> iterator() {
                return TableMap.this.iterator(entry -> table.decoded(entry.value()));
            }

            @Override
            public int size() {
                return TableMap.this.size();
            }

            @Override
            public void clear() {
                TableMap.this.clear();
            }
        };
    }

    @Override
    public NavigableSet<K> keySet() {
        return navigableKeySet();
    }

    @Override
    public NavigableSet<K> navigableKeySet() {
        return new Keys();
    }

    @Override
    public NavigableSet<K> descendingKeySet() {
        return descendingMap().navigableKeySet();
    }

    /** The keys, as a set: all of it is the map's. */
    private final class Keys extends AbstractSet<K> implements NavigableSet<K> {
        @Override
        public Iterator<K> iterator() {
            return TableMap.this.iterator(entry -> table.type.keys.decode(entry.key()));
        }

        @Override
        public int size() {
            return TableMap.this.size();
        }

        @Override
        public boolean isEmpty() {
            return TableMap.this.isEmpty();
        }

        @Override
        public boolean contains(Object key) {
            return containsKey(key);
        }

        @Override
        public boolean remove(Object key) {
            boolean there = containsKey(key);
            TableMap.this.remove(key);
            return there;
        }

        @Override
        public void clear() {
            TableMap.this.clear();
        }

        @Override
        public Comparator<? super K> comparator() {
            return TableMap.this.comparator();
        }

        @Override
        public K first() {
            return firstKey();
        }

        @Override
        public K last() {
            return lastKey();
        }

        @Override
        public K lower(K key) {
            return lowerKey(key);
        }

        @Override
        public K floor(K key) {
            return floorKey(key);
        }

        @Override
        public K ceiling(K key) {
            return ceilingKey(key);
        }

        @Override
        public K higher(K key) {
            return higherKey(key);
        }

        @Override
        public K pollFirst() {
            return keyOf(pollFirstEntry());
        }

        @Override
        public K pollLast() {
            return keyOf(pollLastEntry());
        }

        @Override
        public NavigableSet<K> descendingSet() {
            return descendingKeySet();
        }

        @Override
        public Iterator<K> descendingIterator() {
            return descendingSet().iterator();
        }

        @Override
        public NavigableSet<K> subSet(K from, boolean fromInclusive, K to, boolean toInclusive) {
            return subMap(from, fromInclusive, to, toInclusive).navigableKeySet();
        }

        @Override
        public NavigableSet<K> headSet(K to, boolean inclusive) {
            return headMap(to, inclusive).navigableKeySet();
        }

        @Override
        public NavigableSet<K> tailSet(K from, boolean inclusive) {
            return tailMap(from, inclusive).navigableKeySet();
        }

        @Override
        public SortedSet<K> subSet(K from, K to) {
            return subSet(from, true, to, false);
        }

        @Override
        public SortedSet<K> headSet(K to) {
            return headSet(to, false);
        }

        @Override
        public SortedSet<K> tailSet(K from) {
            return tailSet(from, true);
        }
    }
}
