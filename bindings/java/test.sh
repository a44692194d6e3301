#!/usr/bin/env bash
# Builds the Java package and tests the jar on every JDK that it is for: on one of 22 or newer, which also builds it,
# and on 17. About three minutes. JDKs are looked for in JAVA_HOME, JDK17_HOME and /usr/lib/jvm; on Debian what is
# missing is installed. Where there is none and none can be had this says so loudly and succeeds.
set -u
cd "$(dirname "$0")" || exit 1
. ./jdk.sh

skip() {
    echo "SKIPPED: the Java package was NOT tested: $1"
    exit 0
}

ensure_maven || skip "Maven cannot be installed"
ensure_new_jdk
jdk=$(find_jdk 22 99) || skip "no JDK of 22 or newer, which builds it, can be installed; name one by JAVA_HOME"
ensure_jdk 17 21 openjdk-17-jdk-headless openjdk-21-jdk-headless
old=$(find_jdk 17 21) || echo "SKIPPED: no JDK of 17 to 21: only tested on $jdk"

set -e
export JAVA_HOME=$jdk
shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
echo "native library: lints and tests"
(cd native && cargo fmt --check && cargo clippy --quiet --release --all-targets -- -D warnings)
(cd native && ZUBILO_SHARED=$shared/from-rust cargo test --quiet --release)

rm -rf target/failsafe-reports*
echo "package: build, tests on $jdk${old:+ and $old}"
ZUBILO_SHARED_FOLDER=$shared mvn -B -q ${old:+-Djdk17="$old"} verify
(cd native && ZUBILO_SHARED=$shared/from-java cargo test --quiet --release --test encodings)

echo "documentation: every public item"
mvn -B -q javadoc:javadoc

echo "as a module, with native access for it alone"
mkdir "$shared/app"
"$jdk/bin/javac" --release 17 -p target/zubilo-0.1.0.jar -d "$shared/app" src/test/module/module-info.java src/test/module/app/Main.java
"$jdk/bin/java" --enable-native-access=zubilo --illegal-native-access=deny -p "target/zubilo-0.1.0.jar:$shared/app" -m app/app.Main "$shared/module" mapped 2>"$shared/warnings"
if [ -s "$shared/warnings" ]; then cat "$shared/warnings"; exit 1; fi
if [ -n "${old:-}" ]; then
    "$old/bin/java" -p "target/zubilo-0.1.0.jar:$shared/app" -m app/app.Main "$shared/module17" copied
fi
for kind in '' -17; do
    for report in target/failsafe-reports$kind/*.txt; do
        [ -f "$report" ] && grep -h '^Tests run' "$report"
    done
done | awk -F'[:,]' '{ run += $2; bad += $4 + $6; skipped += $8 } END { printf "Java package: %d tests run, %d failed, %d skipped\n", run, bad, skipped; exit run == 0 || bad > 0 }'
