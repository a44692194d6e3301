#!/usr/bin/env bash
# PowerDNS on its backend for LMDB: zones made, filled, changed, listed and signed by pdnsutil, then
# asked of the server; also with shards, each an environment of its own.
. "$(dirname "$0")/common.sh"
need pdns-server pdns-backend-lmdb knot-dnsutils
work() {
    local port=$((20000 + ($$ + 7) % 20000))
    cat >"$store/pdns.conf" <<CONF
launch=lmdb
lmdb-filename=$store/pdns.lmdb
lmdb-shards=4
local-address=127.0.0.1
local-port=$port
socket-dir=$store
setuid=
setgid=
webserver=no
default-soa-content=ns.@ admin.@ 1 7200 3600 864000 300
CONF
    local util="on pdnsutil --config-dir=$store"
    for zone in a.example b.example c.example; do
        {
            printf '$ORIGIN %s.\n@ 3600 IN SOA ns.%s. admin.%s. 1 7200 3600 864000 300\n@ 3600 IN NS ns.%s.\n' $zone $zone $zone $zone
            for i in $(seq 200); do printf 'host%d 300 IN A 192.0.2.%d\nhost%d 300 IN TXT "text %d"\n' $i $((i % 250)) $i $i; done
        } >"$store/$zone.zone"
        $util load-zone $zone "$store/$zone.zone" 2>&1 | tail -n 1 | sed "s#$store##g"
    done
    $util add-record a.example extra A 60 198.51.100.7 2>&1 | tail -n 2
    $util replace-rrset a.example host3 A 60 198.51.100.8 198.51.100.9 2>&1 | tail -n 2
    $util delete-rrset b.example host5 TXT 2>&1 | tail -n 2
    $util list-all-zones 2>/dev/null | sort
    $util list-zone a.example 2>/dev/null | sort | sha256sum
    $util list-zone b.example 2>/dev/null | wc -l
    $util delete-zone c.example
    echo "deleted: $?"
    $util secure-zone a.example >/dev/null 2>&1
    echo "secured: $?"
    $util set-meta a.example ALLOW-AXFR-FROM 127.0.0.1 2>/dev/null | tail -n 1
    $util get-meta a.example 2>/dev/null | sort
    $util check-zone a.example 2>&1 | tail -n 1
    daemon pdns_server --config-dir="$store" --daemon=no --guardian=no --disable-syslog
    local ask="kdig @127.0.0.1 -p $port +short"
    until_true 60 sh -c "kdig @127.0.0.1 -p $port +timeout=1 +retry=0 +short a.example SOA | grep -q admin" || { echo "no answer"; return 1; }
    $ask extra.a.example A host3.a.example A host200.b.example TXT host5.b.example TXT nothing.a.example A | sort
    kdig @127.0.0.1 -p $port +dnssec +noall +answer host3.a.example A | awk '{print $1, $4}' | sort
    kdig @127.0.0.1 -p $port b.example AXFR +short | wc -l
    # Changed while the server has it open.
    $util add-record b.example later A 60 203.0.113.5 2>&1 | tail -n 1
    until_true 60 sh -c "[ \"\$($ask later.b.example A)\" = 203.0.113.5 ]"
    $ask later.b.example A
}
compare "PowerDNS $(dpkg-query -W -f '${Version}' pdns-server)"
