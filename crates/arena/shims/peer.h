/* What the arena asks of an engine whose C interface is made of structures and macros, and so
 * cannot be called without its header. tools/arena-peers.sh compiles one library for each engine;
 * crates/arena/src/peers/shim.rs loads it. */
#ifndef ARENA_PEER_H
#define ARENA_PEER_H

#include <stddef.h>

enum { PEER_SYNC, PEER_LAZY, PEER_NOSYNC, PEER_VOLATILE };

/* Results besides 0 and the engine's own errors, which are told apart from these. */
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

#endif
