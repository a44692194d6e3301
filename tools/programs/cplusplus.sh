#!/usr/bin/env bash
# C++: the header lmdb++ of Debian; a program that uses all of its classes.
. "$(dirname "$0")/common.sh"
need liblmdb++-dev liblmdb-dev g++
cat >"$top/work.cc" <<'CC'
#include <lmdb++.h>
#include <cstdio>
#include <cstring>
#include <string>

static void list(lmdb::cursor cursor, MDB_cursor_op first, MDB_cursor_op next) {
  std::string key, value;
  int n = 0;
  for (bool found = cursor.get(key, value, first); found; found = cursor.get(key, value, next))
    // The record of a table is the library's.
    if (n++ < 5) std::printf("%s=%s ", key.c_str(), key == "many" ? "a table" : value.c_str());
  std::printf("(%d)\n", n);
}

static void fails(const char* what, void (*run)(lmdb::env&), lmdb::env& env) {
  try {
    run(env);
    std::printf("%s: no error\n", what);
  } catch (const lmdb::error& error) {
    std::printf("%s: %d %s %s\n", what, error.code(), error.origin(), error.what());
  }
}

int main(int, char** argv) {
  auto env = lmdb::env::create();
  env.set_mapsize(8UL * 1024UL * 1024UL);
  env.set_max_dbs(4);
  env.set_max_readers(7);
  env.open(argv[1], 0, 0664);
  {
    auto txn = lmdb::txn::begin(env);
    auto main = lmdb::dbi::open(txn, nullptr);
    auto many = lmdb::dbi::open(txn, "many", MDB_CREATE | MDB_DUPSORT);
    for (int i = 0; i < 3000; i++) {
      char key[32], value[64];
      std::snprintf(key, sizeof key, "key%04d", i * 7919 % 3000);
      std::snprintf(value, sizeof value, "value %d", i);
      main.put(txn, key, value);
      std::snprintf(key, sizeof key, "set%d", i % 50);
      lmdb::val stored{value, std::strlen(value)};
      many.put(txn, lmdb::val{key, std::strlen(key)}, stored);
    }
    auto child = lmdb::txn::begin(env, txn);
    main.put(child, "in a child", "gone");
    child.abort();
    auto again = lmdb::txn::begin(env, txn);
    main.put(again, "in a child, kept", "there");
    again.commit();
    txn.commit();
  }
  auto txn = lmdb::txn::begin(env, nullptr, MDB_RDONLY);
  auto main = lmdb::dbi::open(txn, nullptr);
  auto many = lmdb::dbi::open(txn, "many");
  std::printf("%zu %zu %u %u\n", main.size(txn), many.size(txn), main.flags(txn), many.flags(txn));
  list(lmdb::cursor::open(txn, main), MDB_FIRST, MDB_NEXT);
  list(lmdb::cursor::open(txn, main), MDB_LAST, MDB_PREV);
  list(lmdb::cursor::open(txn, many), MDB_FIRST, MDB_NEXT_NODUP);
  list(lmdb::cursor::open(txn, many), MDB_LAST, MDB_PREV);
  auto cursor = lmdb::cursor::open(txn, main);
  std::printf("%d %d\n", cursor.find("key0100", MDB_SET), cursor.find("key9999", MDB_SET_RANGE));
  std::string key, value;
  std::printf("%d\n", cursor.get(key, value, MDB_GET_CURRENT));
  cursor.close();
  txn.reset();
  txn.renew();
  lmdb::val found;
  std::printf("%d %d\n", main.get(txn, lmdb::val{"key2999"}, found), main.get(txn, lmdb::val{"none"}, found));
  txn.abort();
  fails("a table that is not there", [](lmdb::env& env) {
    auto txn = lmdb::txn::begin(env, nullptr, MDB_RDONLY);
    lmdb::dbi::open(txn, "none");
  }, env);
  fails("a key of 600 bytes", [](lmdb::env& env) {
    auto txn = lmdb::txn::begin(env);
    auto main = lmdb::dbi::open(txn, nullptr);
    main.put(txn, std::string(600, 'x').c_str(), "v");
  }, env);
  fails("a full map", [](lmdb::env& env) {
    auto txn = lmdb::txn::begin(env);
    auto main = lmdb::dbi::open(txn, nullptr);
    std::string big(100000, 'x');
    for (int i = 0; i < 1000; i++) main.put(txn, ("big" + std::to_string(i)).c_str(), big.c_str());
  }, env);
  {
    auto txn = lmdb::txn::begin(env);
    auto many = lmdb::dbi::open(txn, "many");
    auto main = lmdb::dbi::open(txn, nullptr);
    std::printf("%d %d\n", many.del(txn, lmdb::val{"set7"}), many.del(txn, lmdb::val{"set7"}));
    std::printf("%zu\n", many.size(txn));
    many.drop(txn, true);
    main.drop(txn);
    txn.commit();
  }
  env.sync();
  unsigned flags;
  lmdb::env_get_flags(env, &flags);
  std::printf("%x %d\n", flags, mdb_env_get_maxkeysize(env));
}
CC
g++ -std=c++11 -O1 -o "$top/work" "$top/work.cc" -llmdb >"$top/log" 2>&1 ||
    { tail -n 20 "$top/log"; echo "SKIPPED the program cannot be compiled"; exit 3; }
work() {
    mkdir "$store/db"
    on "$top/work" "$store/db"
}
compare "C++: lmdb++ $(dpkg-query -W -f '${Version}' liblmdb++-dev)"
