#!/usr/bin/env bash
# Tests the Python package as a user gets it: builds the wheel in one virtual environment, installs it in
# a second one without Rust on the path, and runs all tests there.
#
# Needs Rust and a package manager. PYTHON names another interpreter than python3; a build without the
# global lock (python3.14t) gets a wheel of its own, and its tests run too. WITH_TORCH=1 installs PyTorch
# (200 MB) for the test of its data loader. Everything is made in target/.
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
"$PYTHON" -m venv "$WORK/build"
"$WORK/build/bin/pip" install -q --disable-pip-version-check 'maturin>=1.9,<2'
CARGO_TARGET_DIR=$TARGET "$WORK/build/bin/maturin" build --release -q --locked -i "$WORK/build/bin/python" -o "$WORK/wheels"

"$PYTHON" -m venv "$WORK/use"
"$WORK/use/bin/pip" install -q --disable-pip-version-check -r tests/requirements.txt
[ -z "${WITH_TORCH:-}" ] || "$WORK/use/bin/pip" install -q --disable-pip-version-check torch
# The wheel alone: no Rust, no sources of the package.
env PATH="$WORK/use/bin:/usr/bin:/bin" "$WORK/use/bin/pip" install -q --disable-pip-version-check --no-index --no-deps "$WORK"/wheels/*.whl
cp -r tests examples bench "$WORK"
cd "$WORK/tests"
exec env PATH="$WORK/use/bin:/usr/bin:/bin" "$WORK/use/bin/python" -X dev -X faulthandler -m pytest -q -p no:cacheprovider . "$@"
