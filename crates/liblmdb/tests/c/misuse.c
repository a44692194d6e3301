/* Wrong arguments and dead handles give codes; nothing crashes. */
#include "check.h"

static void null_arguments(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("k"), v = val("v");

	IS(mdb_env_create(NULL), EINVAL);
	IS(mdb_env_open(NULL, ".", 0, 0644), EINVAL);
	IS(mdb_env_open(env, NULL, 0, 0644), EINVAL);
	IS(mdb_env_stat(env, NULL), EINVAL);
	IS(mdb_env_info(env, NULL), EINVAL);
	IS(mdb_env_get_flags(env, NULL), EINVAL);
	IS(mdb_env_get_path(env, NULL), EINVAL);
	IS(mdb_env_get_fd(env, NULL), EINVAL);
	IS(mdb_env_copy(env, NULL), EINVAL);
	IS(mdb_env_set_maxreaders(NULL, 5), EINVAL);
	IS(mdb_txn_begin(NULL, NULL, 0, &txn), EINVAL);
	IS(mdb_txn_begin(env, NULL, 0, NULL), EINVAL);
	IS(mdb_txn_commit(NULL), EINVAL);
	IS(mdb_txn_renew(NULL), EINVAL);
	IS(mdb_txn_id(NULL), 0);
	mdb_txn_abort(NULL);
	mdb_txn_reset(NULL);
	mdb_cursor_close(NULL);
	mdb_env_close(NULL);
	mdb_dbi_close(NULL, 2);

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	IS(mdb_dbi_open(txn, NULL, 0, NULL), EINVAL);
	IS(mdb_dbi_open(txn, "x", 0x80, &dbi), EINVAL);
	IS(mdb_dbi_open(txn, "", MDB_CREATE, &dbi), MDB_BAD_VALSIZE);
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	IS(mdb_get(txn, dbi, NULL, &v), EINVAL);
	IS(mdb_get(txn, dbi, &k, NULL), EINVAL);
	IS(mdb_get(txn, 77, &k, &v), EINVAL);
	IS(mdb_get(txn, 0, &k, &v), EINVAL);
	IS(mdb_put(txn, dbi, &k, NULL, 0), EINVAL);
	IS(mdb_put(txn, dbi, &k, &v, MDB_CURRENT), EINVAL);
	IS(mdb_put(txn, dbi, &k, &v, 0x1000), EINVAL);
	IS(mdb_del(txn, dbi, NULL, NULL), EINVAL);
	IS(mdb_drop(txn, dbi, 2), EINVAL);
	IS(mdb_stat(txn, dbi, NULL), EINVAL);
	IS(mdb_dbi_flags(txn, 99, (unsigned *)&dbi), EINVAL);
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	IS(mdb_cursor_open(txn, dbi, NULL), EINVAL);
	IS(mdb_cursor_open(txn, 99, &cursor), EINVAL);
	OK(mdb_cursor_open(txn, dbi, &cursor));
	IS(mdb_cursor_get(cursor, &k, &v, 99), EINVAL);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_GET_CURRENT), EINVAL);
	IS(mdb_cursor_get(cursor, NULL, &v, MDB_SET), EINVAL);
	IS(mdb_cursor_del(cursor, 0), EINVAL);
	IS(mdb_cursor_put(cursor, &k, &v, MDB_CURRENT), EINVAL);
	IS(mdb_cursor_count(cursor, NULL), EINVAL);
	mdb_txn_abort(txn);
}

static void sizes_of_keys(MDB_env *env)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	char bytes[600];
	MDB_val k, v = val("v");

	memset(bytes, 'x', sizeof bytes);
	k.mv_data = bytes;
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	k.mv_size = 0;
	IS(mdb_put(txn, dbi, &k, &v, 0), MDB_BAD_VALSIZE);
	IS(mdb_get(txn, dbi, &k, &v), MDB_BAD_VALSIZE);
	IS(mdb_del(txn, dbi, &k, NULL), MDB_BAD_VALSIZE);
	k.mv_size = 511;
	OK(mdb_put(txn, dbi, &k, &v, 0));
	k.mv_size = 512;
	IS(mdb_put(txn, dbi, &k, &v, 0), MDB_BAD_VALSIZE);
	IS(mdb_get(txn, dbi, &k, &v), MDB_NOTFOUND);
	OK(mdb_dbi_open(txn, "dup", MDB_CREATE | MDB_DUPSORT, &dbi));
	k = val("k");
	v.mv_data = bytes;
	v.mv_size = 511;
	OK(mdb_put(txn, dbi, &k, &v, 0));
	v.mv_size = 512;
	IS(mdb_put(txn, dbi, &k, &v, 0), MDB_BAD_VALSIZE);
	IS(mdb_put(txn, dbi, &k, &v, MDB_RESERVE), MDB_INCOMPATIBLE);
	mdb_txn_abort(txn);
}

static void dead_handles(MDB_env *env)
{
	MDB_txn *txn, *child;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k = val("k"), v = val("v");

	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(mdb_txn_begin(env, txn, 0, &child));
	IS(mdb_put(txn, dbi, &k, &v, 0), MDB_BAD_TXN);
	OK(mdb_put(child, dbi, &k, &v, 0));
	/* The child goes with its parent. */
	OK(mdb_txn_commit(txn));
	IS(mdb_txn_commit(txn), MDB_BAD_TXN);
	IS(mdb_get(txn, dbi, &k, &v), MDB_BAD_TXN);
	IS(mdb_get(child, dbi, &k, &v), MDB_BAD_TXN);
	mdb_txn_abort(txn);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_FIRST), EINVAL);

	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_get(txn, dbi, &k, &v));
	IS(mdb_put(txn, dbi, &k, &v, 0), EACCES);
	IS(mdb_txn_begin(env, txn, 0, &child), EINVAL);
	IS(mdb_txn_renew(txn), EINVAL);
	OK(mdb_cursor_open(txn, dbi, &cursor));
	OK(mdb_cursor_get(cursor, &k, &v, MDB_FIRST));
	mdb_txn_reset(txn);
	mdb_txn_reset(txn);
	IS(mdb_get(txn, dbi, &k, &v), EINVAL);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_NEXT), MDB_BAD_TXN);
	OK(mdb_txn_renew(txn));
	OK(mdb_cursor_renew(txn, cursor));
	OK(mdb_cursor_get(cursor, &k, &v, MDB_FIRST));
	mdb_txn_abort(txn);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_FIRST), MDB_BAD_TXN);
	/* A read transaction's cursor is the program's to close. */
	mdb_cursor_close(cursor);
	IS(mdb_cursor_get(cursor, &k, &v, MDB_FIRST), EINVAL);
}

int main(int argc, char **argv)
{
	MDB_env *env = open_env(argv[argc - 1], 0);
	IS(mdb_env_open(env, argv[argc - 1], 0, 0644), EINVAL);
	IS(mdb_env_set_maxdbs(env, 9), EINVAL);
	IS(mdb_env_set_maxreaders(env, 9), EINVAL);
	IS(mdb_env_set_flags(env, MDB_RDONLY, 1), EINVAL);
	null_arguments(env);
	sizes_of_keys(env);
	dead_handles(env);
	mdb_env_close(env);
	return 0;
}
