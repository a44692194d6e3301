/* What zubilo.h adds. The argument is a directory. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>
#include <zubilo.h>

static MDB_dbi table(MDB_env *env, const char *name, unsigned flags)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, name, flags | MDB_CREATE, &dbi));
	OK(mdb_txn_commit(txn));
	return dbi;
}

static void numbers(MDB_env *env, MDB_dbi dbi)
{
	MDBX_canary set = { 1, 2, 3, 0 }, got;
	MDB_txn *txn, *reader;
	uint64_t first;
	int percent = -1;
	size_t id;

	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &reader));
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	id = mdb_txn_id(txn);
	OK(mdbx_canary_put(txn, &set));
	OK(mdbx_dbi_sequence(txn, dbi, &first, 10));
	IS(first, 0);
	IS(mdbx_dbi_sequence(txn, dbi, &first, UINT64_MAX), MDBX_RESULT_TRUE);
	OK(mdb_txn_commit(txn));
	IS(mdbx_txn_straggler(reader, &percent), 1);
	IS(percent >= 0 && percent <= 100, 1);
	mdb_txn_abort(reader);

	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &reader));
	OK(mdbx_canary_get(reader, &got));
	IS(got.mdbx_x, 1);
	IS(got.mdbx_z, 3);
	IS(got.mdbx_v, id);
	OK(mdbx_dbi_sequence(reader, dbi, &first, 0));
	IS(first, 10);
	IS(mdbx_dbi_sequence(reader, dbi, &first, 1), EACCES);
	IS(mdbx_txn_straggler(reader, NULL), 0);
	IS(mdbx_canary_put(reader, &set), EACCES);
	mdb_txn_abort(reader);
}

static void records(MDB_env *env, MDB_dbi dbi, MDB_dbi many)
{
	MDB_txn *txn;
	MDB_val key = val("a"), value, new = val("new"), old;
	MDB_cursor *cursor;
	char room[8];
	size_t count;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(put(txn, many, "a", "1", 0));
	OK(put(txn, many, "a", "2", 0));
	OK(put(txn, many, "b", "3", 0));
	OK(mdbx_get_ex(txn, many, &key, &value, &count));
	IS(count, 2);
	IS(same(&value, "1"), 1);
	old.mv_data = room;
	old.mv_size = sizeof room;
	IS(mdbx_replace(txn, many, &key, &new, &old, 0), MDBX_EMULTIVAL);

	OK(put(txn, dbi, "a", "old", 0));
	OK(get(txn, dbi, "a", &value));
	IS(mdbx_is_dirty(txn, value.mv_data), MDBX_RESULT_TRUE);
	key = val("a");
	old.mv_size = 1;
	IS(mdbx_replace(txn, dbi, &key, &new, &old, 0), MDBX_RESULT_TRUE);
	IS(old.mv_size, 3);
	old.mv_size = sizeof room;
	OK(mdbx_replace(txn, dbi, &key, &new, &old, 0));
	IS(same(&old, "old"), 1);
	OK(get(txn, dbi, "a", &value));
	IS(same(&value, "new"), 1);
	IS(mdbx_replace(txn, dbi, &key, &new, &old, MDB_NOOVERWRITE), MDB_KEYEXIST);
	old.mv_data = room;
	old.mv_size = sizeof room;
	OK(mdbx_replace(txn, dbi, &key, NULL, &old, 0));
	IS(get(txn, dbi, "a", &value), MDB_NOTFOUND);
	IS(mdbx_replace(txn, dbi, &key, &new, &old, MDB_CURRENT), MDB_NOTFOUND);
	OK(mdbx_replace(txn, dbi, &key, &new, &old, 0));
	IS(old.mv_data == NULL, 1);

	/* The only value of a key, where key and new value point into the store. */
	OK(mdb_cursor_open(txn, many, &cursor));
	OK(mdb_cursor_get(cursor, &key, &value, MDB_LAST));
	IS(same(&key, "b") && same(&value, "3"), 1);
	OK(put(txn, many, "c", "new", 0));
	OK(get(txn, many, "c", &new));
	OK(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT));
	old.mv_data = room;
	old.mv_size = sizeof room;
	OK(mdbx_replace(txn, many, &key, &new, &old, 0));
	IS(same(&old, "3"), 1);
	OK(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT));
	IS(same(&key, "b") && same(&value, "new"), 1);
	/* One that cannot be stored leaves the old one. */
	new.mv_size = 600;
	old.mv_size = sizeof room;
	IS(mdbx_replace(txn, many, &key, &new, &old, 0), MDB_BAD_VALSIZE);
	OK(get(txn, many, "b", &value));
	IS(same(&value, "new"), 1);
	new = val("x");
	old.mv_size = sizeof room;
	IS(mdbx_replace(txn, many, &key, &new, &old, MDB_APPEND), MDB_KEYEXIST);
	OK(mdb_del(txn, many, &(MDB_val){1, "c"}, NULL));
	mdb_cursor_close(cursor);

	OK(mdb_cursor_open(txn, many, &cursor));
	IS(mdbx_cursor_eof(cursor), MDBX_RESULT_TRUE);
	OK(mdb_cursor_get(cursor, &key, &value, MDB_FIRST));
	IS(mdbx_cursor_eof(cursor), MDBX_RESULT_FALSE);
	IS(mdbx_cursor_on_first(cursor), MDBX_RESULT_TRUE);
	IS(mdbx_cursor_on_last(cursor), MDBX_RESULT_FALSE);
	OK(mdb_cursor_get(cursor, &key, &value, MDB_LAST));
	IS(mdbx_cursor_on_last(cursor), MDBX_RESULT_TRUE);
	IS(mdb_cursor_get(cursor, &key, &value, MDB_NEXT), MDB_NOTFOUND);
	IS(mdbx_cursor_eof(cursor), MDBX_RESULT_TRUE);
	IS(mdbx_cursor_eof(NULL), EINVAL);
	OK(mdb_txn_commit(txn));
}

static void at_once(MDB_env *env, MDB_dbi dbi)
{
	enum { COUNT = 100 };
	MDB_txn *txn;
	MDB_val keys[COUNT], values[COUNT];
	char names[COUNT][8];
	int round;

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	for (int i = 0; i < COUNT; i++) {
		snprintf(names[i], sizeof names[i], "k%d", i);
		keys[i] = val(names[i]);
		if (i % 3)
			OK(put(txn, dbi, names[i], names[i], 0));
	}
	for (round = 0; round < 2; round++) {
		OK(zubilo_get_many(txn, dbi, keys, values, COUNT));
		for (int i = 0; i < COUNT; i++) {
			if (i % 3)
				IS(same(&values[i], names[i]), 1);
			else
				IS(values[i].mv_data == NULL, 1);
		}
		IS(zubilo_get_many(txn, dbi, keys, values, 1), MDB_NOTFOUND);
		IS(zubilo_get_many(txn, dbi, NULL, values, 1), EINVAL);
		OK(mdb_txn_commit(txn));
		OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	}
	mdb_txn_abort(txn);
}

struct work {
	MDB_env *env;
	MDB_dbi dbi;
	int number;
};

static int add(MDB_txn *txn, void *context)
{
	struct work *work = context;
	char key[16];
	MDB_txn *child;
	snprintf(key, sizeof key, "g%d", work->number);
	OK(put(txn, work->dbi, key, "x", 0));
	/* A child that is left open is undone. */
	OK(mdb_txn_begin(mdb_txn_env(txn), txn, 0, &child));
	OK(put(child, work->dbi, "left", "x", 0));
	/* Each fifth wants nothing of this. */
	return work->number % 5 ? 0 : EAGAIN;
}

static int end_it(MDB_txn *txn, void *context)
{
	(void)context;
	IS(mdb_txn_commit(txn), MDB_BAD_TXN);
	mdb_txn_abort(txn);
	return 0;
}

static void *thread(void *context)
{
	struct work work = *(struct work *)context;
	for (int i = 0; i < 20; i++, work.number++)
		IS(zubilo_update(work.env, add, &work), work.number % 5 ? 0 : EAGAIN);
	return NULL;
}

static void together(MDB_env *env, MDB_dbi dbi)
{
	pthread_t threads[4];
	struct work works[4];
	MDB_txn *txn;
	MDB_val value;
	char key[16];

	for (int i = 0; i < 4; i++) {
		works[i] = (struct work){ env, dbi, i * 20 };
		OK(pthread_create(&threads[i], NULL, thread, &works[i]));
	}
	for (int i = 0; i < 4; i++)
		OK(pthread_join(threads[i], NULL));
	OK(zubilo_update(env, end_it, NULL));
	IS(zubilo_update(env, NULL, NULL), EINVAL);
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	for (int i = 0; i < 80; i++) {
		snprintf(key, sizeof key, "g%d", i);
		IS(get(txn, dbi, key, &value), i % 5 ? 0 : MDB_NOTFOUND);
	}
	IS(get(txn, dbi, "left", &value), MDB_NOTFOUND);
	mdb_txn_abort(txn);
}

/* In pages of 64 KiB values of some thousand bytes lie in leaves: one that was just given may be
 * stored again, though the change moves it. */
static void values_of_large_pages(const char *dir)
{
	static char bytes[12000], path[4096];
	unsigned state = 1, step, size[64] = {0}, letter[64] = {0};
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;

	snprintf(path, sizeof path, "%s/large", dir);
	OK(mdb_env_create(&env));
	OK(mdbx_env_set_geometry(env, -1, -1, 64 << 20, -1, -1, 65536));
	OK(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOSYNC, 0644));
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	for (step = 0; step < 3000; step++) {
		unsigned from, to, i;
		MDB_val k, v;
		state = state * 1103515245u + 12345u;
		from = (state >> 8) % 64;
		to = (state >> 16) % 64;
		k.mv_size = sizeof from;
		k.mv_data = &from;
		if (size[from] == 0 || step % 3 == 0) {
			size[from] = 2049 + (state >> 12) % 9000;
			letter[from] = 'a' + step % 26;
			memset(bytes, (int)letter[from], size[from]);
			v.mv_size = size[from];
			v.mv_data = bytes;
			OK(mdb_put(txn, dbi, &k, &v, 0));
			continue;
		}
		OK(mdb_get(txn, dbi, &k, &v));
		k.mv_data = &to;
		OK(mdb_put(txn, dbi, &k, &v, 0));
		size[to] = size[from];
		letter[to] = letter[from];
		OK(mdb_get(txn, dbi, &k, &v));
		IS(v.mv_size, size[to]);
		for (i = 0; i < size[to]; i++)
			IS(((unsigned char *)v.mv_data)[i], letter[to]);
	}
	OK(mdb_txn_commit(txn));
	mdb_env_close(env);
}

/* ---- scans with a predicate ---- */

struct wanted {
	const char *value;
	MDB_txn *txn;
	MDB_dbi dbi;
	int calls, copies;
};

/* A value that is wanted; what is seen must be the record itself. */
static int is_wanted(void *context, MDB_val *key, MDB_val *value, void *arg)
{
	struct wanted *wanted = context;
	MDB_val found;
	IS(arg == &wanted->calls, 1);
	OK(mdb_get(wanted->txn, wanted->dbi, key, &found));
	wanted->copies += found.mv_data != value->mv_data;
	wanted->calls++;
	size_t len = strlen(wanted->value);
	return value->mv_size == len && memcmp(value->mv_data, wanted->value, len) == 0 ? MDBX_RESULT_TRUE : MDBX_RESULT_FALSE;
}

static int gives_up(void *context, MDB_val *key, MDB_val *value, void *arg)
{
	(void)key, (void)value, (void)arg;
	return ++*(int *)context == 3 ? 88 : MDBX_RESULT_FALSE;
}

/* Deletes what it is asked about, through the cursor that scans. */
static int deletes(void *context, MDB_val *key, MDB_val *value, void *arg)
{
	(void)key, (void)value, (void)arg;
	OK(mdb_cursor_del(context, 0));
	return MDBX_RESULT_FALSE;
}

static void scans(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi, many;
	MDB_cursor *cursor;
	MDB_val key, value, from;
	char name[16];
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, "scanned", MDB_CREATE, &dbi));
	OK(mdb_dbi_open(txn, "scanned many", MDB_CREATE | MDB_DUPSORT, &many));
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "%04d", i);
		OK(put(txn, dbi, name, i % 300 == 250 ? "this one" : "another", 0));
		OK(put(txn, many, "key", name, 0));
	}
	OK(mdb_txn_commit(txn));
	for (int kind = 0; kind < 2; kind++) {
		OK(mdb_txn_begin(env, NULL, kind == 0 ? MDB_RDONLY : 0, &txn));
		OK(mdb_cursor_open(txn, dbi, &cursor));
		struct wanted wanted = { "this one", txn, dbi, 0, 0 };
		IS(mdbx_cursor_scan(cursor, is_wanted, &wanted, MDB_FIRST, MDB_NEXT, &wanted.calls), MDBX_RESULT_TRUE);
		IS(wanted.calls, 251);
		OK(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT));
		IS(memcmp(key.mv_data, "0250", 4), 0);
		/* On from there, to the end, and back. */
		IS(mdbx_cursor_scan(cursor, is_wanted, &wanted, MDB_NEXT, MDB_NEXT, &wanted.calls), MDBX_RESULT_TRUE);
		IS(wanted.calls, 251 + 300);
		IS(mdbx_cursor_scan(cursor, is_wanted, &wanted, MDB_LAST, MDB_PREV, &wanted.calls), MDBX_RESULT_TRUE);
		IS(wanted.calls, 251 + 300 + 150);
		from = val("0851");
		IS(mdbx_cursor_scan_from(cursor, is_wanted, &wanted, MDB_SET_RANGE, &from, NULL, MDB_NEXT, &wanted.calls),
			MDBX_RESULT_FALSE);
		IS(wanted.calls, 251 + 300 + 150 + 149);
		IS(wanted.copies, 0);
		IS(from.mv_size, 4);
		from = val("2");
		IS(mdbx_cursor_scan_from(cursor, is_wanted, &wanted, MDB_SET_RANGE, &from, NULL, MDB_NEXT, &wanted.calls),
			MDB_NOTFOUND);
		int calls = 0;
		IS(mdbx_cursor_scan(cursor, gives_up, &calls, MDB_FIRST, MDB_NEXT, NULL), 88);
		IS(mdbx_cursor_scan(cursor, NULL, NULL, MDB_FIRST, MDB_NEXT, NULL), EINVAL);
		IS(mdbx_cursor_scan(cursor, gives_up, &calls, MDB_FIRST, MDB_FIRST, NULL), EINVAL);
		IS(mdbx_cursor_scan(NULL, gives_up, &calls, MDB_FIRST, MDB_NEXT, NULL), EINVAL);
		mdb_cursor_close(cursor);
		/* The values of a key. */
		OK(mdb_cursor_open(txn, many, &cursor));
		calls = -10000;
		from = val("key");
		value = val("0990");
		IS(mdbx_cursor_scan_from(cursor, gives_up, &calls, MDB_GET_BOTH_RANGE, &from, &value, MDB_NEXT_DUP, NULL),
			MDBX_RESULT_FALSE);
		IS(calls, -9990);
		if (kind == 1) {
			IS(mdbx_cursor_scan(cursor, deletes, cursor, MDB_FIRST, MDB_NEXT, NULL), MDBX_RESULT_FALSE);
			MDB_stat stat;
			OK(mdb_stat(txn, many, &stat));
			IS(stat.ms_entries, 0);
		}
		mdb_cursor_close(cursor);
		mdb_txn_abort(txn);
	}
}

int main(int argc, char **argv)
{
	MDB_env *env;
	MDB_dbi plain, many;
	MDB_envinfo info;
	MDB_stat stat;

	IS(argc, 2);
	OK(mdb_env_create(&env));
	OK(mdb_env_set_maxdbs(env, 4));
	OK(mdbx_env_set_geometry(env, 1 << 20, -1, 8 << 20, 1 << 20, -1, 8192));
	IS(mdbx_env_set_geometry(env, 9 << 20, -1, 8 << 20, -1, -1, -1), EINVAL);
	OK(mdb_env_open(env, argv[1], 0, 0600));
	OK(mdb_env_info(env, &info));
	IS(info.me_mapsize, 8 << 20);
	OK(mdb_env_stat(env, &stat));
	IS(stat.ms_psize, 8192);
	OK(mdbx_env_set_geometry(env, -1, -1, 16 << 20, -1, 4 << 20, -1));
	OK(mdb_env_info(env, &info));
	IS(info.me_mapsize, 16 << 20);
	IS(mdbx_env_set_geometry(env, -1, -1, -1, -1, -1, 4096), EINVAL);
	plain = table(env, "plain", 0);
	many = table(env, "many", MDB_DUPSORT);
	numbers(env, plain);
	records(env, plain, many);
	at_once(env, plain);
	together(env, plain);
	scans(env);
	OK(mdbx_env_close_ex(env, false));
	IS(mdbx_env_close_ex(NULL, true), EINVAL);
	values_of_large_pages(argv[1]);
	return 0;
}
