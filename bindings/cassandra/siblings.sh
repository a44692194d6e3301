#!/usr/bin/env bash
# The client with siblings: tests of its clocks, then two clients on two nodes (two replicas) that cannot reach each other
# while they write. A node that is stopped by a signal is one that the other cannot reach; what was sent to it meanwhile is
# too old when it goes on. Needs what ./test.sh has built; about three minutes.
set -euo pipefail
cd "$(dirname "$0")"
. ../java/jdk.sh
JAVA17=$(find_jdk 17 17)
export JAVA17
(cd siblings && JAVA_HOME=$JAVA17 mvn -B -q package dependency:copy-dependencies -DincludeScope=test)
. ./nodes.sh

two() {
    timeout 120 "$JAVA17/bin/java" -Xmx128m -cp "siblings/target/classes:siblings/target/test-classes:siblings/target/dependency/*" \
        zubilo.siblings.TwoClients "$@"
}

step "two nodes"
start 1
start 2
two create 127.0.0.1
step "the clients write apart"
kill -STOP "${pids[2]}"
two write 127.0.0.1 ada honey
# Longer than a write may wait.
sleep 4
kill -STOP "${pids[1]}"
kill -CONT "${pids[2]}"
two write 127.0.0.2 bob cheese
sleep 4
kill -CONT "${pids[1]}"
step "both are there"
two expect 127.0.0.1 cheese,honey
two expect 127.0.0.2 cheese,honey
step "resolved"
two resolve 127.0.0.2
two expect 127.0.0.1 resolved
step "a deletion removes what was seen, not what was written apart"
kill -STOP "${pids[2]}"
two write 127.0.0.1 ada jam
sleep 4
kill -STOP "${pids[1]}"
kill -CONT "${pids[2]}"
two write 127.0.0.2 bob figs
sleep 4
kill -CONT "${pids[1]}"
two expect 127.0.0.1 figs,jam
two delete 127.0.0.1
two expect 127.0.0.2 ""
killed 1 2
start 1
start 2
two expect 127.0.0.1 ""
step "siblings: all right"
