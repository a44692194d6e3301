/* What happens between processes and between handles of one: forks, a store opened twice, a data
 * file of the original. The argument is a directory. */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void store(MDB_env *env, const char *k, const char *v)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_val key = { strlen(k), (void *) k }, value = { strlen(v), (void *) v };
	OK(mdb_txn_begin(env, NULL, 0, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	OK(mdb_put(txn, dbi, &key, &value, 0));
	OK(mdb_txn_commit(txn));
}

static int has(MDB_env *env, const char *k)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_val key = { strlen(k), (void *) k }, value;
	int code;
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_dbi_open(txn, NULL, 0, &dbi));
	code = mdb_get(txn, dbi, &key, &value);
	mdb_txn_abort(txn);
	return code == 0;
}

/* Two handles of one process on one store. */
static void twice(const char *dir)
{
	MDB_env *first = open_env(dir, 0), *second = open_env(dir, 0);
	store(first, "a", "1");
	IS(!!(has(second, "a")), 1);
	store(second, "b", "2");
	IS(!!(has(first, "b")), 1);
	mdb_env_close(second);
	store(first, "c", "3");
	IS(!!(has(first, "b") && has(first, "c")), 1);
	mdb_env_close(first);
}

/* A child cannot use what its parent has opened, and does no harm by closing it. */
static void forked(const char *dir)
{
	MDB_env *env = open_env(dir, MDB_NOTLS);
	MDB_txn *reader;
	MDB_dbi dbi;
	MDB_val key = { 1, "a" }, value;
	int status;
	pid_t child;
	store(env, "a", "1");
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &reader));
	OK(mdb_dbi_open(reader, NULL, 0, &dbi));
	child = fork();
	IS(!!(child >= 0), 1);
	if (child == 0) {
		MDB_txn *txn;
		IS(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), MDB_PANIC);
		IS(mdb_txn_begin(env, NULL, 0, &txn), MDB_PANIC);
		mdb_env_close(env);
		/* Opened anew it works. */
		env = open_env(dir, 0);
		store(env, "child", "1");
		mdb_env_close(env);
		_exit(0);
	}
	IS(!!(waitpid(child, &status, 0) == child), 1);
	IS(status, 0);
	/* The parent's reader still pins its snapshot. */
	OK(mdb_get(reader, dbi, &key, &value));
	key.mv_data = "child";
	key.mv_size = 5;
	IS(mdb_get(reader, dbi, &key, &value), MDB_NOTFOUND);
	mdb_txn_abort(reader);
	IS(!!(has(env, "child")), 1);
	mdb_env_close(env);
}

/* The first pages of a file that LMDB wrote: mark and version behind a page header. */
static void foreign(const char *dir)
{
	char path[4096];
	unsigned char page[8192] = { 0 };
	unsigned mark = 0xBEEFC0DE, version = 1;
	MDB_env *env;
	FILE *file;
	memcpy(page + 16, &mark, 4);
	memcpy(page + 20, &version, 4);
	memcpy(page + 4096 + 16, &mark, 4);
	memcpy(page + 4096 + 20, &version, 4);
	snprintf(path, sizeof path, "%s/foreign", dir);
	file = fopen(path, "w");
	IS(!!(file && fwrite(page, sizeof page, 1, file) == 1 && fclose(file) == 0), 1);
	OK(mdb_env_create(&env));
	IS(mdb_env_open(env, path, MDB_NOSUBDIR, 0600), MDB_VERSION_MISMATCH);
	mdb_env_close(env);
}

int main(int argc, char **argv)
{
	IS(!!(argc == 2), 1);
	twice(argv[1]);
	forked(argv[1]);
	foreign(argv[1]);
	return 0;
}
