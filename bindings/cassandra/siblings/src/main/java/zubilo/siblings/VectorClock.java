package zubilo.siblings;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * What a version knows: for each writer the number of the last write of its that went into this one. Immutable.
 *
 * @param entries writers and their numbers
 */
public record VectorClock(SortedMap<String, Long> entries) {
    /** The clock of a key that nobody has written. */
    public static final VectorClock EMPTY = new VectorClock(new TreeMap<>());

    /** How two clocks stand to each other. */
    public enum Order {
        /** They know the same. */
        EQUAL,
        /** This one knows less. */
        BEFORE,
        /** This one knows more. */
        AFTER,
        /** Each knows a write that the other does not. */
        CONCURRENT
    }

    /**
     * A clock of these entries.
     *
     * @param entries writers and their numbers; copied
     */
    public VectorClock {
        entries = java.util.Collections.unmodifiableSortedMap(new TreeMap<>(entries));
    }

    /**
     * Compares two clocks.
     *
     * @param other the other one
     * @return how this one stands to the other
     */
    public Order compare(VectorClock other) {
        boolean more = knowsMoreThan(other);
        boolean less = other.knowsMoreThan(this);
        return more ? less ? Order.CONCURRENT : Order.AFTER : less ? Order.BEFORE : Order.EQUAL;
    }

    private boolean knowsMoreThan(VectorClock other) {
        return entries.entrySet().stream().anyMatch(entry -> entry.getValue() > other.entries.getOrDefault(entry.getKey(), Long.MIN_VALUE));
    }

    /**
     * Whether a version with this clock takes the place of one with the other.
     *
     * @param other the other one
     * @return whether this one knows all that the other does; each clock dominates itself
     */
    public boolean dominates(VectorClock other) {
        return !other.knowsMoreThan(this);
    }

    /**
     * A clock that knows what both know.
     *
     * @param other the other one
     * @return the new clock
     */
    public VectorClock merge(VectorClock other) {
        TreeMap<String, Long> all = new TreeMap<>(entries);
        other.entries.forEach((writer, number) -> all.merge(writer, number, Math::max));
        return new VectorClock(all);
    }

    /**
     * This clock and a write.
     *
     * @param writer who wrote
     * @param number the write's number, higher than those of the writer's earlier ones
     * @return the new clock
     */
    public VectorClock with(String writer, long number) {
        TreeMap<String, Long> all = new TreeMap<>(entries);
        all.put(writer, number);
        return new VectorClock(all);
    }

    /**
     * The clock as bytes. Equal clocks have equal bytes.
     *
     * @return for each writer, in order: the length of its name in UTF-8 (2 bytes), the name, the number (8 bytes)
     */
    public ByteBuffer toBytes() {
        ByteBuffer bytes = ByteBuffer.allocate(entries.keySet().stream().mapToInt(writer -> 10 + name(writer).length).sum());
        for (Map.Entry<String, Long> entry : entries.entrySet()) {
            byte[] name = name(entry.getKey());
            bytes.putShort((short) name.length).put(name).putLong(entry.getValue());
        }
        return bytes.flip();
    }

    private static byte[] name(String writer) {
        byte[] name = writer.getBytes(StandardCharsets.UTF_8);
        if (name.length > Short.MAX_VALUE) {
            throw new IllegalArgumentException("the name of a writer has " + name.length + " bytes");
        }
        return name;
    }

    /**
     * A clock from its bytes.
     *
     * @param bytes what {@link #toBytes} gave
     * @return the clock
     */
    public static VectorClock of(ByteBuffer bytes) {
        ByteBuffer left = bytes.slice();
        TreeMap<String, Long> entries = new TreeMap<>();
        while (left.hasRemaining()) {
            byte[] name = new byte[left.getShort()];
            left.get(name);
            entries.put(new String(name, StandardCharsets.UTF_8), left.getLong());
        }
        return new VectorClock(entries);
    }
}
