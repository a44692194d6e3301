/* lmdb.h - the C interface of LMDB 0.9, on Zubilo.
 *
 * Source and binary compatible with LMDB 0.9: the same names, numbers and layouts. Programs that
 * were compiled with LMDB's own header need not be compiled again. Where the behaviour differs
 * docs/lmdb-compatibility.md says so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef _LMDB_H_
#define _LMDB_H_

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef mode_t mdb_mode_t;
typedef int mdb_filehandle_t;

/* The version of LMDB whose interface this is. */
#define MDB_VERSION_MAJOR 0
#define MDB_VERSION_MINOR 9
#define MDB_VERSION_PATCH 33
#define MDB_VERINT(a, b, c) (((a) << 24) | ((b) << 16) | (c))
#define MDB_VERSION_FULL MDB_VERINT(MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH)
#define MDB_VERSION_DATE "Zubilo"
#define MDB_VERSTR(a, b, c, d) "LMDB " #a "." #b "." #c ": (" d ")"
#define MDB_VERFOO(a, b, c, d) MDB_VERSTR(a, b, c, d)
#define MDB_VERSION_STRING \
	MDB_VERFOO(MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH, MDB_VERSION_DATE)

/* An open store, a transaction, a cursor; their insides are nobody's business. */
typedef struct MDB_env MDB_env;
typedef struct MDB_txn MDB_txn;
typedef struct MDB_cursor MDB_cursor;
/* A table. 0 is the free pages, 1 the unnamed table, named ones follow. */
typedef unsigned int MDB_dbi;

/* Bytes: a key or a value. */
typedef struct MDB_val {
	size_t mv_size;
	void *mv_data;
} MDB_val;

/* A comparison: below, equal to or above zero. It must order all keys it is ever given. */
typedef int(MDB_cmp_func)(const MDB_val *a, const MDB_val *b);
/* Accepted and never called. */
typedef void(MDB_rel_func)(MDB_val *item, void *oldptr, void *newptr, void *relctx);

/* Flags of an environment. */
#define MDB_FIXEDMAP 0x01       /* accepted, without effect */
#define MDB_NOSUBDIR 0x4000     /* the path is that of the data file, not of a directory */
#define MDB_NOSYNC 0x10000      /* commits do not wait for the disk; consistent after a crash */
#define MDB_RDONLY 0x20000      /* nothing is written */
#define MDB_NOMETASYNC 0x40000  /* accepted; commits are durable all the same */
#define MDB_WRITEMAP 0x80000    /* accepted; pages are protected from stray writes all the same */
#define MDB_MAPASYNC 0x100000   /* as MDB_NOSYNC */
#define MDB_NOTLS 0x200000      /* read transactions belong to no thread */
#define MDB_NOLOCK 0x400000     /* no lock file: the program keeps writers and readers apart */
#define MDB_NORDAHEAD 0x800000  /* the kernel does not read ahead */
#define MDB_NOMEMINIT 0x1000000 /* accepted */

/* Flags of a table, fixed when it is made. */
#define MDB_REVERSEKEY 0x02 /* keys are compared from their ends */
#define MDB_DUPSORT 0x04    /* many sorted values under a key */
#define MDB_INTEGERKEY 0x08 /* keys are numbers, unsigned int or size_t, all of one size */
#define MDB_DUPFIXED 0x10   /* with MDB_DUPSORT: all values have one size */
#define MDB_INTEGERDUP 0x20 /* with MDB_DUPSORT: values are numbers like MDB_INTEGERKEY's */
#define MDB_REVERSEDUP 0x40 /* with MDB_DUPSORT: values are compared from their ends */
#define MDB_CREATE 0x40000  /* make the table if there is none */

/* Flags of a write. */
#define MDB_NOOVERWRITE 0x10 /* the key must be new */
#define MDB_NODUPDATA 0x20   /* the pair must be new; of mdb_cursor_del: all values of the key */
#define MDB_CURRENT 0x40     /* replace what the cursor is on */
#define MDB_RESERVE 0x10000  /* make room for a value and give its place, without writing it */
#define MDB_APPEND 0x20000   /* the key comes after all others */
#define MDB_APPENDDUP 0x40000 /* the value comes after all others of the key */
#define MDB_MULTIPLE 0x80000 /* many values of one size at once */

/* Flag of a copy. */
#define MDB_CP_COMPACT 0x01 /* leave free pages out */

/* Moves of a cursor. */
typedef enum MDB_cursor_op {
	MDB_FIRST,          /* to the first record */
	MDB_FIRST_DUP,      /* to the first value of this key */
	MDB_GET_BOTH,       /* to this pair */
	MDB_GET_BOTH_RANGE, /* to this key, and its first value not below this one */
	MDB_GET_CURRENT,    /* stay */
	MDB_GET_MULTIPLE,   /* a page of values from here */
	MDB_LAST,           /* to the last record */
	MDB_LAST_DUP,       /* to the last value of this key */
	MDB_NEXT,           /* to the next record */
	MDB_NEXT_DUP,       /* to the next value of this key */
	MDB_NEXT_MULTIPLE,  /* the next page of values */
	MDB_NEXT_NODUP,     /* to the first value of the next key */
	MDB_PREV,           /* to the record before */
	MDB_PREV_DUP,       /* to the value before, of this key */
	MDB_PREV_NODUP,     /* to the last value of the key before */
	MDB_SET,            /* to this key */
	MDB_SET_KEY,        /* to this key; gives key and value */
	MDB_SET_RANGE,      /* to the first key not below this one */
	MDB_PREV_MULTIPLE   /* the page of values before */
} MDB_cursor_op;

/* Results. Positive ones are the system's. */
#define MDB_SUCCESS 0
#define MDB_KEYEXIST (-30799)         /* the key, or the pair, is there already */
#define MDB_NOTFOUND (-30798)         /* no such key or pair, or the end */
#define MDB_PAGE_NOTFOUND (-30797)    /* damage: a page is missing */
#define MDB_CORRUPTED (-30796)        /* damage: a page is not what it should be */
#define MDB_PANIC (-30795)            /* the environment has failed and must be closed */
#define MDB_VERSION_MISMATCH (-30794) /* the file is of another version, or LMDB's own */
#define MDB_INVALID (-30793)          /* the file is no store */
#define MDB_MAP_FULL (-30792)         /* the map size is used up */
#define MDB_DBS_FULL (-30791)         /* see mdb_env_set_maxdbs */
#define MDB_READERS_FULL (-30790)     /* see mdb_env_set_maxreaders */
#define MDB_TLS_FULL (-30789)         /* never given */
#define MDB_TXN_FULL (-30788)         /* never given */
#define MDB_CURSOR_FULL (-30787)      /* never given */
#define MDB_PAGE_FULL (-30786)        /* never given */
#define MDB_MAP_RESIZED (-30785)      /* another process has raised the map size and used it */
#define MDB_INCOMPATIBLE (-30784)     /* the operation does not suit the table */
#define MDB_BAD_RSLOT (-30783)        /* this thread has a read transaction already */
#define MDB_BAD_TXN (-30782)          /* the transaction has failed, has a child, or has ended */
#define MDB_BAD_VALSIZE (-30781)      /* a key or value of a size that cannot be stored */
#define MDB_BAD_DBI (-30780)          /* the table was dropped, or its handle closed */
#define MDB_LAST_ERRCODE MDB_BAD_DBI

/* Figures of a table. */
typedef struct MDB_stat {
	unsigned int ms_psize;
	unsigned int ms_depth;
	size_t ms_branch_pages;
	size_t ms_leaf_pages;
	size_t ms_overflow_pages;
	size_t ms_entries;
} MDB_stat;

/* Figures of an environment. */
typedef struct MDB_envinfo {
	void *me_mapaddr; /* always NULL */
	size_t me_mapsize;
	size_t me_last_pgno;
	size_t me_last_txnid;
	unsigned int me_maxreaders;
	unsigned int me_numreaders;
} MDB_envinfo;

/* ---- the library ---- */

/* The version as text, and as numbers where the pointers are not null. The variable
 * ZUBILO_LMDB_VERSION in the program's environment, such as 0.9.29, sets what is reported. */
char *mdb_version(int *major, int *minor, int *patch);
char *mdb_strerror(int err);

/* ---- environments ---- */

int mdb_env_create(MDB_env **env);
/* Of a data file of the original LMDB it makes a store, and keeps the old file as FILE.lmdb, if the
 * variable ZUBILO_CONVERT in the program's environment is 1; else it gives MDB_VERSION_MISMATCH. */
int mdb_env_open(MDB_env *env, const char *path, unsigned int flags, mdb_mode_t mode);
int mdb_env_copy(MDB_env *env, const char *path);
int mdb_env_copyfd(MDB_env *env, mdb_filehandle_t fd);
int mdb_env_copy2(MDB_env *env, const char *path, unsigned int flags);
int mdb_env_copyfd2(MDB_env *env, mdb_filehandle_t fd, unsigned int flags);
int mdb_env_stat(MDB_env *env, MDB_stat *stat);
int mdb_env_info(MDB_env *env, MDB_envinfo *stat);
int mdb_env_sync(MDB_env *env, int force);
void mdb_env_close(MDB_env *env);
int mdb_env_set_flags(MDB_env *env, unsigned int flags, int onoff);
int mdb_env_get_flags(MDB_env *env, unsigned int *flags);
int mdb_env_get_path(MDB_env *env, const char **path);
int mdb_env_get_fd(MDB_env *env, mdb_filehandle_t *fd);
int mdb_env_set_mapsize(MDB_env *env, size_t size);
int mdb_env_set_maxreaders(MDB_env *env, unsigned int readers);
int mdb_env_get_maxreaders(MDB_env *env, unsigned int *readers);
int mdb_env_set_maxdbs(MDB_env *env, MDB_dbi dbs);
int mdb_env_get_maxkeysize(MDB_env *env);
int mdb_env_set_userctx(MDB_env *env, void *ctx);
void *mdb_env_get_userctx(MDB_env *env);
typedef void MDB_assert_func(MDB_env *env, const char *msg);
int mdb_env_set_assert(MDB_env *env, MDB_assert_func *func);

/* ---- transactions ---- */

int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn);
MDB_env *mdb_txn_env(MDB_txn *txn);
size_t mdb_txn_id(MDB_txn *txn);
int mdb_txn_commit(MDB_txn *txn);
void mdb_txn_abort(MDB_txn *txn);
void mdb_txn_reset(MDB_txn *txn);
int mdb_txn_renew(MDB_txn *txn);

/* ---- tables ---- */

#define mdb_open(txn, name, flags, dbi) mdb_dbi_open(txn, name, flags, dbi)
#define mdb_close(env, dbi) mdb_dbi_close(env, dbi)
int mdb_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi);
int mdb_stat(MDB_txn *txn, MDB_dbi dbi, MDB_stat *stat);
int mdb_dbi_flags(MDB_txn *txn, MDB_dbi dbi, unsigned int *flags);
void mdb_dbi_close(MDB_env *env, MDB_dbi dbi);
int mdb_drop(MDB_txn *txn, MDB_dbi dbi, int del);
int mdb_set_compare(MDB_txn *txn, MDB_dbi dbi, MDB_cmp_func *cmp);
int mdb_set_dupsort(MDB_txn *txn, MDB_dbi dbi, MDB_cmp_func *cmp);
int mdb_set_relfunc(MDB_txn *txn, MDB_dbi dbi, MDB_rel_func *rel);
int mdb_set_relctx(MDB_txn *txn, MDB_dbi dbi, void *ctx);

/* ---- records ---- */

int mdb_get(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
int mdb_put(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned int flags);
int mdb_del(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
int mdb_cmp(MDB_txn *txn, MDB_dbi dbi, const MDB_val *a, const MDB_val *b);
int mdb_dcmp(MDB_txn *txn, MDB_dbi dbi, const MDB_val *a, const MDB_val *b);

/* ---- cursors ---- */

int mdb_cursor_open(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor);
void mdb_cursor_close(MDB_cursor *cursor);
int mdb_cursor_renew(MDB_txn *txn, MDB_cursor *cursor);
MDB_txn *mdb_cursor_txn(MDB_cursor *cursor);
MDB_dbi mdb_cursor_dbi(MDB_cursor *cursor);
int mdb_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op op);
int mdb_cursor_put(MDB_cursor *cursor, MDB_val *key, MDB_val *data, unsigned int flags);
int mdb_cursor_del(MDB_cursor *cursor, unsigned int flags);
int mdb_cursor_count(MDB_cursor *cursor, size_t *countp);

/* ---- readers ---- */

typedef int(MDB_msg_func)(const char *msg, void *ctx);
int mdb_reader_list(MDB_env *env, MDB_msg_func *func, void *ctx);
int mdb_reader_check(MDB_env *env, int *dead);

#ifdef __cplusplus
}
#endif

#endif
