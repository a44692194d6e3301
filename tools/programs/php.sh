#!/usr/bin/env bash
# PHP: its dba functions with the handler lmdb.
. "$(dirname "$0")/common.sh"
need php8.2-cli php8.2-dba
work() {
    cat >"$store/test.php" <<'PHP'
<?php
$path = $argv[1];
$db = dba_open($path, "n", "lmdb");
for ($i = 0; $i < 150; $i++) {
    if (!dba_insert("key$i", str_repeat(chr(65 + $i % 26), $i % 300), $db)) { echo "insert $i failed\n"; }
}
var_dump(dba_insert("key5", "again", $db), dba_replace("key5", "again", $db), dba_fetch("key5", $db));
var_dump(dba_exists("key149", $db), dba_exists("nothing", $db), dba_delete("key7", $db), dba_delete("key7", $db));
var_dump(dba_sync($db), dba_optimize($db));
dba_close($db);
foreach (["r", "w", "c"] as $mode) {
    $db = dba_open($path, $mode, "lmdb");
    $n = 0; $sum = hash_init("sha256");
    for ($key = dba_firstkey($db); $key !== false; $key = dba_nextkey($db)) {
        $n++;
        hash_update($sum, "$key=" . dba_fetch($key, $db) . ";");
    }
    echo "$mode $n ", hash_final($sum), "\n";
    if ($mode != "r") { var_dump(dba_insert("mode$mode", $mode, $db)); }
    dba_close($db);
}
$db = dba_popen($path, "r", "lmdb");
var_dump(dba_fetch("modew", $db), @dba_fetch("key7", $db));
PHP
    on php -n -d extension_dir="$(php -i | sed -n 's/^extension_dir => \([^ ]*\).*/\1/p')" -d extension=dba "$store/test.php" "$store/data" 2>&1 | sed "s#$store##g"
}
compare "PHP dba $(dpkg-query -W -f '${Version}' php8.2-dba)"
