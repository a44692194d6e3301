#!/usr/bin/env bash
# Samba's ldb on its backend for LMDB: records added, found, changed, renamed and deleted; an index.
. "$(dirname "$0")/common.sh"
need ldb-tools python3-ldb
work() {
    local url="mdb://$store/sam.ldb"
    {
        printf 'dn: @INDEXLIST\n@IDXATTR: cn\n@IDXATTR: number\n@IDXGUID: objectGUID\n@IDX_DN_GUID: GUID\n\n'
    } >"$store/index.ldif"
    for i in $(seq 400); do
        printf 'dn: cn=user%d,dc=example\nobjectGUID: 0000000000%06d\ncn: user%d\nnumber: %d\ntext: %0*d\n\n' $i $i $i $((i % 10)) $((i + 1)) 0
    done >"$store/users.ldif"
    on ldbadd -H "$url" "$store/index.ldif" || return 1
    on ldbadd -H "$url" "$store/users.ldif" || return 1
    on ldbadd -H "$url" "$store/users.ldif" >/dev/null 2>&1
    echo "again: $?"
    on ldbsearch -H "$url" -b dc=example '(number=3)' cn | sort
    on ldbsearch -H "$url" -b dc=example '(cn=user77)' '*' | sort
    printf 'dn: cn=user77,dc=example\nchangetype: modify\nreplace: text\ntext: changed\n\ndn: cn=user78,dc=example\nchangetype: delete\n' >"$store/mod.ldif"
    on ldbmodify -H "$url" "$store/mod.ldif"
    on ldbrename -H "$url" cn=user79,dc=example cn=renamed,dc=example
    on ldbdel -H "$url" cn=user80,dc=example
    on ldbsearch -H "$url" -b dc=example '(|(cn=user7*)(cn=renamed))' cn text | sort
    on ldbsearch -H "$url" -b dc=example '(cn=*)' dn | grep -c '^dn:'
    on /usr/bin/python3 - "$url" <<'PY'
import ldb, sys
db = ldb.Ldb(sys.argv[1])
db.transaction_start()
for i in range(500, 700):
    db.add({"dn": "cn=py%d,dc=example" % i, "cn": "py%d" % i, "objectGUID": "0000000000%06d" % i, "number": str(i)})
db.transaction_cancel()
print(len(db.search("dc=example", ldb.SCOPE_SUBTREE, "(cn=py*)")))
db.transaction_start()
for i in range(500, 700):
    db.add({"dn": "cn=py%d,dc=example" % i, "cn": "py%d" % i, "objectGUID": "0000000000%06d" % i, "number": str(i)})
db.transaction_prepare_commit()
db.transaction_commit()
found = db.search("dc=example", ldb.SCOPE_SUBTREE, "(number=6*)", attrs=["cn"])
print(len(db.search("dc=example", ldb.SCOPE_SUBTREE, "(cn=py*)")), sorted(str(m.dn) for m in found)[:5])
for m in db.search_iterator("dc=example", ldb.SCOPE_SUBTREE, "(number=650)"):
    print(m.dn)
PY
}
compare "Samba ldb $(dpkg-query -W -f '${Version}' libldb2)"
