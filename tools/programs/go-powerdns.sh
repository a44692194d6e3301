#!/usr/bin/env bash
# Go: the binding lmdb-go as PowerDNS keeps it, with its own tests, linked with the system's library instead of
# the copy of LMDB that comes with it. TestResize has two processes raise the map size in turn.
. "$(dirname "$0")/common.sh"
version=v1.9.3
need liblmdb-dev gcc
command -v go >/dev/null || need golang-go
export GOPATH=$top/go GOCACHE=$top/cache GOFLAGS='-mod=mod -modcacherw'
mkdir -p "$top/fetch" && cd "$top/fetch" && printf 'module fetch\n' >go.mod
go mod download "github.com/PowerDNS/lmdb-go@$version" >"$top/log" 2>&1 ||
    { tail -n 5 "$top/log"; echo "SKIPPED the module cannot be fetched"; exit 3; }
binding=$top/binding
cp -r "$GOPATH/pkg/mod/github.com/!power!d!n!s/lmdb-go@$version" "$binding" && chmod -R u+w "$binding" || exit 1
go_tests_build '&'
work() { go_tests_run; }
compare "Go: PowerDNS lmdb-go $version"
