#!/usr/bin/env bash
# Runs the fuzzers with coverage feedback and AddressSanitizer, each for SECONDS.
#
#   tools/fuzz.sh [SECONDS [TARGET...]]     default: 600 seconds, all targets
#
# Needs a nightly toolchain (installed with rustup where it is missing) and a C++ compiler for
# libFuzzer, which comes as source. The inputs to start from are made by a program; what was found
# stays in fuzz/corpus, findings in fuzz/artifacts. Fails if a target found something.
# FUZZ_TARGET_DIR: where to build (default: fuzz/target).
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-600}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(pages redo store salvage lmdb_import load mdb_load c_calls)
. tools/steps.sh

rustc +nightly -V >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal || exit 1
if ! command -v g++ >/dev/null; then
    install_packages g++ || exit 1
fi
symbolizer=$(compgen -c llvm-symbolizer | sort -V | tail -n 1)
[ -z "$symbolizer" ] || export ASAN_SYMBOLIZER_PATH="$(command -v "$symbolizer")"

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-$PWD/fuzz/target}
# What `cargo fuzz` asks of the compiler; build scripts are left out of it by `--target`.
flags="--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
RUSTFLAGS="$flags" cargo +nightly build --release --manifest-path fuzz/Cargo.toml \
    --target "$host" --bins || exit 1
env -u CARGO_TARGET_DIR cargo run --quiet -p fuzz-targets --bin seeds fuzz/corpus || exit 1

found=0
for target in "${targets[@]}"; do
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    log=fuzz/artifacts/$target.log
    echo "== $target: $seconds s"
    # An input that takes more than 30 s hangs; much memory is reserved and never used.
    "$CARGO_TARGET_DIR/$host/release/$target" "fuzz/corpus/$target" \
        -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" -timeout=30 \
        -rss_limit_mb=4096 -max_len=16384 -print_final_stats=1 >/dev/null 2>"$log"
    if [ $? -ne 0 ]; then
        found=$((found + 1))
        tail -n 60 "$log"
        echo "== $target: FOUND something, see fuzz/artifacts/$target and $log"
    else
        grep -E '^Done|cov:' "$log" | tail -n 2
    fi
done
[ "$found" -eq 0 ]
