/**
 * A persistent memtable for Apache Cassandra 5.0: tables that choose it live in a Zubilo store.
 *
 * <p>{@link zubilo.cassandra.ZubiloMemtable} is what Cassandra sees, and the only class that depends on the memtable
 * interface of one Cassandra version. Below it, one class each for: the storage of one table
 * ({@code Generation}), the layout of keys ({@code Keys}), the encoding of rows and deletions ({@code RowCodec}),
 * reading of one partition ({@code PartitionReader}) and of a range of partitions ({@code RangeScan}).
 */
package zubilo.cassandra;
