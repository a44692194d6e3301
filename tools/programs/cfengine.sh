#!/usr/bin/env bash
# CFEngine: the agent's databases of locks, persistent classes and last changes, over several runs, and
# what its own tool says of them.
. "$(dirname "$0")/common.sh"
need cfengine3
work() {
    export CFENGINE_TEST_OVERRIDE_WORKDIR=$store
    mkdir -p "$store/inputs" "$store/bin" "$store/state" "$store/ppkeys" "$store/outputs"
    ln -s /usr/bin/cf-promises "$store/bin/"
    chmod 700 "$store" "$store/inputs" "$store/ppkeys" "$store/state"
    cat >"$store/inputs/promises.cf" <<'CF'
body common control { bundlesequence => { "main" }; }
body classes kept(name) { promise_repaired => { "$(name)" }; persist_time => "60"; }
body changes watched { hash => "sha256"; report_changes => "all"; update_hashes => "true"; }
bundle agent main
{
vars:
  "n" slist => { @(list) };
  "list" slist => { "a", "b", "c", "d", "e", "f", "g", "h" };
commands:
  "/bin/true $(list)" classes => kept("ran_$(list)"), ifelapsed => "0", action => always;
files:
  "$(sys.workdir)/watched" changes => watched, action => always;
reports:
  "kept $(list)" if => "ran_$(list)", action => always;
}
body action always { ifelapsed => "0"; }
CF
    sed -i 's/, ifelapsed => "0", action/, action/; /"n" slist/d' "$store/inputs/promises.cf"
    chmod 600 "$store/inputs/promises.cf"
    echo one >"$store/watched"
    on cf-key >/dev/null 2>&1
    echo "key: $?"
    for run in 1 2 3; do
        on cf-agent -K -f "$store/inputs/promises.cf" 2>&1 | grep -v 'error: Hash\|warning' | sed "s#$store##g; s/^ *//" | grep '^R: \|^info\|^error' | sort
        echo "run: ${PIPESTATUS[0]}"
        echo "line $run" >>"$store/watched"
    done
    ls "$store/state" | grep 'lmdb$' | sort
    for file in "$store"/state/*.lmdb; do
        on cf-check diagnose "$file" 2>&1 | sed "s#$store##g"
        on cf-check dump "$file" 2>/dev/null | grep -o '"ran_[a-h]"\|"[DMCH]_[^"]*watched"' | sort -u | sed "s#$store##g"
    done
    true
}
compare "CFEngine $(dpkg-query -W -f '${Version}' cfengine3)"
