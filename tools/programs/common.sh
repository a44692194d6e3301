# Shared by the scripts of this directory, which source it. Each runs one real program on LMDB as the
# system has it, and then on the drop-in, does the same work on both, and compares what comes out.
#
# A script defines `packages` (what it needs of Debian), and `work`, which does its work in the empty
# directory $store, prints results to compare, and runs the program by `on` (or `daemon`).

set -uo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
dropin=$(cd "${1:?usage: $0 DROPIN, a directory made by cargo xtask dropin}" && pwd)
library=$(realpath "$dropin/liblmdb.so.0")
top=$(mktemp -d "${TMPDIR:-/tmp}/zubilo-programs.XXXXXX")
chmod 755 "$top"
children=()

end_children() {
    local child
    for child in ${children[@]+"${children[@]}"}; do
        kill "$child" 2>/dev/null && wait "$child" 2>/dev/null
    done
    children=()
}
trap 'end_children; rm -rf "$top"' EXIT
trap 'exit 130' INT TERM

need() { # need PACKAGE...: installs what is missing; services are not started
    local missing=() package policy=/usr/sbin/policy-rc.d
    for package; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local own=
    [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && own=1; }
    apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}" >"$top/apt.log" 2>&1
    local code=$?
    [ -n "$own" ] && rm -f $policy
    [ $code -eq 0 ] || { tail -n 5 "$top/apt.log"; echo "SKIPPED ${missing[*]} cannot be installed"; exit 3; }
}

# Runs a program on the library of this round; the loader's log tells which it took.
on() {
    env LD_LIBRARY_PATH="$path" LD_DEBUG=libs LD_DEBUG_OUTPUT="$logs/ld" "$@"
}

# Starts a program that stays; its number is in $child.
daemon() {
    LD_LIBRARY_PATH="$path" LD_DEBUG=libs LD_DEBUG_OUTPUT="$logs/ld" "$@" >>"$logs/daemon" 2>&1 &
    child=$!
    children+=("$child")
}

# Waits until a command succeeds, for so many seconds.
until_true() {
    local tries=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        [ $((tries -= 1)) -gt 0 ] || return 1
        sleep 0.1
    done
}

# Every process that loaded some liblmdb took the one that was meant, and there was one.
took() {
    local found
    found=$(cat "$logs"/ld.* 2>/dev/null | sed -n 's/.*calling init: \(.*\/liblmdb\.so[^ ]*\)$/\1/p' | sort -u)
    [ -n "$found" ] || { echo "no process has loaded liblmdb"; return 1; }
    while read -r one; do
        case $1 in
        drop-in) [ "$(realpath "$one")" = "$library" ] || { echo "a process has loaded $one"; return 1; } ;;
        *) [ "$(realpath "$one")" != "$library" ] || { echo "a process has loaded the drop-in"; return 1; } ;;
        esac
    done <<<"$found"
}

compare() { # compare NAME: both rounds, and the verdict as the last line
    local name=$1 kind
    for kind in original drop-in; do
        store=$top/$kind/store logs=$top/$kind/logs path=
        mkdir -p "$store" "$logs"
        chmod 755 "$top/$kind" "$store"
        chmod 1777 "$logs"
        [ $kind = drop-in ] && path=$dropin
        ( trap - EXIT; work; code=$?; end_children; exit $code ) >"$top/$kind/out" 2>"$top/$kind/err"
        echo "$?" >>"$top/$kind/out"
        took $kind >"$top/$kind/proof" || { cat "$top/$kind/proof"; tail -n 5 "$top/$kind/err"; echo "FAILED $name: $kind"; exit 1; }
    done
    if [ "$(tail -n 1 "$top/original/out")" != 0 ] || [ "$(wc -l <"$top/original/out")" -lt 2 ]; then
        tail -n 5 "$top/original/out" "$top/original/err"
        echo "SKIPPED $name: does not work on the original"
        exit 3
    fi
    if ! diff -u "$top/original/out" "$top/drop-in/out" >"$top/diff"; then
        head -40 "$top/diff"
        tail -n 5 "$top/drop-in/err"
        echo "FAILED $name: results differ"
        exit 1
    fi
    echo "PASSED $name: $(($(wc -l <"$top/original/out") - 1)) lines of results are the same"
}

# For the scripts that run Knot DNS: makes its directories and the zone example.com, with an address for each
# of 300 hosts and texts below `sub`; prints the configuration up to the section of its database, to which a
# script can add.
knot_server() {
    local i
    mkdir "$run" "$store/zones" "$store/db"
    {
        printf '$ORIGIN example.com.\n@ 3600 SOA ns.example.com. admin.example.com. 1 7200 3600 864000 3600\n@ NS ns\nns A 192.0.2.1\n'
        for i in $(seq 300); do printf 'host%d 7200 A 192.0.2.%d\nhost%d.sub 7200 TXT "text %d"\n' $i $((i % 250)) $i $i; done
    } >"$store/zones/example.com.zone"
    cat <<CONF
server:
    listen: 127.0.0.1@$port
    rundir: $run
database:
    storage: $store/db
CONF
}

# For the scripts that run the Go binding lmdb-go: builds its own tests in the folder $binding, linked with the
# system's library instead of the copy of LMDB that comes with it.
go_tests_build() { # go_tests_build FLAGS: what becomes of the line with the flags for C
    local part
    rm "$binding"/lmdb/{mdb.c,midl.c,midl.h,lmdb.h} || exit 1
    sed -i "s/^#cgo CFLAGS: -pthread.*/$1\n#cgo LDFLAGS: -llmdb/" "$binding/lmdb/lmdb.go"
    for part in lmdb lmdbscan exp/lmdbsync; do
        (cd "$binding/$part" && go test -vet=off -c -o "$top/$(basename $part).test" .) >"$top/log" 2>&1 ||
            { tail -n 5 "$top/log"; echo "SKIPPED lmdb-go cannot be built"; exit 3; }
    done
}

# Runs them; prints which passed.
go_tests_run() {
    local part code
    for part in lmdb lmdbscan exp/lmdbsync; do
        cd "$binding/$part" || return 1
        TMPDIR=$store on "$top/$(basename $part).test" -test.v >"$store/out"
        code=$?
        grep -E '^ *--- ' "$store/out" | sed 's/ ([0-9.]*s)$//'
        echo "$part: $code"
    done
}
