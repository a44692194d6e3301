package zubilo.siblings;

import java.nio.ByteBuffer;

/**
 * A version of a key.
 *
 * @param clock what it knows
 * @param value its bytes
 */
public record Version(VectorClock clock, ByteBuffer value) {}
