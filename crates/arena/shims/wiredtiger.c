/* WiredTiger: a B-tree table with a write-ahead log, snapshot isolation.
 *
 * SYNC: transaction_sync with method=fsync, group commit by the log's slots. LAZY and NOSYNC:
 * method=none, the log is written to the kernel by each commit; its records have checksums, so a
 * power cut leaves a prefix. VOLATILE: no log. Checkpoints each minute, as MongoDB has them, which
 * also lets old logs go. */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wiredtiger.h>

static const char *const URI = "table:records";
static const char *const PAIRS[] = {"table:pairs0", "table:pairs1"};

struct session {
    WT_SESSION *session;
    WT_CURSOR *cursor;
    /* Opened when they are needed first. */
    WT_CURSOR *pairs[PEER_PAIRS];
    /* Key and value of a pair as one key. */
    unsigned char *joined;
    size_t room;
};

const char *peer_version(void) { return wiredtiger_version(NULL, NULL, NULL); }

const char *peer_error(int code) { return wiredtiger_strerror(code); }

static const char *const LOGS[] = {
    "log=(enabled=true),transaction_sync=(enabled=true,method=fsync)",
    "log=(enabled=true),transaction_sync=(enabled=true,method=none)",
    "log=(enabled=true),transaction_sync=(enabled=true,method=none)",
    "log=(enabled=false)",
};

const char *peer_settings(int class_of_durability) { return LOGS[class_of_durability]; }

const char *peer_why(void) {
    return "its manual: Commit-level durability; snapshot isolation, checkpoint each 60 s, B-tree";
}

int peer_open(const char *dir, int class_of_durability, size_t cache, void **store) {
    char config[512];
    WT_CONNECTION *connection;
    WT_SESSION *session;
    int code;

    snprintf(config, sizeof config, "create,session_max=64,cache_size=%zu,checkpoint=(wait=60),%s", cache,
             LOGS[class_of_durability]);
    if ((code = wiredtiger_open(dir, NULL, config, &connection)) != 0)
        return code;
    if ((code = connection->open_session(connection, NULL, NULL, &session)) == 0)
        code = session->create(session, URI, "key_format=u,value_format=u");
    if (code == 0)
        code = session->close(session, NULL);
    if (code != 0)
        connection->close(connection, NULL);
    else
        *store = connection;
    return code;
}

int peer_flush(void *store) {
    WT_CONNECTION *connection = store;
    WT_SESSION *session;
    int code;

    if ((code = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return code;
    code = session->log_flush(session, "sync=on");
    /* Without a log only a checkpoint makes durable. */
    if (code != 0)
        code = session->checkpoint(session, NULL);
    session->close(session, NULL);
    return code;
}

int peer_close(void *store) {
    WT_CONNECTION *connection = store;
    return connection->close(connection, NULL);
}

int peer_session(void *store, void **out) {
    WT_CONNECTION *connection = store;
    struct session *own = calloc(1, sizeof *own);
    int code;

    if (own == NULL)
        return WT_PANIC;
    code = connection->open_session(connection, NULL, "isolation=snapshot", &own->session);
    if (code == 0 &&
        (code = own->session->open_cursor(own->session, URI, NULL, NULL, &own->cursor)) != 0)
        own->session->close(own->session, NULL);
    if (code != 0)
        free(own);
    else
        *out = own;
    return code;
}

void peer_end(void *session) {
    struct session *own = session;
    own->session->close(own->session, NULL);
    free(own->joined);
    free(own);
}

static int checked(int code) {
    return code == WT_NOTFOUND ? PEER_NONE : code == WT_ROLLBACK ? PEER_AGAIN : code;
}

int peer_begin(void *session, int writes) {
    struct session *own = session;
    (void)writes;
    return own->session->begin_transaction(own->session, NULL);
}

int peer_commit(void *session) {
    struct session *own = session;
    return checked(own->session->commit_transaction(own->session, NULL));
}

void peer_abort(void *session) {
    struct session *own = session;
    own->session->rollback_transaction(own->session, NULL);
}

static void set_key(WT_CURSOR *cursor, const void *key, size_t key_len) {
    WT_ITEM item = {.data = key, .size = key_len};
    cursor->set_key(cursor, &item);
}

static int value_of(WT_CURSOR *cursor, const void **value, size_t *value_len) {
    WT_ITEM item;
    int code = cursor->get_value(cursor, &item);
    *value = item.data;
    *value_len = item.size;
    return checked(code);
}

int peer_get(void *session, const void *key, size_t key_len, const void **value, size_t *value_len) {
    struct session *own = session;
    int code;

    set_key(own->cursor, key, key_len);
    code = own->cursor->search(own->cursor);
    return code != 0 ? checked(code) : value_of(own->cursor, value, value_len);
}

int peer_put(void *session, const void *key, size_t key_len, const void *value, size_t value_len) {
    struct session *own = session;
    WT_ITEM item = {.data = value, .size = value_len};

    set_key(own->cursor, key, key_len);
    own->cursor->set_value(own->cursor, &item);
    return checked(own->cursor->insert(own->cursor));
}

int peer_delete(void *session, const void *key, size_t key_len) {
    struct session *own = session;
    set_key(own->cursor, key, key_len);
    return checked(own->cursor->remove(own->cursor));
}

static int record_of(WT_CURSOR *cursor, const void **found, size_t *found_len, const void **value,
                     size_t *value_len) {
    WT_ITEM item;
    int code = cursor->get_key(cursor, &item);
    *found = item.data;
    *found_len = item.size;
    return code != 0 ? checked(code) : value_of(cursor, value, value_len);
}

int peer_seek(void *session, const void *key, size_t key_len, const void **found, size_t *found_len,
              const void **value, size_t *value_len) {
    struct session *own = session;
    WT_CURSOR *cursor = own->cursor;
    int code, where = 0;

    if (key == NULL) {
        cursor->reset(cursor);
        code = cursor->next(cursor);
    } else {
        set_key(cursor, key, key_len);
        code = cursor->search_near(cursor, &where);
        if (code == 0 && where < 0)
            code = cursor->next(cursor);
    }
    return code != 0 ? checked(code) : record_of(cursor, found, found_len, value, value_len);
}

int peer_next(void *session, const void **found, size_t *found_len, const void **value,
              size_t *value_len) {
    struct session *own = session;
    int code = own->cursor->next(own->cursor);
    return code != 0 ? checked(code) : record_of(own->cursor, found, found_len, value, value_len);
}

void peer_rest(void *session) {
    struct session *own = session;
    own->cursor->reset(own->cursor);
}

/* A backup cursor names the files that belong together, which the caller copies. */
static int copy_file(const char *home, const char *name, const char *dir) {
    char from[4096], to[4096], buffer[1 << 16];
    FILE *in, *out;
    size_t got;
    int code = 0;

    if (snprintf(from, sizeof from, "%s/%s", home, name) >= (int)sizeof from ||
        snprintf(to, sizeof to, "%s/%s", dir, name) >= (int)sizeof to)
        return ENAMETOOLONG;
    if ((in = fopen(from, "rb")) == NULL)
        return errno;
    if ((out = fopen(to, "wb")) == NULL) {
        code = errno;
        fclose(in);
        return code;
    }
    while (code == 0 && (got = fread(buffer, 1, sizeof buffer, in)) > 0)
        if (fwrite(buffer, 1, got, out) != got)
            code = errno;
    if (code == 0 && (ferror(in) || fflush(out) != 0 || fsync(fileno(out)) != 0))
        code = errno != 0 ? errno : EIO;
    fclose(in);
    if (fclose(out) != 0 && code == 0)
        code = errno;
    return code;
}

int peer_backup(void *store, const char *dir) {
    WT_CONNECTION *connection = store;
    const char *home = connection->get_home(connection), *name;
    WT_SESSION *session;
    WT_CURSOR *cursor;
    int code, closed;

    if ((code = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return code;
    if ((code = session->open_cursor(session, "backup:", NULL, NULL, &cursor)) == 0) {
        while ((code = cursor->next(cursor)) == 0 && (code = cursor->get_key(cursor, &name)) == 0)
            if ((code = copy_file(home, name, dir)) != 0)
                break;
        closed = cursor->close(cursor);
        code = code == WT_NOTFOUND ? closed : code;
    }
    session->close(session, NULL);
    return code;
}

int peer_compact(void *store) {
    WT_CONNECTION *connection = store;
    WT_SESSION *session;
    int code;

    if ((code = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return code;
    code = session->compact(session, URI, "timeout=0");
    session->close(session, NULL);
    return code;
}

int peer_tables(void *store) {
    WT_CONNECTION *connection = store;
    WT_SESSION *session;
    int code, i;

    if ((code = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return code;
    for (i = 0; i < PEER_PAIRS && code == 0; i++)
        code = session->create(session, PAIRS[i], "key_format=u,value_format=u");
    session->close(session, NULL);
    return code;
}

static int pairs_of(struct session *own, int pairs, WT_CURSOR **cursor) {
    int code = 0;
    if (own->pairs[pairs] == NULL)
        code = own->session->open_cursor(own->session, PAIRS[pairs], NULL, NULL, &own->pairs[pairs]);
    *cursor = own->pairs[pairs];
    return code;
}

int peer_pair(void *session, int pairs, const void *key, size_t key_len, const void *value,
              size_t value_len, int gone) {
    struct session *own = session;
    WT_ITEM empty = {.data = "", .size = 0};
    WT_CURSOR *cursor;
    int code = pairs_of(own, pairs, &cursor);

    if (code == 0 && key_len + value_len > own->room) {
        free(own->joined);
        own->room = key_len + value_len;
        code = (own->joined = malloc(own->room)) == NULL ? ENOMEM : 0;
    }
    if (code != 0)
        return checked(code);
    memcpy(own->joined, key, key_len);
    memcpy(own->joined + key_len, value, value_len);
    set_key(cursor, own->joined, key_len + value_len);
    if (gone)
        return checked(cursor->remove(cursor));
    cursor->set_value(cursor, &empty);
    return checked(cursor->insert(cursor));
}

int peer_find(void *session, int pairs, const void *key, size_t key_len, uint64_t most, int records,
              peer_see *see, void *context, uint64_t *count) {
    struct session *own = session;
    const void *record = NULL;
    size_t record_len = 0;
    WT_CURSOR *cursor;
    WT_ITEM pair;
    int code = pairs_of(own, pairs, &cursor), where = 0;

    *count = 0;
    if (code != 0)
        return checked(code);
    set_key(cursor, key, key_len);
    code = cursor->search_near(cursor, &where);
    if (code == 0 && where < 0)
        code = cursor->next(cursor);
    for (; code == 0 && *count < most; code = cursor->next(cursor)) {
        const unsigned char *value;
        if ((code = cursor->get_key(cursor, &pair)) != 0)
            break;
        if (pair.size < key_len || memcmp(pair.data, key, key_len) != 0)
            break;
        value = (const unsigned char *)pair.data + key_len;
        if (records && (code = peer_get(session, value, pair.size - key_len, &record, &record_len)) != 0)
            break;
        see(context, value, pair.size - key_len, record, record_len);
        ++*count;
    }
    cursor->reset(cursor);
    if (records)
        own->cursor->reset(own->cursor);
    return code == WT_NOTFOUND ? 0 : checked(code);
}
