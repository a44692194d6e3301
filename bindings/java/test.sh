#!/usr/bin/env bash
# Builds the Java package and tests the jar on every JDK that it is for: on one of 22 or newer, which also builds it,
# and on 17. About three minutes. JDKs are looked for in JAVA_HOME, JDK17_HOME and /usr/lib/jvm; on Debian what is
# missing is installed. Where there is none and none can be had this says so loudly and succeeds.
set -u
cd "$(dirname "$0")" || exit 1
. ../../tools/steps.sh

# version HOME: the JDK's main version, if there is one.
version() {
    [ -x "$1/bin/javac" ] && sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release" 2>/dev/null
}

# find_jdk LOW HIGH: a JDK whose version lies between.
find_jdk() {
    local home found
    for home in "${JDK17_HOME:-}" "${JAVA_HOME:-}" /usr/lib/jvm/*; do
        [ -n "$home" ] || continue
        found=$(version "$home")
        if [ -n "$found" ] && [ "$found" -ge "$1" ] && [ "$found" -le "$2" ]; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

# install PACKAGE...: tries each until one works.
install() {
    command -v apt-get >/dev/null || return 1
    local package
    for package in "$@"; do
        install_packages "$package" >/dev/null 2>&1 && return 0
    done
    return 1
}

skip() {
    echo "SKIPPED: the Java package was NOT tested: $1"
    exit 0
}

command -v mvn >/dev/null || install maven
command -v mvn >/dev/null || skip "Maven cannot be installed"
find_jdk 22 99 >/dev/null || install openjdk-25-jdk-headless openjdk-24-jdk-headless openjdk-23-jdk-headless openjdk-22-jdk-headless
jdk=$(find_jdk 22 99) || skip "no JDK of 22 or newer, which builds it, can be installed; name one by JAVA_HOME"
find_jdk 17 21 >/dev/null || install openjdk-17-jdk-headless openjdk-21-jdk-headless
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
