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
rm "$binding"/lmdb/{mdb.c,midl.c,midl.h,lmdb.h} || exit 1
sed -i 's/^#cgo CFLAGS: -pthread.*/#cgo CFLAGS: -pthread\n#cgo LDFLAGS: -llmdb/' "$binding/lmdb/lmdb.go"
for part in lmdb lmdbscan exp/lmdbsync; do
    (cd "$binding/$part" && go test -vet=off -c -o "$top/$(basename $part).test" .) >"$top/log" 2>&1 ||
        { tail -n 5 "$top/log"; echo "SKIPPED lmdb-go cannot be built"; exit 3; }
done
work() {
    local part code
    for part in lmdb lmdbscan exp/lmdbsync; do
        cd "$binding/$part" || return 1
        # TestResize counts on a map of 1 MiB where no size is set; here there is no bound then.
        TMPDIR=$store on "$top/$(basename $part).test" -test.v -test.run '^(Test([^R]|R[^e]|Re[^s])|Example)' >"$store/out"
        code=$?
        grep -E '^ *--- ' "$store/out" | sed 's/ ([0-9.]*s)$//'
        echo "$part: $code"
    done
}
compare "Go: lmdb-go $(dpkg-query -W -f '${Version}' golang-github-bmatsuo-lmdb-go-dev)"
