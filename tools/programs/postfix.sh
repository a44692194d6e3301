#!/usr/bin/env bash
# Postfix: maps made, queried, changed and listed by postmap; a map that outgrows its first size.
. "$(dirname "$0")/common.sh"
need postfix postfix-lmdb
work() {
    mkdir "$store/conf" && printf 'compatibility_level = 3.6\nqueue_directory = %s\ndata_directory = %s\n' "$store" "$store" >"$store/conf/main.cf"
    local map="on postmap -c $store/conf"
    for i in $(seq 3000); do echo "user$i@example.org  mailbox$((i * 7919 % 1000))"; done >"$store/aliases"
    $map "lmdb:$store/aliases" && echo "made" || return 1
    ls "$store" | grep lmdb
    for i in 1 17 2999 3000; do $map -q "user$i@example.org" "lmdb:$store/aliases"; done
    $map -q "nobody@example.org" "lmdb:$store/aliases"
    echo "absent: $?"
    $map -d "user17@example.org" "lmdb:$store/aliases"
    echo "deleted: $?"
    $map -q "user17@example.org" "lmdb:$store/aliases"
    echo "absent: $?"
    printf 'extra@example.org new\nuser1@example.org changed\n' | $map -i -r "lmdb:$store/aliases"
    $map -s "lmdb:$store/aliases" | sort | sha256sum
    $map -s "lmdb:$store/aliases" | wc -l
    # Large enough to grow the map while it is open, several times.
    for i in $(seq 60000); do printf 'key-%d-%0100d value-%0200d\n' "$i" "$i" "$i"; done >"$store/large"
    $map "lmdb:$store/large" && echo "made large"
    $map -s "lmdb:$store/large" | wc -l
    $map -q "key-60000-$(printf %0100d 60000)" "lmdb:$store/large"
    # Aliases by the other program.
    printf 'root: postmaster\nnews: usenet, root\n' >"$store/names"
    on postalias -c "$store/conf" "lmdb:$store/names" && on postalias -c "$store/conf" -q news "lmdb:$store/names"
}
compare "Postfix $(dpkg-query -W -f '${Version}' postfix)"
