#!/usr/bin/env bash
# sample.sh [DIR]: builds the memtable, starts a one-node cluster in a folder and runs sample.cql on it. Without a folder it
# takes a new one, and the node ends after the sample; with one the node goes on serving clients on port 9042.
set -euo pipefail
cd "$(dirname "$0")"
. ./build.sh
if [ $# -gt 0 ]; then
    exec ./node.sh "$1" zubilo.cassandra.Sample sample.cql serve
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
./node.sh "$work" zubilo.cassandra.Sample sample.cql 2> >(grep -v '^WARNING' >&2)
