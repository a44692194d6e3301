/* A comparison function that calls the library. The transaction that asks it cannot be used meanwhile,
 * nor its levels and cursors, and no environment is closed; other transactions can. Whatever it tries,
 * the call goes on, and nothing is lost. */
#include "check.h"

#include <zubilo.h>

enum {
	NOTHING, GET, PUT, DEL, OPEN_TABLE, STAT, FLAGS, CMP, DROP, SET_COMPARE, CLOSE_TABLE, BEGIN_CHILD,
	COMMIT, ABORT, RESET, RENEW, NEW_CURSOR, CURSOR_GET, CURSOR_SET, OTHER_GET, CURSOR_PUT, CURSOR_DEL,
	CURSOR_COUNT, CURSOR_CLOSE, CURSOR_RENEW, REPLACE, COMMIT_OUTER, ABORT_OUTER, CLOSE_ENV, CLOSE_ENV_NOW,
	READ_APART, RESIZE, ACTIONS
};

static MDB_env *env;
static MDB_txn *txn, *outer;
static MDB_cursor *at, *other;
static MDB_dbi table, plain;
static int action, busy;
static unsigned long tried;

static void read_apart(void)
{
	MDB_txn *apart;
	MDB_val v;
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &apart));
	OK(get(apart, plain, "there", &v));
	IS(same(&v, "here"), 1);
	mdb_txn_abort(apart);
}

/* Tries what is to be tried, once for each call. */
static void meddle(void)
{
	MDB_val k = val("key003"), v = val("other");
	MDB_stat stat;
	MDB_txn *child;
	MDB_cursor *cursor;
	MDB_dbi dbi;
	unsigned flags;
	size_t count;
	int now = action, writes = outer != NULL;
	if (busy || now == NOTHING)
		return;
	busy = 1;
	tried++;
	switch (now) {
	case GET: IS(mdb_get(txn, plain, &k, &v), MDB_BAD_TXN); break;
	case PUT: IS(mdb_put(txn, plain, &k, &v, 0), MDB_BAD_TXN); break;
	case DEL: IS(mdb_del(txn, table, &k, NULL), MDB_BAD_TXN); break;
	case OPEN_TABLE: IS(mdb_dbi_open(txn, "more", MDB_CREATE, &dbi), MDB_BAD_TXN); break;
	case STAT: IS(mdb_stat(txn, table, &stat), MDB_BAD_TXN); break;
	case FLAGS: IS(mdb_dbi_flags(txn, table, &flags), MDB_BAD_TXN); break;
	case CMP: IS(mdb_txn_env(txn) == env && mdb_txn_id(txn) != 0, 1); mdb_cmp(txn, table, &k, &v); break;
	case DROP: IS(mdb_drop(txn, table, 1), MDB_BAD_TXN); break;
	case SET_COMPARE: IS(mdb_set_compare(txn, table, NULL), MDB_BAD_TXN); break;
	case CLOSE_TABLE: mdb_dbi_close(env, plain); OK(0); break;
	case BEGIN_CHILD: IS(mdb_txn_begin(env, txn, 0, &child), MDB_BAD_TXN); break;
	case COMMIT: IS(mdb_txn_commit(txn), MDB_BAD_TXN); break;
	case ABORT: mdb_txn_abort(txn); break;
	case RESET: mdb_txn_reset(txn); break;
	case RENEW: IS(mdb_txn_renew(txn), MDB_BAD_TXN); break;
	case NEW_CURSOR: IS(mdb_cursor_open(txn, table, &cursor), MDB_BAD_TXN); break;
	case CURSOR_GET: IS(mdb_cursor_get(at, &k, &v, MDB_NEXT), MDB_BAD_TXN); break;
	case CURSOR_SET: IS(mdb_cursor_get(at, &k, &v, MDB_SET), MDB_BAD_TXN); break;
	case OTHER_GET: IS(mdb_cursor_get(other, &k, &v, MDB_FIRST), MDB_BAD_TXN); break;
	case CURSOR_PUT: IS(mdb_cursor_put(at, &k, &v, 0), MDB_BAD_TXN); break;
	case CURSOR_DEL: IS(mdb_cursor_del(at, 0), MDB_BAD_TXN); break;
	case CURSOR_COUNT: IS(mdb_cursor_count(at, &count), MDB_BAD_TXN); break;
	case CURSOR_CLOSE: mdb_cursor_close(at); mdb_cursor_close(other); break;
	case CURSOR_RENEW: IS(mdb_cursor_renew(txn, at), MDB_BAD_TXN); break;
	case REPLACE: IS(zubilo_replace_value(txn, table, &k, &v, &v), MDB_BAD_TXN); break;
	case COMMIT_OUTER: if (outer) IS(mdb_txn_commit(outer), MDB_BAD_TXN); break;
	case ABORT_OUTER: mdb_txn_abort(outer); break;
	case CLOSE_ENV: mdb_env_close(env); break;
	case CLOSE_ENV_NOW: IS(mdbx_env_close_ex(env, 1), EBUSY); break;
	case READ_APART: read_apart(); break;
	case RESIZE: IS(mdb_env_set_mapsize(env, 8 << 20), writes ? EINVAL : 0); break;
	}
	busy = 0;
}

/* Shorter first, then as bytes. */
static int order(const MDB_val *a, const MDB_val *b)
{
	meddle();
	if (a->mv_size != b->mv_size)
		return a->mv_size < b->mv_size ? -1 : 1;
	return memcmp(a->mv_data, b->mv_data, a->mv_size);
}

static MDB_val key, data;
static char key_bytes[32], data_bytes[32];

static void give(unsigned k, unsigned v)
{
	key.mv_size = (size_t)sprintf(key_bytes, "key%03u", k);
	data.mv_size = (size_t)sprintf(data_bytes, "value%u", v);
	key.mv_data = key_bytes;
	data.mv_data = data_bytes;
}

/* All of it is there, in order, and nothing else. */
static void whole(unsigned keys, unsigned values)
{
	MDB_cursor *cursor;
	MDB_val k, v;
	unsigned n;
	action = NOTHING;
	OK(mdb_cursor_open(txn, table, &cursor));
	for (n = 0; n < keys * values; n++) {
		OK(mdb_cursor_get(cursor, &k, &v, MDB_NEXT));
		give(n / values, n % values);
		IS(same(&k, key_bytes) && same(&v, data_bytes), 1);
	}
	IS(mdb_cursor_get(cursor, &k, &v, MDB_NEXT), MDB_NOTFOUND);
	mdb_cursor_close(cursor);
}

enum { KEYS = 60, VALUES = 8 };

/* Each call of a writer, and what it must give. `at` and `other` stand on records. */
static void write_calls(void)
{
	MDB_val k, v;
	size_t count;
	give(500, 1);
	OK(mdb_put(txn, table, &key, &data, 0));
	OK(mdb_get(txn, table, &key, &v));
	OK(mdb_cursor_get(at, &key, &v, MDB_SET));
	IS(mdb_put(txn, table, &key, &data, MDB_NODUPDATA), MDB_KEYEXIST);
	give(500, 2);
	OK(mdb_cursor_put(at, &key, &data, MDB_APPENDDUP));
	give(500, 3);
	OK(mdb_cursor_put(at, &key, &data, MDB_CURRENT));
	OK(mdb_cursor_get(at, &key, &data, MDB_GET_BOTH));
	/* Others change the table under it: it looks its place up again. */
	give(501, 1);
	OK(mdb_put(txn, table, &key, &data, MDB_APPEND));
	OK(mdb_cursor_get(at, &k, &v, MDB_NEXT));
	IS(same(&k, "key501"), 1);
	OK(mdb_cursor_count(at, &count));
	give(500, 4);
	OK(mdb_put(txn, table, &key, &data, 0));
	OK(mdb_cursor_del(at, 0));
	OK(mdb_cursor_get(other, &k, &v, MDB_GET_CURRENT));
	give(500, 1);
	OK(mdb_del(txn, table, &key, &data));
	OK(mdb_del(txn, table, &key, NULL));
	IS(mdb_del(txn, table, &key, NULL), MDB_NOTFOUND);
	IS(mdb_cmp(txn, table, &key, &key), 0);
	IS(mdb_dcmp(txn, table, &data, &data), 0);
}

static void read_calls(void)
{
	MDB_val k, v;
	size_t count;
	give(7, 3);
	OK(mdb_get(txn, table, &key, &v));
	OK(mdb_cursor_get(at, &key, &v, MDB_SET));
	OK(mdb_cursor_get(at, &key, &v, MDB_SET_KEY));
	give(7, 3);
	OK(mdb_cursor_get(at, &key, &data, MDB_GET_BOTH));
	give(7, 3);
	OK(mdb_cursor_get(at, &key, &data, MDB_GET_BOTH_RANGE));
	OK(mdb_cursor_get(at, &key, &v, MDB_SET_RANGE));
	OK(mdb_cursor_get(at, &k, &v, MDB_NEXT));
	OK(mdb_cursor_count(at, &count));
	IS(count, VALUES);
	IS(mdb_cmp(txn, table, &key, &key), 0);
}

static void open_cursors(void)
{
	MDB_val k, v;
	action = NOTHING;
	OK(mdb_cursor_open(txn, table, &at));
	OK(mdb_cursor_open(txn, table, &other));
	OK(mdb_cursor_get(at, &k, &v, MDB_FIRST));
	OK(mdb_cursor_get(other, &k, &v, MDB_FIRST));
}

static void fill(void)
{
	unsigned i;
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "plain", MDB_CREATE, &plain));
	OK(put(txn, plain, "there", "here", 0));
	OK(mdb_dbi_open(txn, "own", MDB_CREATE | MDB_DUPSORT, &table));
	OK(mdb_set_compare(txn, table, order));
	OK(mdb_set_dupsort(txn, table, order));
	for (i = 0; i < KEYS * VALUES; i++) {
		give(i * 7 % KEYS, i / KEYS);
		OK(mdb_put(txn, table, &key, &data, 0));
	}
	whole(KEYS, VALUES);
	OK(mdb_txn_commit(txn));
}

int main(int argc, char **argv)
{
	int one;
	if (argc < 2)
		return 2;
	env = open_env(argv[1], MDB_NOSYNC | MDB_NOTLS);
	fill();
	for (one = NOTHING + 1; one < ACTIONS; one++) {
		/* A writer, below another level and not. */
		OK(mdb_txn_begin(env, NULL, 0, &outer));
		OK(mdb_txn_begin(env, outer, 0, &txn));
		open_cursors();
		action = one;
		write_calls();
		mdb_cursor_close(at);
		mdb_cursor_close(other);
		whole(KEYS, VALUES);
		OK(mdb_txn_commit(txn));
		txn = outer;
		open_cursors();
		action = one;
		write_calls();
		whole(KEYS, VALUES);
		OK(mdb_txn_commit(outer));
		/* A reader. */
		outer = NULL;
		OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
		open_cursors();
		action = one;
		read_calls();
		mdb_cursor_close(at);
		mdb_cursor_close(other);
		whole(KEYS, VALUES);
		mdb_txn_abort(txn);
		if (one == CLOSE_TABLE) {
			OK(mdb_txn_begin(env, NULL, 0, &txn));
			OK(mdb_dbi_open(txn, "plain", 0, &plain));
			OK(mdb_txn_commit(txn));
		}
	}
	IS(tried > 1000, 1);
	mdb_env_close(env);
	return 0;
}
