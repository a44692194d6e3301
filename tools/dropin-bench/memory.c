/* A change that finds no memory must give a code, not end the program: the library unwinds to the
 * function that was called. usage: memory DIR
 */
#include <lmdb.h>

#include <stdio.h>
#include <sys/resource.h>

#define CHECK(call, want) \
    do { \
        int got = (call); \
        if (got != (want)) { \
            fprintf(stderr, "%s gave %d: %s\n", #call, got, mdb_strerror(got)); \
            return 1; \
        } \
    } while (0)

int main(int argc, char **argv)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = { 3, "key" }, small = { 5, "value" }, large = { (size_t) 3 << 30, NULL };
    struct rlimit memory = { 256 << 20, 256 << 20 };

    if (argc != 2) {
        return 2;
    }
    CHECK(mdb_env_create(&env), 0);
    CHECK(mdb_env_set_mapsize(env, (size_t) 16 << 30), 0);
    CHECK(mdb_env_open(env, argv[1], 0, 0644), 0);
    CHECK(mdb_txn_begin(env, NULL, 0, &txn), 0);
    CHECK(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    CHECK(mdb_put(txn, dbi, &key, &small, 0), 0);
    CHECK(mdb_txn_commit(txn), 0);
    CHECK(mdb_txn_begin(env, NULL, 0, &txn), 0);
    CHECK(setrlimit(RLIMIT_DATA, &memory), 0);
    CHECK(mdb_put(txn, dbi, &key, &large, MDB_RESERVE), MDB_PANIC);
    CHECK(mdb_put(txn, dbi, &key, &small, 0), MDB_BAD_TXN);
    mdb_txn_abort(txn);
    CHECK(mdb_txn_begin(env, NULL, 0, &txn), MDB_PANIC);
    mdb_env_close(env);

    /* What was committed is there. */
    CHECK(mdb_env_create(&env), 0);
    CHECK(mdb_env_open(env, argv[1], 0, 0644), 0);
    CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    CHECK(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    CHECK(mdb_get(txn, dbi, &key, &small), 0);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    puts("a change without memory gave a code");
    return 0;
}
