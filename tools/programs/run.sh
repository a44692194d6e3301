#!/usr/bin/env bash
# Real programs on the drop-in: all scripts of this directory, or those named. Each installs what it
# needs from Debian. usage: run.sh DROPIN [NAME...]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dropin=${1:?a directory made by cargo xtask dropin}
shift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for script in "$here"/*.sh; do
        name=$(basename "$script" .sh)
        case $name in run | common) ;; *) names+=("$name") ;; esac
    done
fi
failed=0
for name in "${names[@]}"; do
    out=$(bash "$here/$name.sh" "$dropin" 2>&1)
    code=$?
    [ $code -eq 0 ] || [ $code -eq 3 ] || { failed=$((failed + 1)); printf '%s\n' "$out" | sed '$d'; }
    printf '%s\n' "$out" | tail -1
done
[ $failed -eq 0 ]
