#!/usr/bin/env bash
# Builds the memtable and tests it inside of real Cassandra nodes, one at a time: random CQL beside the stock memtable,
# operations, kill -9. About five minutes on two cores once the artifacts are there. Needs Rust, Maven, a JDK of 22 or
# newer to build the Java package, and one of 17 for Cassandra. SEEDS="1 2 3" chooses the random programs, STATEMENTS=3000
# their length.
set -euo pipefail
cd "$(dirname "$0")"

. ./build.sh

work=$(mktemp -d)
node=
trap '[ -z "$node" ] || kill -9 "$node" 2>/dev/null || true; rm -rf "$work"' EXIT

# run FOLDER MAIN ARGUMENT...: a program in a node; its words without the JDK's warnings.
run() {
    timeout 600 ./node.sh "$@" 2> >(grep -v '^WARNING' >&2)
}

echo "operations"
run "$work/operations" zubilo.cassandra.Operations

for seed in ${SEEDS:-$RANDOM}; do
    echo "random CQL beside the stock memtable, end of the process, and on"
    run "$work/cql$seed" zubilo.cassandra.CqlComparison "$seed" "${STATEMENTS:-3000}"
    run "$work/cql$seed" zubilo.cassandra.CqlComparison "$seed" "${STATEMENTS:-3000}" again
done

# set_log FOLDER LENGTH: another redo log for a node that has a store.
set_log() {
    sed -i "s/redo_log: .*/redo_log: \"$2\"/" "$1/cassandra.yaml"
}
seed=$RANDOM
echo "the same, with redo logs that come and go"
REDO_LOG=none run "$work/switched" zubilo.cassandra.CqlComparison "$seed" 700
set_log "$work/switched" 64KiB
run "$work/switched" zubilo.cassandra.CqlComparison "$seed" 700 again
set_log "$work/switched" none
run "$work/switched" zubilo.cassandra.CqlComparison $((seed + 1)) 700 again
seed=$RANDOM
echo "the same with sync: lazy and commitlog: true"
export SYNC=lazy LOGGED=true
run "$work/lazy" zubilo.cassandra.CqlComparison "$seed" 1000
run "$work/lazy" zubilo.cassandra.CqlComparison "$seed" 1000 again

# kill -9 while 16 threads write; the memtable's parameters are in the environment.
killed() {
    echo "kill -9 while 16 threads write, sync $SYNC, commit log $LOGGED"
    ./node.sh "$work/$1" zubilo.cassandra.Acknowledged write >"$work/lines" 2>"$work/errors" &
    node=$!
    disown
    for _ in $(seq 600); do
        [ "$(grep -c '^kept' "$work/lines" || true)" -lt 5000 ] || break
        kill -0 "$node" || { cat "$work/errors"; exit 1; }
        sleep 0.2
    done
    kill -9 "$node"
    while kill -0 "$node" 2>/dev/null; do sleep 0.05; done
    node=
    run "$work/$1" zubilo.cassandra.Acknowledged check "$work/lines"
}
SYNC=true LOGGED=false
killed durable
SYNC=lazy LOGGED=true
killed lazy
echo "memtable for Cassandra: all right"
