#!/usr/bin/env bash
# Compares the drop-in with LMDB: one compiled program, LD_LIBRARY_PATH switched, rounds in turn.
# Prints medians of each figure and how many times faster the drop-in is.
#
# usage: run.sh DROPIN [RECORDS [TRANSACTIONS [ROUNDS [LMDB]]]]
# DROPIN: a directory made by `cargo xtask dropin`; LMDB: one with the original's liblmdb.so.0, without
# it the system's. Stores are made below TMPDIR, which should be a disk.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dropin=$(cd "${1:?a directory made by cargo xtask dropin}" && pwd)
records=${2:-1000000} transactions=${3:-2000} rounds=${4:-3} original=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -std=gnu11 -Wall -Wextra -Werror -I"$dropin" -o "$work/bench" "$here/bench.c" -L"$dropin" -llmdb

measure() { # measure LABEL LIBDIR
    mkdir "$work/store"
    LD_LIBRARY_PATH=$2 "$work/bench" "$work/store" "$records" "$transactions" | tee "$work/last" | sed -n 's/^# //p' >"$work/$1.version"
    sed "/^#/d; s/^/$1 /" "$work/last" >>"$work/all"
    rm -rf "$work/store"
}

for _ in $(seq "$rounds"); do
    measure zubilo "$dropin"
    measure lmdb "$original"
done
printf 'zubilo: %s\nlmdb:   %s\n' "$(cat "$work/zubilo.version")" "$(cat "$work/lmdb.version")"
case $(cat "$work/lmdb.version") in *Zubilo*) echo "the original was not loaded" >&2; exit 1 ;; esac
printf '%s records, %s transactions, %s rounds; medians, ns an operation\n' "$records" "$transactions" "$rounds"
sort -k2,2 -k1,1 "$work/all" | awk '
    function median(list, n,   i, j, t, a) {
        n = split(list, a, " ")
        for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
        return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
    }
    { wall[$1, $2] = wall[$1, $2] " " $3; cpu[$1, $2] = cpu[$1, $2] " " $4; names[$2] = 1 }
    END {
        printf "%-6s %12s %12s %7s   %12s %12s %7s\n", "", "zubilo", "lmdb", "ratio", "zubilo CPU", "lmdb CPU", "ratio"
        split("load get scan crud", order, " ")
        for (i = 1; i <= 4; i++) {
            n = order[i]; z = median(wall["zubilo", n]); l = median(wall["lmdb", n])
            zc = median(cpu["zubilo", n]); lc = median(cpu["lmdb", n])
            printf "%-6s %12.1f %12.1f %7.2f   %12.1f %12.1f %7.2f\n", n, z, l, l / z, zc, lc, lc / zc
        }
    }'
