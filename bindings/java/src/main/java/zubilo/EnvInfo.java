package zubilo;

import java.util.UUID;

/**
 * State and size of a store.
 *
 * @param pageSize bytes of a page
 * @param newest number of the newest commit
 * @param steady number of the newest commit that is known to be on disk
 * @param fileLength length of the file in bytes
 * @param usedLength bytes up to the last page ever used
 * @param reserved bytes of address space reserved for the map
 * @param maxReaders slots of the reader table
 * @param readers live read transactions, of all processes
 * @param id identity of the store, given at creation
 */
public record EnvInfo(int pageSize, long newest, long steady, long fileLength, long usedLength, long reserved,
        int maxReaders, int readers, UUID id) {}
