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
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Options of a store that LMDB has no function for, to be set before mdb_env_open. */
typedef enum zubilo_option {
	/* Bytes of memory for the pages that a transaction has changed; larger ones write some early. If not
	 * set an eighth of memory, 16 MiB to 4 GiB. */
	ZUBILO_DIRTY_LIMIT = 0,
	/* What a commit promises. ZUBILO_SYNC: it is on the disk. ZUBILO_LAZY: it survives the end of the
	 * process, and a power cut loses what the two options below allow. ZUBILO_NOSYNC: the same, but
	 * only mdb_env_sync and the close flush. With the latter two MDB_NOSYNC means nothing. */
	ZUBILO_DURABILITY = 1,
	/* With ZUBILO_LAZY a thread flushes after so many bytes, or milliseconds. */
	ZUBILO_SYNC_BYTES = 2,
	ZUBILO_SYNC_PERIOD = 3,
	/* When readers verify checksums of pages. 0: never, 1: at the first use since the open, 2: always. */
	ZUBILO_VERIFY_READS = 4,
	/* A thread checks the whole store again and again, at this rate in bytes a second, beginning
	 * so many seconds after it began before (a day). What it finds goes to the function of
	 * mdbx_setup_debug and by zubilo_scrub_report. */
	ZUBILO_SCRUB_RATE = 5,
	ZUBILO_SCRUB_PERIOD = 6,
	/* 1: the kernel is asked for huge pages. */
	ZUBILO_HUGE_PAGES = 7,
	/* 1: pages are written through a writable map, which a stray pointer can damage. */
	ZUBILO_WRITABLE_MAP = 8,
	/* 0: a store that is missing is not made, MDB_RDONLY or not. */
	ZUBILO_CREATE = 9,
	/* Bytes of address space for the map (1 TiB). */
	ZUBILO_RESERVE = 10,
	/* A write transaction of this process expires parked readers (zubilo_txn_park) whose snapshot is older than
	 * the newest for more milliseconds than this; and those that hold back most, as long as more bytes than
	 * this are held back. Not set: none. */
	ZUBILO_EXPIRE_BEHIND = 11,
	ZUBILO_EXPIRE_HELD = 12
} zubilo_option;
#define ZUBILO_SYNC 0
#define ZUBILO_LAZY 1
#define ZUBILO_NOSYNC 2
int zubilo_env_set(MDB_env *env, zubilo_option option, uint64_t value);

/* The key of an encrypted store, 32 bytes, or the passphrase of one, before mdb_env_open; a store that is made is
 * encrypted with it. The open gives MDB_CRYPTO_FAIL if the store has another one, and MDB_ENV_ENCRYPTION if it
 * is encrypted and no key was given, or the other way round. These are the codes of LMDB 1.0. */
int zubilo_env_set_key(MDB_env *env, const void *key, size_t len);
int zubilo_env_set_passphrase(MDB_env *env, const void *passphrase, size_t len);
#ifndef MDB_CRYPTO_FAIL
#define MDB_CRYPTO_FAIL (-30777)
#define MDB_ENV_ENCRYPTION (-30776)
#endif

/* As mdb_env_open. If *exclusive is not 0, every other process is kept out while the store is open,
 * or the open gives EBUSY because one is in. Null is 0. */
int mdbx_env_open_ex(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode, int *exclusive);

/* As mdb_env_close; with dont_sync what is not on the disk yet is not waited for. */
int mdbx_env_close_ex(MDB_env *env, bool dont_sync);

/* Asked when what a transaction changes does not fit the map and a reader, of any process, keeps
 * pages from being used again, before MDB_MAP_FULL is given. laggard is the snapshot of the oldest
 * reader, gap how many commits it is behind, space the bytes that are held back, retry how often it
 * was asked before for this change. It may wait, signal the reader, or end it; not use txn.
 * Gives: negative, nothing can be done; 0, look again; 1, the reader's transaction was ended; 2, its
 * process was. At the end there is one call with a negative retry, minus the number of calls. */
typedef int MDBX_hsr_func(const MDB_env *env, const MDB_txn *txn, pid_t pid, uint64_t tid,
	uint64_t laggard, unsigned gap, size_t space, int retry);
/* An older form of the same. */
typedef int MDBX_oom_func(MDB_env *env, pid_t pid, uint64_t tid, uint64_t laggard, unsigned gap,
	size_t space, int retry);
/* One function of one kind; null for none. At any time. */
int mdbx_env_set_hsr(MDB_env *env, MDBX_hsr_func *hsr_callback);
MDBX_hsr_func *mdbx_env_get_hsr(const MDB_env *env);
int mdbx_env_set_oomfunc(MDB_env *env, MDBX_oom_func *oom_func);
MDBX_oom_func *mdbx_env_get_oomfunc(MDB_env *env);

/* Messages of all stores that this process opens, up to a level. */
typedef enum MDBX_log_level_t {
	MDBX_LOG_FATAL = 0,
	MDBX_LOG_ERROR = 1,
	MDBX_LOG_WARN = 2,
	MDBX_LOG_NOTICE = 3,
	MDBX_LOG_VERBOSE = 4,
	MDBX_LOG_DEBUG = 5,
	MDBX_LOG_TRACE = 6,
	MDBX_LOG_EXTRA = 7,
	MDBX_LOG_DONTCHANGE = -1
} MDBX_log_level_t;
typedef enum MDBX_debug_flags_t {
	MDBX_DBG_NONE = 0,
	/* Stores that are opened from now on are checked as a whole after each commit, which gives
	 * MDB_CORRUPTED if something is wrong: for tests, and for finding the cause of damage. */
	MDBX_DBG_AUDIT = 2,
	MDBX_DBG_DONTCHANGE = -1
} MDBX_debug_flags_t;
/* Called in any thread, also in the middle of a commit: it must not call the library. fmt and args are
 * those of vprintf; args is always empty. */
typedef void MDBX_debug_func(MDBX_log_level_t level, const char *function, int line, const char *fmt,
	va_list args);
#define MDBX_LOGGER_DONTCHANGE ((MDBX_debug_func *)(intptr_t)-1)
/* Sets level, flags and function, null for none; gives what was there: level << 16 | flags. */
int mdbx_setup_debug(MDBX_log_level_t level, MDBX_debug_flags_t flags, MDBX_debug_func *logger);

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

/* Puts the value new_data of a key in the place of old_data, which must be there; cursors on it
 * follow. MDB_NOTFOUND if the key does not have it. */
int zubilo_replace_value(MDB_txn *txn, MDB_dbi dbi, const MDB_val *key, const MDB_val *old_data,
	const MDB_val *new_data);

/* Looks at records until predicate gives MDBX_RESULT_TRUE, which is then given, with the cursor on that record: at the
 * one that start_op goes to, and from there on by turn_op, one of the moves to the next record or the one before.
 * MDBX_RESULT_FALSE goes on, and is given where there is no further record; anything else ends the scan and is given.
 * MDB_NOTFOUND if start_op finds nothing. The predicate gets key and value where they are in the store, without a
 * copy, good until it returns or changes something; it may use the cursor and its transaction, not end them. */
typedef int MDBX_predicate_func(void *context, MDB_val *key, MDB_val *value, void *arg);
int mdbx_cursor_scan(MDB_cursor *cursor, MDBX_predicate_func *predicate, void *context,
	MDB_cursor_op start_op, MDB_cursor_op turn_op, void *arg);
/* The same from a key, or a key and value, that from_op looks for: MDB_SET_RANGE, MDB_GET_BOTH_RANGE and the like. */
int mdbx_cursor_scan_from(MDB_cursor *cursor, MDBX_predicate_func *predicate, void *context,
	MDB_cursor_op from_op, MDB_val *from_key, MDB_val *from_value, MDB_cursor_op turn_op, void *arg);
/* MDBX_RESULT_TRUE when nothing is under the cursor or its last step forward found nothing. */
int mdbx_cursor_eof(MDB_cursor *cursor);
/* MDBX_RESULT_TRUE when the cursor stands on the first, or the last record. */
int mdbx_cursor_on_first(MDB_cursor *cursor);
int mdbx_cursor_on_last(MDB_cursor *cursor);
/* MDBX_RESULT_TRUE when it stands on the first, or the last value of its key. */
int mdbx_cursor_on_first_dup(MDB_cursor *cursor);
int mdbx_cursor_on_last_dup(MDB_cursor *cursor);

/* Looks up count keys at once, in a read transaction; much faster than one by one where they are not
 * in the caches. values[i] belongs to keys[i]; of a key that is not there mv_data is null. Gives
 * MDB_NOTFOUND if none is there. */
int zubilo_get_many(MDB_txn *txn, MDB_dbi dbi, const MDB_val *keys, MDB_val *values, size_t count);

/* Runs change in a write transaction that is shared with other threads that call this meanwhile: one
 * commit and one flush for all. What change returns other than 0 undoes what it did, and is given.
 * It may run in another thread of those. It must not end the transaction, nor keep its handles;
 * tables should have been opened before. */
int zubilo_update(MDB_env *env, int (*change)(MDB_txn *txn, void *context), void *context);

/* Two-phase commits, for transactions over several stores, or over a store and something else: prepare all, note the decision
 * in one place, carry it out. What is prepared is on disk, waits over any crash, and is committed or rolled back by whoever has
 * the store open. Readers see it when it is committed; until it is decided mdb_txn_begin of a write transaction gives EBUSY. */
typedef struct zubilo_prepared {
	uint64_t id;       /* by what it is decided about; drawn by chance */
	uint64_t txnid;    /* the number that it has when it is committed; after a roll-back another transaction's */
	uint64_t since;    /* seconds since 1970 */
	uint64_t words[3]; /* of mdbx_canary_put, as they are when it is committed */
	uint64_t tag_size;
	unsigned char tag[64];
} zubilo_prepared;
/* Ends a write transaction, prepared; child transactions are part of it. Whatever the result it has ended, and handles of tables
 * that were opened in it are closed; open them after the decision. tag, at most 64 bytes or null, is what the program calls
 * it. EINVAL, and the transaction goes on, where it is nested or only reads. EINVAL where nothing was changed, where the
 * store is encrypted, has a redo log, or was opened with MDB_NOLOCK. */
int zubilo_txn_prepare(MDB_txn *txn, const MDB_val *tag, uint64_t *id);
/* What waits for its decision; MDB_NOTFOUND if nothing does. */
int zubilo_env_prepared(MDB_env *env, zubilo_prepared *prepared);
/* The decision, on disk when they return. MDB_NOTFOUND if it does not wait: somebody else has decided. */
int zubilo_commit_prepared(MDB_env *env, uint64_t id);
int zubilo_roll_back_prepared(MDB_env *env, uint64_t id);

/* A flag of zubilo_dbi_open: the table counts its records page by page, so that the functions below
 * cost one or two look-ups. */
#define ZUBILO_COUNTED 0x100000u
/* As mdb_dbi_open with a name; a new table can count its records, and can align its values to 2, 4, 8
 * or 16 bytes (0: not). */
int zubilo_dbi_open(MDB_txn *txn, const char *name, unsigned flags, unsigned alignment, MDB_dbi *dbi);
/* Gives a table another name, which must be free (MDB_KEYEXIST). EBUSY while a handle of it is open. */
int zubilo_dbi_rename(MDB_txn *txn, const char *from, const char *to);

/* Record n in the order of the table, from 0; each value of a key is one. Of a table that does not
 * count, these four give MDB_INCOMPATIBLE. */
int zubilo_nth(MDB_txn *txn, MDB_dbi dbi, uint64_t n, MDB_val *key, MDB_val *data);
/* Value n of a key. */
int zubilo_nth_value(MDB_txn *txn, MDB_dbi dbi, const MDB_val *key, uint64_t n, MDB_val *data);
/* How many records come before those of a key, or before that with data where that is not null; it
 * need not be there. */
int zubilo_rank(MDB_txn *txn, MDB_dbi dbi, const MDB_val *key, const MDB_val *data, uint64_t *rank);
/* How many records have keys from one on and before another; null is from the first, to the last. */
int zubilo_range_size(MDB_txn *txn, MDB_dbi dbi, const MDB_val *from, const MDB_val *to, uint64_t *size);
/* About so many, of any table: it reads the ends of the range and some dozens of pages between them. A short range, and a table
 * that counts, give the exact number. */
int zubilo_range_estimate(MDB_txn *txn, MDB_dbi dbi, const MDB_val *from, const MDB_val *to, uint64_t *records);
/* Cuts such a range into at most so many parts with about as many records each, one for each thread of a scan: calls
 * cut with the key that each part but the first begins with, in order, until it gives something other than 0, which
 * is given. The key is good for the call only. */
int zubilo_range_split(MDB_txn *txn, MDB_dbi dbi, const MDB_val *from, const MDB_val *to, unsigned parts,
	int (*cut)(void *ctx, const MDB_val *key), void *ctx);
/* Removes the records of such a range, in any table but the unnamed one; the cost follows the pages. */
int zubilo_del_range(MDB_txn *txn, MDB_dbi dbi, const MDB_val *from, const MDB_val *to, uint64_t *removed);

/* Figures of a table; page counts are those of its own tree, value_pages those of trees that hold the
 * values of one key. */
typedef struct zubilo_table {
	uint64_t entries, depth, leaf_pages, branch_pages, run_pages, value_pages;
	uint64_t modified; /* the transaction that changed it last */
	uint64_t sequence; /* see mdbx_dbi_sequence */
	unsigned flags;    /* as given when it was made, ZUBILO_COUNTED included */
	unsigned alignment;
} zubilo_table;
int zubilo_stat(MDB_txn *txn, MDB_dbi dbi, zubilo_table *table);
/* Bytes of memory that hold what a write transaction has changed. */
int zubilo_txn_dirty(MDB_txn *txn, uint64_t *size);

/* Figures of a store: bytes, transactions, pages. */
typedef struct zubilo_info {
	uint64_t page_size;
	uint64_t newest, steady; /* the newest commit, and the newest that is on the disk for certain */
	uint64_t file_len, used_len, reserved;
	uint64_t size_lower, size_upper, growth, shrink; /* as in mdbx_env_set_geometry; 0 and
	                                                  * UINT64_MAX where nothing was set */
	uint64_t free_pages, retired_pages; /* free at once; still seen by a snapshot */
	uint64_t free_space_log_pages;
	uint64_t readers;
	unsigned char uuid[16]; /* given to the store when it was made */
} zubilo_info;
int zubilo_env_info(MDB_env *env, zubilo_info *info);

/* A reader of any process. */
typedef struct zubilo_reader {
	uint64_t tid, txnid;
	uint64_t lag;       /* commits since its snapshot */
	uint64_t behind_ms; /* since when its snapshot is not the newest: for so long it holds pages back */
	uint64_t age_ms;    /* since when its snapshot was committed: for so long it reads at most */
	pid_t pid;
	bool parked;        /* it can be expired */
} zubilo_reader;
/* Calls func for each reader until it gives something other than 0, which is given. */
int zubilo_readers(MDB_env *env, int (*func)(void *ctx, const zubilo_reader *reader), void *ctx);

/* Leaves a read transaction for a while: it keeps its snapshot, but others may expire it when they need the pages.
 * What was read of it must not be used from here on. All but these two, mdb_txn_id, mdb_txn_env and mdb_txn_abort
 * gives an error; cursors stay where they are. EINVAL for a write transaction. */
int zubilo_txn_park(MDB_txn *txn);
/* Goes on with the same snapshot. If others have expired it: with refresh it goes on with the newest one, as after
 * mdb_txn_renew; else this gives MDB_BAD_TXN, and the transaction is as after mdb_txn_reset. */
int zubilo_txn_unpark(MDB_txn *txn, bool refresh);
/* Expires the reader that zubilo_readers has shown so. EBUSY if it is not parked, MDB_NOTFOUND if there is none. */
int zubilo_reader_expire(MDB_env *env, pid_t pid, uint64_t tid, uint64_t txnid);

/* Kinds of pages. */
typedef enum zubilo_page {
	ZUBILO_BRANCH = 1,
	ZUBILO_LEAF = 2,
	ZUBILO_LARGE = 3,   /* a large value */
	ZUBILO_FREE_SPACE_LOG = 4,
	ZUBILO_FREE = 5,    /* can be used at once */
	ZUBILO_RETIRED = 6  /* dead, but a snapshot still sees it */
} zubilo_page;
/* number pages from pgno on; dbi is the table, "" the unnamed one, null for pages of none; deep is
 * the distance from the leaves. The payload includes headers. */
typedef int MDBX_pgvisitor_func(uint64_t pgno, unsigned number, void *ctx, int deep, const char *dbi,
	size_t page_size, zubilo_page type, size_t nentries, size_t payload_bytes,
	size_t header_bytes, size_t unused_bytes);
/* Shows all pages of the newest commit to visitor until that gives something other than 0, which is
 * given; checks them on the way: MDB_CORRUPTED if anything is wrong. The order of keys is always
 * looked at. */
int mdbx_env_pgwalk(MDB_txn *txn, MDBX_pgvisitor_func *visitor, void *ctx, bool dont_check_keys_ordering);

/* What this process has done with the store since it opened it. Times are in nanoseconds; those of
 * commits are of their parts, one after the other. Reads are not counted. */
typedef struct zubilo_counters {
	uint64_t commits;
	uint64_t pages_copied, pages_split, pages_merged; /* by changes */
	uint64_t pages_spilled; /* written early, where a transaction outgrew its memory */
	uint64_t pages_written, runs_written, bytes_written; /* by commits */
	uint64_t flushes, flush_ns; /* of commits and checkpoints */
	uint64_t commit_prepare_ns, commit_layout_ns, commit_write_ns, commit_log_ns, commit_flush_ns, commit_publish_ns;
	uint64_t writer_waits, writer_wait_ns; /* for the writer lock */
} zubilo_counters;
int zubilo_env_counters(MDB_env *env, zubilo_counters *counters);
/* The same of all processes, since the first of those that have the store open opened it. With MDB_NOLOCK only of
 * this one. */
int zubilo_store_counters(MDB_env *env, zubilo_counters *counters);

/* Gets pages done and pages in all; anything but 0 stops what is under way, and is given. */
typedef int zubilo_progress(void *ctx, uint64_t done, uint64_t all);
/* Checks all of the newest commit. MDB_CORRUPTED if something is wrong; problem is then called for each
 * thing: the page, 0 if it cannot be said; the table, null if it cannot be said; what it is. Both
 * functions may be null. */
int zubilo_check(MDB_env *env,
	int (*problem)(void *ctx, uint64_t pgno, const char *dbi, const char *what),
	zubilo_progress *progress, void *ctx);
/* What the check in the background found (ZUBILO_SCRUB_RATE); MDB_NOTFOUND before its first end. */
typedef struct zubilo_scrub {
	uint64_t passes;   /* since the store was opened */
	uint64_t finished; /* the end of the last, in seconds since 1970 */
	uint64_t took_ms, problems, pages;
} zubilo_scrub;
int zubilo_scrub_report(MDB_env *env, zubilo_scrub *report);

/* As mdb_env_copy2, or with a null path as mdb_env_copyfd2, reporting how far it is. */
int zubilo_copy(MDB_env *env, const char *path, int fd, unsigned flags, zubilo_progress *progress, void *ctx);

/* What is new since a commit, into a file of that name, which must not exist, or with a null path to fd. The commit is that
 * of a full copy, not compacted (me_last_txnid of the copy), or of the changes before; txn gets the one that the next
 * changes follow, and may be null. EINVAL if the store does not know that commit, or is encrypted. */
int zubilo_copy_changes(MDB_env *env, uint64_t since, const char *path, int fd, uint64_t *txn, zubilo_progress *progress, void *ctx);
/* A new store, the file to, of the file of a full copy and count files of changes in their order. All or nothing; it is
 * checked as by zubilo_check and on disk when this returns. EINVAL if the changes do not follow: those of another
 * store, commit or history. */
int zubilo_restore(const char *copy, const char *const *changes, size_t count, const char *to, uint64_t *txn, zubilo_progress *progress, void *ctx);

/* Brings the store into memory. With wait 0 the system is asked to read in the background; else it is there when the call
 * returns, as far as there is room. */
int zubilo_warm_up(MDB_env *env, int wait, zubilo_progress *progress, void *ctx);
/* The same for what a range of a table needs, as a read transaction sees it; from and to as in zubilo_range_size. The pages
 * in all are those of the whole table. */
int zubilo_warm_up_range(MDB_txn *txn, MDB_dbi dbi, const MDB_val *from, const MDB_val *to, int wait,
	zubilo_progress *progress, void *ctx);
/* Pages that the newest commit reaches up to, and how many of them are in memory now. */
int zubilo_residency(MDB_env *env, uint64_t *pages, uint64_t *resident);

#ifdef __cplusplus
}
#endif
#endif
