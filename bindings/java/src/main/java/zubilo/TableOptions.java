package zubilo;

/**
 * What is fixed when a table is created. Options do not change: each method gives others.
 *
 * <p>Orders by a function of the program's are not offered to Java. A table that Rust or C made with one
 * can be listed and dropped; to open it is refused ({@link ZubiloException.Incompatible}).
 */
public final class TableOptions {
    private static final TableOptions DEFAULT = new TableOptions(0);
    private static final long DUPLICATES = 1 << 4;
    private static final long FIXED = 1 << 5;
    private static final long COUNTED = 1 << 6;

    /** As the native side has them. */
    final long bits;

    TableOptions(long bits) {
        this.bits = bits;
    }

    /**
     * Keys in byte order, one value under a key.
     *
     * @return the options
     */
    public static TableOptions defaults() {
        return DEFAULT;
    }

    /**
     * Sorts the keys so.
     *
     * @param order the order
     * @return other options
     */
    public TableOptions keyOrder(KeyOrder order) {
        return new TableOptions(bits & ~3L | order.ordinal());
    }

    /**
     * Keeps many values under a key, sorted and each once. A value is then as short as a key must be.
     *
     * @return other options
     */
    public TableOptions duplicates() {
        return new TableOptions(bits | DUPLICATES);
    }

    /**
     * Keeps many values under a key, all of one size, that of the first, and packs them.
     *
     * @return other options
     */
    public TableOptions fixedDuplicates() {
        return new TableOptions(bits | DUPLICATES | FIXED);
    }

    /**
     * Keeps many values under a key, sorted so.
     *
     * @param order the order
     * @return other options
     */
    public TableOptions valueOrder(KeyOrder order) {
        return new TableOptions(bits & ~(3L << 2) | (long) order.ordinal() << 2 | DUPLICATES);
    }

    /**
     * Counts records in the pages above them, so that {@link Table#nth}, {@link Table#rank(byte[])} and
     * {@link Table#rangeSize} cost a look-up or two.
     *
     * @return other options
     */
    public TableOptions counted() {
        return new TableOptions(bits | COUNTED);
    }

    /**
     * Aligns values to 2, 4, 8 or 16 bytes; not with many values under a key.
     *
     * @param bytes the alignment; 1 is none
     * @return other options
     * @throws IllegalArgumentException if the number is another
     */
    public TableOptions alignValues(int bytes) {
        if (bytes < 1 || bytes > 16 || Integer.bitCount(bytes) != 1) {
            throw new IllegalArgumentException("values can be aligned to 1, 2, 4, 8 or 16 bytes");
        }
        return new TableOptions(bits & ~(7L << 7) | (long) Integer.numberOfTrailingZeros(bytes) << 7);
    }

    /**
     * The order of the keys.
     *
     * @return the order
     */
    public KeyOrder keyOrder() {
        return KeyOrder.values()[(int) (bits & 3)];
    }

    /**
     * The order of the values of a key.
     *
     * @return the order
     */
    public KeyOrder valueOrder() {
        return KeyOrder.values()[(int) (bits >> 2 & 3)];
    }

    /**
     * Whether a key can have many values.
     *
     * @return true if so
     */
    public boolean hasDuplicates() {
        return (bits & DUPLICATES) != 0;
    }

    /**
     * Whether all values have one size.
     *
     * @return true if so
     */
    public boolean hasFixedValues() {
        return (bits & FIXED) != 0;
    }

    /**
     * Whether records are counted.
     *
     * @return true if so
     */
    public boolean isCounted() {
        return (bits & COUNTED) != 0;
    }

    /**
     * To how many bytes values are aligned.
     *
     * @return bytes; 1 is not at all
     */
    public int alignment() {
        return 1 << (bits >> 7 & 7);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TableOptions && ((TableOptions) other).bits == bits;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(bits);
    }

    @Override
    public String toString() {
        return "TableOptions[keys " + keyOrder() + (hasDuplicates() ? ", duplicates " + valueOrder() : "")
                + (hasFixedValues() ? ", fixed" : "") + (isCounted() ? ", counted" : "")
                + (alignment() > 1 ? ", aligned to " + alignment() : "") + "]";
    }
}
