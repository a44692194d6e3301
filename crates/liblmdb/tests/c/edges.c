/* Edges that programs meet: what a failed search leaves behind, flags of several items at once,
 * ends of transactions and cursors, paths that are no files. */
#include "check.h"

static int both(MDB_cursor *cursor, const char *key, const char *value, MDB_cursor_op op)
{
	MDB_val k = val(key), v = val(value);
	return mdb_cursor_get(cursor, &k, &v, op);
}

static void stands_on(MDB_cursor *cursor, MDB_cursor_op op, const char *key, const char *value)
{
	MDB_val k, v;
	OK(mdb_cursor_get(cursor, &k, &v, op));
	if (!same(&k, key) || !same(&v, value)) {
		fprintf(stderr, "op %d: not on %s/%s\n", (int)op, key, value);
		exit(1);
	}
}

/* A search that fails leaves the cursor where the value would be. */
static void place_after_failed_searches(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k, v;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "dup", MDB_CREATE | MDB_DUPSORT, &dbi));
	OK(put(txn, dbi, "d", "1", 0));
	OK(put(txn, dbi, "f", "1", 0));
	OK(put(txn, dbi, "f", "3", 0));
	OK(put(txn, dbi, "f", "5", 0));
	OK(put(txn, dbi, "h", "1", 0));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	/* On the greater value. */
	IS(both(cursor, "f", "2", MDB_GET_BOTH), MDB_NOTFOUND);
	stands_on(cursor, MDB_GET_CURRENT, "f", "3");
	stands_on(cursor, MDB_NEXT, "f", "5");
	IS(both(cursor, "f", "2", MDB_GET_BOTH), MDB_NOTFOUND);
	stands_on(cursor, MDB_PREV, "f", "1");
	/* Behind all values. */
	IS(both(cursor, "f", "9", MDB_GET_BOTH_RANGE), MDB_NOTFOUND);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_GET_CURRENT), MDB_NOTFOUND);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_NEXT_DUP), MDB_NOTFOUND);
	stands_on(cursor, MDB_NEXT, "h", "1");
	IS(both(cursor, "f", "9", MDB_GET_BOTH_RANGE), MDB_NOTFOUND);
	stands_on(cursor, MDB_PREV, "f", "5");
	/* A key with one value. */
	IS(both(cursor, "d", "9", MDB_GET_BOTH_RANGE), MDB_NOTFOUND);
	stands_on(cursor, MDB_NEXT, "f", "1");
	mdb_txn_abort(txn);
}

/* What NOOVERWRITE and APPEND demand of the key is asked before the first item. */
static void several_items_under_a_new_key(MDB_env *env)
{
	static const char items[] = "eeeeffffaaaa";
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("n"), v[2] = {{4, (void *)items}, {3, NULL}};
	size_t count;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "fixed", MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED, &dbi));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	IS(mdb_cursor_get(cursor, &k, v, MDB_GET_MULTIPLE), EINVAL);
	OK(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE | MDB_NOOVERWRITE));
	IS(v[1].mv_size, 3);
	k = val("o");
	v[0].mv_data = (void *)items;
	OK(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE | MDB_APPEND));
	IS(v[1].mv_size, 3);
	OK(mdb_cursor_count(cursor, &count));
	IS(count, 3);
	v[0].mv_data = (void *)items;
	IS(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE | MDB_NOOVERWRITE), MDB_KEYEXIST);
	IS(v[1].mv_size, 0);
	mdb_txn_abort(txn);
}

/* With CURRENT the key is not looked up, but must be one; unknown flags do no harm here. */
static void put_at_a_cursor(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("k"), v = val("new"), none = val("");

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(put(txn, dbi, "k", "old", 0));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(mdb_cursor_get(cursor, &k, NULL, MDB_SET));
	IS(mdb_cursor_put(cursor, NULL, &v, MDB_CURRENT), EINVAL);
	IS(mdb_cursor_put(cursor, &none, &v, MDB_CURRENT), MDB_BAD_VALSIZE);
	stands_on(cursor, MDB_GET_CURRENT, "k", "old");
	OK(mdb_cursor_put(cursor, &k, &v, MDB_CURRENT));
	stands_on(cursor, MDB_GET_CURRENT, "k", "new");
	k = val("l");
	OK(mdb_cursor_put(cursor, &k, &v, 0x1000));
	stands_on(cursor, MDB_GET_CURRENT, "l", "new");
	mdb_txn_abort(txn);
}

/* A table's name is a key that is there. */
static void names_are_not_overwritten(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi, named;
	MDB_val k = val("name"), v = val("x");

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "name", MDB_CREATE, &named));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	IS(mdb_put(txn, dbi, &k, &v, MDB_NOOVERWRITE), MDB_KEYEXIST);
	IS(v.mv_size >= 48, 1);
	v = val("x");
	IS(mdb_put(txn, dbi, &k, &v, 0), MDB_INCOMPATIBLE);
	OK(put(txn, named, "k", "v", 0));
	mdb_txn_abort(txn);
}

static void ends(MDB_env *env)
{
	MDB_txn *txn, *read;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("k"), v;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(put(txn, dbi, "k", "v", 0));
	OK(mdb_txn_commit(txn));
	/* A transaction that was reset has nothing to commit, which is no error. */
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &read));
	mdb_txn_reset(read);
	OK(mdb_txn_commit(read));
	/* The cursor of a write transaction stays with it. */
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &read));
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	IS(mdb_cursor_renew(read, cursor), EINVAL);
	OK(mdb_cursor_get(cursor, &k, &v, MDB_SET));
	OK(mdb_cursor_del(cursor, 0));
	mdb_txn_abort(txn);
	OK(get(read, dbi, "k", &v));
	mdb_txn_abort(read);
}

static void a_directory_is_no_file(const char *dir)
{
	MDB_env *env;
	OK(mdb_env_create(&env));
	IS(mdb_env_open(env, dir, MDB_NOSUBDIR, 0644), EISDIR);
	mdb_env_close(env);
	OK(mdb_env_create(&env));
	IS(mdb_env_open(env, dir, MDB_NOSUBDIR | MDB_RDONLY, 0644), EISDIR);
	mdb_env_close(env);
}

int main(int argc, char **argv)
{
	MDB_env *env;
	a_directory_is_no_file(argv[argc - 1]);
	env = open_env(argv[argc - 1], 0);
	place_after_failed_searches(env);
	several_items_under_a_new_key(env);
	put_at_a_cursor(env);
	names_are_not_overwritten(env);
	ends(env);
	mdb_env_close(env);
	return 0;
}
