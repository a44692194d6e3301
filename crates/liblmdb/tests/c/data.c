/* Records: flags of writes, cursors, comparators, arguments that point into the store. */
#include "check.h"

static void flags_of_put(MDB_txn *txn)
{
	MDB_dbi dbi;
	MDB_val k = val("k"), v = val("second");

	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(put(txn, dbi, "k", "first", MDB_NOOVERWRITE));
	IS(mdb_put(txn, dbi, &k, &v, MDB_NOOVERWRITE), MDB_KEYEXIST);
	IS(same(&v, "first"), 1);
	OK(put(txn, dbi, "m", "x", MDB_APPEND));
	IS(put(txn, dbi, "m", "y", MDB_APPEND), MDB_KEYEXIST);
	IS(put(txn, dbi, "a", "y", MDB_APPEND), MDB_KEYEXIST);
	OK(put(txn, dbi, "k", "third", MDB_NODUPDATA));
	OK(get(txn, dbi, "k", &v));
	IS(same(&v, "third"), 1);
	k = val("r");
	v.mv_size = 5;
	OK(mdb_put(txn, dbi, &k, &v, MDB_RESERVE));
	memcpy(v.mv_data, "later", 5);
	OK(get(txn, dbi, "r", &v));
	IS(same(&v, "later"), 1);
	OK(mdb_drop(txn, dbi, 0));
}

/* All records go, by the very pointers that the walk gives; then values are put in again. */
static void pointers_into_the_store(MDB_txn *txn)
{
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k, v;
	MDB_stat stat;
	char key[16], value[900];
	int i, op;

	OK(mdb_dbi_open(txn, "own", MDB_CREATE, &dbi));
	for (i = 0; i < 500; i++) {
		snprintf(key, sizeof key, "%05d", i * 7 % 500);
		memset(value, 'a' + i % 26, sizeof value);
		value[i + 1] = 0;
		OK(put(txn, dbi, key, value, 0));
	}
	OK(mdb_cursor_open(txn, dbi, &cursor));
	/* Each value under the next key as well. */
	for (i = 0; i < 499; i++) {
		MDB_val next;
		snprintf(key, sizeof key, "%05d", i);
		OK(get(txn, dbi, key, &v));
		snprintf(key, sizeof key, "%05d", i + 1);
		next = val(key);
		OK(mdb_put(txn, dbi, &next, &v, 0));
	}
	OK(get(txn, dbi, "00000", &v));
	memcpy(value, v.mv_data, v.mv_size);
	i = (int)v.mv_size;
	OK(get(txn, dbi, "00499", &v));
	IS(v.mv_size, i);
	OK(memcmp(value, v.mv_data, v.mv_size));
	for (op = MDB_FIRST; mdb_cursor_get(cursor, &k, &v, op) == 0; op = MDB_NEXT)
		OK(mdb_del(txn, dbi, &k, NULL));
	OK(mdb_stat(txn, dbi, &stat));
	IS(stat.ms_entries, 0);
	mdb_cursor_close(cursor);
	OK(mdb_drop(txn, dbi, 1));
}

static void duplicates(MDB_txn *txn)
{
	static const char *sorted[] = {"alpha", "bravo", "charlie", "delta"};
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k, v;
	size_t count;
	int i;

	OK(mdb_dbi_open(txn, "dup", MDB_CREATE | MDB_DUPSORT, &dbi));
	for (i = 3; i >= 0; i--)
		OK(put(txn, dbi, "x", sorted[i], 0));
	OK(put(txn, dbi, "x", "alpha", 0));
	IS(put(txn, dbi, "x", "alpha", MDB_NODUPDATA), MDB_KEYEXIST);
	IS(put(txn, dbi, "x", "beta", MDB_NOOVERWRITE), MDB_KEYEXIST);
	IS(put(txn, dbi, "x", "aaa", MDB_APPENDDUP), MDB_KEYEXIST);
	OK(put(txn, dbi, "y", "one", 0));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	for (i = 0; i < 4; i++) {
		OK(mdb_cursor_get(cursor, &k, &v, MDB_NEXT));
		IS(same(&v, sorted[i]), 1);
	}
	OK(mdb_cursor_count(cursor, &count));
	IS(count, 4);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_NEXT_DUP), MDB_NOTFOUND);
	OK(mdb_cursor_get(cursor, &k, &v, MDB_FIRST_DUP));
	IS(same(&v, "alpha"), 1);
	OK(mdb_cursor_get(cursor, &k, &v, MDB_NEXT_NODUP));
	IS(same(&k, "y") && same(&v, "one"), 1);
	OK(mdb_cursor_get(cursor, &k, &v, MDB_PREV_NODUP));
	IS(same(&k, "x") && same(&v, "delta"), 1);
	k = val("x");
	v = val("bz");
	IS(mdb_cursor_get(cursor, &k, &v, MDB_GET_BOTH), MDB_NOTFOUND);
	OK(mdb_cursor_get(cursor, &k, &v, MDB_GET_BOTH_RANGE));
	IS(same(&v, "charlie"), 1);
	/* The next one takes its place. */
	OK(mdb_cursor_del(cursor, 0));
	OK(mdb_cursor_get(cursor, &k, &v, MDB_NEXT));
	IS(same(&v, "delta"), 1);
	OK(mdb_cursor_put(cursor, &k, &v, MDB_CURRENT));
	OK(mdb_cursor_del(cursor, MDB_NODUPDATA));
	OK(mdb_cursor_get(cursor, &k, &v, MDB_FIRST));
	IS(same(&k, "y"), 1);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_GET_MULTIPLE), MDB_INCOMPATIBLE);
	mdb_cursor_close(cursor);
	OK(mdb_drop(txn, dbi, 1));
}

static void many_at_once(MDB_txn *txn)
{
	unsigned numbers[3000], i, seen = 0;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("k"), v[2];
	int op;

	OK(mdb_dbi_open(txn, "fixed", MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP, &dbi));
	for (i = 0; i < 3000; i++)
		numbers[i] = i * 7919 % 3000;
	OK(mdb_cursor_open(txn, dbi, &cursor));
	v[0].mv_size = sizeof(unsigned);
	v[0].mv_data = numbers;
	v[1].mv_size = 3000;
	OK(mdb_cursor_put(cursor, &k, v, MDB_MULTIPLE));
	IS(v[1].mv_size, 3000);
	OK(mdb_cursor_get(cursor, &k, v, MDB_SET));
	for (op = MDB_GET_MULTIPLE; mdb_cursor_get(cursor, &k, v, op) == 0; op = MDB_NEXT_MULTIPLE) {
		IS(v[0].mv_size % sizeof(unsigned), 0);
		for (i = 0; i < v[0].mv_size / sizeof(unsigned); i++, seen++)
			IS(((unsigned *)v[0].mv_data)[i], seen);
	}
	IS(seen, 3000);
	/* And back, page by page. */
	OK(mdb_cursor_get(cursor, &k, v, MDB_LAST));
	OK(mdb_cursor_get(cursor, &k, v, MDB_GET_MULTIPLE));
	do {
		for (i = v[0].mv_size / sizeof(unsigned); i > 0; i--)
			IS(((unsigned *)v[0].mv_data)[i - 1], --seen);
	} while (mdb_cursor_get(cursor, &k, v, MDB_PREV_MULTIPLE) == 0);
	IS(seen, 0);
	mdb_cursor_close(cursor);
	OK(mdb_drop(txn, dbi, 1));
}

static int backwards(const MDB_val *a, const MDB_val *b)
{
	size_t len = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
	int by = memcmp(b->mv_data, a->mv_data, len);
	return by ? by : (int)b->mv_size - (int)a->mv_size;
}

static void own_order(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi, again;
	MDB_cursor *cursor;
	MDB_val k, v;
	char key[8];
	int i;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "back", MDB_CREATE | MDB_DUPSORT, &dbi));
	OK(mdb_set_compare(txn, dbi, backwards));
	OK(mdb_set_dupsort(txn, dbi, backwards));
	for (i = 0; i < 900; i++) {
		snprintf(key, sizeof key, "%03d", i * 7 % 900);
		OK(put(txn, dbi, key, "1", 0));
		OK(put(txn, dbi, key, "2", 0));
	}
	OK(mdb_txn_commit(txn));
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	for (i = 899; i >= 0; i--) {
		snprintf(key, sizeof key, "%03d", i);
		OK(mdb_cursor_get(cursor, &k, &v, MDB_NEXT));
		IS(same(&k, key) && same(&v, "2"), 1);
		OK(mdb_cursor_get(cursor, &k, &v, MDB_NEXT));
		IS(same(&k, key) && same(&v, "1"), 1);
		OK(get(txn, dbi, key, &v));
	}
	IS(mdb_cursor_get(cursor, &k, &v, MDB_NEXT), MDB_NOTFOUND);
	k = val("5");
	OK(mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE));
	IS(same(&k, "499"), 1);
	mdb_cursor_close(cursor);
	/* The handle keeps the order when the table is opened again. */
	OK(mdb_dbi_open(txn, "back", 0, &again));
	IS(again, dbi);
	OK(get(txn, dbi, "777", &v));
	k = val("a");
	v = val("b");
	IS(mdb_cmp(txn, dbi, &k, &v) > 0, 1);
	mdb_txn_abort(txn);
}

int main(int argc, char **argv)
{
	MDB_env *env = open_env(argv[argc - 1], MDB_NOSUBDIR | MDB_NOTLS);
	MDB_txn *txn;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	flags_of_put(txn);
	pointers_into_the_store(txn);
	duplicates(txn);
	many_at_once(txn);
	OK(mdb_txn_commit(txn));
	own_order(env);
	mdb_env_close(env);
	return 0;
}
