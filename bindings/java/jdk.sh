# Sourced by the scripts of the packages for the JVM: finds JDKs and Maven, and installs on Debian what is missing. Bash.
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/steps.sh"

# jdk_version HOME: the JDK's main version, if there is one.
jdk_version() {
    [ -x "$1/bin/javac" ] && sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release" 2>/dev/null
}

# find_jdk LOW HIGH: a JDK whose version lies between.
find_jdk() {
    local home found
    for home in "${JDK17_HOME:-}" "${JAVA_HOME:-}" /usr/lib/jvm/*; do
        [ -n "$home" ] || continue
        found=$(jdk_version "$home")
        if [ -n "$found" ] && [ "$found" -ge "$1" ] && [ "$found" -le "$2" ]; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

# install_one PACKAGE...: tries each until one works.
install_one() {
    command -v apt-get >/dev/null || return 1
    local package
    for package in "$@"; do
        install_packages "$package" >/dev/null 2>&1 && return 0
    done
    return 1
}

# ensure_maven, ensure_new_jdk, ensure_jdk LOW HIGH PACKAGE...: what is there, or can be installed.
ensure_maven() {
    command -v mvn >/dev/null || install_one maven
}

ensure_jdk() {
    find_jdk "$1" "$2" >/dev/null || install_one "${@:3}"
}

# The one that builds the Java package.
ensure_new_jdk() {
    ensure_jdk 22 99 openjdk-25-jdk-headless openjdk-24-jdk-headless openjdk-23-jdk-headless openjdk-22-jdk-headless
}
