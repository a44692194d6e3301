#!/usr/bin/env bash
# The benchmark's program with few records on the drop-in, and the tools on what it leaves: that the
# pieces in the directory fit together. usage: smoke.sh DROPIN
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dropin=$(cd "${1:?a directory made by cargo xtask dropin}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for kind in shared static; do
    case $kind in
    shared) libs=(-L"$dropin" -llmdb) ;;
    static) libs=("$dropin/liblmdb.a" -lgcc_s -lpthread -lm -ldl) ;;
    esac
    gcc -O2 -std=gnu11 -Wall -Wextra -Werror -I"$dropin" -o "$work/bench" "$here/bench.c" "${libs[@]}"
    mkdir "$work/$kind"
    LD_LIBRARY_PATH=$dropin "$work/bench" "$work/$kind" 20000 100 | tee "$work/lines"
    grep -q '^# LMDB 0\.9\..*Zubilo' "$work/lines"
    [ "$(grep -c '^[a-z]* [0-9.]* [0-9.]*$' "$work/lines")" -eq 4 ]
    # 20,000 loaded, two new and one deleted in each of 100 transactions.
    "$dropin/mdb_stat" -s records "$work/$kind" | grep '^  Entries: 20100$' >/dev/null
    "$dropin/mdb_dump" -s records "$work/$kind" | "$dropin/mdb_load" -n "$work/$kind.copy"
    "$dropin/mdb_stat" -n -s records "$work/$kind.copy" | grep '^  Entries: 20100$' >/dev/null
done
# The handlers of the small build, which the linker puts in where it can.
if [ "$(uname -m)" = x86_64 ]; then
    gcc -O2 -std=gnu11 -Wall -Wextra -Werror -I"$dropin" -o "$work/memory" "$here/memory.c" -L"$dropin" -llmdb
    mkdir "$work/memory.store"
    LD_LIBRARY_PATH=$dropin "$work/memory" "$work/memory.store"
fi
