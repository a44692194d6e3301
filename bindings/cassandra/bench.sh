#!/usr/bin/env bash
# bench.sh [KEYS [ROUNDS]]: puts and gets of 1.5 KB beside the stock memtable with its commit log, on the same nodes in turns.
# NODES=1 (or 3: three replicas, QUORUM). Needs what ./test.sh has built. COMMITLOG=batch, SYNC=true: both durable when
# acknowledged; COMMITLOG=periodic SYNC=lazy: both soon after. OWN_DEVICES=1, as root: puts the nodes' folders and their stores of
# Zubilo on file systems of their own (loop devices), and says what the devices were given.
set -euo pipefail
export COMMITLOG=${COMMITLOG:-batch} SYNC=${SYNC:-true}
cd "$(dirname "$0")"
. ./nodes.sh
count=${NODES:-1}
all=127.0.0.1
mounts=()

# own_device FOLDER: a file system of its own for a folder.
own_device() {
    mkdir -p "$1"
    truncate -s 2G "$1.image"
    mkfs.ext4 -q -F "$1.image"
    mount -o loop "$1.image" "$1"
    mounts=("$1" "${mounts[@]}")
}

finish_bench() {
    local folder
    stop_nodes
    for folder in "${mounts[@]}"; do umount -l "$folder"; done
    finish_nodes
}
if [ -n "${OWN_DEVICES:-}" ]; then
    trap finish_bench EXIT
    for n in $(seq "$count"); do
        own_device "$work/node$n"
        own_device "$work/node$n/zubilo"
    done
fi
for n in $(seq "$count"); do
    start "$n"
    [ "$n" = 1 ] || all=$all,127.0.0.$n
done
lscpu | grep 'Model name' || true
echo "$count node(s), commit log $COMMITLOG, sync $SYNC; $(git describe --always --dirty 2>/dev/null || true)"
PROGRAM_HEAP=512m program "$all" zubilo.cassandra.Bench "${1:-5000}" "${2:-10}" "$count" "$work" "${pids[@]}"
