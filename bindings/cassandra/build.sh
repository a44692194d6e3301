# Sourced from this folder: builds the Java package, the memtable and its tests, and collects Cassandra in target/dependency.
# Installs Maven and the JDKs where they are missing and apt-get can. Leaves the JDK for Cassandra in JAVA17.
. ../java/jdk.sh
command -v cargo >/dev/null || [ ! -f "$HOME/.cargo/env" ] || . "$HOME/.cargo/env"
command -v cargo >/dev/null || { echo "cargo is missing: install Rust (rustup.rs)" >&2; exit 1; }
ensure_maven || { echo "Maven is missing, and cannot be installed" >&2; exit 1; }
ensure_new_jdk || true
new=$(find_jdk 22 99) || { echo "a JDK of 22 or newer is missing, and cannot be installed; name one by JAVA_HOME" >&2; exit 1; }
ensure_jdk 17 17 openjdk-17-jdk-headless || true
JAVA17=$(find_jdk 17 17) || { echo "a JDK of 17, for Cassandra, is missing, and cannot be installed; name one by JDK17_HOME" >&2; exit 1; }
export JAVA17

echo "build" >&2
# A newer JDK warns of Maven's own use of it: kept away unless the build fails.
built=$(mktemp)
if ! { (cd ../java && JAVA_HOME=$new mvn -B -q -DskipTests install) &&
    JAVA_HOME=$JAVA17 mvn -B -q package dependency:copy-dependencies -DincludeScope=test; } >"$built" 2>&1; then
    cat "$built" >&2
    rm -f "$built"
    exit 1
fi
rm -f "$built"
