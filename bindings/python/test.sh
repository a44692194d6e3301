#!/usr/bin/env bash
# Tests the Python package as a user gets it: pip builds the wheel in a fresh virtual environment that has
# nothing but pip; it is installed and used in a second one without Rust, and all tests run there, with a
# program in Rust that shares stores with them.
#
# Needs Rust and a package manager. PYTHON names another interpreter than python3; a build without the
# global lock gets a wheel of its own, and its tests run too: free-threaded.sh gets such a one. WITH_TORCH=1
# installs PyTorch for the test of its data loader: 4 GB to fetch, 6 GB on the disk. Everything is made in target/.
set -eu
cd "$(dirname "$0")"
PYTHON=${PYTHON:-python3}
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
WORK=$TARGET/python

ensure_python() {
    if "$PYTHON" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then return; fi
    if command -v apt-get >/dev/null; then
        local root=""
        [ "$(id -u)" -eq 0 ] || root="sudo"
        $root apt-get update -q && $root apt-get install -qy python3 python3-venv
    fi
    "$PYTHON" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || {
        echo "Python 3.11 or later with venv is missing: install python3 and python3-venv"
        exit 1
    }
}

ensure_python
rm -rf "$WORK" && mkdir -p "$WORK"
export CARGO_TARGET_DIR=$TARGET
cargo build --quiet --locked -p zubilo-python-interop

is_3_13t() { "$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13) or "t" not in sys.abiflags)'; }

SOURCE=$PWD
if is_3_13t; then
    # The last PyO3 for it; the sources are the same.
    mkdir "$WORK/source"
    cp -r Cargo.toml Cargo.lock build.rs pyproject.toml README.md src zubilo "$WORK/source"
    SOURCE=$WORK/source
    sed -i "s#\"../../crates#\"$PWD/../../crates#; /^members/d; s#^\(pyo3.*\)\"0\.30\"#\1\"0.28\"#" "$SOURCE/Cargo.toml"
else
    export MATURIN_PEP517_ARGS=--locked
fi
"$PYTHON" -m venv "$WORK/build"
"$WORK/build/bin/pip" wheel -q --disable-pip-version-check --no-deps -w "$WORK/wheels" "$SOURCE"

"$PYTHON" -m venv "$WORK/use"
install() { "$WORK/use/bin/pip" install -q --disable-pip-version-check "$@"; }
if "$PYTHON" -c 'import sys; sys.exit("t" not in sys.abiflags)'; then
    # Not all packages have come to the builds without the global lock; tests that need one are skipped. Some of
    # those that have come bring the lock back: without this they would take it away from the tests, too.
    export PYTHON_GIL=0
    while read -r requirement; do
        install --only-binary :all: "$requirement" 2>/dev/null || echo "left out: $requirement"
    done <tests/requirements.txt
else
    install -r tests/requirements.txt
fi
[ -z "${WITH_TORCH:-}" ] || install torch
# The wheel alone: no Rust, no compiler, no sources of the package.
env -i PATH="$WORK/use/bin" "$WORK/use/bin/pip" install -q --disable-pip-version-check --no-index --no-deps "$WORK"/wheels/*.whl
(cd "$WORK" && env -i PATH="$WORK/use/bin" "$WORK/use/bin/python" -m zubilo --version)
cp -r tests examples bench "$WORK"
cd "$WORK/tests"
export ZUBILO_INTEROP=$TARGET/debug/zubilo-python-interop
exec env PATH="$WORK/use/bin:/usr/bin:/bin" "$WORK/use/bin/python" -X dev -X faulthandler -m pytest -q -p no:cacheprovider . "$@"
