#!/usr/bin/env bash
# Runs everything that must pass before a change is merged: format, lints, docs, all tests, the
# short run on the simulated disk, the models of the lock-free parts.
#
# A fresh machine needs Rust (rustup or cargo) and a package manager; missing parts are installed
# where the tests need them. Exits with an error if anything fails; the last line counts the steps.
set -u
cd "$(dirname "$0")" || exit 1
. tools/steps.sh

ensure_cargo() {
    if ! command -v cargo >/dev/null && [ -f "$HOME/.cargo/env" ]; then
        . "$HOME/.cargo/env"
    fi
    command -v cargo >/dev/null || { echo "cargo is missing: install Rust (rustup.rs)"; return 1; }
}

ensure_component() { # rustfmt and clippy come with most installations
    cargo "$1" --version >/dev/null 2>&1 || rustup component add "$2"
}

ensure_c_tools() { # programs in C are compiled, run, and run under valgrind
    command -v gcc >/dev/null && command -v g++ >/dev/null && command -v make >/dev/null && command -v valgrind >/dev/null && command -v strace >/dev/null && return 0
    if command -v apt-get >/dev/null; then
        install_packages gcc g++ libc6-dev make valgrind strace
    else
        echo "a C compiler, make, valgrind or strace is missing: install gcc, g++, make, valgrind, strace"
        return 1
    fi
}

dropin() { # all that takes LMDB's place, below its bound of size; and its benchmark runs
    local dir result
    dir=$(mktemp -d) || return 1
    cargo run --quiet -p xtask -- dropin "$dir" && tools/dropin-bench/smoke.sh "$dir"
    result=$?
    rm -rf "$dir"
    return $result
}

ensure_lmdb_tools() { # the command's tests compare with them; without them they say what they leave out
    command -v mdb_load >/dev/null && return 0
    command -v apt-get >/dev/null || { echo "mdb_load is missing: exports are not compared"; return 0; }
    install_packages lmdb-utils
}

sim_short() { # the short run: a fixed set of seeds, a few minutes at most
    limit cargo run --release -p sim --features planted -- --short
}

planted_bugs() { # bugs planted in the engine must be found
    limit cargo test --release -p sim --features planted --test planted --test stores
}

loom_models() {
    # Another configuration of the same crates: a target folder of its own keeps both builds warm.
    export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
    limit cargo test --release -p zubilo --lib loom_
}

ensure_cargo || exit 1
step "tools" ensure_component fmt rustfmt
step "lint tools" ensure_component clippy clippy
step "C compiler, valgrind, strace" ensure_c_tools
step "LMDB's tools" ensure_lmdb_tools
step "format" cargo fmt --all --check
step "format of the bindings" cargo fmt --manifest-path bindings/python/Cargo.toml --check
step "lints" cargo clippy --workspace --all-targets --features zubilo/encryption,zubilo/rayon,zubilo/metrics,zubilo/tracing -- -D warnings
step "docs" env RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --features zubilo/encryption,zubilo/rayon,zubilo/metrics,zubilo/tracing
step "tests" limit cargo test --workspace --features zubilo/encryption,zubilo/rayon --no-fail-fast
step "facades" cargo test -p zubilo --features metrics,tracing --test facade_metrics --test facade_tracing
step "drop-in for LMDB" dropin
if [ -f crates/sim/Cargo.toml ]; then
    step "simulated disk" sim_short
    step "planted bugs" planted_bugs
fi
step "Java package" limit bindings/java/test.sh
step "Python package, lints" cargo clippy --quiet --manifest-path bindings/python/Cargo.toml -- -D warnings
step "Python package" limit bindings/python/test.sh
step "instruction counts" limit tools/instructions.sh
step "models" loom_models # the last one: it changes the environment
finish
