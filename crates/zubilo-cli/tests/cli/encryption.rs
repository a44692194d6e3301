//! Encrypted stores: keys from files and from the terminal, copies under another key.

use std::fs;

use crate::harness::{Place, run};

#[test]
fn every_command_takes_the_key_of_a_file() {
    let place = Place::new();
    let (store, key) = (place.arg("s"), place.arg("key"));
    fs::write(&key, [7; 32]).unwrap();
    run(&["put", &store, "k", "planted-value", "--create", "--key-file", &key]).ok();
    run(&["get", &store, "k"]).code(4).says("encrypted").says("--key-file");
    let with = |command: &[&str]| {
        let mut args = command.to_vec();
        args.extend(["--key-file", &key]);
        run(&args)
    };
    assert_eq!(with(&["get", &store, "k"]).ok(), "planted-value\n");
    for command in ["tables", "stat", "chk", "commits", "dump", "scan", "verify", "salvage"] {
        with(&[command, &store]).code(0);
    }
    assert_eq!(with(&["stat", &store, "--json"]).json()["encrypted"], true);
    with(&["commits", &store, "--check"]).code(0);
    with(&["readers", &store]).code(1);
    with(&["compact", &store]).ok();
    with(&["del", &store, "none"]).code(1);
    let bytes = fs::read(place.path("s")).unwrap();
    assert!(!bytes.windows(13).any(|window| window == b"planted-value"));
    // The same key in digits, and others.
    fs::write(&key, "07".repeat(32) + "\n").unwrap();
    with(&["get", &store, "k"]).ok();
    fs::write(&key, "08".repeat(32)).unwrap();
    with(&["get", &store, "k"]).code(4).says("another key");
    with(&["salvage", &store]).code(4).says("another key");
    fs::write(&key, "08").unwrap();
    with(&["get", &store, "k"]).code(2).says("hexadecimal");
}

#[test]
fn a_passphrase_comes_from_a_file_and_is_asked_for_on_a_terminal_only() {
    let place = Place::new();
    let (store, phrase) = (place.arg("s"), place.arg("phrase"));
    fs::write(&phrase, "correct horse\n").unwrap();
    run(&["put", &store, "k", "v", "--create", "--passphrase-file", &phrase]).ok();
    fs::write(&phrase, "correct horse").unwrap();
    assert_eq!(run(&["get", &store, "k", "--passphrase-file", &phrase]).ok(), "v\n");
    fs::write(&phrase, "correct horse ").unwrap();
    run(&["get", &store, "k", "--passphrase-file", &phrase]).code(4).says("another key");
    run(&["get", &store, "k", "--passphrase"]).code(2).says("no terminal");
    run(&["get", &store, "k", "--passphrase", "--passphrase-file", &phrase]).code(2);
}

#[test]
fn copies_change_the_key() {
    let place = Place::new();
    let (plain, key, other) = (place.small_store("s"), place.arg("key"), place.arg("other"));
    fs::write(&key, [7; 32]).unwrap();
    fs::write(&other, [8; 32]).unwrap();
    let (first, second, third, back) =
        (place.arg("first"), place.arg("second"), place.arg("third"), place.arg("back"));
    run(&["get", &plain, "a", "--key-file", &key])
        .code(4)
        .says("not encrypted")
        .says("--to-key-file");
    run(&["copy", &plain, &first, "--to-key-file", &key]).ok();
    run(&["copy", &first, &second, "--compact", "--key-file", &key, "--to-key-file", &other]).ok();
    run(&["copy", &second, &third, "--key-file", &other]).ok();
    run(&["copy", &third, &back, "--key-file", &other, "--to-plain"]).ok();
    let dump = |store: &str, key: &[&str]| {
        let mut args = vec!["dump", store];
        args.extend(key);
        run(&args).ok()
    };
    let all = dump(&plain, &[]);
    assert_eq!(dump(&first, &["--key-file", &key]), all);
    assert_eq!(dump(&second, &["--key-file", &other]), all);
    assert_eq!(dump(&third, &["--key-file", &other]), all);
    assert_eq!(dump(&back, &[]), all);
    run(&["get", &second, "a", "--key-file", &key]).code(4);
}
