#!/usr/bin/env bash
# Counts the instructions of a fixed workload (crates/zubilo/benches/instructions.rs) with
# callgrind and prints them for each operation, beside those recorded in tools/instructions.txt.
# `--record` writes that file anew.
#
# The counts depend on the compiler and on what the processor can do, so nothing fails by them; where
# valgrind cannot be had this says so, and is fine too.
set -u
cd "$(dirname "$0")/.." || exit 1
recorded=tools/instructions.txt
parts="${PARTS:-load get get_many scan begin crud seek range cursor sorted delete commit nested few many fixed pair values remove}"

. tools/steps.sh
if ! command -v valgrind >/dev/null && command -v apt-get >/dev/null; then
    install_packages valgrind >/dev/null 2>&1
fi
if ! command -v valgrind >/dev/null; then
    echo "instruction counts: valgrind is not here and cannot be installed"
    exit 0
fi

built=$(cargo bench -p zubilo --bench instructions --no-run 2>&1) || { echo "$built"; exit 1; }
program=$(sed -n 's/.*Executable benches\/instructions.rs (\(.*\))$/\1/p' <<<"$built")
[ -x "$program" ] || { echo "no program in: $built"; exit 1; }

counts=""
printf '%-10s %14s %12s %10s\n' part instructions "each" "recorded"
for part in $parts; do
    # Counting is switched on and off by the function that is named.
    if ! said=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect="*counted_$part" "$program" "$part" 2>&1); then
        echo "$part: cannot be counted here: $(tail -n 1 <<<"$said")"
        continue
    fi
    total=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<<"$said")
    operations=$(sed -n 's/^operations \([0-9]*\)$/\1/p' <<<"$said")
    each=$((total / operations))
    before=$(awk -v part="$part" '$1 == part { print $2 }' "$recorded" 2>/dev/null)
    printf '%-10s %14s %12s %10s\n' "$part" "$total" "$each" "${before:--}"
    counts="$counts$part $each"$'\n'
done
[ "${1:-}" != "--record" ] || printf '%s' "$counts" >"$recorded"
