/* Comparison functions of programs are called with what the program has handed in, by address, never
 * with a copy of it and never with two stored items: OpenLDAP reads what lies behind a value. */

#include <lmdb.h>

#include <sys/stat.h>

#include "check.h"

#define MUST(what) IS(!(what), 0)

/* What the call at work was given; each is the first of two, and the second is a mark. */
static const MDB_val *own_key, *own_data;
static unsigned long calls, wrong;

static void is_own(const MDB_val *a, const MDB_val *b, const MDB_val *own)
{
	calls++;
	if (a != own || b == own || a[1].mv_data != &calls)
		wrong++;
}

/* Shorter first, then from the last byte on. */
static int order(const MDB_val *a, const MDB_val *b)
{
	const unsigned char *x = a->mv_data, *y = b->mv_data;
	size_t i;
	if (a->mv_size != b->mv_size)
		return a->mv_size < b->mv_size ? -1 : 1;
	for (i = a->mv_size; i-- > 0;)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static int by_key(const MDB_val *a, const MDB_val *b)
{
	is_own(a, b, own_key);
	return order(a, b);
}

static int by_value(const MDB_val *a, const MDB_val *b)
{
	is_own(a, b, own_data);
	return order(a, b);
}

static MDB_val key[2], data[3];
static char key_bytes[64], data_bytes[64];

/* A key and a value of the program's. */
static void give(unsigned k, unsigned v)
{
	key[0].mv_size = (size_t)sprintf(key_bytes, "key%u%.*s", k, (int)(k % 40), "pppppppppppppppppppppppppppppppppppppppp");
	key[0].mv_data = key_bytes;
	data[0].mv_size = (size_t)sprintf(data_bytes, "value%u%.*s", v, (int)(v % 13), "qqqqqqqqqqqqqqq");
	data[0].mv_data = data_bytes;
	key[1].mv_data = data[1].mv_data = &calls;
	own_key = key;
	own_data = data;
}

/* For calls that are given nothing. */
static void nothing(void)
{
	own_key = own_data = NULL;
}

static unsigned walk(MDB_txn *txn, MDB_dbi dbi, int dup)
{
	MDB_cursor *cursor;
	MDB_val k, v, last_key = { 0, NULL }, last_value = { 0, NULL };
	unsigned n = 0;
	nothing();
	OK(mdb_cursor_open(txn, dbi, &cursor));
	while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
		if (n++ > 0) {
			int between = order(&last_key, &k);
			MUST(between < 0 || (dup && between == 0 && order(&last_value, &v) < 0));
		}
		last_key = k;
		last_value = v;
	}
	mdb_cursor_close(cursor);
	return n;
}

static void in_all_calls(MDB_txn *txn, MDB_dbi dbi, int dup, unsigned seed)
{
	MDB_cursor *a, *b;
	MDB_val k, v;
	size_t count;
	unsigned i, values = dup ? 300 : 1, keys = dup ? 20 : 600;
	OK(mdb_cursor_open(txn, dbi, &a));
	OK(mdb_cursor_open(txn, dbi, &b));
	for (i = 0; i < keys * (dup ? 60u : 2u); i++) {
		unsigned r = seed = seed * 1103515245u + 12345u, op = (r >> 8) % 18;
		int rc = 0;
		/* One key gets most values: its set becomes a tree. */
		give(r >> 20 & 1 ? 7 : (r >> 12) % keys, (r >> 3) % values);
		switch (op) {
		case 0: case 1: case 2: rc = mdb_put(txn, dbi, key, data, 0); break;
		case 3: case 4: case 5: rc = mdb_cursor_put(a, key, data, dup ? MDB_NODUPDATA : 0); break;
		case 6: rc = mdb_cursor_put(b, key, data, MDB_NOOVERWRITE); break;
		case 7: rc = mdb_del(txn, dbi, key, dup ? data : NULL); break;
		case 8: rc = mdb_get(txn, dbi, key, &v); break;
		case 9: rc = mdb_cursor_get(a, key, &v, MDB_SET); break;
		case 10: rc = mdb_cursor_get(b, key, dup ? data : &v, dup ? MDB_GET_BOTH : MDB_SET_RANGE); break;
		case 11: if (dup) rc = mdb_cursor_get(b, key, data, MDB_GET_BOTH_RANGE); break;
		case 12: nothing(); rc = mdb_cursor_get(a, &k, &v, MDB_NEXT); break;
		case 13: nothing(); rc = mdb_cursor_get(b, &k, &v, MDB_PREV); break;
		case 14: nothing(); rc = mdb_cursor_del(b, r & 1 << 19 && r & 1 << 18 ? MDB_NODUPDATA : 0); break;
		case 15: nothing(); if (dup) mdb_cursor_count(a, &count); break;
		case 16:
			/* The key is the cursor's. */
			nothing();
			rc = mdb_cursor_get(b, &k, &v, MDB_GET_CURRENT);
			if (rc)
				break;
			give(0, (r >> 3) % values);
			key[0].mv_size = k.mv_size;
			memcpy(key_bytes, k.mv_data, k.mv_size);
			rc = mdb_cursor_put(b, key, data, MDB_CURRENT); break;
		default: rc = mdb_put(txn, dbi, key, data, MDB_APPEND); break;
		}
		MUST(rc == 0 || rc == MDB_NOTFOUND || rc == MDB_KEYEXIST || rc == EINVAL);
		if (wrong) {
			fprintf(stderr, "operation %u of a table %s duplicates\n", op, dup ? "with" : "without");
			exit(1);
		}
	}
	mdb_cursor_close(a);
	mdb_cursor_close(b);
}

/* Cursors of both libraries stay on their records while others change the table. */
static void stays(MDB_txn *txn, MDB_dbi dbi)
{
	MDB_cursor *on;
	MDB_val k, v;
	unsigned i;
	OK(mdb_drop(txn, dbi, 0));
	for (i = 0; i < 900; i++) {
		give(1, i);
		OK(mdb_put(txn, dbi, key, data, MDB_NODUPDATA));
	}
	OK(mdb_cursor_open(txn, dbi, &on));
	give(1, 450);
	OK(mdb_cursor_get(on, key, data, MDB_GET_BOTH));
	for (i = 900; i < 1500; i++) {
		give(1, i);
		OK(mdb_put(txn, dbi, key, data, 0));
	}
	for (i = 0; i < 1500; i++)
		if (i % 3 == 1) {
			give(1, i);
			OK(mdb_del(txn, dbi, key, data));
		}
	nothing();
	OK(mdb_cursor_get(on, &k, &v, MDB_GET_CURRENT));
	give(1, 450);
	MUST(v.mv_size == data->mv_size && memcmp(v.mv_data, data->mv_data, v.mv_size) == 0);
	mdb_cursor_close(on);
}

/* Values of one size, so many that they lie in packed leaves. */
static void packed(MDB_txn *txn, MDB_dbi dbi)
{
	MDB_cursor *cursor;
	unsigned i, n = 4000;
	OK(mdb_cursor_open(txn, dbi, &cursor));
	for (i = 0; i < 4 * n; i++) {
		int rc = 0;
		give(1, 0);
		data[0].mv_size = (size_t)sprintf(data_bytes, "%08u", i * 7919 % n);
		switch (i / n + (i % 5 == 0)) {
		case 0: rc = mdb_put(txn, dbi, key, data, 0); break;
		case 1: rc = mdb_cursor_put(cursor, key, data, MDB_NODUPDATA); break;
		case 2: rc = mdb_cursor_get(cursor, key, data, MDB_GET_BOTH); break;
		case 3: rc = mdb_cursor_get(cursor, key, data, MDB_GET_BOTH_RANGE); break;
		default: rc = mdb_del(txn, dbi, key, data); break;
		}
		MUST(rc == 0 || rc == MDB_NOTFOUND || rc == MDB_KEYEXIST);
		MUST(wrong == 0);
	}
	mdb_cursor_close(cursor);
	walk(txn, dbi, 1);
}

int main(int argc, char **argv)
{
	MDB_env *env;
	MDB_txn *txn, *child;
	MDB_dbi dbis[2], fixed;
	char copy[512];
	unsigned round, i, before[2];
	if (argc < 2)
		return 2;
	OK(mdb_env_create(&env));
	OK(mdb_env_set_mapsize(env, 64 << 20));
	OK(mdb_env_set_maxdbs(env, 4));
	OK(mdb_env_open(env, argv[1], MDB_NOSYNC, 0644));
	for (round = 1; round < 3; round++) {
		OK(mdb_txn_begin(env, NULL, 0, &txn));
		OK(mdb_dbi_open(txn, "one", MDB_CREATE, &dbis[0]));
		OK(mdb_dbi_open(txn, "many", MDB_CREATE | MDB_DUPSORT, &dbis[1]));
		for (i = 0; i < 2; i++) {
			OK(mdb_set_compare(txn, dbis[i], by_key));
			if (i)
				OK(mdb_set_dupsort(txn, dbis[i], by_value));
			in_all_calls(txn, dbis[i], (int)i, round * 7 + i);
			before[i] = walk(txn, dbis[i], (int)i);
			OK(mdb_txn_begin(env, txn, 0, &child));
			in_all_calls(child, dbis[i], (int)i, round * 11 + i);
			walk(child, dbis[i], (int)i);
			mdb_txn_abort(child);
			MUST(walk(txn, dbis[i], (int)i) == before[i]);
		}
		stays(txn, dbis[1]);
		OK(mdb_dbi_open(txn, "fixed", MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED, &fixed));
		OK(mdb_set_compare(txn, fixed, by_key));
		OK(mdb_set_dupsort(txn, fixed, by_value));
		packed(txn, fixed);
		OK(mdb_drop(txn, dbis[1], 0));
		nothing();
		OK(mdb_txn_commit(txn));
		snprintf(copy, sizeof copy, "%s/copy%u", argv[1], round);
		OK(mkdir(copy, 0755));
		OK(mdb_env_copy2(env, copy, round % 2 ? MDB_CP_COMPACT : 0));
	}
	MUST(wrong == 0 && calls > 5000);
	mdb_env_close(env);
	return 0;
}
