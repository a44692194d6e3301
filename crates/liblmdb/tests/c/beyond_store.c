/* The rest of what zubilo.h adds: slow readers, messages, options, pages, checks, copies, counted
 * tables. The argument is a directory. */
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zubilo.h>

static char data_path[4096], dir_path[4096];

static MDB_env *fresh(void)
{
	MDB_env *env;
	char lock[4200];
	snprintf(lock, sizeof lock, "%s/lock.mdb", dir_path);
	unlink(data_path);
	unlink(lock);
	OK(mdb_env_create(&env));
	OK(mdb_env_set_maxdbs(env, 8));
	return env;
}

static MDB_env *opened(void)
{
	MDB_env *env = fresh();
	OK(mdb_env_set_mapsize(env, 16 << 20));
	OK(mdb_env_open(env, dir_path, MDB_NOTLS, 0600));
	return env;
}

static MDB_txn *begin(MDB_env *env, unsigned flags)
{
	MDB_txn *txn;
	OK(mdb_txn_begin(env, NULL, flags, &txn));
	return txn;
}

static MDB_dbi table(MDB_env *env, const char *name, unsigned flags)
{
	MDB_txn *txn = begin(env, 0);
	MDB_dbi dbi;
	OK(mdb_dbi_open(txn, name, flags | MDB_CREATE, &dbi));
	OK(mdb_txn_commit(txn));
	return dbi;
}

/* ---- readers that hold pages back ---- */

static struct {
	MDB_txn *reader;
	int answer, calls, ends;
	size_t space;
	unsigned gap;
} slow;

static int decide(pid_t pid, unsigned gap, size_t space, int retry)
{
	IS(pid, getpid());
	if (retry < 0) {
		slow.ends++;
		return 0;
	}
	slow.calls++;
	slow.gap = gap;
	slow.space = space;
	if (slow.answer > 0)
		mdb_txn_reset(slow.reader);
	return slow.answer;
}

static int hsr(const MDB_env *env, const MDB_txn *txn, pid_t pid, uint64_t tid, uint64_t laggard,
	unsigned gap, size_t space, int retry)
{
	IS(env == mdb_txn_env((MDB_txn *)txn), 1);
	IS(tid != 0, 1);
	IS(laggard + gap < mdb_txn_id((MDB_txn *)txn), 1);
	return decide(pid, gap, space, retry);
}

static int oom(MDB_env *env, pid_t pid, uint64_t tid, uint64_t laggard, unsigned gap, size_t space,
	int retry)
{
	IS(env != NULL && tid != 0 && laggard > 0, 1);
	return decide(pid, gap, space, retry);
}

/* Overwrites the same records, 50 in a transaction, until something happens; what a put gave. */
static int records = 50;
static int fill(MDB_env *env, MDB_dbi dbi, int rounds)
{
	static int n;
	char value[2000];
	memset(value, 'v', sizeof value);
	value[sizeof value - 1] = 0;
	while (rounds-- > 0) {
		MDB_txn *txn = begin(env, 0);
		for (int i = 0; i < 50; i++) {
			char key[16];
			snprintf(key, sizeof key, "%d", n++ % records);
			int code = put(txn, dbi, key, value, 0);
			if (code) {
				mdb_txn_abort(txn);
				return code;
			}
		}
		OK(mdb_txn_commit(txn));
	}
	return 0;
}

static void slow_readers(void)
{
	MDB_env *env = fresh();
	OK(mdb_env_set_mapsize(env, 3 << 20));
	OK(mdb_env_open(env, dir_path, MDB_NOTLS | MDB_NOSYNC, 0600));
	MDB_dbi dbi = table(env, "t", 0);
	IS(mdbx_env_get_hsr(env) == NULL, 1);
	/* A snapshot keeps its own pages only: two thirds of what there is. */
	records = 500;
	OK(fill(env, dbi, 25));

	/* One that helps. */
	OK(mdbx_env_set_hsr(env, hsr));
	IS(mdbx_env_get_hsr(env) == hsr, 1);
	IS(mdbx_env_get_oomfunc(env) == NULL, 1);
	slow.reader = begin(env, MDB_RDONLY);
	slow.answer = 1;
	OK(fill(env, dbi, 25));
	IS(slow.calls, 1);
	IS(slow.ends, 1);
	IS(slow.gap > 1, 1);
	IS(slow.space > 100000, 1);

	/* One that gives up, in the older form. */
	OK(mdbx_env_set_oomfunc(env, oom));
	IS(mdbx_env_get_oomfunc(env) == oom, 1);
	IS(mdbx_env_get_hsr(env) == NULL, 1);
	OK(mdb_txn_renew(slow.reader));
	slow.answer = -1;
	slow.calls = slow.ends = 0;
	IS(fill(env, dbi, 25), MDB_MAP_FULL);
	IS(slow.calls, 1);
	IS(slow.ends, 1);
	mdb_txn_abort(slow.reader);
	OK(fill(env, dbi, 10));

	/* Nobody to ask when no reader is in the way. */
	OK(mdbx_env_set_oomfunc(env, NULL));
	slow.calls = 0;
	OK(mdbx_env_set_hsr(env, hsr));
	MDB_txn *txn = begin(env, 0);
	MDB_val key = val("large"), value = { 8 << 20, NULL };
	IS(mdb_put(txn, dbi, &key, &value, MDB_RESERVE), MDB_MAP_FULL);
	mdb_txn_abort(txn);
	IS(slow.calls, 0);
	records = 50;
	IS(mdbx_env_set_hsr(NULL, hsr), EINVAL);
	IS(mdbx_env_get_hsr(NULL) == NULL, 1);
	mdb_env_close(env);
}

/* ---- opening ---- */

static int open_in_child(const char *dir, int exclusive)
{
	pid_t child = fork();
	if (child == 0) {
		MDB_env *env;
		OK(mdb_env_create(&env));
		int code = mdbx_env_open_ex(env, dir, 0, 0600, exclusive ? &exclusive : NULL);
		mdb_env_close(env);
		_exit(code == 0 ? 0 : code == EBUSY ? 1 : 2);
	}
	int status;
	IS(waitpid(child, &status, 0), child);
	IS(WIFEXITED(status), 1);
	return WEXITSTATUS(status);
}

static void exclusive(void)
{
	MDB_env *env = fresh();
	int alone = 1;
	OK(mdbx_env_open_ex(env, dir_path, 0, 0600, &alone));
	IS(alone, 1);
	IS(open_in_child(dir_path, 0), 1);
	mdb_env_close(env);
	IS(open_in_child(dir_path, 0), 0);
	IS(open_in_child(dir_path, 1), 0);
	OK(mdb_env_create(&env));
	alone = 0;
	OK(mdbx_env_open_ex(env, dir_path, 0, 0600, &alone));
	IS(alone, 0);
	IS(open_in_child(dir_path, 1), 1);
	IS(open_in_child(dir_path, 0), 0);
	mdb_env_close(env);
	OK(mdb_env_create(&env));
	IS(mdbx_env_open_ex(env, NULL, 0, 0600, NULL), EINVAL);
	mdb_env_close(env);
}

static void encryption(void)
{
	MDB_env *env = fresh();
	unsigned char key[32] = { 1, 2, 3 };
	IS(zubilo_env_set_key(env, key, 31), EINVAL);
	IS(zubilo_env_set_key(env, NULL, 32), EINVAL);
	OK(zubilo_env_set_key(env, key, 32));
	OK(mdb_env_open(env, dir_path, 0, 0600));
	IS(zubilo_env_set_key(env, key, 32), EINVAL);
	MDB_dbi dbi = table(env, "t", 0);
	OK(fill(env, dbi, 3));
	mdb_env_close(env);

	OK(mdb_env_create(&env));
	IS(mdb_env_open(env, dir_path, 0, 0600), MDB_ENV_ENCRYPTION);
	mdb_env_close(env);
	OK(mdb_env_create(&env));
	key[0]++;
	OK(zubilo_env_set_key(env, key, 32));
	IS(mdb_env_open(env, dir_path, 0, 0600), MDB_CRYPTO_FAIL);
	mdb_env_close(env);
	OK(mdb_env_create(&env));
	OK(zubilo_env_set_passphrase(env, "open", 4));
	IS(mdb_env_open(env, dir_path, 0, 0600), MDB_CRYPTO_FAIL);
	mdb_env_close(env);
	OK(mdb_env_create(&env));
	key[0]--;
	OK(zubilo_env_set_key(env, key, 32));
	OK(mdb_env_set_maxdbs(env, 4));
	OK(mdb_env_open(env, dir_path, 0, 0600));
	MDB_txn *txn;
	MDB_stat stat;
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_dbi_open(txn, "t", 0, &dbi));
	OK(mdb_stat(txn, dbi, &stat));
	IS(stat.ms_entries > 0, 1);
	mdb_txn_abort(txn);
	mdb_env_close(env);
}

static void options(void)
{
	MDB_env *env = fresh();
	zubilo_info info;
	IS(zubilo_env_set(env, (zubilo_option)99, 1), EINVAL);
	IS(zubilo_env_set(env, (zubilo_option)-1, 1), EINVAL);
	IS(zubilo_env_set(env, ZUBILO_DURABILITY, 3), EINVAL);
	OK(zubilo_env_set(env, ZUBILO_CREATE, 0));
	IS(mdb_env_open(env, dir_path, 0, 0600), ENOENT);
	mdb_env_close(env);

	env = fresh();
	OK(zubilo_env_set(env, ZUBILO_DURABILITY, ZUBILO_NOSYNC));
	OK(zubilo_env_set(env, ZUBILO_VERIFY_READS, 2));
	OK(zubilo_env_set(env, ZUBILO_DIRTY_LIMIT, 1 << 20));
	OK(zubilo_env_set(env, ZUBILO_RESERVE, 1 << 30));
	OK(zubilo_env_set(env, ZUBILO_HUGE_PAGES, 1));
	OK(zubilo_env_set(env, ZUBILO_WRITABLE_MAP, 1));
	OK(mdb_env_open(env, dir_path, 0, 0600));
	IS(zubilo_env_set(env, ZUBILO_DIRTY_LIMIT, 1 << 20), EINVAL);
	MDB_dbi dbi = table(env, "t", 0);
	OK(fill(env, dbi, 3));
	OK(zubilo_env_info(env, &info));
	IS(info.reserved, 1 << 30);
	IS(info.newest, 4);
	IS(info.steady < info.newest, 1);
	OK(mdb_env_sync(env, 1));
	OK(zubilo_env_info(env, &info));
	IS(info.steady, info.newest);
	IS(info.page_size, 4096);
	mdb_env_close(env);

	env = fresh();
	OK(zubilo_env_set(env, ZUBILO_DURABILITY, ZUBILO_LAZY));
	OK(zubilo_env_set(env, ZUBILO_SYNC_PERIOD, 20));
	OK(zubilo_env_set(env, ZUBILO_SYNC_BYTES, 1 << 30));
	OK(mdb_env_open(env, dir_path, 0, 0600));
	dbi = table(env, "t", 0);
	for (int i = 0; i < 500; i++) {
		OK(zubilo_env_info(env, &info));
		if (info.steady == info.newest)
			break;
		usleep(20000);
	}
	IS(info.steady, info.newest);
	mdb_env_close(env);
}

/* ---- messages ---- */

static struct {
	int count[8];
	char last[256];
} told;

static void hear(MDBX_log_level_t level, const char *function, int line, const char *fmt, va_list args)
{
	IS(function != NULL && line >= 0, 1);
	told.count[level]++;
	vsnprintf(told.last, sizeof told.last, fmt, args);
}

static void messages(void)
{
	int before = mdbx_setup_debug(MDBX_LOG_DEBUG, MDBX_DBG_AUDIT, hear);
	IS(before, MDBX_LOG_WARN << 16);
	MDB_env *env = opened();
	MDB_dbi dbi = table(env, "t", 0);
	OK(fill(env, dbi, 2));
	IS(told.count[MDBX_LOG_DEBUG] >= 3, 1);
	IS(strstr(told.last, "commit") != NULL, 1);
	/* Fewer. */
	IS(mdbx_setup_debug(MDBX_LOG_ERROR, MDBX_DBG_NONE, MDBX_LOGGER_DONTCHANGE),
		MDBX_LOG_DEBUG << 16 | MDBX_DBG_AUDIT);
	memset(&told, 0, sizeof told);
	OK(fill(env, dbi, 2));
	IS(told.count[MDBX_LOG_DEBUG], 0);
	mdb_env_close(env);

	/* A file of LMDB's is told of; the name of the directory has what a format would take amiss. */
	char path[4200], start[4096] = { 0 };
	snprintf(path, sizeof path, "%s/%%s%%n", dir_path);
	memcpy(start + 16, (uint32_t[]){ 0xBEEFC0DE, 1 }, 8);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	IS(write(fd, start, sizeof start), sizeof start);
	close(fd);
	OK(mdb_env_create(&env));
	IS(mdb_env_open(env, path, MDB_NOSUBDIR, 0600), MDB_VERSION_MISMATCH);
	mdb_env_close(env);
	IS(told.count[MDBX_LOG_ERROR], 1);
	IS(strstr(told.last, "%s%n") != NULL, 1);
	unlink(path);
	IS(mdbx_setup_debug(MDBX_LOG_WARN, MDBX_DBG_DONTCHANGE, NULL), MDBX_LOG_ERROR << 16);
}

/* ---- pages ---- */

static struct {
	uint64_t pages[7], in_table, entries;
	int stop_after;
} seen;

static int visit(uint64_t pgno, unsigned number, void *ctx, int deep, const char *dbi,
	size_t page_size, zubilo_page type, size_t nentries, size_t payload, size_t header,
	size_t unused)
{
	IS(ctx == &seen, 1);
	IS(pgno > 0 && number > 0 && deep >= 0 && page_size == 4096, 1);
	IS(payload + header + unused <= number * page_size, 1);
	IS((dbi != NULL) == (type <= ZUBILO_LARGE), 1);
	seen.pages[type] += number;
	if (dbi && strcmp(dbi, "t") == 0) {
		seen.in_table += number;
		if (type == ZUBILO_LEAF)
			seen.entries += nentries;
	}
	return seen.stop_after && --seen.stop_after == 0 ? 77 : 0;
}

static int problem(void *ctx, uint64_t pgno, const char *dbi, const char *what)
{
	IS(strlen(what) > 3, 1);
	(void)dbi;
	(void)pgno;
	++*(int *)ctx;
	return 0;
}

static int progress(void *ctx, uint64_t done, uint64_t all)
{
	IS(done <= all, 1);
	return ++*(int *)ctx < 0 ? 55 : 0;
}

static void damage(off_t at)
{
	int fd = open(data_path, O_RDWR);
	char byte;
	IS(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	IS(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

/* A leaf of the table. */
static uint64_t leaf;
static int find_leaf(uint64_t pgno, unsigned number, void *ctx, int deep, const char *dbi,
	size_t page_size, zubilo_page type, size_t nentries, size_t payload, size_t header,
	size_t unused)
{
	(void)number, (void)ctx, (void)deep, (void)page_size, (void)nentries;
	(void)payload, (void)header, (void)unused;
	if (type == ZUBILO_LEAF && dbi && strcmp(dbi, "t") == 0)
		leaf = pgno;
	return 0;
}

static void pages(void)
{
	MDB_env *env = opened();
	MDB_dbi dbi = table(env, "t", 0);
	zubilo_table stat;
	zubilo_info info;
	int count = 0, steps = 0;

	OK(fill(env, dbi, 5));
	MDB_txn *txn = begin(env, MDB_RDONLY);
	OK(zubilo_stat(txn, dbi, &stat));
	OK(mdbx_env_pgwalk(txn, visit, &seen, false));
	IS(seen.in_table, stat.leaf_pages + stat.branch_pages + stat.run_pages);
	IS(seen.entries, stat.entries);
	OK(zubilo_env_info(env, &info));
	IS(seen.pages[ZUBILO_FREE], info.free_pages);
	IS(seen.pages[ZUBILO_FREE_SPACE_LOG], info.free_space_log_pages);
	seen.stop_after = 2;
	IS(mdbx_env_pgwalk(txn, visit, &seen, false), 77);
	IS(mdbx_env_pgwalk(txn, NULL, NULL, false), EINVAL);
	OK(mdbx_env_pgwalk(txn, find_leaf, NULL, true));
	mdb_txn_abort(txn);

	OK(zubilo_check(env, problem, progress, &count));
	IS(count > 0, 1);
	OK(zubilo_check(env, NULL, NULL, NULL));
	steps = -1000000;
	IS(zubilo_check(env, problem, progress, &steps), 55);
	damage((off_t)leaf * 4096 + 2000);
	count = 0;
	IS(zubilo_check(env, problem, NULL, &count), MDB_CORRUPTED);
	IS(count > 0, 1);
	IS(zubilo_check(env, NULL, NULL, NULL), MDB_CORRUPTED);
	damage((off_t)leaf * 4096 + 2000);
	OK(zubilo_check(env, NULL, NULL, NULL));
	mdb_env_close(env);
}

static void scrub(void)
{
	MDB_env *env = fresh();
	zubilo_scrub report;
	OK(zubilo_env_set(env, ZUBILO_SCRUB_RATE, 100 << 20));
	OK(zubilo_env_set(env, ZUBILO_SCRUB_PERIOD, 3600));
	OK(mdb_env_open(env, dir_path, 0, 0600));
	int code = MDB_NOTFOUND;
	for (int i = 0; i < 1000 && code == MDB_NOTFOUND; i++) {
		code = zubilo_scrub_report(env, &report);
		usleep(10000);
	}
	OK(code);
	IS(report.passes, 1);
	IS(report.problems, 0);
	IS(report.finished > 1600000000, 1);
	IS(zubilo_scrub_report(env, NULL), EINVAL);
	mdb_env_close(env);
	env = opened();
	IS(zubilo_scrub_report(env, &report), MDB_NOTFOUND);
	mdb_env_close(env);
}

static void counters(void)
{
	MDB_env *env = opened();
	MDB_dbi dbi = table(env, "t", 0);
	zubilo_counters before, after;

	OK(zubilo_env_counters(env, &before));
	OK(fill(env, dbi, 3));
	OK(zubilo_env_counters(env, &after));
	IS(after.commits - before.commits, 3);
	IS(after.pages_copied > before.pages_copied, 1);
	IS(after.bytes_written - before.bytes_written > 3 * 50 * 2000, 1);
	IS(after.pages_written - before.pages_written >= after.runs_written - before.runs_written, 1);
	IS(after.writer_waits, before.writer_waits);
	IS(zubilo_env_counters(env, NULL), EINVAL);
	OK(zubilo_store_counters(env, &before));
	IS(before.commits, after.commits);
	IS(before.bytes_written, after.bytes_written);
	IS(zubilo_store_counters(env, NULL), EINVAL);
	mdb_env_close(env);
}

static void copies(void)
{
	MDB_env *env = opened(), *copy;
	MDB_dbi dbi = table(env, "t", 0);
	char there[4200], file[4300];
	int calls = 0;

	OK(fill(env, dbi, 3));
	snprintf(there, sizeof there, "%s/copy", dir_path);
	snprintf(file, sizeof file, "%s/data.mdb", there);
	mkdir(there, 0700);
	calls = -1000000;
	IS(zubilo_copy(env, there, -1, 0, progress, &calls), 55);
	IS(access(file, F_OK), -1);
	calls = 0;
	OK(zubilo_copy(env, there, -1, MDB_CP_COMPACT, progress, &calls));
	IS(zubilo_copy(env, there, -1, 0, NULL, NULL), EEXIST);
	unlink(file);
	int fd = open(file, O_WRONLY | O_CREAT, 0600);
	calls = 0;
	OK(zubilo_copy(env, NULL, fd, 0, progress, &calls));
	IS(calls > 0, 1);
	close(fd);
	OK(mdb_env_create(&copy));
	OK(mdb_env_set_maxdbs(copy, 4));
	OK(mdb_env_open(copy, there, 0, 0600));
	MDB_txn *txn = begin(copy, MDB_RDONLY);
	MDB_stat stat;
	OK(mdb_dbi_open(txn, "t", 0, &dbi));
	OK(mdb_stat(txn, dbi, &stat));
	IS(stat.ms_entries, 50);
	mdb_txn_abort(txn);
	mdb_env_close(copy);
	mdb_env_close(env);
}

static void changes(void)
{
	MDB_env *env = opened(), *copy;
	MDB_dbi dbi = table(env, "t", 0);
	MDB_envinfo info;
	MDB_stat stat;
	char there[4200], file[4300], again[4200], name[3][4200];
	const char *names[3] = { name[0], name[1], name[2] };
	uint64_t since, txn = 0;
	int calls = 0;

	OK(fill(env, dbi, 3));
	snprintf(there, sizeof there, "%s/whole", dir_path);
	snprintf(file, sizeof file, "%s/data.mdb", there);
	snprintf(again, sizeof again, "%s/again", dir_path);
	mkdir(there, 0700);
	OK(mdb_env_copy(env, there));
	OK(mdb_env_create(&copy));
	OK(mdb_env_open(copy, there, MDB_RDONLY, 0600));
	OK(mdb_env_info(copy, &info));
	mdb_env_close(copy);
	since = info.me_last_txnid;
	for (int i = 0; i < 2; i++) {
		snprintf(name[i], sizeof name[i], "%s/changes%d", dir_path, i);
		OK(fill(env, dbi, 2));
		if (i == 0) {
			OK(zubilo_copy_changes(env, since, name[i], -1, &txn, progress, &calls));
			IS(calls > 0, 1);
			IS(zubilo_copy_changes(env, since, name[i], -1, NULL, NULL, NULL), EEXIST);
		} else {
			int fd = open(name[i], O_WRONLY | O_CREAT, 0600);
			OK(zubilo_copy_changes(env, since, NULL, fd, &txn, NULL, NULL));
			close(fd);
		}
		IS(txn, since + 2);
		since = txn;
	}
	snprintf(name[2], sizeof name[2], "%s/none", dir_path);
	IS(zubilo_copy_changes(env, since + 100, name[2], -1, NULL, NULL, NULL), EINVAL);
	IS(zubilo_copy_changes(env, since, NULL, -1, NULL, NULL, NULL), EBADF);
	calls = -1000000;
	IS(zubilo_restore(file, names, 2, again, NULL, progress, &calls), 55);
	IS(access(again, F_OK), -1);
	/* The second without the first. */
	IS(zubilo_restore(file, names + 1, 1, again, NULL, NULL, NULL), EINVAL);
	IS(zubilo_restore(file, NULL, 1, again, NULL, NULL, NULL), EINVAL);
	IS(zubilo_restore(file, names, 2, NULL, NULL, NULL, NULL), EINVAL);
	IS(zubilo_restore(file, names, 3, again, NULL, NULL, NULL), ENOENT);
	txn = 0;
	OK(zubilo_restore(file, names, 2, again, &txn, NULL, NULL));
	IS(txn, since);
	IS(zubilo_restore(file, names, 2, again, NULL, NULL, NULL), EEXIST);
	OK(mdb_env_create(&copy));
	OK(mdb_env_set_maxdbs(copy, 4));
	OK(mdb_env_open(copy, again, MDB_NOSUBDIR, 0600));
	OK(zubilo_check(copy, NULL, NULL, NULL));
	MDB_txn *read = begin(copy, MDB_RDONLY);
	OK(mdb_dbi_open(read, "t", 0, &dbi));
	OK(mdb_stat(read, dbi, &stat));
	IS(stat.ms_entries, 50);
	mdb_txn_abort(read);
	mdb_env_close(copy);
	mdb_env_close(env);
}

/* ---- tables ---- */

static void counts(MDB_txn *txn, MDB_dbi dbi, int total)
{
	MDB_val key, value, other;
	uint64_t n;
	char text[16];

	for (int i = 0; i < total; i += 37) {
		OK(zubilo_nth(txn, dbi, i, &key, &value));
		snprintf(text, sizeof text, "%05d", i / 2 * 2);
		IS(same(&key, text), 1);
		OK(zubilo_rank(txn, dbi, &key, NULL, &n));
		IS(n, i / 2 * 2);
		OK(zubilo_rank(txn, dbi, &key, &value, &n));
		IS(n, i);
		OK(zubilo_nth_value(txn, dbi, &key, i % 2, &other));
		IS(same(&other, i % 2 ? "b" : "a"), 1);
		IS(zubilo_nth_value(txn, dbi, &key, 2, &other), MDB_NOTFOUND);
	}
	IS(zubilo_nth(txn, dbi, total, &key, &value), MDB_NOTFOUND);
	OK(zubilo_range_size(txn, dbi, NULL, NULL, &n));
	IS(n, total);
	MDB_val from = val("00010"), to = val("00021");
	OK(zubilo_range_size(txn, dbi, &from, &to, &n));
	IS(n, 12);
	OK(zubilo_range_size(txn, dbi, &from, NULL, &n));
	IS(n, total - 10);
	IS(zubilo_rank(txn, dbi, &from, NULL, NULL), EINVAL);
}

static void counted(MDB_env *env)
{
	enum { TOTAL = 1200 };
	MDB_txn *txn = begin(env, 0);
	MDB_dbi dbi, plain;
	MDB_val key = val("00100"), to = val("00200"), value;
	zubilo_table stat;
	uint64_t n;
	char text[16];

	OK(zubilo_dbi_open(txn, "counted", MDB_CREATE | MDB_DUPSORT | ZUBILO_COUNTED, 0, &dbi));
	OK(mdb_dbi_open(txn, "plain", MDB_CREATE, &plain));
	for (int i = 0; i < TOTAL; i += 2) {
		snprintf(text, sizeof text, "%05d", i);
		OK(put(txn, dbi, text, "b", 0));
		OK(put(txn, dbi, text, "a", 0));
	}
	counts(txn, dbi, TOTAL);
	OK(zubilo_txn_dirty(txn, &n));
	IS(n >= 4096, 1);
	OK(mdb_txn_commit(txn));
	txn = begin(env, MDB_RDONLY);
	counts(txn, dbi, TOTAL);
	OK(zubilo_stat(txn, dbi, &stat));
	IS(stat.flags, MDB_DUPSORT | ZUBILO_COUNTED);
	IS(stat.entries, TOTAL);
	IS(zubilo_nth(txn, plain, 0, &key, &value), MDB_INCOMPATIBLE);
	IS(zubilo_rank(txn, plain, &to, NULL, &n), MDB_INCOMPATIBLE);
	IS(zubilo_del_range(txn, dbi, &key, &to, &n), EACCES);
	IS(zubilo_txn_dirty(txn, &n), EACCES);
	mdb_txn_abort(txn);

	txn = begin(env, 0);
	MDB_cursor *cursor;
	OK(mdb_cursor_open(txn, dbi, &cursor));
	key = val("00150");
	OK(mdb_cursor_get(cursor, &key, &value, MDB_SET));
	key = val("00100");
	OK(zubilo_del_range(txn, dbi, &key, &to, &n));
	IS(n, 100);
	OK(zubilo_range_size(txn, dbi, NULL, NULL, &n));
	IS(n, TOTAL - 100);
	IS(get(txn, dbi, "00150", &value), MDB_NOTFOUND);
	OK(get(txn, dbi, "00200", &value));
	OK(zubilo_del_range(txn, dbi, NULL, NULL, NULL));
	IS(zubilo_del_range(txn, 1, NULL, NULL, NULL), MDB_INCOMPATIBLE);
	IS(zubilo_dbi_open(txn, "odd", MDB_CREATE, 3, &plain), EINVAL);
	IS(zubilo_dbi_open(txn, NULL, 0, 0, &plain), EINVAL);
	mdb_txn_abort(txn);
}

static void shapes(MDB_env *env)
{
	MDB_txn *txn = begin(env, 0);
	MDB_dbi dbi;
	MDB_val value;
	zubilo_table stat;
	char text[16];

	OK(zubilo_dbi_open(txn, "aligned", MDB_CREATE, 8, &dbi));
	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof text, "%.*s%d", i % 7, "xxxxxxx", i);
		OK(put(txn, dbi, text, text, 0));
		OK(get(txn, dbi, text, &value));
		IS((uintptr_t)value.mv_data % 8, 0);
	}
	OK(zubilo_stat(txn, dbi, &stat));
	IS(stat.alignment, 8);
	IS(zubilo_dbi_rename(txn, "aligned", "moved"), EBUSY);
	OK(mdb_txn_commit(txn));
	mdb_dbi_close(env, dbi);

	txn = begin(env, 0);
	IS(zubilo_dbi_rename(txn, "aligned", "counted"), EBUSY);
	IS(zubilo_dbi_rename(txn, "nobody", "moved"), MDB_NOTFOUND);
	IS(zubilo_dbi_rename(txn, "aligned", ""), MDB_BAD_VALSIZE);
	OK(zubilo_dbi_rename(txn, "aligned", "moved"));
	OK(mdb_txn_commit(txn));
	txn = begin(env, MDB_RDONLY);
	IS(mdb_dbi_open(txn, "aligned", 0, &dbi), MDB_NOTFOUND);
	OK(mdb_dbi_open(txn, "moved", 0, &dbi));
	OK(zubilo_stat(txn, dbi, &stat));
	IS(stat.entries, 200);
	mdb_txn_abort(txn);
}

static int reader(void *ctx, const zubilo_reader *reader)
{
	IS(reader->pid, getpid());
	IS(reader->tid != 0 && reader->txnid > 0 && reader->lag == 0 && reader->behind_ms == 0, 1);
	IS(reader->parked, 0);
	return ++*(int *)ctx == 2 ? 66 : 0;
}

static int expire_all(void *ctx, const zubilo_reader *reader)
{
	return zubilo_reader_expire(ctx, reader->pid, reader->tid, reader->txnid);
}

/* It is one commit behind. */
static int is_parked(void *ctx, const zubilo_reader *reader)
{
	IS(reader->parked && reader->lag == 1 && reader->txnid == mdb_txn_id(ctx), 1);
	IS(reader->age_ms >= reader->behind_ms && reader->behind_ms >= 20, 1);
	return 77;
}

/* Parked, left alone, expired by another, and what the reader gets then. */
static void parked(MDB_env *env)
{
	MDB_dbi dbi = table(env, "parked", 0), later;
	MDB_txn *txn = begin(env, 0), *read;
	MDB_cursor *cursor;
	MDB_stat stat;
	MDB_val key = val("k"), value;

	IS(zubilo_txn_park(txn), EINVAL);
	OK(put(txn, dbi, "k", "old", 0));
	OK(mdb_txn_commit(txn));
	read = begin(env, MDB_RDONLY);
	OK(mdb_cursor_open(read, dbi, &cursor));
	OK(mdb_cursor_get(cursor, &key, &value, MDB_SET));
	IS(zubilo_txn_unpark(read, true), EINVAL);
	/* At work it stays. */
	IS(zubilo_readers(env, expire_all, env), EBUSY);
	OK(zubilo_txn_park(read));
	IS(mdb_get(read, dbi, &key, &value), MDB_BAD_TXN);
	IS(mdb_stat(read, dbi, &stat), MDB_BAD_TXN);
	IS(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT), MDB_BAD_TXN);
	IS(zubilo_txn_park(read), MDB_BAD_TXN);
	txn = begin(env, 0);
	OK(put(txn, dbi, "k", "new", 0));
	OK(mdb_txn_commit(txn));
	usleep(50000);
	IS(zubilo_readers(env, is_parked, read), 77);
	/* Nobody has needed its pages. */
	OK(zubilo_txn_unpark(read, false));
	OK(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT));
	IS(same(&value, "old"), 1);
	/* The cursor's key is the store's, which must not be used any longer than it reads. */
	key = val("k");
	OK(mdb_get(read, dbi, &key, &value));
	IS(same(&value, "old"), 1);
	/* Expired: reset, or the newest snapshot. */
	OK(zubilo_txn_park(read));
	OK(zubilo_readers(env, expire_all, env));
	IS(zubilo_reader_expire(env, 1, 2, 3), MDB_NOTFOUND);
	IS(zubilo_txn_unpark(read, false), MDB_BAD_TXN);
	IS(mdb_get(read, dbi, &key, &value), EINVAL);
	OK(mdb_txn_renew(read));
	OK(mdb_get(read, dbi, &key, &value));
	IS(same(&value, "new"), 1);
	OK(zubilo_txn_park(read));
	txn = begin(env, 0);
	OK(put(txn, dbi, "k", "newest", 0));
	OK(mdb_txn_commit(txn));
	later = table(env, "later", 0);
	OK(zubilo_readers(env, expire_all, env));
	OK(zubilo_txn_unpark(read, true));
	OK(mdb_get(read, dbi, &key, &value));
	IS(same(&value, "newest"), 1);
	OK(mdb_cursor_get(cursor, &key, &value, MDB_SET));
	IS(same(&value, "newest"), 1);
	/* A table that is younger than the transaction was. */
	IS(mdb_get(read, later, &key, &value), MDB_NOTFOUND);
	/* A parked one can be given up. */
	OK(zubilo_txn_park(read));
	mdb_cursor_close(cursor);
	mdb_txn_abort(read);
}

static int expires(const MDB_env *env, const MDB_txn *txn, pid_t pid, uint64_t tid, uint64_t laggard,
	unsigned gap, size_t space, int retry)
{
	(void)txn, (void)gap, (void)space;
	if (retry < 0)
		return 0;
	slow.calls++;
	return zubilo_reader_expire((MDB_env *)env, pid, tid, laggard) ? -1 : 0;
}

/* Parked ones expired by the function for slow readers and by bounds; one that is at work stays. */
static void expired(void)
{
	for (int way = 0; way < 3; way++) {
		MDB_env *env = fresh();
		MDB_txn *read;
		OK(mdb_env_set_mapsize(env, 3 << 20));
		if (way == 1)
			OK(zubilo_env_set(env, ZUBILO_EXPIRE_HELD, 100000));
		if (way == 2)
			OK(zubilo_env_set(env, ZUBILO_EXPIRE_BEHIND, 0));
		OK(mdb_env_open(env, dir_path, MDB_NOTLS | MDB_NOSYNC, 0600));
		OK(mdbx_env_set_hsr(env, way ? NULL : expires));
		MDB_dbi dbi = table(env, "t", 0);
		records = 500;
		OK(fill(env, dbi, 25));
		slow.calls = 0;
		read = begin(env, MDB_RDONLY);
		IS(fill(env, dbi, 25), MDB_MAP_FULL);
		IS(slow.calls, way ? 0 : 1);
		/* For long enough that the clock has moved. */
		usleep(50000);
		OK(zubilo_txn_park(read));
		OK(fill(env, dbi, 25));
		IS(slow.calls, way ? 0 : 2);
		IS(zubilo_txn_unpark(read, false), MDB_BAD_TXN);
		mdb_txn_abort(read);
		mdb_env_close(env);
	}
	records = 50;
}

static void values(MDB_env *env)
{
	MDB_dbi many = table(env, "many", MDB_DUPSORT), one = table(env, "one", 0);
	MDB_txn *txn = begin(env, 0);
	MDB_val key = val("k"), b = val("b"), x = val("x"), none = val("none"), value;
	MDB_cursor *cursor;

	OK(put(txn, many, "k", "a", 0));
	OK(put(txn, many, "k", "b", 0));
	OK(put(txn, many, "k", "c", 0));
	OK(mdb_cursor_open(txn, many, &cursor));
	OK(mdb_cursor_get(cursor, &key, &b, MDB_GET_BOTH));
	IS(mdbx_cursor_on_first_dup(cursor), MDBX_RESULT_FALSE);
	b = val("b");
	OK(zubilo_replace_value(txn, many, &key, &b, &x));
	OK(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT));
	IS(same(&value, "x"), 1);
	IS(mdbx_cursor_on_last_dup(cursor), MDBX_RESULT_TRUE);
	OK(mdb_cursor_get(cursor, &key, &value, MDB_FIRST_DUP));
	IS(mdbx_cursor_on_first_dup(cursor), MDBX_RESULT_TRUE);
	IS(zubilo_replace_value(txn, many, &key, &none, &x), MDB_NOTFOUND);
	OK(put(txn, one, "k", "b", 0));
	OK(zubilo_replace_value(txn, one, &key, &b, &x));
	IS(zubilo_replace_value(txn, one, &key, &b, &x), MDB_NOTFOUND);
	IS(zubilo_replace_value(txn, one, &key, NULL, &x), EINVAL);
	OK(mdb_txn_commit(txn));

	MDB_txn *readers[3];
	int count = 0;
	readers[0] = begin(env, MDB_RDONLY);
	OK(zubilo_readers(env, reader, &count));
	IS(count, 1);
	for (int i = 1; i < 3; i++)
		readers[i] = begin(env, MDB_RDONLY);
	count = 0;
	IS(zubilo_readers(env, reader, &count), 66);
	IS(zubilo_readers(env, NULL, &count), EINVAL);
	for (int i = 0; i < 3; i++)
		mdb_txn_abort(readers[i]);
}

static int cut_at(void *ctx, const MDB_val *key)
{
	MDB_val *cuts = ctx;
	for (; cuts->mv_data; cuts++) {}
	cuts->mv_size = key->mv_size;
	cuts->mv_data = malloc(key->mv_size);
	memcpy(cuts->mv_data, key->mv_data, key->mv_size);
	return 0;
}

static int refuse(void *ctx, const MDB_val *key)
{
	(void)ctx, (void)key;
	return 66;
}

static int told_pages(void *ctx, uint64_t done, uint64_t all)
{
	uint64_t *last = ctx;
	IS(done > *last && done <= all, 1);
	*last = done;
	return 0;
}

static int enough(void *ctx, uint64_t done, uint64_t all)
{
	(void)ctx, (void)done, (void)all;
	return 77;
}

static uint64_t records_between(MDB_txn *txn, MDB_dbi dbi, const MDB_val *from, const MDB_val *to)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	uint64_t count = 0;
	OK(mdb_cursor_open(txn, dbi, &cursor));
	if (from)
		key = *from;
	int code = mdb_cursor_get(cursor, &key, &value, from ? MDB_SET_RANGE : MDB_FIRST);
	while (code == 0 && (!to || mdb_cmp(txn, dbi, &key, to) < 0)) {
		count++;
		code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	mdb_cursor_close(cursor);
	return count;
}

/* Estimates and parts of ranges in both kinds of transactions, and warming up. */
static void scans(void)
{
	enum { RECORDS = 20000, PARTS = 5 };
	MDB_env *env = fresh();
	OK(mdb_env_set_mapsize(env, 64 << 20));
	OK(mdb_env_open(env, dir_path, 0, 0600));
	MDB_dbi dbi = table(env, "scanned", 0), none = table(env, "none", 0);
	MDB_txn *txn = begin(env, 0);
	char name[16];
	for (int i = 0; i < RECORDS; i++) {
		snprintf(name, sizeof name, "%08d", i);
		OK(put(txn, dbi, name, "a value of some length", 0));
	}
	MDB_val from = val("00005000"), to = val("00015000");
	for (int kind = 0; kind < 2; kind++) {
		uint64_t about = 0;
		OK(zubilo_range_estimate(txn, dbi, &from, &to, &about));
		IS(about > 5000 && about < 20000, 1);
		OK(zubilo_range_estimate(txn, dbi, NULL, NULL, &about));
		IS(about, RECORDS);
		OK(zubilo_range_estimate(txn, none, &from, &to, &about));
		IS(about, 0);
		IS(zubilo_range_estimate(txn, dbi, NULL, NULL, NULL), EINVAL);

		MDB_val cuts[PARTS + 1] = { { 0, NULL } };
		OK(zubilo_range_split(txn, dbi, &from, &to, PARTS, cut_at, cuts));
		const MDB_val *begins = &from;
		uint64_t all = 0;
		for (int i = 0; i < PARTS; i++) {
			const MDB_val *ends = i < PARTS - 1 ? &cuts[i] : &to;
			IS(ends->mv_data != NULL, 1);
			uint64_t part = records_between(txn, dbi, begins, ends);
			IS(part > 1000 && part < 4000, 1);
			all += part;
			begins = ends;
		}
		IS(all, 10000);
		IS(cuts[PARTS - 1].mv_data == NULL, 1);
		for (int i = 0; i < PARTS - 1; i++)
			free(cuts[i].mv_data);
		IS(zubilo_range_split(txn, dbi, NULL, NULL, 3, refuse, NULL), 66);
		OK(zubilo_range_split(txn, none, NULL, NULL, 3, refuse, NULL));
		IS(zubilo_range_split(txn, dbi, NULL, NULL, 0, refuse, NULL), EINVAL);
		IS(zubilo_range_split(txn, dbi, NULL, NULL, 3, NULL, NULL), EINVAL);
		if (kind == 0) {
			IS(zubilo_warm_up_range(txn, dbi, NULL, NULL, 1, NULL, NULL), EINVAL);
			OK(mdb_txn_commit(txn));
			txn = begin(env, MDB_RDONLY);
		}
	}
	zubilo_table stat;
	OK(zubilo_stat(txn, dbi, &stat));
	uint64_t done = 0, pages, resident;
	OK(zubilo_warm_up_range(txn, dbi, NULL, NULL, 1, told_pages, &done));
	IS(done, stat.leaf_pages);
	done = 0;
	OK(zubilo_warm_up_range(txn, dbi, &from, &to, 0, told_pages, &done));
	IS(done >= stat.leaf_pages / 4 && done < stat.leaf_pages, 1);
	IS(zubilo_warm_up_range(txn, dbi, NULL, NULL, 0, enough, NULL), 77);
	mdb_txn_abort(txn);
	done = 0;
	OK(zubilo_warm_up(env, 1, told_pages, &done));
	OK(zubilo_residency(env, &pages, &resident));
	IS(done > stat.leaf_pages && done <= pages && resident <= pages, 1);
	IS(zubilo_warm_up(env, 0, enough, NULL), 77);
	OK(zubilo_warm_up(env, 0, NULL, NULL));
	IS(zubilo_residency(env, NULL, &resident), EINVAL);
	mdb_env_close(env);
}

/* ---- two-phase commits ---- */

static void prepared(void)
{
	MDB_env *env = opened();
	MDB_dbi dbi = table(env, "t", 0);
	MDB_txn *txn, *child;
	MDB_val tag = val("order 7"), long_tag = val("0123456789012345678901234567890123456789012345678901234567890123!"), got;
	MDBX_canary numbers = { 1, 2, 3, 0 };
	zubilo_prepared waits;
	uint64_t first, id;

	IS(zubilo_env_prepared(env, &waits), MDB_NOTFOUND);
	txn = begin(env, MDB_RDONLY);
	IS(zubilo_txn_prepare(txn, &tag, &id), EINVAL);
	mdb_txn_abort(txn);
	txn = begin(env, 0);
	IS(zubilo_txn_prepare(txn, &tag, NULL), EINVAL);
	IS(zubilo_txn_prepare(txn, &long_tag, &id), EINVAL);
	OK(mdbx_canary_put(txn, &numbers));
	OK(put(txn, dbi, "key", "value", 0));
	OK(mdb_txn_begin(env, txn, 0, &child));
	OK(put(child, dbi, "nested", "value", 0));
	IS(zubilo_txn_prepare(child, &tag, &id), EINVAL);
	OK(zubilo_txn_prepare(txn, &tag, &first));
	IS(mdb_txn_begin(env, NULL, 0, &txn), EBUSY);
	txn = begin(env, MDB_RDONLY);
	IS(get(txn, dbi, "key", &got), MDB_NOTFOUND);
	OK(zubilo_env_prepared(env, &waits));
	IS(mdb_txn_id(txn) + 1, waits.txnid);
	mdb_txn_abort(txn);
	IS(waits.id == first && waits.tag_size == 7 && memcmp(waits.tag, "order 7", 7) == 0, 1);
	IS(waits.words[0] == 1 && waits.words[2] == 3 && waits.since > 1600000000, 1);
	IS(zubilo_env_prepared(env, NULL), EINVAL);
	OK(zubilo_roll_back_prepared(env, first));
	IS(zubilo_roll_back_prepared(env, first), MDB_NOTFOUND);

	/* The same number again, decided by another environment. */
	txn = begin(env, 0);
	OK(put(txn, dbi, "key", "later", 0));
	OK(zubilo_txn_prepare(txn, NULL, &id));
	IS(zubilo_commit_prepared(env, first), MDB_NOTFOUND);
	mdb_env_close(env);
	env = open_env(dir_path, MDB_NOTLS);
	IS(mdb_txn_begin(env, NULL, 0, &txn), EBUSY);
	OK(zubilo_env_prepared(env, &waits));
	IS(waits.id == id && waits.tag_size == 0, 1);
	OK(zubilo_commit_prepared(env, id));
	txn = begin(env, 0);
	OK(mdb_dbi_open(txn, "t", 0, &dbi));
	OK(get(txn, dbi, "key", &got));
	IS(same(&got, "later"), 1);
	IS(get(txn, dbi, "nested", &got), MDB_NOTFOUND);
	mdb_txn_abort(txn);
	mdb_env_close(env);
}

int main(int argc, char **argv)
{
	IS(argc, 2);
	snprintf(dir_path, sizeof dir_path, "%s", argv[1]);
	snprintf(data_path, sizeof data_path, "%s/data.mdb", argv[1]);
	slow_readers();
	expired();
	exclusive();
	options();
	encryption();
	messages();
	pages();
	scrub();
	counters();
	copies();
	changes();
	prepared();
	scans();
	MDB_env *env = opened();
	counted(env);
	shapes(env);
	values(env);
	parked(env);
	mdb_env_close(env);
	return 0;
}
