/* Opens an environment, tells the code on standard output, and closes it. The conversion of data files
 * of LMDB is tried with it: it has one thread, and is killed and refused system calls from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <lmdb.h>

int main(int argc, char **argv)
{
	MDB_env *env;
	int code;
	if (argc != 3)
		return 2;
	if (mdb_env_create(&env) || mdb_env_set_maxdbs(env, 100))
		return 2;
	code = mdb_env_open(env, argv[1], (unsigned)strtoul(argv[2], NULL, 0), 0600);
	mdb_env_close(env);
	printf("%d\n", code);
	return 0;
}
