package zubilo.cassandra;

/** What an operator can ask of the tables that have this memtable, by JMX or {@code nodetool sjk mx}. */
public interface UpkeepMXBean {
    /**
     * Removes at once what lies in ranges that are not this node's, without waiting for the time that the
     * configuration names.
     *
     * @param keyspace the tables' keyspace
     * @return how many records were removed
     */
    long cleanup(String keyspace);

    /**
     * Removes at once what has expired, and old tombstones.
     *
     * @param keyspace the tables' keyspace
     * @return how many entries of expiry indexes were dealt with
     */
    long purge(String keyspace);
}
