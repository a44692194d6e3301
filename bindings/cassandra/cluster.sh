#!/usr/bin/env bash
# A cluster of three nodes on this machine, then four: kills, hints, restart of all, repair, joining and leaving, the
# clean-up of what a node has given away. Needs what ./test.sh has built, 4 GB of memory and 127.0.0.1 to 127.0.0.4; about
# a quarter of an hour. KEYS=3000 rows of 1.5 KB, MEMTABLE=zubilo, WORK=a new folder.
set -euo pipefail
cd "$(dirname "$0")"
export CLEANUP=${CLEANUP:-5}
. ./nodes.sh
keys=${KEYS:-3000}

client() { program "$1" zubilo.cassandra.Client "${@:2}"; }

# Waits until no node has hints left.
hints_sent() {
    local i
    for i in $(seq 300); do
        [ -n "$(find "$work"/node*/hints -name '*.hints' -size +0 2>/dev/null | head -1)" ] || return 0
        sleep 0.5
    done
    echo "hints are left" >&2
    return 1
}

# in_midst NODE...: kill -9 once 200 more writes have been acknowledged.
in_midst() {
    local before n
    before=$(wc -l <"$work/kept")
    for n in $(seq 600); do
        [ "$(wc -l <"$work/kept")" -lt $((before + 200)) ] || break
        sleep 0.05
    done
    for n in "$@"; do kill -9 "${pids[$n]}"; done
}

# stored NODE...: how many rows the nodes hold together. Cassandra counts -1 for the SSTables where there are none.
stored() {
    local n
    for n in "$@"; do nodetool "$n" tablestats cluster.kv; done | awk '/Number of partitions/ { sum += $NF + 1 } END { print sum }'
}

# only_owned NODE...: waits until each row has three replicas and no more.
only_owned() {
    [ "${MEMTABLE:-zubilo}" = zubilo ] || return 0
    local i
    for i in $(seq 20); do
        [ "$(stored "$@")" -gt $((3 * keys)) ] || break
        sleep 3
    done
    echo "rows on all nodes: $(stored "$@")"
    [ "$(stored "$@")" = $((3 * keys)) ]
}

all=127.0.0.1,127.0.0.2,127.0.0.3
step "three nodes"
for n in 1 2 3; do start "$n"; done
client $all schema "${MEMTABLE:-zubilo}"
step "load"
client $all load "$keys" 1 >>"$work/kept"
client $all check QUORUM "$work/kept"
step "kill -9 of node 2 in the midst of updates"
in_midst 2 &
client 127.0.0.1,127.0.0.3 load "$keys" 2 >>"$work/kept"
killed 2
client 127.0.0.1,127.0.0.3 check QUORUM "$work/kept"
step "writes while it is down; its return; hints"
client 127.0.0.1,127.0.0.3 load "$keys" 3 >>"$work/kept"
start 2
sleep 12
hints_sent
client 127.0.0.2 check ONE "$work/kept"
step "kill -9 of all in the midst of updates, restart"
in_midst 1 2 3 &
client $all load "$keys" 4 >>"$work/kept" || true
killed 1 2 3
for n in 1 2 3; do start "$n"; done
client $all check QUORUM "$work/kept"
step "repair"
nodetool 1 repair --full cluster | tail -1
client $all check QUORUM "$work/kept"
step "a fourth node joins"
start 4
for n in 1 2 3 4; do client 127.0.0.$n check ONE "$work/kept"; done
only_owned 1 2 3 4
[ "${MEMTABLE:-zubilo}" != zubilo ] || grep -h -o 'removed [0-9]* records of cluster.kv from ranges' "$work"/node*/system.log
for n in 1 2 3 4; do client 127.0.0.$n check ONE "$work/kept"; done
step "node 3 leaves"
nodetool 3 decommission
killed 3
for n in 1 2 4; do client 127.0.0.$n check ONE "$work/kept"; done
only_owned 1 2 4
du -sh "$work"/node*/zubilo "$work"/node*/data | sed 's/^/    /'
step "TRUNCATE and restart: nothing comes back"
client 127.0.0.1,127.0.0.2,127.0.0.4 truncate
killed 1 2 4
for n in 1 2 4; do start "$n"; done
[ "$(client 127.0.0.1,127.0.0.2,127.0.0.4 count)" = 0 ]
step "cluster: all right"
