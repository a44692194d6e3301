package zubilo;

/** How keys, or the values of a key, are sorted. */
public enum KeyOrder {
    /** Byte by byte, the shorter first where one begins with the other. */
    BYTES,
    /** From the last byte to the first. */
    REVERSED,
    /** Numbers of 4 or 8 bytes, little-endian, all of one size. */
    INTEGER
}
