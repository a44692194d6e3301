package zubilo;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A range of keys, and the direction in which to go through it. Ranges do not change: each method gives
 * another one. They are made of any bounds that the table's order has, so a start past the end is an
 * empty range.
 */
public final class Range {
    private static final Range ALL = new Range(0, new byte[0], 0, new byte[0], false);

    /** 0 open, 1 included, 2 excluded, as the native side has it. */
    final int startKind;
    final byte[] start;
    final int endKind;
    final byte[] end;
    final boolean reversed;

    Range(int startKind, byte[] start, int endKind, byte[] end, boolean reversed) {
        this.startKind = startKind;
        this.start = start;
        this.endKind = endKind;
        this.end = end;
        this.reversed = reversed;
    }

    /**
     * All keys, from the first to the last.
     *
     * @return the range
     */
    public static Range all() {
        return ALL;
    }

    /**
     * The keys from {@code start} on.
     *
     * @param start the first key that is in it
     * @return the range
     */
    public static Range from(byte[] start) {
        return ALL.startingAt(start);
    }

    /**
     * The keys below {@code end}.
     *
     * @param end the first key that is not in it any more
     * @return the range
     */
    public static Range to(byte[] end) {
        return ALL.endingBefore(end);
    }

    /**
     * The keys from {@code start} on and below {@code end}.
     *
     * @param start the first key that is in it
     * @param end the first key that is not in it any more
     * @return the range
     */
    public static Range between(byte[] start, byte[] end) {
        return ALL.startingAt(start).endingBefore(end);
    }

    /**
     * One key, with all its values.
     *
     * @param key the key
     * @return the range
     */
    public static Range only(byte[] key) {
        return ALL.startingAt(key).endingWith(key);
    }

    /**
     * The same, beginning with {@code key}.
     *
     * @param key the first key that is in it
     * @return another range
     */
    public Range startingAt(byte[] key) {
        return new Range(1, key.clone(), endKind, end, reversed);
    }

    /**
     * The same, beginning after {@code key}.
     *
     * @param key the last key that is not in it yet
     * @return another range
     */
    public Range startingAfter(byte[] key) {
        return new Range(2, key.clone(), endKind, end, reversed);
    }

    /**
     * The same, ending with {@code key}.
     *
     * @param key the last key that is in it
     * @return another range
     */
    public Range endingWith(byte[] key) {
        return new Range(startKind, start, 1, key.clone(), reversed);
    }

    /**
     * The same, ending before {@code key}.
     *
     * @param key the first key that is not in it any more
     * @return another range
     */
    public Range endingBefore(byte[] key) {
        return new Range(startKind, start, 2, key.clone(), reversed);
    }

    /**
     * The same range in the other direction.
     *
     * @return another range
     */
    public Range reversed() {
        return new Range(startKind, start, endKind, end, !reversed);
    }

    /** The keys that begin with a prefix, or in reversed order end with it. */
    static Range prefix(byte[] prefix, KeyOrder order) {
        if (order == KeyOrder.INTEGER) {
            throw new ZubiloException.Invalid("integers have no prefixes");
        }
        boolean turned = order == KeyOrder.REVERSED;
        byte[] end = turned ? turn(prefix) : prefix.clone();
        int len = end.length;
        while (len > 0 && end[len - 1] == (byte) 0xff) {
            len--;
        }
        if (len == 0) {
            return from(prefix);
        }
        end = Arrays.copyOf(end, len);
        end[len - 1]++;
        return between(prefix, turned ? turn(end) : end);
    }

    private static byte[] turn(byte[] bytes) {
        byte[] turned = new byte[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            turned[i] = bytes[bytes.length - 1 - i];
        }
        return turned;
    }

    /** Bytes that {@link #write} needs. */
    long length(KeyValue after) {
        long resume = after == null ? 0 : after.key().size() + after.value().size();
        return 28L + start.length + end.length + resume;
    }

    /** Writes the request that the native side reads, with the record to go on after, if there is one. */
    void write(ByteBuffer out, KeyValue after) {
        out.position(0);
        out.putInt(startKind).putInt(start.length).put(start);
        out.putInt(endKind).putInt(end.length).put(end);
        if (after == null) {
            out.putInt(0);
            return;
        }
        byte[] key = after.key().toByteArray();
        byte[] value = after.value().toByteArray();
        out.putInt(1).putInt(key.length).putInt(value.length).put(key).put(value);
    }
}
