#!/usr/bin/env bash
# Go: the binding lmdb-go with its own tests, linked with the system's library instead of the copy of
# LMDB that comes with it.
. "$(dirname "$0")/common.sh"
need golang-github-bmatsuo-lmdb-go-dev liblmdb-dev
command -v go >/dev/null || need golang-go
export GOPATH=$top/go GO111MODULE=off GOCACHE=$top/cache
mkdir -p "$GOPATH/src" "$top/cache"
cp -rL /usr/share/gocode/src/github.com /usr/share/gocode/src/golang.org "$GOPATH/src/" 2>/dev/null
binding=$GOPATH/src/github.com/bmatsuo/lmdb-go
go_tests_build '#cgo CFLAGS: -pthread'
work() { go_tests_run; }
compare "Go: lmdb-go $(dpkg-query -W -f '${Version}' golang-github-bmatsuo-lmdb-go-dev)"
