/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H
#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(what, got, want) \
	do { \
		fprintf(stderr, "%s:%d: %s gave %ld, not %ld\n", __FILE__, __LINE__, what, \
			(long)(got), (long)(want)); \
		exit(1); \
	} while (0)
#define IS(call, want) \
	do { \
		long got_ = (long)(call), want_ = (long)(want); \
		if (got_ != want_) \
			FAIL(#call, got_, want_); \
	} while (0)
#define OK(call) IS(call, 0)

static inline MDB_val val(const char *text)
{
	MDB_val made;
	made.mv_size = strlen(text);
	made.mv_data = (void *)text;
	return made;
}

static inline int same(const MDB_val *got, const char *want)
{
	return got->mv_size == strlen(want) && memcmp(got->mv_data, want, got->mv_size) == 0;
}

static inline int put(MDB_txn *txn, MDB_dbi dbi, const char *key, const char *value, unsigned flags)
{
	MDB_val k = val(key), v = val(value);
	return mdb_put(txn, dbi, &k, &v, flags);
}

static inline int get(MDB_txn *txn, MDB_dbi dbi, const char *key, MDB_val *value)
{
	MDB_val k = val(key);
	return mdb_get(txn, dbi, &k, value);
}

/* An environment in the directory that the program is given. */
static inline MDB_env *open_env(const char *dir, unsigned flags)
{
	MDB_env *env;
	OK(mdb_env_create(&env));
	OK(mdb_env_set_maxdbs(env, 4));
	OK(mdb_env_set_mapsize(env, 4 << 20));
	OK(mdb_env_open(env, dir, flags, 0644));
	return env;
}
#endif
