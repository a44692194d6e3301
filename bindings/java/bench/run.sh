#!/usr/bin/env bash
# Zubilo for Java beside other stores for Java: figures as a table. Each engine runs in a JVM of its own, one after the
# other. Needs ../target/zubilo-0.1.0.jar (mvn package) and a JDK of 22 or newer as JAVA_HOME.
#   run.sh [FOLDER [RECORDS [MILLISECONDS [ROUNDS [r|w|rw [ENGINE...]]]]]]
set -eu
cd "$(dirname "$0")"
folder=${1:-$(mktemp -d)} records=${2:-500000} millis=${3:-400} rounds=${4:-5} what=${5:-rw}
[ $# -gt 5 ] && shift 5 || set -- zubilo lmdbjava rocksdb mvstore mapdb
java=${JAVA_HOME:-/usr}/bin
mkdir -p target "$folder"
[ -s target/classpath ] || mvn -B -q dependency:build-classpath -Dmdep.outputFile=target/classpath
cp=../target/zubilo-0.1.0.jar:$(cat target/classpath)
"$java/javac" -nowarn -cp "$cp" -d target/classes src/*.java
for engine in "$@"; do
    "$java/java" -Xmx3g -XX:+UseParallelGC --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow \
        --add-opens java.base/java.nio=ALL-UNNAMED --add-opens java.base/sun.nio.ch=ALL-UNNAMED \
        -cp "target/classes:$cp" Bench "$engine" "$folder" "$records" "$millis" "$rounds" "$what" 2>"target/$engine.log" \
        || { echo "$engine failed:" >&2; tail -5 "target/$engine.log" >&2; }
    rm -rf "$folder/$engine"*
done
