#!/usr/bin/env bash
# BIND: zones added and removed while it runs are kept in LMDB, and are there after a restart.
. "$(dirname "$0")/common.sh"
need bind9 bind9-utils knot-dnsutils
work() {
    local port=$((20000 + ($$ + 13) % 20000)) control=$((20000 + ($$ + 14) % 20000))
    rndc-confgen -a -c "$store/rndc.key" -k key >/dev/null 2>&1
    for zone in one two three; do
        printf '$TTL 300\n@ SOA ns admin 1 7200 3600 864000 300\n@ NS ns\nns A 192.0.2.1\nhost A 192.0.2.%d\n' ${#zone} >"$store/$zone.zone"
    done
    cat >"$store/named.conf" <<CONF
include "$store/rndc.key";
controls { inet 127.0.0.1 port $control allow { 127.0.0.1; } keys { key; }; };
options {
    directory "$store"; pid-file none; listen-on port $port { 127.0.0.1; }; listen-on-v6 { none; };
    allow-new-zones yes; recursion no; dnssec-validation no; lmdb-mapsize 4M; session-keyfile none;
};
CONF
    local rndc="rndc -k $store/rndc.key -s 127.0.0.1 -p $control" ask="kdig @127.0.0.1 -p $port +short"
    for round in 1 2; do
        daemon named -g -c "$store/named.conf"
        local server=$child
        until_true 60 $rndc status || { echo "does not start"; return 1; }
        $ask host.one.example A host.two.example A host.three.example A
        if [ $round = 1 ]; then
            for zone in one two three; do $rndc addzone "$zone.example" "{ type primary; file \"$zone.zone\"; };"; done
            $rndc addzone one.example '{ type primary; file "one.zone"; };' 2>&1 | grep -o 'already exists'
            for i in $(seq 20); do $rndc addzone "many$i.example" '{ type primary; file "one.zone"; };' || echo "add failed"; done
            $rndc modzone two.example '{ type primary; file "three.zone"; };'
            $rndc delzone three.example | head -n 1
        fi
        until_true 10 sh -c "[ -n \"\$($ask host.one.example A)\" ]"
        $ask host.one.example A host.two.example A host.three.example A host.many20.example A
        $rndc showzone two.example
        $rndc stop
        wait "$server"
        echo "ended: $?"
    done
    ls "$store" | grep nzd
    on named-nzd2nzf "$store/_default.nzd" | sort
}
compare "BIND $(dpkg-query -W -f '${Version}' bind9)"
