/* The map size stays what it was set to, however full the store is. All of this holds on LMDB 0.9.24 too, where
 * the test runs it if that is installed. */
#include "check.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE ((size_t)1 << 20)
#define MORE ((size_t)128 << 10)

static MDB_env *open_sized(const char *dir, size_t size)
{
	MDB_env *env;
	OK(mdb_env_create(&env));
	if (size)
		OK(mdb_env_set_mapsize(env, size));
	OK(mdb_env_open(env, dir, MDB_NOSYNC, 0644));
	return env;
}

static size_t size_of(MDB_env *env)
{
	MDB_envinfo info;
	OK(mdb_env_info(env, &info));
	return info.me_mapsize;
}

static size_t records(MDB_env *env)
{
	MDB_stat stat;
	OK(mdb_env_stat(env, &stat));
	return stat.ms_entries;
}

/* Stores records of half a kilobyte, some in a transaction, until the map is full. */
static void fill(MDB_env *env)
{
	static int number;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_val k, v;
	char key[32], value[500];
	int i, code;

	memset(value, 'v', sizeof value);
	for (;;) {
		OK(mdb_txn_begin(env, NULL, 0, &txn));
		OK(mdb_dbi_open(txn, NULL, 0, &dbi));
		for (i = 0, code = 0; i < 20 && !code; i++) {
			k.mv_size = snprintf(key, sizeof key, "%d %d", (int)getpid(), number++);
			k.mv_data = key;
			v.mv_size = sizeof value;
			v.mv_data = value;
			code = mdb_put(txn, dbi, &k, &v, 0);
		}
		if (code)
			mdb_txn_abort(txn);
		else
			code = mdb_txn_commit(txn);
		if (code) {
			IS(code, MDB_MAP_FULL);
			return;
		}
	}
}

static void full_ones_do_not_grow(const char *dir, size_t asked)
{
	MDB_env *env = open_sized(dir, SIZE);
	size_t had;
	int i;

	fill(env);
	had = records(env);
	for (i = 0; i < 12; i++) {
		mdb_env_close(env);
		env = open_sized(dir, asked);
		IS(size_of(env), SIZE);
		fill(env);
		OK(mdb_env_set_mapsize(env, asked));
		IS(size_of(env), SIZE);
		fill(env);
	}
	IS(records(env) <= had + 40, 1);
	mdb_env_close(env);
}

/* One process raises it and fills the store, the other takes that over, and no more. */
static void what_others_raised_is_taken_over(const char *dir)
{
	int go[2], i, status, raised = 0;
	size_t size;
	char byte;
	pid_t child;
	MDB_env *env;
	MDB_txn *txn;

	OK(pipe(go));
	child = fork();
	env = open_sized(dir, SIZE);
	if (child == 0) {
		/* Waits until the other one has seen the size as it is. */
		IS(read(go[0], &byte, 1), 1);
		fill(env);
		OK(mdb_env_set_mapsize(env, SIZE + MORE));
		fill(env);
		mdb_env_close(env);
		exit(0);
	}
	IS(write(go[1], "g", 1), 1);
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
	IS(mdb_txn_begin(env, NULL, 0, &txn), MDB_MAP_RESIZED);
	OK(mdb_env_set_mapsize(env, 0));
	IS(size_of(env), SIZE + MORE);
	for (i = 0; i < 5; i++) {
		/* Full, and not because of the other one. */
		size = size_of(env);
		IS(size, SIZE + MORE + raised * MORE);
		fill(env);
		OK(mdb_env_set_mapsize(env, size + MORE));
		raised++;
		fill(env);
	}
	mdb_env_close(env);
}

int main(int argc, char **argv)
{
	const char *dir = argv[argc - 1];
	char below[4096];
	int i;

	for (i = 0; i < 3; i++) {
		snprintf(below, sizeof below, "%s/%d", dir, i);
		OK(mkdir(below, 0755));
		if (i == 2)
			what_others_raised_is_taken_over(below);
		else
			full_ones_do_not_grow(below, i ? 0 : SIZE);
	}
	return 0;
}
