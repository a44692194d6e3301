import java.io.Closeable;
import java.util.List;

/** What is measured of a store. Values are at least 8 bytes long. */
interface Engine extends Closeable {
    /** Fills the store with sorted records, in one go. */
    void load(Iterable<byte[][]> records) throws Exception;

    /** Everything between this and {@link #end} reads one snapshot, where there are snapshots. */
    void begin() throws Exception;

    void end() throws Exception;

    /** A copy of the value. */
    byte[] get(byte[] key) throws Exception;

    /** The first 8 bytes of the value, big-endian, read the cheapest way there is. */
    long peek(byte[] key) throws Exception;

    /** The xor of the same of many keys. */
    long peekAll(List<byte[]> keys) throws Exception;

    /** Goes through all records; xor of the first 8 bytes of the values. */
    long scan() throws Exception;

    /** Stores a record; it is on disk when this returns. By many threads at once. */
    void put(byte[] key, byte[] value) throws Exception;
}
