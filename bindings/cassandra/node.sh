#!/usr/bin/env bash
# node.sh DIR MAIN [ARGUMENT...]: a Cassandra node in a folder. Writes the configuration there if there is none, and runs
# a main class on the node's class path: org.apache.cassandra.service.CassandraDaemon, or a test that starts the node
# itself. The environment may say ADDRESS (127.0.0.1), SEED (the same), PORT (9042), HEAP (512m), JAVA17 (a JDK of 17),
# SYNC, LOGGED, REDO_LOG, CLEANUP (the memtable's parameters), COMMITLOG (batch or periodic), RING_DELAY (1000 ms; a node that joins others needs more, or it joins before it knows their keyspaces).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
main=$2
shift 2
address=${ADDRESS:-127.0.0.1}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if [ ! -f "$dir/cassandra.yaml" ]; then
    commitlog="commitlog_sync: ${COMMITLOG:-batch}"
    [ "${COMMITLOG:-batch}" = batch ] || commitlog="$commitlog
commitlog_sync_period: 10000ms"
    cat >"$dir/cassandra.yaml" <<YAML
cluster_name: zubilo
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 4
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "${SEED:-$address}"
listen_address: $address
rpc_address: $address
native_transport_port: ${PORT:-9042}
endpoint_snitch: SimpleSnitch
$commitlog
commitlog_segment_size: 8MiB
data_file_directories: ["$dir/data"]
commitlog_directory: $dir/commitlog
saved_caches_directory: $dir/saved_caches
hints_directory: $dir/hints
cdc_raw_directory: $dir/cdc_raw
materialized_views_enabled: true
user_defined_functions_enabled: false
memtable:
  configurations:
    stock:
      class_name: TrieMemtable
    default:
      inherits: stock
    zubilo:
      class_name: zubilo.cassandra.ZubiloMemtable
      parameters:
        dir: $dir/zubilo
        sync: "${SYNC:-true}"
        commitlog: "${LOGGED:-false}"
        redo_log: "${REDO_LOG:-1GiB}"
        cleanup_seconds: "${CLEANUP:-3600}"
YAML
fi
java=java
for home in "${JAVA17:-}" /usr/lib/jvm/*17*; do
    if [ -x "$home/bin/java" ]; then
        java=$home/bin/java
        break
    fi
done
exec "$java" "@$here/conf/java.options" "-Xmx${HEAP:-512m}" "-Xms${HEAP:-512m}" ${JAVA_EXTRA:-} \
    "-Dcassandra.config=file://$dir/cassandra.yaml" "-Dcassandra.logdir=$dir" "-Dcassandra.storagedir=$dir" \
    "-Dlogback.configurationFile=$here/conf/logback.xml" -Dcassandra.ring_delay_ms=${RING_DELAY:-1000} -Dcassandra.skip_wait_for_gossip_to_settle=0 \
    -Dcassandra-foreground=yes -cp "${CLASSPATH_NODE:-$here/target/classes:$here/target/test-classes:$here/target/dependency/*}" \
    "$main" "$@"
