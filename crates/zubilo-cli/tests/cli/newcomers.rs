//! What a newcomer meets: mistakes, and how the command answers them. Nothing half-made is left, and
//! messages name what they are about.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Model, Place, command, contents, finish, run, run_with};

fn files(place: &Place) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(place.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_failed_command_leaves_no_store_that_it_has_made() {
    let place = Place::new();
    let store = place.arg("s");
    let long = "k".repeat(4000);
    std::fs::write(place.path("bad.csv"), "nonsense\n").unwrap();
    run(&["load", &store, "--create", &place.arg("bad.csv")]).code(4).says("nothing was committed");
    run_with(&["load", &store, "--create", "-f", "jsonl"], b"{\"key\":\"k\",\"value\":\"v\"}\n7\n")
        .code(4);
    run(&["load", &store, "--create", place.dir().to_str().unwrap()]).code(4).says("name a file");
    run(&["put", &store, "--create", &long, "v"]).code(4).says("too long");
    assert_eq!(files(&place), ["bad.csv"]);
    // What was committed stays, and what was there before anyway.
    run_with(&["load", &store, "--create", "-f", "csv", "--batch", "1"], b"key,value\nk,v\nbad\n")
        .code(4);
    assert_eq!(run(&["get", &store, "k"]).ok(), "v\n");
    let empty = place.store("empty", &Model::new());
    run(&["put", &empty, "--create", &long, "v"]).code(4);
    assert!(place.path("empty").exists());
}

#[test]
fn messages_name_table_and_option() {
    let place = Place::new();
    let store = place.small_store("s");
    let long = "k".repeat(4000);
    run(&["put", &store, "-t", "other", &long, "v"]).code(4).says("in the table \"other\"");
    run(&["get", &store, "-t", "\\q", "k"]).code(2).says("--table");
    run(&["scan", &store, "--from", "\\q"]).code(2).says("--from").says("escaped");
    run(&["get", &store, "-e", "hex", "zz"]).code(2).says("the key").says("hex");
    run_with(
        &["load", &store, "-t", "other", "-f", "csv"],
        format!("key,value\n{long},v\n").as_bytes(),
    )
    .code(4)
    .says("standard input, line 2, into the table \"other\"");
    run(&["put", &store, "-e", "hex", "ff", "ff"]).ok();
    run(&["scan", &store, "-e", "text"]).code(4).says("table \"main\"").says("--encoding");
}

#[test]
fn a_folder_is_called_one() {
    let place = Place::new();
    let folder = place.dir().to_str().unwrap();
    for command in ["stat", "scan", "chk"] {
        let said = run(&[command, folder]).code(3).says("this is a folder").says("name the store");
        assert!(!said.err.contains("salvage"), "{}", said.err);
    }
    let store = place.small_store("s");
    run(&["stat", folder]).code(3).says(&format!("name the store in it: {store}"));
    let other = place.small_store("t");
    run(&["stat", folder]).code(3).says(&format!("one of the stores in it: {store}, {other}"));
}

#[test]
fn a_truncated_file_is_called_truncated() {
    let place = Place::new();
    let records = (0..4000u32).map(|i| (i.to_be_bytes().to_vec(), vec![b'v'; 60]));
    let store = place.store("s", &Model::from([(b"main".to_vec(), records.collect())]));
    for i in 0..5 {
        run(&["put", &store, "more", &i.to_string()]).ok();
    }
    let bytes = std::fs::read(&store).unwrap();
    for len in [bytes.len() / 2, 5 * 4096, 4 * 4096] {
        let cut = place.arg("cut");
        std::fs::write(&cut, &bytes[..len]).unwrap();
        for command in ["stat", "chk", "scan"] {
            let said = run(&[command, &cut]).code(3).says("the file is truncated").says("salvage");
            assert!(!said.err.contains("page 0"), "{}", said.err);
        }
        assert_eq!(std::fs::read(&cut).unwrap(), &bytes[..len]);
    }
}

#[test]
fn chk_does_not_recommend_itself() {
    let place = Place::new();
    let records = (0..4000u32).map(|i| (i.to_be_bytes().to_vec(), vec![b'v'; 60]));
    let store = place.store("s", &Model::from([(b"main".to_vec(), records.collect())]));
    for i in 0..6 {
        run(&["put", &store, "more", &i.to_string()]).ok();
    }
    let good = std::fs::read(&store).unwrap();
    for page in 0..good.len() / 4096 {
        let mut bad = good.clone();
        bad[page * 4096..][..4096].fill(0x5a);
        let path = place.arg("bad");
        let _ = std::fs::remove_file(format!("{path}-lock"));
        std::fs::write(&path, bad).unwrap();
        let said = run(&["chk", &path]);
        let out = String::from_utf8_lossy(&said.out).into_owned();
        assert!(
            !said.err.contains("zubilo chk") && !out.contains("zubilo chk"),
            "{page}: {said:?}"
        );
    }
}

/// A store of mode 0600 in private hands stays private.
#[test]
fn copies_may_not_do_more_than_the_store() {
    let place = Place::new();
    let store = place.small_store("s");
    let lmdb = concat!(env!("CARGO_MANIFEST_DIR"), "/../lmdb-file/tests/fixtures/pages2k.mdb");
    let old = place.arg("lmdb");
    std::fs::copy(lmdb, &old).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // Also as the file of a group that nobody here is in, which only root can make.
    let foreign = chown(&store, None, Some(54_321)).is_ok();
    for (given, mask, due) in [
        (0o600, 0o022, 0o600),
        (0o640, 0o022, 0o640),
        (0o666, 0o077, 0o600),
        (0o644, 0o022, 0o644),
        (0o400, 0o022, 0o600),
    ] {
        // Rights of the group were meant for that group.
        let due = if foreign && given == 0o640 { 0o600 } else { due };
        for old in [&store, &old] {
            let _ = chown(old, None, foreign.then_some(54_321));
            std::fs::set_permissions(old, std::fs::Permissions::from_mode(given)).unwrap();
        }
        let new = place.arg("new");
        let cases = [
            ["copy", &store, &new].to_vec(),
            ["copy", &store, &new, "--compact"].to_vec(),
            ["salvage", &store, &new].to_vec(),
            ["import", &old, &new].to_vec(),
        ];
        for args in cases {
            let mut shell = Command::new("sh");
            shell.args([
                "-c",
                &format!("umask {mask:03o}; exec \"$0\" \"$@\""),
                env!("CARGO_BIN_EXE_zubilo"),
            ]);
            shell.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped());
            finish(shell.spawn().unwrap(), &[]).ok();
            assert_eq!(mode(new.as_ref()), due, "{args:?} of {given:o}, umask {mask:o}");
            let lock = place.path("new-lock");
            if lock.exists() {
                assert_eq!(mode(&lock) & !due, 0, "lock file: {args:?} of {given:o}");
            }
            run(&["chk", &new, "-q"]).ok();
            std::fs::remove_file(&new).unwrap();
            let _ = std::fs::remove_file(lock);
        }
    }
}

/// A wrong value is printed with code 0, unless it is asked for otherwise.
#[test]
fn damage_is_found_where_reading_verifies() {
    let place = Place::new();
    let store = place.small_store("s");
    for i in 0..6 {
        run(&["put", &store, "--create", "-t", "later", "k", &i.to_string()]).ok();
    }
    let mut bytes = std::fs::read(&store).unwrap();
    let at = bytes.windows(3).position(|w| w == b"x24").unwrap();
    bytes[at + 2] = b'5';
    std::fs::write(&store, bytes).unwrap();
    assert_eq!(run(&["get", &store, "-t", "other", "x"]).ok(), "25\n");
    for verified in [
        &["get", &store, "-t", "other", "x", "--verify"][..],
        &["scan", &store, "-t", "other", "--verify"],
        &["dump", &store, "-t", "other"],
    ] {
        let said = run(verified).code(3).says("the table \"other\"").says("damaged");
        assert!(!String::from_utf8_lossy(&said.out).contains("25"));
    }
    // No copy holds damage that nobody has asked for.
    let copy = place.arg("copy");
    for args in [&["copy", &store, &copy][..], &["copy", &store, &copy, "--compact"]] {
        run(args).code(3).says("damaged").says("earlier copy");
        assert!(!place.path("copy").exists(), "{args:?}");
    }
    assert_eq!(run(&["copy", &store, "-"]).code(3).out.len(), 0);
    assert_eq!(run(&["scan", &store, "--verify"]).ok().lines().count(), 4);
    assert_eq!(run(&["get", &store, "-t", "later", "k", "--verify"]).ok(), "5\n");
}

/// Ctrl-C at an arbitrary moment of a long command: 130, and nothing half-made.
#[test]
fn interrupted_commands_end_with_130() {
    let place = Place::new();
    let records = (0..300_000u32).map(|i| (i.to_be_bytes().to_vec(), vec![b'v'; 100]));
    let store = place.store("s", &Model::from([(b"main".to_vec(), records.collect())]));
    let new = place.arg("new");
    let folder = place.arg("folder");
    std::fs::create_dir(&folder).unwrap();
    let cases = [
        ["chk", &store].to_vec(),
        ["copy", &store, &new].to_vec(),
        ["copy", &store, &new, "--compact"].to_vec(),
        ["salvage", &store, &new].to_vec(),
        ["bench", &folder, "--seconds", "5"].to_vec(),
    ];
    for args in cases {
        let mut interrupted = 0;
        for _ in 0..10 {
            let child = command(&args).spawn().unwrap();
            while !listens(child.id()) {
                std::hint::spin_loop();
            }
            let kill = format!("kill -INT {}", child.id());
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
            let output = child.wait_with_output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                // It was faster.
                Some(0) => {}
                Some(130) => {
                    interrupted += 1;
                    assert!(err.contains("interrupted"), "{err}");
                    assert!(!place.path("new").exists(), "{args:?} left its new store");
                }
                other => panic!("{args:?}: {other:?}, {err}"),
            }
            let _ = std::fs::remove_file(&new);
            let _ = std::fs::remove_file(format!("{new}-lock"));
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{args:?} left something");
        }
        assert!(interrupted > 0, "{args:?}: never met at work");
    }
    assert_eq!(contents(&store)[&b"main"[..]].len(), 300_000);
}

/// Whether a process handles SIGINT, or has ended.
fn listens(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_none_or(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0)
}
