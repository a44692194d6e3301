/* Figures of an LMDB library through its C interface: a random load, random gets, a scan, and
 * synchronous transactions of two inserts, a read, an update and a delete. Which library it is
 * decides the loader: the same program runs on both.
 *
 * bench DIR RECORDS TRANSACTIONS; prints lines "NAME WALL CPU", ns for each operation.
 */
#include <lmdb.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define KEY 16
#define VALUE 100

static void check(int code, const char *what)
{
    if (code) {
        fprintf(stderr, "%s: %s\n", what, mdb_strerror(code));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

/* A number that looks random, from its index: keys can be made again without a list of them. */
static uint64_t mix(uint64_t i)
{
    i += 0x9E3779B97F4A7C15u;
    i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9u;
    i = (i ^ i >> 27) * 0x94D049BB133111EBu;
    return i ^ i >> 31;
}

static MDB_val key_of(uint64_t i, char *into)
{
    uint64_t parts[2] = { mix(i), mix(~i) };
    memcpy(into, parts, KEY);
    return (MDB_val){ KEY, into };
}

static MDB_val value_of(uint64_t i, char *into)
{
    memset(into, (int) (i & 127), VALUE);
    memcpy(into, &i, sizeof i);
    return (MDB_val){ VALUE, into };
}

static double wall_start, cpu_start;

static double wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static double cpu_now(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e9
        + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e3;
}

static void start(void)
{
    wall_start = wall_now();
    cpu_start = cpu_now();
}

static void stop(const char *name, uint64_t count)
{
    double wall = wall_now() - wall_start, cpu = cpu_now() - cpu_start;
    printf("%s %.1f %.1f\n", name, wall / count, cpu / count);
    fflush(stdout);
}

static void load(MDB_env *env, MDB_dbi *dbi, uint64_t records)
{
    char k[KEY], v[VALUE];
    MDB_txn *txn;
    start();
    for (uint64_t i = 0; i < records;) {
        CHECK(mdb_txn_begin(env, NULL, 0, &txn));
        CHECK(mdb_dbi_open(txn, "records", MDB_CREATE, dbi));
        for (uint64_t end = i + 100000; i < end && i < records; i++) {
            MDB_val key = key_of(i, k), value = value_of(i, v);
            CHECK(mdb_put(txn, *dbi, &key, &value, 0));
        }
        CHECK(mdb_txn_commit(txn));
    }
    CHECK(mdb_env_sync(env, 1));
    stop("load", records);
}

static void get(MDB_env *env, MDB_dbi dbi, uint64_t records)
{
    char k[KEY];
    MDB_txn *txn;
    uint64_t sum = 0, gets = records < 2000000 ? records : 2000000;
    CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    for (int round = 0; round < 2; round++) {
        start();
        for (uint64_t i = 0; i < gets; i++) {
            MDB_val value, key = key_of(mix(i + round * gets) % records, k);
            CHECK(mdb_get(txn, dbi, &key, &value));
            sum += *(const unsigned char *) value.mv_data;
        }
        if (round == 1) {
            stop("get", gets);
        }
    }
    mdb_txn_abort(txn);
    if (sum == 1) {
        puts("");
    }
}

static void scan(MDB_env *env, MDB_dbi dbi, uint64_t records)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    CHECK(mdb_cursor_open(txn, dbi, &cursor));
    for (int round = 0; round < 2; round++) {
        MDB_val key, value;
        uint64_t seen = 0, sum = 0;
        int code;
        start();
        for (MDB_cursor_op op = MDB_FIRST; !(code = mdb_cursor_get(cursor, &key, &value, op)); op = MDB_NEXT) {
            sum += *(const unsigned char *) key.mv_data + *(const unsigned char *) value.mv_data;
            seen++;
        }
        if (code != MDB_NOTFOUND || seen != records || sum == 1) {
            fprintf(stderr, "the scan saw %llu records\n", (unsigned long long) seen);
            exit(1);
        }
        if (round == 1) {
            stop("scan", records);
        }
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

static void crud(MDB_env *env, MDB_dbi dbi, uint64_t records, uint64_t count)
{
    char k[KEY], v[VALUE];
    MDB_txn *txn;
    start();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t new = records + 2 * i;
        MDB_val key, value = value_of(i, v);
        CHECK(mdb_txn_begin(env, NULL, 0, &txn));
        key = key_of(new, k);
        CHECK(mdb_put(txn, dbi, &key, &value, 0));
        key = key_of(new + 1, k);
        CHECK(mdb_put(txn, dbi, &key, &value, 0));
        /* Deleted in order of their numbers, read and updated above those. */
        key = key_of(count + mix(i) % (records - count), k);
        CHECK(mdb_get(txn, dbi, &key, &value));
        key = key_of(count + mix(~i) % (records - count), k);
        value = value_of(i, v);
        CHECK(mdb_put(txn, dbi, &key, &value, 0));
        key = key_of(i, k);
        CHECK(mdb_del(txn, dbi, &key, NULL));
        CHECK(mdb_txn_commit(txn));
    }
    stop("crud", count);
}

int main(int argc, char **argv)
{
    MDB_env *env;
    MDB_dbi dbi = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: bench DIR RECORDS TRANSACTIONS\n");
        return 2;
    }
    uint64_t records = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    if (count == 0 || records <= 2 * count) {
        fprintf(stderr, "there must be more than two records for each transaction\n");
        return 2;
    }
    CHECK(mdb_env_create(&env));
    CHECK(mdb_env_set_maxdbs(env, 4));
    CHECK(mdb_env_set_mapsize(env, (size_t) (1 << 20) + records * 1000));
    CHECK(mdb_env_open(env, argv[1], 0, 0644));
    printf("# %s\n", mdb_version(NULL, NULL, NULL));
    load(env, &dbi, records);
    get(env, dbi, records);
    scan(env, dbi, records);
    crud(env, dbi, records, count);
    mdb_env_close(env);
    return 0;
}
