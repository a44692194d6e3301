#!/usr/bin/env bash
# The long run on the simulated disk: judges at least STATES states after power cuts, in chunks
# with growing seeds, and prints the sum after each chunk.
#
#   tools/power-cuts.sh [STATES [FIRST_SEED [THREADS]]]    default: 1000000 1 1
#
# Each chunk is one run of `sim`; its whole output goes to a folder, FOLDER/SEED.txt, so that a run
# that was stopped goes on where it was: POWER_CUTS_DIR names the folder (default: a new one). A
# chunk that was begun and not finished is done again. SIM names a program built before (default:
# builds the one of this tree); the engine must be the same in all chunks of a folder.
# Ends with an error as soon as all chunks are done if one state was corrupt, lost or misbehaved.
set -u
states=${1:-1000000} seed=${2:-1} threads=${3:-1}
chunk=25000 # states of a chunk
stride=1000 # seeds between chunks: more than one chunk can use up
cd "$(dirname "$0")/.." || exit 1

if [ -z "${SIM:-}" ]; then
    cargo build --release -p sim --features planted || exit 1
    SIM=${CARGO_TARGET_DIR:-target}/release/sim
fi
dir=${POWER_CUTS_DIR:-$(mktemp -d)}
mkdir -p "$dir" || exit 1
echo "engine $(git rev-parse --short HEAD 2>/dev/null || echo unknown), output of the chunks in $dir"

sum() { # the lines `all STATES CORRUPT LOST MISBEHAVED` of all finished chunks
    cat "$dir"/*.txt 2>/dev/null | awk '
        $1 == "all" { chunks++; states += $2; corrupt += $3; lost += $4; wrong += $5 }
        END { printf "%d %d %d %d %d\n", chunks, states, corrupt, lost, wrong }'
}

started=$SECONDS
while :; do
    read -r chunks done corrupt lost wrong < <(sum)
    [ "$done" -ge "$states" ] && break
    while [ -e "$dir/$seed.txt" ]; do seed=$((seed + stride)); done
    if ! "$SIM" --states "$chunk" --seed "$seed" --threads "$threads" >"$dir/$seed.part" 2>&1; then
        grep FAILED "$dir/$seed.part"
        if ! grep -q '^all ' "$dir/$seed.part"; then
            echo "the run from seed $seed died:"
            tail -n 5 "$dir/$seed.part"
            exit 1
        fi
    fi
    mv "$dir/$seed.part" "$dir/$seed.txt"
    read -r chunks done corrupt lost wrong < <(sum)
    echo "$((SECONDS - started)) s: $chunks chunks, $done states, $corrupt corrupt, $lost lost, $wrong misbehaved"
done
echo "all: $done states, $corrupt corrupt, $lost lost, $wrong misbehaved"
[ $((corrupt + lost + wrong)) -eq 0 ]
