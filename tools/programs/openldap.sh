#!/usr/bin/env bash
# OpenLDAP: groups of thousands of members loaded by slapadd, searched by index and changed through the server,
# with values inside entries and, beyond a threshold, in a table of their own (`multival`), sorted or not.
# Debian's back-mdb has LMDB inside, under LMDB's names; a library that is loaded before it takes its place.
. "$(dirname "$0")/common.sh"
need slapd ldap-utils

on() {
    env ${preload:+LD_PRELOAD="$preload"} ZUBILO_LMDB_VERSION=0.9.29 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$logs/ld" "$@"
}

# Which library the calls of back-mdb go to.
took() {
    local want=back_mdb found
    [ "$1" = drop-in ] && want=$(basename "$library")
    found=$(cat "$logs"/ld.* | sed -n 's/.*binding file [^ ]*back_mdb[^ ]* .* to \([^ ]*\) .*`mdb_env_open.*/\1/p' | sort -u)
    [ "$(wc -l <<<"$found")" = 1 ] && [[ $(basename "$(realpath "$found")") == "$want"* ]] || { echo "back-mdb calls ${found:-nothing}"; return 1; }
}

# What differs at each run: times and numbers of entries.
plain() {
    sed -E '/^(entryUUID|entryCSN|createTimestamp|modifyTimestamp|contextCSN|structuralObjectClass):/d'
}

entries() {
    local i
    printf 'dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n\n'
    printf 'dn: cn=all,dc=example\nobjectClass: groupOfNames\ncn: all\ndescription: of all\n'
    for i in $(seq 3000); do printf 'member: uid=user%d,dc=example\n' $((i * 7919 % 3001)); done
    printf '\ndn: cn=few,dc=example\nobjectClass: groupOfNames\ncn: few\n'
    for i in $(seq 12); do printf 'member: uid=user%d,dc=example\n' $((i * 5 % 13)); done
    for i in $(seq 300); do
        printf '\ndn: uid=user%d,dc=example\nobjectClass: inetOrgPerson\nuid: user%d\ncn: User %d\nsn: %d\n' $i $i $i $((i % 10))
        printf 'mail: user%d@example.com\nmail: u%d@example.com\n' $i $i
    done
    echo
}

find_by() { # find_by FILTER...: the names of the entries that each finds, as the `admin` of the caller
    local filter
    for filter; do
        echo "$filter"
        ldapsearch "${admin[@]}" -LLL -o ldif-wrap=no -b dc=example "$filter" dn | sort
    done
}

server() { # server ROUND OPTIONS...: all the work with one configuration
    local dir=$store/$1
    shift
    mkdir -p "$dir/db"
    {
        printf 'modulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile %s/pid\n' "$dir"
        printf 'include /etc/ldap/schema/%s.schema\n' core cosine inetorgperson
        [ "$1" = sorted ] && printf 'sortvals member\n'
        printf 'database mdb\nmaxsize 67108864\nsuffix dc=example\nrootdn cn=admin,dc=example\nrootpw secret\ndirectory %s/db\n' "$dir"
        printf 'index objectClass,uid,member eq\nindex mail,cn eq,sub\n'
        [ $# -gt 1 ] && printf 'multival %s\n' "${*:2}"
    } >"$dir/slapd.conf"
    entries >"$dir/entries"
    on slapadd -q -f "$dir/slapd.conf" -l "$dir/entries" 2>&1 || return 1
    on slapcat -f "$dir/slapd.conf" | plain | tee "$dir/first" || return 1
    local at; at=ldapi://$(sed 's|/|%2F|g' <<<"$dir/socket")
    on slapd -d 0 -f "$dir/slapd.conf" -h "$at" >"$dir/log" 2>&1 &
    children+=($!)
    local admin=(-x -H "$at" -D cn=admin,dc=example -w secret)
    until_true 20 ldapsearch "${admin[@]}" -b dc=example -s base || { echo "no server"; return 1; }
    find_by '(member=uid=user1234,dc=example)' '(uid=user77)' '(mail=*5@example.com)' '(&(sn=7)(cn=user 1*))' '(member=uid=nobody,dc=example)'
    ldapmodify "${admin[@]}" <<'LDIF' 2>&1
dn: cn=all,dc=example
changetype: modify
delete: member
member: uid=user1500,dc=example
member: uid=user3,dc=example
-
add: member
member: uid=late1,dc=example
member: uid=late2,dc=example

dn: cn=all,dc=example
changetype: modify
add: member
member: uid=user2999,dc=example

dn: cn=few,dc=example
changetype: modify
LDIF
    {
        printf 'dn: cn=few,dc=example\nchangetype: modify\nadd: member\n'
        printf 'member: uid=more%d,dc=example\n' $(seq 60)
        printf '\ndn: cn=few,dc=example\nchangetype: modify\ndelete: member\n'
        printf 'member: uid=more%d,dc=example\n' $(seq 2 2 60) $(seq 1 2 55)
        printf '\ndn: cn=all,dc=example\nchangetype: modify\nreplace: description\ndescription: of most\n'
        printf '\ndn: uid=user9,dc=example\nchangetype: modrdn\nnewrdn: uid=nine\ndeleteoldrdn: 1\n'
        printf '\ndn: uid=user8,dc=example\nchangetype: delete\n'
    } | ldapmodify "${admin[@]}" 2>&1
    find_by '(member=uid=late2,dc=example)' '(member=uid=user3,dc=example)' '(member=uid=more57,dc=example)' '(uid=nine)'
    ldapcompare "${admin[@]}" cn=all,dc=example 'member:uid=user2998,dc=example' 2>&1
    end_children
    on slapcat -f "$dir/slapd.conf" | plain
    on slapindex -q -f "$dir/slapd.conf" 2>&1
    on slapcat -f "$dir/slapd.conf" | plain | sha256sum
}

work() {
    preload=
    [ "$path" ] && preload=$library
    server inside unsorted
    server apart unsorted default 20,10
    server sorted sorted
    server sorted-apart sorted default 20,10
    server member unsorted member 100,50
}
compare "OpenLDAP $(dpkg-query -W -f '${Version}' slapd)"
