package zubilo;

import java.util.Map;

/**
 * A record: key and value. Both live as long as {@link Bytes} of its transaction do.
 *
 * @param key the key
 * @param value the value
 */
public record KeyValue(Bytes key, Bytes value) implements Map.Entry<Bytes, Bytes> {
    @Override
    public Bytes getKey() {
        return key;
    }

    @Override
    public Bytes getValue() {
        return value;
    }

    /**
     * Records cannot be changed through an entry.
     *
     * @param value ignored
     * @return never
     * @throws UnsupportedOperationException always
     */
    @Override
    public Bytes setValue(Bytes value) {
        throw new UnsupportedOperationException("put the record into its table");
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Map.Entry<?, ?> entry
                && key.equals(entry.getKey()) && value.equals(entry.getValue());
    }

    @Override
    public int hashCode() {
        return key.hashCode() ^ value.hashCode();
    }
}
