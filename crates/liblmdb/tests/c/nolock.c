/* Environments without a lock file in two processes, which take turns by a lock of their own: each sees
 * what the other has committed, in every call, and nothing is lost, whoever flushes, copies or closes. */
#include "check.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<zubilo.h>)
#include <zubilo.h>
#define HERE
#endif

enum { OPEN, CLOSE, PUT, HAS, SYNC, COPY, INFO, ENTRIES, UPDATE, WAIT, QUIT };

struct order {
	int what;
	unsigned flags, from, to;
	char path[200];
};

struct peer {
	pid_t pid;
	int to, from;
};

static void number(MDB_val *v, unsigned *n)
{
	v->mv_size = sizeof *n;
	v->mv_data = n;
}

/* Records with these numbers; each value is long enough that pages come and go. */
static void put_in(MDB_txn *txn, const struct order *o)
{
	char bytes[900];
	MDB_dbi dbi;
	unsigned n;
	OK(mdb_dbi_open(txn, "t", MDB_CREATE | MDB_INTEGERKEY, &dbi));
	for (n = o->from; n < o->to; n++) {
		MDB_val k, v;
		memset(bytes, (int)(n * 7), sizeof bytes);
		number(&k, &n);
		v.mv_size = sizeof bytes;
		v.mv_data = bytes;
		OK(mdb_put(txn, dbi, &k, &v, 0));
	}
}

#ifdef HERE
static int put_in_update(MDB_txn *txn, void *order)
{
	put_in(txn, order);
	return 0;
}
#endif

static MDB_env *open_here(const char *path, unsigned flags)
{
	MDB_env *env;
	OK(mdb_env_create(&env));
	OK(mdb_env_set_maxdbs(env, 4));
	OK(mdb_env_set_mapsize(env, 64 << 20));
	OK(mdb_env_open(env, path, flags, 0644));
	return env;
}

static void has(MDB_env *env, unsigned from, unsigned to)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	unsigned n;
	OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	OK(mdb_dbi_open(txn, "t", 0, &dbi));
	for (n = from; n < to; n++) {
		MDB_val k, v;
		char bytes[900];
		memset(bytes, (int)(n * 7), sizeof bytes);
		number(&k, &n);
		OK(mdb_get(txn, dbi, &k, &v));
		IS(v.mv_size, sizeof bytes);
		IS(memcmp(v.mv_data, bytes, sizeof bytes), 0);
	}
	mdb_txn_abort(txn);
}

static long does(MDB_env **env, const struct order *o)
{
	MDB_txn *txn;
	MDB_envinfo info;
	MDB_stat stat;
	switch (o->what) {
	case OPEN: *env = open_here(o->path, o->flags); break;
	case CLOSE: mdb_env_close(*env); break;
	case PUT:
		OK(mdb_txn_begin(*env, NULL, 0, &txn));
		put_in(txn, o);
		OK(mdb_txn_commit(txn));
		break;
#ifdef HERE
	case UPDATE: OK(zubilo_update(*env, put_in_update, (void *)o)); break;
#endif
	case HAS: has(*env, o->from, o->to); break;
	case SYNC: OK(mdb_env_sync(*env, 1)); break;
	case COPY: OK(mdb_env_copy2(*env, o->path, o->flags)); break;
	case INFO: OK(mdb_env_info(*env, &info)); return (long)info.me_last_txnid;
	case ENTRIES: OK(mdb_env_stat(*env, &stat)); return (long)stat.ms_entries;
	case WAIT: usleep(o->from * 1000); break;
	default: break;
	}
	return 0;
}

static struct peer start(void)
{
	struct peer peer;
	int to[2], from[2];
	OK(pipe(to));
	OK(pipe(from));
	peer.pid = fork();
	if (peer.pid == 0) {
		struct order o;
		MDB_env *env = NULL;
		/* A failure of another one ends all. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(to[0], &o, sizeof o) == sizeof o && o.what != QUIT) {
			long answer = does(&env, &o);
			IS(write(from[1], &answer, sizeof answer), sizeof answer);
		}
		_exit(0);
	}
	peer.to = to[1];
	peer.from = from[0];
	close(to[0]);
	close(from[1]);
	return peer;
}

static long tell(struct peer *peer, int what, unsigned from, unsigned to, unsigned flags, const char *path)
{
	struct order o;
	long answer;
	memset(&o, 0, sizeof o);
	o.what = what;
	o.flags = flags;
	o.from = from;
	o.to = to;
	if (path)
		snprintf(o.path, sizeof o.path, "%s", path);
	IS(write(peer->to, &o, sizeof o), sizeof o);
	IS(read(peer->from, &answer, sizeof answer), sizeof answer);
	return answer;
}

static void quit(struct peer *peer)
{
	int status;
	struct order o;
	memset(&o, 0, sizeof o);
	o.what = QUIT;
	IS(write(peer->to, &o, sizeof o), sizeof o);
	IS(waitpid(peer->pid, &status, 0), peer->pid);
	IS(status, 0);
	close(peer->to);
	close(peer->from);
}

/* A copy of what was there, though another process has written since this one looked. */
static void copy_of(struct peer *peer, const char *dir, unsigned n, unsigned flags)
{
	char path[200];
	MDB_env *env;
	snprintf(path, sizeof path, "%s/copy%u", dir, n);
	OK(mkdir(path, 0755));
	tell(peer, COPY, 0, 0, flags, path);
	env = open_here(path, 0);
	has(env, 0, n);
	mdb_env_close(env);
}

static void in_turns(const char *dir, unsigned flags)
{
	struct peer a = start(), b = start();
	struct peer *both[2] = { &a, &b };
	unsigned n = 0, round;
	tell(&a, OPEN, 0, 0, flags, dir);
	tell(&a, PUT, 0, 20, 0, NULL);
	tell(&b, OPEN, 0, 0, flags, dir);
	n = 20;
	for (round = 0; round < 30; round++) {
		struct peer *one = both[round & 1], *two = both[~round & 1];
		unsigned i;
		/* `one` commits often, then `two` is asked, which has not looked since. */
		for (i = 0; i < 1 + round % 5; i++) {
			tell(one, PUT, 0, n / 2, 0, NULL);
			tell(one, PUT, n, n + 3, 0, NULL);
			n += 3;
		}
		switch (round % 10) {
		case 0: case 1: IS(tell(two, INFO, 0, 0, 0, NULL), tell(one, INFO, 0, 0, 0, NULL)); break;
		case 2: case 3: IS(tell(two, ENTRIES, 0, 0, 0, NULL), 1); break;
		case 4: tell(two, SYNC, 0, 0, 0, NULL); break;
		case 5: copy_of(two, dir, n, 0); break;
		case 6: copy_of(two, dir, n, MDB_CP_COMPACT); break;
		case 7: tell(two, CLOSE, 0, 0, 0, NULL); tell(two, OPEN, 0, 0, flags, dir); break;
#ifdef HERE
		case 8: tell(two, UPDATE, n, n + 5, 0, NULL); n += 5; break;
#endif
		/* Long enough for what flushes by time. */
		case 9: if (round < 10) tell(two, WAIT, 1300, 0, 0, NULL); break;
		default: tell(two, HAS, 0, n, 0, NULL); break;
		}
		tell(one, HAS, 0, n, 0, NULL);
		if (round % 3)
			tell(two, HAS, 0, n, 0, NULL);
	}
	/* The one that has not looked for long ends last. */
	tell(&a, PUT, n, n + 3, 0, NULL);
	tell(&a, CLOSE, 0, 0, 0, NULL);
	tell(&b, CLOSE, 0, 0, 0, NULL);
	tell(&b, OPEN, 0, 0, flags, dir);
	tell(&b, HAS, 0, n + 3, 0, NULL);
	tell(&b, CLOSE, 0, 0, 0, NULL);
	quit(&a);
	quit(&b);
	{
		MDB_env *env = open_here(dir, flags & ~MDB_NOSYNC);
		has(env, 0, n + 3);
		mdb_env_close(env);
	}
}

int main(int argc, char **argv)
{
	static const unsigned kinds[3] = { 0, MDB_NOSYNC, MDB_NOSYNC | MDB_WRITEMAP };
	unsigned i;
	if (argc < 2)
		return 2;
	for (i = 0; i < 3; i++) {
		char dir[200];
		snprintf(dir, sizeof dir, "%s/%u", argv[1], i);
		OK(mkdir(dir, 0755));
		in_turns(dir, kinds[i] | MDB_NOLOCK);
	}
	return 0;
}
