/* What the arena asks of an engine whose C interface is made of structures and macros, and so
 * cannot be called without its header. tools/arena-peers.sh compiles one library for each engine;
 * crates/arena/src/peers/shim.rs loads it. */
#ifndef ARENA_PEER_H
#define ARENA_PEER_H

#include <stddef.h>
#include <stdint.h>

enum { PEER_SYNC, PEER_LAZY, PEER_NOSYNC, PEER_VOLATILE };

/* Results besides 0 and the engine's own errors, which differ from these. */
enum { PEER_NONE = 1000001, PEER_AGAIN = 1000002 };

const char *peer_version(void);
const char *peer_error(int code);
/* How the class is given and why so; kept for ever. */
const char *peer_settings(int class_of_durability);
const char *peer_why(void);

int peer_open(const char *dir, int class_of_durability, size_t cache, void **store);
int peer_flush(void *store);
int peer_close(void *store);

int peer_session(void *store, void **session);
void peer_end(void *session);
int peer_begin(void *session, int writes);
int peer_commit(void *session);
void peer_abort(void *session);

/* What is given stays valid until the next call with the session. */
int peer_get(void *session, const void *key, size_t key_len, const void **value, size_t *value_len);
int peer_put(void *session, const void *key, size_t key_len, const void *value, size_t value_len);
int peer_delete(void *session, const void *key, size_t key_len);
/* The first record not less than the key, or the first of all if the key is null. */
int peer_seek(void *session, const void *key, size_t key_len, const void **found, size_t *found_len,
              const void **value, size_t *value_len);
int peer_next(void *session, const void **found, size_t *found_len, const void **value,
              size_t *value_len);
/* Ends a walk. */
void peer_rest(void *session);

/* Copies the open store to a directory that is there and empty. */
int peer_backup(void *store, const char *dir);

/* Makes the store as small as the engine can in its place. */
int peer_compact(void *store);

/* Tables of pairs beside the records, many values under a key: 0 and 1. Opened before any session that
 * uses them. */
enum { PEER_PAIRS = 2 };
int peer_tables(void *store);
int peer_pair(void *session, int pairs, const void *key, size_t key_len, const void *value,
              size_t value_len, int gone);
/* At most so many values under a key, with the records that they name if these are wanted. */
typedef void peer_see(void *context, const void *value, size_t value_len, const void *record,
                      size_t record_len);
int peer_find(void *session, int pairs, const void *key, size_t key_len, uint64_t most, int records,
              peer_see *see, void *context, uint64_t *count);

#endif
