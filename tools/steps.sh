# Steps of a script that go on after a failure and are counted at the end; sourced by bash.

STEPS_PASSED=0
STEPS_FAILED=()

# limit COMMAND...: runs a program for at most three quarters of an hour, so that what hangs is seen to hang.
limit() {
    timeout --verbose 2700 "$@"
}

# install_packages PACKAGE...: by apt-get. Another one that runs at the same time is waited for: apt-get
# itself waits for the lock of installations, but not for that of lists.
install_packages() {
    local root="" end=$((SECONDS + ${APT_PATIENCE:-600})) said
    [ "$(id -u)" -eq 0 ] || root="sudo"
    until said=$($root apt-get update -q 2>&1); do
        if ! grep -q "lock" <<<"$said" || [ "$SECONDS" -ge "$end" ]; then
            echo "$said"
            return 1
        fi
        echo "another apt-get runs, waiting for it"
        sleep 5
    done
    $root env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout="${APT_PATIENCE:-600}" install -qy "$@"
}

# step NAME COMMAND...: runs a command; its output stays visible.
step() {
    local name=$1
    shift
    local start=$SECONDS
    printf '== %s\n' "$name"
    if "$@"; then
        STEPS_PASSED=$((STEPS_PASSED + 1))
        printf '== %s: fine, %s s\n' "$name" "$((SECONDS - start))"
    else
        STEPS_FAILED+=("$name")
        printf '== %s: FAILED, %s s\n' "$name" "$((SECONDS - start))"
    fi
}

# Says what failed; the last line counts. Exits.
finish() {
    for name in "${STEPS_FAILED[@]}"; do
        printf 'failed: %s\n' "$name"
    done
    printf '%s passed, %s failed\n' "$STEPS_PASSED" "${#STEPS_FAILED[@]}"
    [ "${#STEPS_FAILED[@]}" -eq 0 ] && exit 0
    exit 1
}
