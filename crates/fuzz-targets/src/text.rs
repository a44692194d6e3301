//! Text that is loaded into a store by `zubilo load`, in the formats of `mdb_dump`, CSV and JSON lines,
//! and by `mdb_load`.

use std::ffi::OsStr;

use crate::folder;

const FORMATS: [&str; 4] = ["bytevalue", "print", "csv", "jsonl"];
const EXISTING: [&str; 3] = ["replace", "keep", "fail"];

/// The first byte says how the rest is read. What was loaded must pass the full check, and a store
/// that a refused input was loaded into must be whole, too.
pub(crate) fn load(data: &[u8]) {
    let Some((how, input)) = data.split_first() else { return };
    let how = usize::from(*how);
    let (_folder, dir) = folder();
    let (file, store) = (dir.join("input"), dir.join("store"));
    std::fs::write(&file, input).expect("the file can be written");
    let mut arguments = vec!["zubilo", "load", "--create", "--json", "--format", FORMATS[how % 4]];
    arguments.extend(["--existing", EXISTING[how / 4 % 3]]);
    if how & 0x10 != 0 {
        arguments.extend(["--batch", "2"]);
    }
    if how & 0x20 != 0 {
        arguments.push("--no-header");
    }
    let mut arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).collect();
    arguments.extend([store.as_os_str(), file.as_os_str()]);
    cli_parts::run(&arguments);
    if store.exists() {
        let env = zubilo::Options::new().open(&store).expect("the store opens again");
        crate::common::check(&env, "after the load");
    }
}

/// The same with the tool of LMDB: its own reader of dumps, on the C interface.
pub(crate) fn mdb_load(data: &[u8]) {
    let Some((how, input)) = data.split_first() else { return };
    let (_folder, dir) = folder();
    let (file, store) = (dir.join("input"), dir.join("store"));
    std::fs::write(&file, input).expect("the file can be written");
    let options = ["-a", "-N", "-T", "-Q"].into_iter().enumerate();
    let mut arguments: Vec<String> =
        options.filter(|(i, _)| how >> i & 1 == 1).map(|(_, option)| option.into()).collect();
    arguments.extend(["-n".into(), "-f".into(), file.display().to_string()]);
    if how & 0x10 != 0 {
        arguments.extend(["-s".into(), "named".into()]);
    }
    arguments.push(store.display().to_string());
    std::hint::black_box(lmdb_tools_linked::load(&arguments).is_ok());
    if store.exists() {
        let env = zubilo::Options::new().open(&store).expect("the store opens again");
        crate::common::check(&env, "after the load");
    }
}

/// Dumps and lines, with each option.
pub(crate) fn mdb_seeds() -> Vec<Vec<u8>> {
    let plain = "key\nvalue\nanother\\5ckey\nits value\n";
    let dumps = seeds().into_iter().filter(|seed| seed[0] < 2).map(|seed| seed[1..].to_vec());
    let mut seeds = Vec::new();
    for text in dumps.chain([plain.as_bytes().to_vec()]) {
        for how in [0, 1, 2, 4, 8, 0x10, 0x12] {
            seeds.push([&[how][..], &text].concat());
        }
    }
    seeds
}

/// Each format, with what it can express.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let dump = "VERSION=3\nformat=bytevalue\ndatabase=many\ntype=btree\nmapsize=1048576\n\
        maxreaders=126\nduplicates=1\ndupsort=1\ndb_pagesize=4096\nHEADER=END\n 6161\n 62\n 6161\n \
        63\nDATA=END\nVERSION=3\nformat=bytevalue\ndatabase=numbers\ntype=btree\nintegerkey=1\n\
        dupfixed=1\nintegerdup=1\nreversekey=1\nreversedup=1\ndb_pagesize=4096\nHEADER=END\n \
        0100000000000000\n 0200000000000000\nDATA=END\n";
    let print = "VERSION=3\nformat=print\ntype=btree\nmapsize=1048576\nHEADER=END\n key\\5c\n \
        value\\0a\\ff\n b\n \nDATA=END\n";
    let csv = "table,key,value\nt,a,\"b, \"\"c\"\"\"\nu,\\x00,\\xff\n";
    let json = "{\"table\":\"t\",\"key\":\"a\",\"value\":\"b\"}\n{\"table\":\"t\",\
        \"key\":{\"base64\":\"AAE=\"},\"value\":\"\\u00e9\"}\n";
    let mut seeds = Vec::new();
    for (format, text) in [dump, print, csv, json].into_iter().enumerate() {
        for how in [0, 0x10, 0x20, 4, 8] {
            seeds.push([&[format as u8 + how][..], text.as_bytes()].concat());
        }
    }
    seeds
}
