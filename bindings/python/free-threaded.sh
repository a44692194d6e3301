#!/usr/bin/env bash
# The tests of the package on an interpreter without the global lock: PYTHON names one, else python3.14t or
# python3.13t on the path is taken, else CPython 3.13 is built from its Debian source (10 minutes). With
# arguments: runs them with that interpreter, the package installed, instead of the tests, for instance
# `free-threaded.sh bench/bench.py zubilo`. Needs Rust, a C compiler and, to build, apt-get.
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR=${FREE_THREADED_TARGET:-$PWD/target/free-threaded}
HOME_OF_IT=$CARGO_TARGET_DIR/cpython
VERSION=3.13

build() {
    local root="" work=$CARGO_TARGET_DIR/source lists
    [ "$(id -u)" -eq 0 ] || root=sudo
    $root apt-get install -qy gcc make libssl-dev libffi-dev zlib1g-dev libbz2-dev liblzma-dev libsqlite3-dev
    rm -rf "$work" && mkdir -p "$work/lists/partial" "$work/parts"
    # Lists of its own: those of the system stay as they are.
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$work/sources.list"
    lists=(-o "Dir::Etc::SourceList=$work/sources.list" -o "Dir::Etc::SourceParts=$work/parts" -o "Dir::State::Lists=$work/lists")
    apt-get -q "${lists[@]}" update
    (cd "$work" && apt-get -q "${lists[@]}" source --download-only "python$VERSION" && tar xf python${VERSION}_*.orig.tar.xz)
    (cd "$work"/Python-* && ./configure -q --disable-gil --prefix="$HOME_OF_IT" && make -s -j"$(nproc)" && make -s install)
    rm -rf "$work"
}

PYTHON=${PYTHON:-$(command -v python3.14t || command -v python3.13t || echo "$HOME_OF_IT/bin/python${VERSION}t")}
[ -x "$PYTHON" ] || build >&2
"$PYTHON" -c 'import sys; sys.exit(sys._is_gil_enabled())' || { echo "$PYTHON has a global lock" >&2; exit 1; }
export PYTHON
[ $# -gt 0 ] || exec ./test.sh
[ -d "$CARGO_TARGET_DIR/python/use" ] || ./test.sh --collect-only >/dev/null
exec "$CARGO_TARGET_DIR/python/use/bin/python" "$@"
