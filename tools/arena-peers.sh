#!/usr/bin/env bash
# Installs what the arena measures Zubilo against and cargo does not bring: Debian's packages of
# RocksDB, LevelDB, SQLite, WiredTiger, Berkeley DB and Kyoto Cabinet; compiles the shims for those
# whose C interface needs their header, and Zubilo's own C library if this tree has it. Everything
# goes where the arena looks: beside its program.
#
# What cannot be had is named here and reported as missing by the arena; nothing else needs it.
set -u
cd "$(dirname "$0")/.." || exit 1
target="${CARGO_TARGET_DIR:-target}/release"
mkdir -p "$target"
failed=0

. tools/steps.sh
root=""
[ "$(id -u)" -eq 0 ] || root="sudo"
if command -v apt-get >/dev/null; then
    for package in gcc libc6-dev librocksdb-dev libleveldb-dev libsqlite3-dev libwiredtiger-dev \
        libdb-dev libkyotocabinet-dev; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            install_packages "$package" >/dev/null 2>&1 ||
            { echo "missing: $package cannot be installed"; failed=1; }
    done
else
    echo "no apt-get here: install the libraries of the six engines by hand"
    failed=1
fi

shim() { # name, library
    if cc -O2 -fPIC -shared -Wall -Wextra -Werror -o "$target/libarena-$1.so" \
        "crates/arena/shims/$1.c" "-l$2"; then
        echo "built: $target/libarena-$1.so"
    else
        echo "missing: the shim for $1 does not compile"
        failed=1
    fi
}
shim wiredtiger wiredtiger
shim berkeley db

if [ -d crates/liblmdb ]; then
    if cargo build -q --release -p liblmdb; then
        cp "$target/liblmdb.so" "$target/liblmdb.so.0"
    else
        echo "missing: Zubilo's C library does not build"
        failed=1
    fi
fi

# Trace points let the arena count system calls; it says so if it cannot.
[ -e /sys/kernel/tracing/events ] || $root mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null ||
    echo "no trace points: system calls will not be counted"
exit "$failed"
