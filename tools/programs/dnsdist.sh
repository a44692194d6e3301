#!/usr/bin/env bash
# dnsdist: answers by what it finds for a name in a table, which Python's binding fills and changes while
# the server runs.
. "$(dirname "$0")/common.sh"
need dnsdist python3-lmdb knot-dnsutils
work() {
    local port=$((20000 + $$ % 20000)) i
    cat >"$store/fill.py" <<'PY'
import lmdb, sys
env = lmdb.open(sys.argv[1], subdir=False, max_dbs=2, map_size=8 << 20)
names = env.open_db(b"names")
def wire(name):
    return b"".join(bytes([len(part)]) + part for part in name.encode().split(b".")) + b"\0"
with env.begin(write=True) as txn:
    for i in range(int(sys.argv[2]), int(sys.argv[3])):
        txn.put(wire("host%d.example.com" % i), b"blocked" if i % 2 else b"allowed", db=names)
    txn.put(wire("example.org"), b"blocked", db=names)
    txn.delete(wire("host7.example.com"), db=names)
    print(txn.stat(names)["entries"])
PY
    cat >"$store/dnsdist.conf" <<CONF
setLocal('127.0.0.1:$port')
setACL({'127.0.0.0/8'})
newServer{address='127.0.0.1:1', healthCheckMode='up'}
local kvs = newLMDBKVStore('$store/table', 'names')
addAction(AllRule(), KeyValueStoreLookupAction(kvs, KeyValueLookupKeySuffix(1, true), 'found'))
addAction(TagRule('found', 'blocked'), SpoofAction('192.0.2.66'))
addAction(TagRule('found', 'allowed'), SpoofAction('192.0.2.1'))
addAction(AllRule(), SpoofAction('192.0.2.99'))
CONF
    local ask="kdig @127.0.0.1 -p $port +timeout=3 +short"
    on /usr/bin/python3 "$store/fill.py" "$store/table" 0 2000 || return 1
    daemon dnsdist -C "$store/dnsdist.conf" --supervised --disable-syslog
    until_true 30 sh -c "$ask up.example.net A | grep -q 192.0.2" || { echo "no answer"; return 1; }
    for i in 0 1 7 8 999 1999 2000 2001; do $ask "host$i.example.com" A; done
    $ask a.b.example.org A
    $ask deeper.host5.example.com A
    on /usr/bin/python3 "$store/fill.py" "$store/table" 2000 4000 || return 1
    for i in 1 7 2000 2001 3999; do $ask "host$i.example.com" A; done
    for i in $(seq 300); do $ask "host$((i * 13)).example.com" A; done | sort | uniq -c
}
compare "dnsdist $(dpkg-query -W -f '${Version}' dnsdist)"
