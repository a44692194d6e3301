#!/usr/bin/env bash
# Rust: the crates lmdb-rkv, lmdb-zero and heed with their own unit and documentation tests. Each brings the
# source of LMDB along in a crate `-sys`; that is replaced by one that links the system's library instead.
. "$(dirname "$0")/common.sh"
command -v cargo >/dev/null || { echo "SKIPPED there is no cargo"; exit 3; }
need liblmdb-dev gcc
versions=(lmdb-rkv=0.14.0 lmdb-zero=0.4.4 heed=0.23.1)
declare -A sys=([lmdb-rkv]=lmdb-rkv-sys=0.11.2 [lmdb-zero]=liblmdb-sys=0.2.2 [heed]=lmdb-master-sys=0.2.6)
# What passes on LMDB and cannot here. They look at
# numbers of pages: a new store has four, LMDB's two;
# bytes of a data file: keys are in it more often, and other records share what their keys have in common;
# where a map of nine pages is full: changes may go beyond it by a sixteenth, commits by more.
# Not among these: heed's `nested_read_txn` and `lmdb_version` ask for LMDB 0.9.70, and fail on 0.9.24 too.
known=(
    'environment::test::test_info'
    'src/envs/env.rs - envs::env::Env<T>::copy_to_file'
    'src/envs/env.rs - envs::env::Env<T>::copy_to_path'
    'envs::env::tests::resize_database'
)
export CARGO_TARGET_DIR=$top/target RUST_BACKTRACE=0
mkdir -p "$top/fetch/src" && cd "$top/fetch" && : >src/lib.rs
{
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n'
    for one in "${versions[@]}" "${sys[@]}"; do printf '%s = "=%s"\n' "${one%=*}" "${one#*=}"; done
} >Cargo.toml
cargo fetch --quiet 2>"$top/log" || { tail -n 5 "$top/log"; echo "SKIPPED the crates cannot be fetched"; exit 3; }
for one in "${versions[@]}"; do
    crate=${one%=*} below=${sys[${one%=*}]}
    for name in "$one" "$below"; do
        cp -r "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"${name/=/-}" "$top/" || exit 1
    done
    cd "$top/${below/=/-}" && rm -rf lmdb mdb && echo 'fn main() { println!("cargo:rustc-link-lib=dylib=lmdb"); }' >build.rs
    cd "$top/${one/=/-}" && rm -f Cargo.lock
    printf '\n[patch.crates-io]\n%s = { path = "../%s" }\n\n[workspace]\n' "${below%=*}" "${below/=/-}" >>Cargo.toml
    cargo test --quiet --lib --no-run >"$top/log" 2>&1 || { tail -n 5 "$top/log"; echo "SKIPPED $crate cannot be built"; exit 3; }
done
# Each test and its verdict. Those that are known to differ must do so: pass on the original and fail here.
verdicts() {
    local other=ok one sorted
    [ "$path" ] && other=FAILED
    sorted=$(sed -nE 's/^test (.*) \.\.\. (ok|FAILED|ignored)$/\1 \2/p' "$1" | sort)
    for one in "${known[@]}"; do
        sorted=$(sed -E "s|^($one( \(line [0-9]+\))?) $other\$|\1 differs, as is known|" <<<"$sorted")
    done
    printf '%s\n' "$sorted"
}
work() {
    local one part
    for one in "${versions[@]}"; do
        cd "$top/${one/=/-}" || return 1
        for part in lib doc; do
            TMPDIR=$store on cargo test --quiet --offline --no-fail-fast "--$part" -- --format=pretty >"$store/out" 2>"$store/err"
            echo "${one/=/ } $part: $(grep -c '^test .* \.\.\. ' "$store/out") tests"
            verdicts "$store/out"
        done
    done
}
compare "Rust: ${versions[*]}"
