#!/usr/bin/env bash
# 389 Directory Server on its backend for LMDB: entries added, indexed, searched, changed, renamed and
# deleted over a restart; exported at the end.
. "$(dirname "$0")/common.sh"
need 389-ds-base python3-lib389 ldap-utils perl
instance=zubilo$$
forget() {
    rm -rf /{etc,var/lib,var/log,run/lock}/dirsrv/slapd-$instance /etc/default/dirsrv-$instance "/dev/shm/slapd-$instance" \
        "/usr/lib/$(uname -m)-linux-gnu/dirsrv/slapd-$instance"
}
trap 'end_children; forget; rm -rf "$top"' EXIT
work() {
    local port=$((20000 + $$ % 20000)) config=/etc/dirsrv/slapd-$instance i round server
    forget
    printf '[general]\nconfig_version = 2\nfull_machine_name = localhost\nstrict_host_checking = False\nsystemd = False\nselinux = False\nstart = False\n[slapd]\ninstance_name = %s\nuser = root\ngroup = root\nport = %d\nself_sign_cert = False\nroot_password = secret12345\ndb_lib = mdb\n' "$instance" "$port" >"$store/inf"
    # Ends with an error where there is no service manager; the files are there then.
    dscreate from-file "$store/inf" >"$store/log" 2>&1
    export HASH
    HASH=$(pwdhash -D "$config" secret12345)
    grep -q 'implement: mdb' "$config/dse.ldif" || { tail -n 3 "$store/log" >&2; return 1; }
    perl -0pi -e 's/^(nsslapd-rootpw:).*\n( .*\n)*/$1 $ENV{HASH}\n/m' "$config/dse.ldif"
    mkdir -p /run/dirsrv "/run/lock/dirsrv/slapd-$instance"
    local who=(-x -H "ldap://localhost:$port" -D 'cn=Directory Manager' -w secret12345)
    {
        printf 'dn: cn=own,cn=ldbm database,cn=plugins,cn=config\nobjectClass: extensibleObject\nobjectClass: nsBackendInstance\ncn: own\nnsslapd-suffix: dc=example\n\n'
        printf 'dn: cn="dc=example",cn=mapping tree,cn=config\nobjectClass: extensibleObject\nobjectClass: nsMappingTree\ncn: dc=example\nnsslapd-state: backend\nnsslapd-backend: own\n\n'
        printf 'dn: cn=sn,cn=index,cn=own,cn=ldbm database,cn=plugins,cn=config\nobjectClass: extensibleObject\nobjectClass: nsIndex\ncn: sn\nnsSystemIndex: false\nnsIndexType: eq\nnsIndexType: sub\nnsIndexType: pres\n\n'
    } >"$store/backend.ldif"
    {
        printf 'dn: dc=example\nobjectClass: domain\ndc: example\n\n'
        for i in $(seq 400); do
            printf 'dn: cn=user%d,dc=example\nobjectClass: person\ncn: user%d\nsn: family%d\ndescription: %0*d\n\n' $i $i $((i % 20)) $((i * 3)) 0
        done
    } >"$store/users.ldif"
    search() { ldapsearch "${who[@]}" -LLL -o ldif-wrap=no -b dc=example "$@" | sed '/^$/d' | sort; }
    for round in 1 2; do
        daemon ns-slapd -D "$config" -i "$store/pid" -d 0
        server=$child
        until_true 20 ldapsearch "${who[@]}" -b '' -s base || { echo "no answer"; return 1; }
        if [ $round = 1 ]; then
            ldapadd "${who[@]}" -f "$store/backend.ldif" | grep -c adding
            ldapadd "${who[@]}" -f "$store/users.ldif" | grep -c adding
        fi
        search '(sn=family7)' cn | md5sum
        search '(sn=*ily1*)' cn | grep -c ^cn
        search '(&(sn=family3)(cn>=user2))' cn
        search '(cn=user77)' '*'
        search '(objectClass=*)' dn | wc -l
        printf 'dn: cn=user%d,dc=example\nchangetype: modify\nreplace: sn\nsn: changed\n\ndn: cn=user%d,dc=example\nchangetype: delete\n\ndn: cn=user%d,dc=example\nchangetype: modrdn\nnewrdn: cn=renamed%d\ndeleteoldrdn: 1\n' \
            $((round * 10)) $((round * 10 + 1)) $((round * 10 + 2)) $round | ldapmodify "${who[@]}" | grep -c '^[a-z]'
        ldapdelete "${who[@]}" cn=nobody,dc=example 2>&1 | head -1
        search '(|(sn=changed)(cn=renamed*)(cn=user11))' cn sn
        seq 100 199 | sed 's/.*/dn: cn=user&,dc=example\nchangetype: modify\nadd: description\ndescription: again\n/' | ldapmodify "${who[@]}" | grep -c modifying
        search '(description=again)' cn | grep -c ^cn
        kill "$server"
        wait "$server"
        echo "ended: $?"
    done
    on ns-slapd db2ldif -D "$config" -n own -a "$store/out.ldif" >"$store/log" 2>&1
    echo "exported: $?"
    grep -v -i -e '^nsUniqueId' -e Timestamp -e '^ ' "$store/out.ldif" | sort | md5sum
    true
}
compare "389 Directory Server $(dpkg-query -W -f '${Version}' 389-ds-base)"
