#!/usr/bin/env bash
# Knot DNS: zones, journal, timers and keys in LMDB; a signed zone changed by its control program while
# the server answers, and again after a restart.
. "$(dirname "$0")/common.sh"
need knot knot-dnsutils
work() {
    local port=$((20000 + $$ % 20000)) run=$store/run
    {
        knot_server
        cat <<CONF
    journal-db-max-size: 50M
    timer-db-max-size: 20M
log:
  - target: stderr
    any: info
policy:
  - id: plain
    algorithm: ecdsap256sha256
    rrsig-lifetime: 14d
    rrsig-refresh: 7d
template:
  - id: default
    storage: $store/zones
    journal-content: all
    zonefile-sync: -1
    zonefile-load: difference-no-serial
    serial-policy: increment
zone:
  - domain: example.com
    dnssec-signing: on
    dnssec-policy: plain
CONF
    } >"$store/knot.conf"
    local control="on knotc -c $store/knot.conf -s $run/knot.sock -t 20" ask="kdig @127.0.0.1 -p $port +short"
    for round in 1 2; do
        daemon knotd -c "$store/knot.conf" -s "$run/knot.sock"
        local server=$child
        until_true 60 sh -c "kdig @127.0.0.1 -p $port +timeout=1 +retry=0 +short example.com SOA | grep -q admin" || { echo "no answer"; return 1; }
        $ask host7.example.com A host300.sub.example.com TXT new.example.com A
        $ask example.com DNSKEY | wc -l
        $control zone-begin example.com && $control zone-set example.com "new$round" 60 A "198.51.100.$round" &&
            $control zone-unset example.com "host$round" && $control zone-commit example.com
        until_true 30 sh -c "[ \"\$($ask new$round.example.com A)\" = 198.51.100.$round ]"
        $ask new1.example.com A new2.example.com A host1.example.com A
        # Signed: an answer with its signature.
        kdig @127.0.0.1 -p $port +dnssec +noall +answer new$round.example.com A | awk '{print $1, $4}' | sort
        for i in 1 2 3 4 5; do
            $control zone-begin example.com >/dev/null && $control zone-set example.com many 60 TXT "round $round $i" >/dev/null && $control zone-commit example.com >/dev/null || echo "commit failed"
        done
        $ask many.example.com TXT | sort
        $control zone-flush example.com
        $control zone-read example.com many | sed "s/\(RRSIG [A-Z0-9]*\) .*/\1/"
        kill "$server"
        wait "$server"
        echo "ended: $?"
    done
    on kjournalprint -c "$store/knot.conf" example.com 2>/dev/null | grep -c 'many.example.com.*TXT'
    on keymgr -c "$store/knot.conf" example.com list 2>/dev/null | awk '{print $2, $3}' | sort | sed 's/tag=[0-9]*//' | wc -l
}
compare "Knot DNS $(dpkg-query -W -f '${Version}' knot)"
