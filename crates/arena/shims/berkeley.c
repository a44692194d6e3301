/* Berkeley DB: a B-tree in a transactional environment, locks on pages.
 *
 * SYNC: transactions as they are, one flush of the log each. LAZY and NOSYNC: DB_TXN_WRITE_NOSYNC,
 * the log is written to the kernel by each commit; pages are written after their log, so a power
 * cut leaves an earlier commit. VOLATILE: DB_TXN_NOSYNC, the log waits in memory; it cannot be left
 * out where there are transactions. Reads take the lock of one page at a time, there is no
 * snapshot. Checkpoints after 32 MiB of log, old logs removed. */
#include "peer.h"

#include <db.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 1 << 16, CHECKPOINT_KIB = 32 << 10, LOG_BYTES = 64 << 20, BUFFER = 16 << 20 };

struct store {
    DB_ENV *env;
    DB *db;
    /* Tables of pairs, once they are open: sorted duplicates. */
    DB *pairs[PEER_PAIRS];
    /* Commits since the last look at the log's size. */
    unsigned commits;
};

struct session {
    struct store *store;
    DB_TXN *txn;
    DBC *cursor;
    DBT key, value;
};

const char *peer_version(void) { return db_version(NULL, NULL, NULL); }

const char *peer_error(int code) { return db_strerror(code); }

const char *peer_settings(int class_of_durability) {
    static const char *const all[] = {
        "transactions, log flushed by each commit",
        "DB_TXN_WRITE_NOSYNC",
        "DB_TXN_WRITE_NOSYNC",
        "DB_TXN_NOSYNC",
    };
    return all[class_of_durability];
}

const char *peer_why(void) {
    return "its manual: DB_ENV->set_flags; checkpoint each 32 MiB of log, DB_LOG_AUTO_REMOVE";
}

int peer_close(void *of) {
    struct store *store = of;
    int code = 0, other, i;

    for (i = 0; i < PEER_PAIRS; i++)
        if (store->pairs[i] != NULL && (other = store->pairs[i]->close(store->pairs[i], 0)) != 0)
            code = other;
    if (store->db != NULL && (other = store->db->close(store->db, 0)) != 0)
        code = other;
    if (store->env != NULL) {
        other = store->env->txn_checkpoint(store->env, 0, 0, DB_FORCE);
        code = code != 0 ? code : other;
        other = store->env->close(store->env, 0);
        code = code != 0 ? code : other;
    }
    free(store);
    return code;
}

static int set_up(DB_ENV *env, int class_of_durability, size_t cache) {
    u_int32_t gigabytes = (u_int32_t)(cache >> 30), rest = (u_int32_t)(cache & ((1u << 30) - 1));
    /* A transaction of 10,000 records locks as many pages. Where memory is limited there are only small ones, and
     * the tables, which have their size from the start, would take 25 MB more. */
    u_int32_t locks = cache < 256u << 20 ? 20000 : 400000;
    int code = env->set_cachesize(env, gigabytes, rest, 1);

    code = code != 0 ? code : env->set_lg_bsize(env, BUFFER);
    code = code != 0 ? code : env->set_lg_max(env, LOG_BYTES);
    code = code != 0 ? code : env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1);
    code = code != 0 ? code : env->set_lk_detect(env, DB_LOCK_DEFAULT);
    code = code != 0 ? code : env->set_lk_max_locks(env, locks);
    code = code != 0 ? code : env->set_lk_max_objects(env, locks);
    if (class_of_durability == PEER_LAZY || class_of_durability == PEER_NOSYNC)
        code = code != 0 ? code : env->set_flags(env, DB_TXN_WRITE_NOSYNC, 1);
    if (class_of_durability == PEER_VOLATILE)
        code = code != 0 ? code : env->set_flags(env, DB_TXN_NOSYNC, 1);
    return code;
}

int peer_open(const char *dir, int class_of_durability, size_t cache, void **out) {
    struct store *store = calloc(1, sizeof *store);
    u_int32_t parts = DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_MPOOL | DB_INIT_TXN | DB_RECOVER;
    int code;

    if (store == NULL)
        return DB_RUNRECOVERY;
    if ((code = db_env_create(&store->env, 0)) == 0) {
        code = set_up(store->env, class_of_durability, cache);
        if (code == 0)
            code = store->env->open(store->env, dir, DB_CREATE | DB_THREAD | DB_PRIVATE | parts, 0);
    }
    if (code == 0)
        code = db_create(&store->db, store->env, 0);
    if (code == 0)
        code = store->db->open(store->db, NULL, "records", NULL, DB_BTREE,
                               DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0644);
    if (code != 0)
        peer_close(store);
    else
        *out = store;
    return code;
}

int peer_flush(void *of) {
    struct store *store = of;
    return store->env->log_flush(store->env, NULL);
}

int peer_session(void *store, void **out) {
    struct session *own = calloc(1, sizeof *own);

    if (own == NULL)
        return DB_RUNRECOVERY;
    own->store = store;
    own->key.flags = own->value.flags = DB_DBT_USERMEM;
    own->key.ulen = own->value.ulen = KEPT;
    own->key.data = malloc(KEPT);
    own->value.data = malloc(KEPT);
    if (own->key.data == NULL || own->value.data == NULL) {
        peer_end(own);
        return DB_RUNRECOVERY;
    }
    *out = own;
    return 0;
}

void peer_end(void *session) {
    struct session *own = session;
    free(own->key.data);
    free(own->value.data);
    free(own);
}

static int checked(int code) {
    if (code == DB_NOTFOUND)
        return PEER_NONE;
    return code == DB_LOCK_DEADLOCK || code == DB_LOCK_NOTGRANTED ? PEER_AGAIN : code;
}

int peer_begin(void *session, int writes) {
    struct session *own = session;
    DB_ENV *env = own->store->env;
    own->txn = NULL;
    return writes ? checked(env->txn_begin(env, NULL, &own->txn, 0)) : 0;
}

int peer_commit(void *session) {
    struct session *own = session;
    struct store *store = own->store;
    DB_TXN *txn = own->txn;
    int code;

    own->txn = NULL;
    if (txn == NULL)
        return 0;
    code = txn->commit(txn, 0);
    if (code == 0 && __atomic_add_fetch(&store->commits, 1, __ATOMIC_RELAXED) % 256 == 0)
        code = store->env->txn_checkpoint(store->env, CHECKPOINT_KIB, 0, 0);
    return checked(code);
}

void peer_abort(void *session) {
    struct session *own = session;
    if (own->txn != NULL)
        own->txn->abort(own->txn);
    own->txn = NULL;
}

/* Makes room for a value that did not fit; whether to try again. */
static int widen(DBT *item, int code) {
    void *larger;
    if (code != DB_BUFFER_SMALL || item->size <= item->ulen)
        return 0;
    if ((larger = realloc(item->data, item->size)) == NULL)
        return 0;
    item->data = larger;
    item->ulen = item->size;
    return 1;
}

static DBT given(const void *data, size_t len) {
    DBT item;
    memset(&item, 0, sizeof item);
    item.data = (void *)data;
    item.size = (u_int32_t)len;
    return item;
}

int peer_get(void *session, const void *key, size_t key_len, const void **value, size_t *value_len) {
    struct session *own = session;
    DB *db = own->store->db;
    DBT name = given(key, key_len);
    int code;

    do
        code = db->get(db, own->txn, &name, &own->value, 0);
    while (widen(&own->value, code));
    *value = own->value.data;
    *value_len = own->value.size;
    return checked(code);
}

int peer_put(void *session, const void *key, size_t key_len, const void *value, size_t value_len) {
    struct session *own = session;
    DB *db = own->store->db;
    DBT name = given(key, key_len), item = given(value, value_len);
    return checked(db->put(db, own->txn, &name, &item, 0));
}

int peer_delete(void *session, const void *key, size_t key_len) {
    struct session *own = session;
    DB *db = own->store->db;
    DBT name = given(key, key_len);
    return checked(db->del(db, own->txn, &name, 0));
}

static int step(struct session *own, u_int32_t how, const void **found, size_t *found_len,
                const void **value, size_t *value_len) {
    int code;

    do
        code = own->cursor->get(own->cursor, &own->key, &own->value, how);
    while (widen(&own->key, code) || widen(&own->value, code));
    *found = own->key.data;
    *found_len = own->key.size;
    *value = own->value.data;
    *value_len = own->value.size;
    return checked(code);
}

int peer_seek(void *session, const void *key, size_t key_len, const void **found, size_t *found_len,
              const void **value, size_t *value_len) {
    struct session *own = session;
    DB *db = own->store->db;
    int code;

    peer_rest(session);
    if ((code = db->cursor(db, own->txn, &own->cursor, DB_READ_COMMITTED)) != 0)
        return checked(code);
    if (key != NULL && key_len <= own->key.ulen) {
        memcpy(own->key.data, key, key_len);
        own->key.size = (u_int32_t)key_len;
    }
    return step(own, key == NULL ? DB_FIRST : DB_SET_RANGE, found, found_len, value, value_len);
}

int peer_next(void *session, const void **found, size_t *found_len, const void **value,
              size_t *value_len) {
    return step(session, DB_NEXT, found, found_len, value, value_len);
}

void peer_rest(void *session) {
    struct session *own = session;
    if (own->cursor != NULL)
        own->cursor->close(own->cursor);
    own->cursor = NULL;
}

/* The data and the logs that it needs, which opening replays. */
int peer_backup(void *of, const char *dir) {
    struct store *store = of;
    return store->env->backup(store->env, dir, DB_CREATE | DB_BACKUP_SINGLE_DIR);
}

int peer_compact(void *of) {
    struct store *store = of;
    return store->db->compact(store->db, NULL, NULL, NULL, NULL, DB_FREE_SPACE, NULL);
}

int peer_tables(void *of) {
    static const char *const names[] = {"pairs0", "pairs1"};
    struct store *store = of;
    int code = 0, i;

    for (i = 0; i < PEER_PAIRS && code == 0; i++) {
        if ((code = db_create(&store->pairs[i], store->env, 0)) != 0)
            break;
        code = store->pairs[i]->set_flags(store->pairs[i], DB_DUPSORT);
        if (code == 0)
            code = store->pairs[i]->open(store->pairs[i], NULL, names[i], NULL, DB_BTREE,
                                         DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0644);
    }
    return code;
}

int peer_pair(void *session, int pairs, const void *key, size_t key_len, const void *value,
              size_t value_len, int gone) {
    struct session *own = session;
    DB *db = own->store->pairs[pairs];
    DBT name = given(key, key_len), item = given(value, value_len);
    DBC *cursor;
    int code, closed;

    if (!gone) {
        code = db->put(db, own->txn, &name, &item, DB_NODUPDATA);
        return code == DB_KEYEXIST ? 0 : checked(code);
    }
    if ((code = db->cursor(db, own->txn, &cursor, 0)) != 0)
        return checked(code);
    if ((code = cursor->get(cursor, &name, &item, DB_GET_BOTH | DB_RMW)) == 0)
        code = cursor->del(cursor, 0);
    closed = cursor->close(cursor);
    return checked(code != 0 ? code : closed);
}

int peer_find(void *session, int pairs, const void *key, size_t key_len, uint64_t most, int records,
              peer_see *see, void *context, uint64_t *count) {
    struct session *own = session;
    DB *db = own->store->pairs[pairs];
    DBT name = given(key, key_len), item;
    const void *record = NULL;
    size_t record_len = 0;
    u_int32_t how = DB_SET;
    DBC *cursor;
    int code, closed;

    *count = 0;
    memset(&item, 0, sizeof item);
    item.flags = DB_DBT_USERMEM;
    item.data = own->key.data;
    item.ulen = own->key.ulen;
    if ((code = db->cursor(db, own->txn, &cursor, DB_READ_COMMITTED)) != 0)
        return checked(code);
    while (*count < most && (code = cursor->get(cursor, &name, &item, how)) == 0) {
        if (records && (code = peer_get(session, item.data, item.size, &record, &record_len)) != 0)
            break;
        see(context, item.data, item.size, record, record_len);
        how = DB_NEXT_DUP;
        ++*count;
    }
    closed = cursor->close(cursor);
    return code == DB_NOTFOUND ? 0 : checked(code != 0 ? code : closed);
}
