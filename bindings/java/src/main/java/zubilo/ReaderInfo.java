package zubilo;

/**
 * A live read transaction, in any process.
 *
 * @param process number of its process
 * @param thread its thread, as the system numbers threads
 * @param snapshot number of the commit that it reads
 * @param lag commits made since
 */
public record ReaderInfo(long process, long thread, long snapshot, long lag) {}
