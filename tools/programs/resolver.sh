#!/usr/bin/env bash
# Knot Resolver: its cache is filled from a name server, asked when that is gone and after a restart of
# the resolver, walked, cleared in part, and swept by its garbage collector.
. "$(dirname "$0")/common.sh"
need knot knot-dnsutils knot-resolver socat
work() {
    local port=$((20000 + $$ % 20000)) run=$store/run i
    mkdir "$store/cache"
    {
        knot_server
        cat <<CONF
zone:
  - domain: example.com
    storage: $store/zones
    journal-content: none
    zonefile-load: whole
CONF
    } >"$store/knot.conf"
    cat >"$store/kresd.conf" <<CONF
net.listen('127.0.0.1', $((port + 1)), { kind = 'dns' })
trust_anchors.remove('.')
cache.open(10 * MB, 'lmdb://$store/cache')
-- Answers of a stub are kept for 5 seconds otherwise: then it is chance which of them are still there.
cache.min_ttl(3600)
policy.add(policy.all(policy.STUB('127.0.0.1@$port')))
CONF
    local ask="kdig @127.0.0.1 -p $((port + 1)) +timeout=3 +retry=1"
    daemon knotd -c "$store/knot.conf"
    local server=$child resolver
    until_true 60 sh -c "kdig @127.0.0.1 -p $port +short example.com SOA | grep -q admin" || { echo "no name server"; return 1; }
    for round in 1 2 3; do
        daemon kresd -n -q -c "$store/kresd.conf" "$run"
        resolver=$child
        until_true 60 sh -c "$ask +short ns.example.com A | grep -q 192.0.2.1" || { echo "no resolver"; return 1; }
        for i in $(seq 150); do
            $ask +short "host$i.example.com" A
            [ $round != 1 ] || $ask +short "host$i.sub.example.com" TXT
        done >"$store/answers"
        sort "$store/answers" | md5sum
        [ $round != 1 ] || $ask +noall +header none.example.com A | grep -o 'status: [A-Z]*'
        control() { printf '%s\n' "$1" | socat - "UNIX-CONNECT:$run/control/$resolver" | tr -d '>\0' | sed '/^ *$/d'; }
        control 'cache.count()'
        control "cache.clear('sub.example.com.')"
        control 'cache.count()'
        kill "$resolver"
        wait "$resolver"
        echo "ended: $?"
        [ $round != 1 ] || { kill "$server"; wait "$server"; }
    done
    on kres-cache-gc -c "$store/cache" -u 0 -w 100 -d 0 -n 2>&1 | grep -c Collector
}
compare "Knot Resolver $(dpkg-query -W -f '${Version}' knot-resolver)"
