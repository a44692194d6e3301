/* zubilo.h - what Zubilo's C interface has beyond LMDB's. Include it beside lmdb.h, whose handles it
 * uses. Functions that libmdbx has too bear its names and take the same arguments; those that only
 * Zubilo has begin with zubilo_.
 *
 * All give 0, a code of lmdb.h or one of those below, unless said otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZUBILO_H
#define ZUBILO_H

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Answers of questions. */
#define MDBX_RESULT_FALSE 0
#define MDBX_RESULT_TRUE (-1)
/* The key has several values where one was meant. */
#define MDBX_EMULTIVAL (-30421)

/* Bounds and steps of the data file, in bytes; -1 leaves what is. Before mdb_env_open, or while open
 * and no write transaction of this process lives. size_now has no effect: the file is as long as
 * used. pagesize counts when a store is made. */
int mdbx_env_set_geometry(MDB_env *env, intptr_t size_lower, intptr_t size_now,
	intptr_t size_upper, intptr_t growth_step, intptr_t shrink_threshold, intptr_t pagesize);

/* As mdb_env_close; with dont_sync what is not on the disk yet is not waited for. */
int mdbx_env_close_ex(MDB_env *env, bool dont_sync);

/* How many commits a read transaction is behind; with percent also how full the store is. Negative:
 * minus an error number, or a code. */
int mdbx_txn_straggler(MDB_txn *txn, int *percent);

/* Three numbers of the program, committed with everything else; mdbx_v is the transaction that set
 * them. */
typedef struct MDBX_canary {
	uint64_t mdbx_x, mdbx_y, mdbx_z, mdbx_v;
} MDBX_canary;
/* A null canary only sets mdbx_v. */
int mdbx_canary_put(MDB_txn *txn, const MDBX_canary *canary);
int mdbx_canary_get(MDB_txn *txn, MDBX_canary *canary);

/* Takes increment numbers of the table's persistent sequence and gives the first; with 0 the one that
 * comes next. MDBX_RESULT_TRUE when there are not so many left. */
int mdbx_dbi_sequence(MDB_txn *txn, MDB_dbi dbi, uint64_t *result, uint64_t increment);

/* MDBX_RESULT_TRUE if what the pointer points to may change with the next update: it is in what this
 * write transaction has changed, or not in the store at all. */
int mdbx_is_dirty(MDB_txn *txn, const void *pointer);

/* As mdb_get; key then points to the key as it is stored, count is the number of its values. */
int mdbx_get_ex(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, size_t *count);

/* Stores new_data under a key and gives what was there, copied to old_data->mv_data, which has room
 * for old_data->mv_size bytes: if they are too few, MDBX_RESULT_TRUE, the size that is needed, and
 * nothing is changed. Where nothing was there mv_data becomes null. A null new_data removes the
 * key. With MDB_NOOVERWRITE the key must be new, with MDB_CURRENT it must be there. A key with
 * several values gives MDBX_EMULTIVAL. */
int mdbx_replace(MDB_txn *txn, MDB_dbi dbi, const MDB_val *key, MDB_val *new_data,
	MDB_val *old_data, unsigned flags);

/* MDBX_RESULT_TRUE when nothing is under the cursor or its last step forward found nothing. */
int mdbx_cursor_eof(MDB_cursor *cursor);
/* MDBX_RESULT_TRUE when the cursor stands on the first, or the last record. */
int mdbx_cursor_on_first(MDB_cursor *cursor);
int mdbx_cursor_on_last(MDB_cursor *cursor);

/* Looks up count keys at once, in a read transaction; much faster than one by one where they are not
 * in the caches. values[i] belongs to keys[i]; of a key that is not there mv_data is null. Gives
 * MDB_NOTFOUND if none is there. */
int zubilo_get_many(MDB_txn *txn, MDB_dbi dbi, const MDB_val *keys, MDB_val *values, size_t count);

/* Runs change in a write transaction that is shared with other threads that call this meanwhile: one
 * commit and one flush for all. What change returns other than 0 undoes what it did, and is given.
 * It may run in another thread of those. It must not end the transaction, nor keep its handles;
 * tables should have been opened before. */
int zubilo_update(MDB_env *env, int (*change)(MDB_txn *txn, void *context), void *context);

#ifdef __cplusplus
}
#endif
#endif
