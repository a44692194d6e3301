# Sourced by bash: nodes of one cluster on this machine, 127.0.0.1 and up, in folders of $work. They end with the script.
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
declare -A pids=()
export SEED=127.0.0.1 RING_DELAY=${RING_DELAY:-15000} HEAP=${HEAP:-600m}

stop_nodes() {
    local pid
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
}

finish_nodes() {
    stop_nodes
    [ -n "${WORK:-}" ] || rm -rf "$work"
}
trap finish_nodes EXIT

step() { echo "$(date +%T) $*"; }

# start N: starts a node and waits until it serves clients.
start() {
    mkdir -p "$work/node$1"
    : >"$work/node$1/system.log"
    ADDRESS=127.0.0.$1 JAVA_EXTRA="${NODE_EXTRA:-} -Dcassandra.jmx.local.port=720$1" \
        ./node.sh "$work/node$1" org.apache.cassandra.service.CassandraDaemon >"$work/node$1.out" 2>&1 &
    pids[$1]=$!
    disown
    local i
    for i in $(seq 900); do
        grep -q "Startup complete" "$work/node$1/system.log" && return 0
        kill -0 "${pids[$1]}" 2>/dev/null || break
        sleep 0.2
    done
    tail -20 "$work/node$1/system.log"
    echo "node $1 has not started" >&2
    return 1
}

# killed N...: ends nodes without a farewell, and waits until they are gone.
killed() {
    local n
    for n in "$@"; do kill -9 "${pids[$n]}" 2>/dev/null || true; done
    for n in "$@"; do
        while kill -0 "${pids[$n]}" 2>/dev/null; do sleep 0.05; done
        unset "pids[$n]"
    done
}

# program NODES MAIN [ARGUMENT...]: a program of the tests that talks to some nodes, named with commas.
program() {
    HEAP=${PROGRAM_HEAP:-128m} JAVA_EXTRA="-Dnodes=$1" ./node.sh "$work/node1" "${@:2}" 2> >(grep -v '^WARNING\|SLF4J' >&2)
}

# nodetool N ARGUMENT...
nodetool() {
    HEAP=128m ./node.sh "$work/node1" org.apache.cassandra.tools.NodeTool -p "720$1" "${@:2}" 2>&1 | grep -v '^WARNING' || true
}
