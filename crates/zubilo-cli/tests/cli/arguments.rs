//! Encodings and ranges on the command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use support::rng;

use crate::harness::{Model, Place, contents, random_bytes, run, small_model};

#[test]
fn keys_and_values_in_every_encoding() {
    let place = Place::new();
    let store = place.arg("s");
    run(&["put", &store, "--create", "-e", "hex", "00ff0a", "5c"]).ok();
    assert_eq!(run(&["get", &store, r"\0\xff\n"]).ok(), "\\\\\n");
    assert_eq!(run(&["get", &store, "-e", "base64", "AP8K"]).ok(), "XA==\n");
    assert_eq!(
        run(&["get", &store, "-e", "hex", "--value-encoding", "text", "00FF0A"]).ok(),
        "\\\n"
    );
    assert_eq!(run(&["scan", &store]).ok(), "\\x00\\xff\\n\t\\\\\n");
    assert_eq!(run(&["scan", &store, "-e", "hex"]).ok(), "00ff0a\t5c\n");
    assert_eq!(run(&["scan", &store, "--json"]).json()["key"]["base64"], "AP8K");
    run(&["scan", &store, "-e", "text"]).code(4).says("is not UTF-8").says("--encoding");
    for (encoding, key) in [("hex", "0"), ("hex", "0g"), ("base64", "a"), ("escaped", "\\q")] {
        run(&["get", &store, "-e", encoding, "--", key]).code(2).says("read the key");
    }
    let raw = OsString::from_vec(vec![0xff, 0xfe]);
    let args = ["put".into(), store.clone().into(), raw.clone(), "v".into()];
    run(&args).ok();
    assert!(contents(&store)[&b"main"[..]].contains_key(&[0xff, 0xfe][..]));
}

#[test]
fn what_would_disturb_a_terminal_is_escaped() {
    let place = Place::new();
    let store = place.arg("s");
    let nasty = "\u{1b}[2J\u{202e}\u{9b}";
    run(&["put", &store, "--create", "-e", "text", nasty, "зубило"]).ok();
    let shown = run(&["scan", &store]).ok();
    assert_eq!(shown, "\\x1b[2J\\xe2\\x80\\xae\\xc2\\x9b\tзубило\n");
    run(&["get", &store, "-t", "\\x1b"]).code(2);
    assert!(!run(&["get", &store, "-t", "\\x1b", "k"]).code(1).err.contains('\u{1b}'));
}

#[test]
fn scan_options() {
    let place = Place::new();
    let store = place.small_store("s");
    let scan = |args: &[&str]| run(&[&["scan", &store], args].concat());
    assert_eq!(scan(&[]).ok(), "a\t1\nab\t2\nb\t3\nc\t4\n");
    assert_eq!(scan(&["--reverse", "--keys-only"]).ok(), "c\nb\nab\na\n");
    assert_eq!(scan(&["--limit", "1", "-k"]).ok(), "a\n");
    assert_eq!(scan(&["--prefix", "a", "-k"]).ok(), "a\nab\n");
    assert_eq!(scan(&["--from", "ab", "--to", "c", "-k"]).ok(), "ab\nb\n");
    assert_eq!(scan(&["--count"]).ok(), "4\n");
    assert_eq!(scan(&["--count", "--prefix", "a", "--json"]).json()["count"], 2);
    assert_eq!(scan(&["--count", "--prefix", "q"]).code(1).out, b"0\n");
    assert_eq!(scan(&["--from", "x"]).code(1).out, b"");
    scan(&["--from", "c", "--to", "a"]).code(1);
    scan(&["--limit", "0"]).code(1);
    scan(&["--count", "--reverse"]).code(2);
    scan(&["-t", "none"]).code(1).says("no such table");
    assert_eq!(
        scan(&["-t", "other", "--json", "-k"]).ok(),
        "{\"key\":\"x\",\"table\":\"other\"}\n"
    );
}

#[test]
fn ranges_agree_with_a_model() {
    let mut rng = rng();
    let records: BTreeMap<_, _> =
        (0..300).map(|_| (random_bytes(&mut rng, 3), random_bytes(&mut rng, 5))).collect();
    let place = Place::new();
    let store = place.store("s", &Model::from([(b"main".to_vec(), records.clone())]));
    for _ in 0..60 {
        let mut bound = || (!rng.one_in(3)).then(|| random_bytes(&mut rng, 3));
        let (from, to, prefix) = (bound(), bound(), bound());
        let (reverse, limit) = (rng.one_in(2), rng.range(1..50));
        let hex = |b: &[u8]| b.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let mut args: Vec<String> =
            ["scan", &store, "-e", "hex", "--limit", &limit.to_string()].map(Into::into).into();
        for (name, bound) in [("from", &from), ("to", &to), ("prefix", &prefix)] {
            args.extend(bound.as_ref().map(|b| format!("--{name}={}", hex(b))));
        }
        args.extend(reverse.then(|| "--reverse".into()));
        let mut expected: Vec<_> = records
            .iter()
            .filter(|(k, _)| from.as_ref().is_none_or(|from| *k >= from))
            .filter(|(k, _)| to.as_ref().is_none_or(|to| *k < to))
            .filter(|(k, _)| prefix.as_ref().is_none_or(|prefix| k.starts_with(prefix)))
            .map(|(k, v)| format!("{}\t{}\n", hex(k), hex(v)))
            .collect();
        if reverse {
            expected.reverse();
        }
        expected.truncate(limit);
        let found = run(&args).code(i32::from(expected.is_empty()));
        assert_eq!(String::from_utf8_lossy(&found.out), expected.concat(), "{args:?}");
    }
}

#[test]
fn wrong_use_is_code_2() {
    let place = Place::new();
    let store = place.small_store("s");
    let cases: [&[&str]; 9] = [
        &[],
        &["nonsense"],
        &["get"],
        &["get", &store],
        &["put", &store, "k"],
        &["put", &store, "k", "v", "--value-file", "f"],
        &["scan", &store, "--limit", "many"],
        &["load", &store, "--batch", "0"],
        &["dump", &store, "--json", "-f", "csv"],
    ];
    for args in cases {
        run(args).code(2);
    }
    for args in [&["--help"][..], &["--version"], &["scan", "--help"]] {
        assert!(!run(args).ok().is_empty());
    }
    assert_eq!(contents(&store), small_model());
}
