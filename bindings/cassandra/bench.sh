#!/usr/bin/env bash
# bench.sh [KEYS [ROUNDS]]: puts and gets of 1.5 KB beside the stock memtable with its commit log, on the same nodes in turns.
# NODES=1 (or 3: three replicas, QUORUM). Needs what ./test.sh has built. COMMITLOG=batch, SYNC=true: both durable when
# acknowledged; COMMITLOG=periodic SYNC=lazy: both soon after.
set -euo pipefail
export COMMITLOG=${COMMITLOG:-batch} SYNC=${SYNC:-true}
cd "$(dirname "$0")"
. ./nodes.sh
count=${NODES:-1}
all=127.0.0.1
for n in $(seq "$count"); do
    start "$n"
    [ "$n" = 1 ] || all=$all,127.0.0.$n
done
lscpu | grep 'Model name' || true
echo "$count node(s), commit log $COMMITLOG, sync $SYNC; $(git describe --always --dirty 2>/dev/null || true)"
PROGRAM_HEAP=512m program "$all" zubilo.cassandra.Bench "${1:-5000}" "${2:-10}" "$count" "$work" "${pids[@]}"
