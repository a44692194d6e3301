/**
 * Keys with versions: a client that was away overwrites nothing that it has not seen. Built on tables of Apache Cassandra
 * with a row for each version.
 */
package zubilo.siblings;
