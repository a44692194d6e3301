/* Corners that few programs visit. All of this holds on LMDB 0.9.24 too, where the test runs it if that is
 * installed. */
#include "check.h"
#include <stdint.h>

static int lines;

static int count_line(const char *line, void *want)
{
	IS(strcmp(line, want), 0);
	lines++;
	return 0;
}

static int at(MDB_cursor *cursor, MDB_cursor_op op, const char *key, const char *value)
{
	MDB_val k = val(key), v = val(value);
	int code = mdb_cursor_get(cursor, &k, &v, op);
	if (code == 0 && (!same(&k, key) || !same(&v, value))) {
		fprintf(stderr, "op %d: not on %s/%s\n", (int)op, key, value);
		exit(1);
	}
	return code;
}

/* An environment that is not open has no readers, which is no error. */
static void before_the_open(const char *dir)
{
	MDB_env *env;
	int dead = 7;

	OK(mdb_env_create(&env));
	OK(mdb_reader_list(env, count_line, "(no reader locks)\n"));
	IS(lines, 1);
	IS(mdb_reader_list(env, NULL, NULL), -1);
	OK(mdb_reader_check(env, NULL));
	OK(mdb_reader_check(env, &dead));
	IS(dead, 0);
	/* More than there are addresses: told by the open. */
	OK(mdb_env_set_mapsize(env, SIZE_MAX));
	IS(mdb_env_open(env, dir, 0, 0644), ENOMEM);
	mdb_env_close(env);
}

static void more_than_all_addresses(const char *dir)
{
	MDB_env *env = open_env(dir, 0);
	MDB_envinfo info;
	OK(mdb_env_set_mapsize(env, (size_t)1 << 40));
	OK(mdb_env_info(env, &info));
	IS(info.me_mapsize, (size_t)1 << 40);
	IS(mdb_env_set_mapsize(env, SIZE_MAX), ENOMEM);
	mdb_env_close(env);
	/* As much as there is. */
	OK(mdb_env_create(&env));
	OK(mdb_env_set_mapsize(env, (size_t)1 << 46));
	OK(mdb_env_open(env, dir, 0, 0644));
	mdb_env_close(env);
	/* What the file has of it is not adopted by the tests that follow. */
	env = open_env(dir, 0);
	mdb_env_close(env);
}

/* Steps of a cursor that was not placed yet. */
static void steps_from_nowhere(MDB_env *env)
{
	static const char items[] = "445566";
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k, v[2] = {{2, (void *)items}, {3, NULL}};

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "fixed", MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED, &dbi));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	IS(at(cursor, MDB_PREV_DUP, "", ""), MDB_NOTFOUND);
	mdb_cursor_close(cursor);
	OK(put(txn, dbi, "a", "11", 0));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	k = val("m");
	OK(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE));
	mdb_cursor_close(cursor);
	/* Backward there is no value before the last. */
	OK(mdb_cursor_open(txn, dbi, &cursor));
	IS(at(cursor, MDB_PREV_DUP, "", ""), MDB_NOTFOUND);
	IS(at(cursor, MDB_GET_CURRENT, "", ""), MDB_NOTFOUND);
	IS(at(cursor, MDB_NEXT, "", ""), MDB_NOTFOUND);
	mdb_cursor_close(cursor);
	/* Nor a page before the last one. */
	OK(mdb_cursor_open(txn, dbi, &cursor));
	IS(at(cursor, MDB_PREV_MULTIPLE, "", ""), MDB_NOTFOUND);
	OK(at(cursor, MDB_GET_CURRENT, "m", "66"));
	mdb_cursor_close(cursor);
	/* Forward there is, but one value is not several. */
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(at(cursor, MDB_NEXT_DUP, "a", "11"));
	mdb_cursor_close(cursor);
	OK(mdb_cursor_open(txn, dbi, &cursor));
	IS(at(cursor, MDB_NEXT_MULTIPLE, "", ""), MDB_NOTFOUND);
	OK(at(cursor, MDB_GET_CURRENT, "a", "11"));
	mdb_cursor_close(cursor);
	k = val("a");
	OK(mdb_del(txn, dbi, &k, NULL));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(at(cursor, MDB_NEXT_MULTIPLE, "m", "445566"));
	mdb_txn_abort(txn);
}

/* Where the items were is told by the pointer: at the last one, or at the one that failed. */
static void which_item_was_the_last(MDB_env *env)
{
	static const char items[] = "445566", others[] = "774488";
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("m"), v[2] = {{2, (void *)items}, {3, NULL}};

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "fixed", MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED, &dbi));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE));
	IS(v[1].mv_size, 3);
	IS((char *)v[0].mv_data - items, 4);
	v[0].mv_data = (void *)others;
	IS(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE | MDB_NODUPDATA), MDB_KEYEXIST);
	IS(v[1].mv_size, 1);
	IS((char *)v[0].mv_data - others, 2);
	/* A key that must be new: what it has. */
	v[0].mv_data = (void *)others;
	v[1].mv_size = 3;
	IS(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE | MDB_NOOVERWRITE), MDB_KEYEXIST);
	IS(v[1].mv_size, 0);
	IS(same(&v[0], "44"), 1);
	mdb_txn_abort(txn);
}

/* A demand that the key be new is for the key, wherever the cursor is. */
static void new_and_current(MDB_env *env, unsigned flags)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("b"), v = val("22");

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, flags ? "many" : "one", MDB_CREATE | flags, &dbi));
	OK(put(txn, dbi, "a", "11", 0));
	OK(put(txn, dbi, "b", "11", 0));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(at(cursor, MDB_FIRST, "a", "11"));
	IS(mdb_cursor_put(cursor, &k, &v, MDB_CURRENT | MDB_NOOVERWRITE), MDB_KEYEXIST);
	IS(same(&v, "11"), 1);
	OK(at(cursor, MDB_GET_CURRENT, "b", "11"));
	v = val("33");
	IS(mdb_cursor_put(cursor, &k, &v, MDB_CURRENT | MDB_APPEND), MDB_KEYEXIST);
	k = val("c");
	OK(mdb_cursor_put(cursor, &k, &v, MDB_CURRENT | MDB_NOOVERWRITE));
	OK(at(cursor, MDB_FIRST, "a", "11"));
	OK(at(cursor, MDB_NEXT, "b", "11"));
	OK(at(cursor, MDB_NEXT, "c", "33"));
	IS(at(cursor, MDB_NEXT, "", ""), MDB_NOTFOUND);
	mdb_txn_abort(txn);
}

/* Values that are said to be integers and are structures: their first four bytes count. */
static void structures_as_integers(MDB_env *env)
{
	struct state {
		unsigned flags, state, version;
	} one = {7, 1, 1}, two = {7, 2, 1}, other = {8, 0, 1};
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("name"), v = {sizeof one, &one};
	size_t count;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "states", MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP, &dbi));
	OK(mdb_put(txn, dbi, &k, &v, 0));
	v.mv_data = &two;
	IS(mdb_put(txn, dbi, &k, &v, MDB_NODUPDATA), MDB_KEYEXIST);
	OK(mdb_put(txn, dbi, &k, &v, 0));
	OK(mdb_get(txn, dbi, &k, &v));
	IS(v.mv_size, sizeof two);
	IS(memcmp(v.mv_data, &two, sizeof two), 0);
	v.mv_data = &other;
	OK(mdb_put(txn, dbi, &k, &v, 0));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(mdb_cursor_get(cursor, &k, &v, MDB_SET));
	OK(mdb_cursor_count(cursor, &count));
	IS(count, 2);
	OK(mdb_cursor_del(cursor, MDB_NODUPDATA));
	IS(mdb_get(txn, dbi, &k, &v), MDB_NOTFOUND);
	mdb_txn_abort(txn);
}

/* A transaction that was reset knows of no handle. */
static void no_handle_after_reset(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi, other;
	MDB_cursor *cursor, *second;
	MDB_val k = val("k"), v;
	MDB_stat stat;
	unsigned flags;
	size_t count;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "dup", MDB_CREATE | MDB_DUPSORT, &dbi));
	OK(put(txn, dbi, "k", "v", 0));
	OK(mdb_txn_commit(txn));
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	IS(mdb_put(txn, dbi, &k, &k, 0), EACCES);
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(at(cursor, MDB_FIRST, "k", "v"));
	mdb_txn_reset(txn);
	IS(mdb_get(txn, dbi, &k, &v), EINVAL);
	IS(mdb_cursor_open(txn, dbi, &second), EINVAL);
	IS(mdb_cursor_renew(txn, cursor), EINVAL);
	IS(mdb_stat(txn, dbi, &stat), EINVAL);
	IS(mdb_dbi_flags(txn, dbi, &flags), EINVAL);
	IS(mdb_put(txn, dbi, &k, &k, 0), EINVAL);
	IS(mdb_del(txn, dbi, &k, NULL), EINVAL);
	IS(mdb_drop(txn, dbi, 0), EINVAL);
	IS(mdb_set_compare(txn, dbi, NULL), EINVAL);
	/* What needs no handle tells what is wrong. */
	IS(mdb_dbi_open(txn, "dup", 0, &other), MDB_BAD_TXN);
	IS(at(cursor, MDB_NEXT, "", ""), MDB_BAD_TXN);
	IS(mdb_cursor_count(cursor, &count), MDB_BAD_TXN);
	OK(mdb_txn_renew(txn));
	OK(get(txn, dbi, "k", &v));
	OK(mdb_cursor_renew(txn, cursor));
	OK(at(cursor, MDB_FIRST, "k", "v"));
	mdb_cursor_close(cursor);
	mdb_txn_abort(txn);
}

/* The end of a transaction that was reset leaves the one that its thread reads in now alone. */
static void one_reader_a_thread(MDB_env *env)
{
	MDB_txn *first, *second, *third;
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &first));
	IS(mdb_txn_begin(env, NULL, MDB_RDONLY, &second), MDB_BAD_RSLOT);
	mdb_txn_reset(first);
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &second));
	mdb_txn_abort(first);
	IS(mdb_txn_begin(env, NULL, MDB_RDONLY, &third), MDB_BAD_RSLOT);
	mdb_txn_abort(second);
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &third));
	mdb_txn_abort(third);
}

/* An order of keys that the unnamed table is opened with by a transaction that only reads holds in those that
 * write. */
static void order_told_by_a_reader(const char *dir, unsigned flag, const char *first, const char *last)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	unsigned flags;
	char path[4096];

	snprintf(path, sizeof path, "%s/ordered%u", dir, flag);
	env = open_env(path, MDB_NOSUBDIR);
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_dbi_open(txn, NULL, flag, &dbi));
	OK(mdb_dbi_flags(txn, dbi, &flags));
	IS(flags, flag);
	OK(mdb_txn_commit(txn));
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	IS(put(txn, dbi, "", "0", 0), MDB_BAD_VALSIZE);
	OK(put(txn, dbi, "abcz", "1", 0));
	OK(put(txn, dbi, "zbca", "2", 0));
	OK(put(txn, dbi, "mbcm", "3", 0));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(at(cursor, MDB_FIRST, first, *first == 'a' ? "1" : "2"));
	OK(at(cursor, MDB_NEXT, "mbcm", "3"));
	OK(at(cursor, MDB_NEXT, last, *last == 'a' ? "1" : "2"));
	IS(at(cursor, MDB_NEXT, "", ""), MDB_NOTFOUND);
	mdb_cursor_close(cursor);
	OK(mdb_txn_commit(txn));
	mdb_env_close(env);
}

int main(int argc, char **argv)
{
	const char *dir = argv[argc - 1];
	MDB_env *env;
	before_the_open(dir);
	order_told_by_a_reader(dir, 0, "abcz", "zbca");
	order_told_by_a_reader(dir, MDB_INTEGERKEY, "zbca", "abcz");
	order_told_by_a_reader(dir, MDB_REVERSEKEY, "zbca", "abcz");
	more_than_all_addresses(dir);
	env = open_env(dir, 0);
	steps_from_nowhere(env);
	which_item_was_the_last(env);
	new_and_current(env, 0);
	new_and_current(env, MDB_DUPSORT);
	structures_as_integers(env);
	no_handle_after_reset(env);
	one_reader_a_thread(env);
	mdb_env_close(env);
	return 0;
}
