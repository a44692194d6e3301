/* Who may use what, and when: threads, handles, snapshots, the map size. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static MDB_env *shared;

static void *read_elsewhere(void *arg)
{
	MDB_txn *txn;
	(void)arg;
	OK(mdb_txn_begin(shared, NULL, MDB_RDONLY, &txn));
	mdb_txn_abort(txn);
	return NULL;
}

static void one_read_a_thread(MDB_env *env)
{
	MDB_txn *one, *two;
	pthread_t thread;

	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &one));
	IS(mdb_txn_begin(env, NULL, MDB_RDONLY, &two), MDB_BAD_RSLOT);
	shared = env;
	OK(pthread_create(&thread, NULL, read_elsewhere, NULL));
	OK(pthread_join(thread, NULL));
	/* Beside a write transaction is fine. */
	OK(mdb_txn_begin(env, NULL, 0, &two));
	mdb_txn_abort(two);
	mdb_txn_reset(one);
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &two));
	IS(mdb_txn_renew(one), MDB_BAD_RSLOT);
	mdb_txn_abort(two);
	OK(mdb_txn_renew(one));
	mdb_txn_abort(one);
}

static void handles(MDB_env *env)
{
	MDB_txn *txn, *other;
	MDB_dbi a, b, again;
	MDB_val v;
	unsigned flags;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	IS(mdb_dbi_open(txn, "a", 0, &a), MDB_NOTFOUND);
	OK(mdb_dbi_open(txn, "a", MDB_CREATE | MDB_DUPSORT, &a));
	IS(a, 2);
	/* The same handle, and the flags are those of the table. */
	OK(mdb_dbi_open(txn, "a", MDB_REVERSEKEY, &again));
	IS(again, a);
	OK(mdb_dbi_flags(txn, a, &flags));
	IS(flags, MDB_DUPSORT);
	mdb_txn_abort(txn);
	/* Opened in what was aborted: it means nothing. */
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	IS(get(txn, a, "k", &v), EINVAL);
	OK(mdb_dbi_open(txn, "a", MDB_CREATE, &a));
	OK(put(txn, a, "k", "v", 0));
	OK(mdb_txn_commit(txn));

	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &other));
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "b", MDB_CREATE, &b));
	OK(put(txn, b, "k", "v", 0));
	OK(mdb_txn_commit(txn));
	/* It began before that. */
	OK(get(other, a, "k", &v));
	IS(get(other, b, "k", &v), EINVAL);
	IS(mdb_dbi_open(other, "b", 0, &again), MDB_NOTFOUND);
	mdb_txn_reset(other);
	OK(mdb_txn_renew(other));
	OK(get(other, b, "k", &v));
	mdb_dbi_close(env, b);
	/* Whoever has used it may go on. */
	OK(get(other, b, "k", &v));
	mdb_txn_abort(other);

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	IS(mdb_drop(txn, b, 0), EINVAL);
	OK(mdb_dbi_open(txn, "b", 0, &b));
	OK(mdb_dbi_open(txn, "c", MDB_CREATE, &again));
	OK(mdb_dbi_open(txn, "d", MDB_CREATE, &again));
	IS(mdb_dbi_open(txn, "e", MDB_CREATE, &again), MDB_DBS_FULL);
	IS(mdb_dbi_open(txn, "nosuch", 0, &again), MDB_DBS_FULL);
	OK(mdb_drop(txn, b, 1));
	IS(get(txn, b, "k", &v), EINVAL);
	mdb_txn_abort(txn);
	/* The table is back, its handle is not. */
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	IS(get(txn, b, "k", &v), EINVAL);
	OK(mdb_dbi_open(txn, "b", 0, &b));
	OK(get(txn, b, "k", &v));
	OK(mdb_txn_commit(txn));
}

static void names_are_records(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi, named;
	MDB_cursor *cursor;
	MDB_val k, v;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(put(txn, dbi, "aa", "record", 0));
	IS(put(txn, dbi, "a", "x", 0), MDB_INCOMPATIBLE);
	IS(mdb_dbi_open(txn, "aa", 0, &named), MDB_INCOMPATIBLE);
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(mdb_cursor_get(cursor, &k, &v, MDB_FIRST));
	IS(same(&k, "a"), 1);
	OK(mdb_cursor_get(cursor, &k, &v, MDB_NEXT));
	IS(same(&k, "aa") && same(&v, "record"), 1);
	k = val("a");
	IS(mdb_del(txn, dbi, &k, NULL), MDB_INCOMPATIBLE);
	IS(put(txn, dbi, "x", "y", 0), MDB_BAD_TXN);
	IS(mdb_txn_commit(txn), MDB_BAD_TXN);
}

/* A snapshot and what was read from it stay while others commit. */
static void snapshots(MDB_env *env)
{
	MDB_txn *read, *txn;
	MDB_dbi dbi;
	MDB_val old, v;
	char text[32];
	int i;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(put(txn, dbi, "s", "before", 0));
	OK(mdb_txn_commit(txn));
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &read));
	OK(get(read, dbi, "s", &old));
	for (i = 0; i < 50; i++) {
		OK(mdb_txn_begin(env, NULL, 0, &txn));
		snprintf(text, sizeof text, "after %d", i);
		OK(put(txn, dbi, "s", text, 0));
		OK(mdb_txn_commit(txn));
	}
	IS(same(&old, "before"), 1);
	OK(get(read, dbi, "s", &v));
	IS(same(&v, "before"), 1);
	mdb_txn_reset(read);
	OK(mdb_txn_renew(read));
	OK(get(read, dbi, "s", &v));
	IS(same(&v, "after 49"), 1);
	mdb_txn_abort(read);
}

/* PHP walks so: a reset after each step, and no renewal of the cursor. */
static void walk_with_resets(MDB_env *env)
{
	MDB_txn *txn, *write;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val key, value;
	char text[8];
	int i;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "walk", MDB_CREATE, &dbi));
	for (i = 0; i < 200; i++) {
		snprintf(text, sizeof text, "%03d", i);
		OK(put(txn, dbi, text, text, 0));
	}
	OK(mdb_txn_commit(txn));
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	for (i = 0; i < 200; i++) {
		snprintf(text, sizeof text, "%03d", i);
		OK(mdb_cursor_get(cursor, &key, &value, i ? MDB_NEXT : MDB_FIRST));
		IS(same(&key, text), 1);
		IS(same(&value, text), 1);
		/* Some steps within one snapshot, and a commit now and then. */
		if (i % 3)
			continue;
		mdb_txn_reset(txn);
		if (i % 50 == 0) {
			OK(mdb_txn_begin(env, NULL, 0, &write));
			OK(put(write, dbi, "behind", "x", i ? 0 : MDB_NOOVERWRITE));
			OK(mdb_txn_commit(write));
		}
		OK(mdb_txn_renew(txn));
		OK(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT));
		IS(same(&key, text), 1);
	}
	OK(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
	IS(same(&key, "behind"), 1);
	IS(mdb_cursor_get(cursor, &key, &value, MDB_NEXT), MDB_NOTFOUND);
	mdb_cursor_close(cursor);
	mdb_txn_abort(txn);
}

static void map_size(MDB_env *env)
{
	MDB_txn *txn, *child;
	MDB_dbi dbi;
	MDB_envinfo info;
	MDB_val k = val("big"), v;

	OK(mdb_env_info(env, &info));
	IS(info.me_mapsize, 4 << 20);
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	IS(mdb_env_set_mapsize(env, 64 << 20), EINVAL);
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	v.mv_size = 8 << 20;
	IS(mdb_put(txn, dbi, &k, &v, MDB_RESERVE), MDB_MAP_FULL);
	IS(get(txn, dbi, "s", &v), MDB_BAD_TXN);
	IS(mdb_txn_begin(env, txn, 0, &child), MDB_BAD_TXN);
	IS(mdb_txn_commit(txn), MDB_BAD_TXN);
	OK(mdb_env_set_mapsize(env, 64 << 20));
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	v.mv_size = 8 << 20;
	OK(mdb_put(txn, dbi, &k, &v, MDB_RESERVE));
	memset(v.mv_data, 'r', v.mv_size);
	OK(mdb_txn_commit(txn));
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_get(txn, dbi, &k, &v));
	IS(v.mv_size, 8 << 20);
	IS(((char *)v.mv_data)[5000000], 'r');
	mdb_txn_abort(txn);
}

static void nested(MDB_env *env)
{
	MDB_txn *txn, *one, *two;
	MDB_dbi dbi;
	MDB_val v;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(put(txn, dbi, "n", "0", 0));
	OK(mdb_txn_begin(env, txn, 0, &one));
	OK(put(one, dbi, "n", "1", 0));
	OK(mdb_txn_begin(env, one, 0, &two));
	OK(put(two, dbi, "n", "2", 0));
	mdb_txn_abort(two);
	OK(get(one, dbi, "n", &v));
	IS(same(&v, "1"), 1);
	IS(mdb_txn_begin(env, one, MDB_RDONLY, &two), MDB_BAD_TXN);
	OK(mdb_txn_commit(one));
	OK(get(txn, dbi, "n", &v));
	IS(same(&v, "1"), 1);
	/* The end of the parent is that of all below. */
	OK(mdb_txn_begin(env, txn, 0, &one));
	OK(mdb_txn_begin(env, one, 0, &two));
	OK(put(two, dbi, "n", "3", 0));
	mdb_txn_abort(txn);
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	IS(get(txn, dbi, "n", &v), MDB_NOTFOUND);
	mdb_txn_abort(txn);
}

static void *write_often(void *arg)
{
	unsigned i;
	(void)arg;
	for (i = 0; i < 4000; i++) {
		MDB_txn *txn;
		OK(mdb_txn_begin(shared, NULL, 0, &txn));
		IS(mdb_env_set_mapsize(shared, 8 << 20), EINVAL);
		mdb_txn_abort(txn);
	}
	return NULL;
}

/* Also when the writer before has just ended. */
static void map_size_between_writers(MDB_env *env)
{
	pthread_t threads[12];
	unsigned i;
	shared = env;
	for (i = 0; i < 12; i++)
		OK(pthread_create(&threads[i], NULL, write_often, NULL));
	for (i = 0; i < 12; i++)
		OK(pthread_join(threads[i], NULL));
}

int main(int argc, char **argv)
{
	MDB_env *env = open_env(argv[argc - 1], MDB_NOSYNC);
	one_read_a_thread(env);
	handles(env);
	names_are_records(env);
	snapshots(env);
	walk_with_resets(env);
	map_size(env);
	nested(env);
	map_size_between_writers(env);
	mdb_env_close(env);
	return 0;
}
