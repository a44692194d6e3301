#!/usr/bin/env bash
# Runs the engine's tests under AddressSanitizer and ThreadSanitizer.
#
#   tools/sanitizers.sh [address|thread]...     default: both
#
# Needs a nightly toolchain with the sources of the standard library (installed with rustup where
# missing): ThreadSanitizer must see inside of it, or its locks look like races. Left out are the tests
# that fork or kill processes under ThreadSanitizer, which does not follow forks of threaded programs, and
# those that measure time, memory or system calls. tools/sanitizers.supp names the races that are
# meant, with the argument for each. SANITIZERS_TARGET_DIR: where to build (default: target/sanitizers).
set -u
cd "$(dirname "$0")/.." || exit 1
kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(address thread)
. tools/steps.sh

rustc +nightly -V >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal || exit 1
sysroot=$(rustc +nightly --print sysroot)
[ -d "$sysroot/lib/rustlib/src/rust/library" ] || rustup component add rust-src --toolchain nightly || exit 1
symbolizer=$(compgen -c llvm-symbolizer | sort -V | tail -n 1)
[ -z "$symbolizer" ] || export ASAN_SYMBOLIZER_PATH="$(command -v "$symbolizer")"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
here=$PWD

# tests KIND CARGO-ARGUMENTS...: builds with the sanitizer and runs. The limit is for the run: on a busy
# machine the build alone can take longer.
tests() (
    kind=$1
    shift
    export RUSTFLAGS="-Zsanitizer=$kind -Cforce-frame-pointers=yes"
    export ASAN_OPTIONS=detect_leaks=0
    export TSAN_OPTIONS="suppressions=$here/tools/sanitizers.supp halt_on_error=0 exitcode=66 second_deadlock_stack=1"
    export CARGO_TARGET_DIR="${SANITIZERS_TARGET_DIR:-$here/target/sanitizers}/$kind"
    cargo +nightly test --no-run -Zbuild-std --target "$host" "$@" || exit 1
    limit cargo +nightly test -Zbuild-std --target "$host" "$@"
)

for kind in "${kinds[@]}"; do
    case $kind in
        address)
            step "address: units" tests address -p zubilo --lib
            step "address: behaviour" tests address -p zubilo --test it -- \
                --skip costs --skip long_
            step "address: C interface" tests address -p fuzz-targets
            ;;
        thread)
            # Forks and other processes are left out: see above.
            step "thread: units" tests thread -p zubilo --lib -- --skip fork --skip process --skip child
            step "thread: behaviour" tests thread -p zubilo --test it -- \
                threads group flusher histories failures types cursors upper_bound verify user_metadata logging
            ;;
        *) echo "unknown: $kind"; exit 1 ;;
    esac
done
finish
