/* Numbers and layouts that programs have compiled in, checked by the compiler. */
#include <lmdb.h>
#include <stddef.h>

#define SAME(name, a, b) typedef char name[(a) == (b) ? 1 : -1]

SAME(val_size, sizeof(MDB_val), 2 * sizeof(void *));
SAME(val_data, offsetof(MDB_val, mv_data), sizeof(size_t));
SAME(stat_size, sizeof(MDB_stat), 8 + 4 * sizeof(size_t));
SAME(stat_entries, offsetof(MDB_stat, ms_entries), 8 + 3 * sizeof(size_t));
SAME(info_size, sizeof(MDB_envinfo), 8 + 4 * sizeof(size_t));
SAME(info_readers, offsetof(MDB_envinfo, me_numreaders), 4 + 4 * sizeof(size_t));
SAME(first, MDB_FIRST, 0);
SAME(current, MDB_GET_CURRENT, 4);
SAME(next, MDB_NEXT, 8);
SAME(set_range, MDB_SET_RANGE, 17);
SAME(prev_multiple, MDB_PREV_MULTIPLE, 18);
SAME(last_code, MDB_LAST_ERRCODE, -30780);
SAME(first_code, MDB_KEYEXIST, -30799);
SAME(no_tls, MDB_NOTLS, 0x200000);
SAME(create, MDB_CREATE, 0x40000);
SAME(append_dup, MDB_APPENDDUP, 0x40000);

/* Each function once, with the types that it has. */
int layout_of_all(void);
int layout_of_all(void)
{
	int (*f[])(MDB_env **) = {mdb_env_create};
	int (*open)(MDB_env *, const char *, unsigned int, mode_t) = mdb_env_open;
	int (*copy)(MDB_env *, const char *, unsigned int) = mdb_env_copy2;
	int (*get)(MDB_txn *, MDB_dbi, MDB_val *, MDB_val *) = mdb_get;
	int (*del)(MDB_txn *, MDB_dbi, MDB_val *, MDB_val *) = mdb_del;
	int (*put)(MDB_txn *, MDB_dbi, MDB_val *, MDB_val *, unsigned int) = mdb_put;
	int (*cget)(MDB_cursor *, MDB_val *, MDB_val *, MDB_cursor_op) = mdb_cursor_get;
	int (*cmp)(MDB_txn *, MDB_dbi, const MDB_val *, const MDB_val *) = mdb_cmp;
	int (*list)(MDB_env *, MDB_msg_func *, void *) = mdb_reader_list;
	char *(*version)(int *, int *, int *) = mdb_version;
	size_t (*id)(MDB_txn *) = mdb_txn_id;
	return f[0] && open && copy && get && del && put && cget && cmp && list && version && id;
}
