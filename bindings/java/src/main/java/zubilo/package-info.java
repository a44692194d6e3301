/**
 * An embedded, transactional, ordered key-value store in one memory-mapped file.
 *
 * <p>{@link zubilo.Env} is an open store. {@link zubilo.ReadTxn} is a snapshot: it never waits, and what
 * it reads never changes. {@link zubilo.WriteTxn} is the one transaction that changes the store;
 * {@link zubilo.Env#update} lets many threads share one commit. {@link zubilo.Table} has records of
 * bytes, {@link zubilo.TypedTable} records of Java types.
 *
 * <h2>Lifetimes</h2>
 * A {@link zubilo.Bytes} that a read transaction gives is a view of the memory map on JDK 22 and newer.
 * It is valid until the transaction is closed; a later access throws
 * {@link java.lang.IllegalStateException}. On JDK 17 to 21 it is a copy, and so is everywhere what a write
 * transaction gives. Methods that give {@code byte[]} always copy.
 *
 * <h2>Threads</h2>
 * {@link zubilo.Env} can be used by all threads at once. {@link zubilo.Env#read} gives a transaction that
 * belongs to its thread, {@link zubilo.Env#readShared} one for all threads. A {@link zubilo.WriteTxn}
 * of {@link zubilo.Env#write} can be handed from thread to thread, one at a time. Virtual threads are
 * threads like others.
 *
 * <h2>Units</h2>
 * Sizes and lengths are bytes unless the name says otherwise.
 */
package zubilo;
