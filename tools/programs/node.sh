#!/usr/bin/env bash
# Node.js: node-lmdb with its own tests, linked with the system's library instead of the LMDB that it
# brings along.
. "$(dirname "$0")/common.sh"
command -v node >/dev/null && [ -e /usr/include/node/node.h ] || need nodejs libnode-dev
command -v npm >/dev/null || need npm
need liblmdb-dev g++ make python3
version=0.10.1
cd "$top" || exit 1
{
    npm pack --silent "node-lmdb@$version" && tar xzf node-lmdb-*.tgz && cd package && rm -rf dependencies prebuilds &&
        sed -i -e '/liblmdb\/\(mdb\|midl\)\.c/d' -e 's|"dependencies/lmdb/libraries/liblmdb"|"/usr/include"|' \
            -e 's|"ldflags": \[|"libraries": ["-llmdb"], &|' \
            -e 's|"sources": \[|"defines": ["mdb_size_t=size_t", "MDB_PREVSNAPSHOT=0x2000000"], &|' binding.gyp &&
        npm install --ignore-scripts nan node-gyp-build mocha@8 chai@4 mkdirp@1 rimraf@3 node-gyp@10 &&
        npx node-gyp rebuild --nodedir=/usr
} >"$top/log" 2>&1 || { tail -n 5 "$top/log"; echo "SKIPPED node-lmdb cannot be built"; exit 3; }
work() {
    cd "$top/package" || return 1
    # Left out: values of two sizes in a table of one size, which LMDB stores mangled.
    on npx mocha test/index.test.js --reporter json --grep 'inserted with different lengths' --invert >"$store/out" 2>"$store/err"
    echo "mocha: $?"
    node -e 'const text = require("fs").readFileSync(process.argv[1], "utf8");
        const { stats, passes, failures } = JSON.parse(text.slice(text.indexOf("{\n")));
        console.log(stats.passes, stats.failures, stats.pending);
        passes.forEach(one => console.log("passed", one.fullTitle));
        failures.forEach(one => console.log("failed", one.fullTitle, one.err.message));' "$store/out"
}
compare "Node.js $(node --version): node-lmdb $version"
