//! Pipes that close early, and signals in the middle of a load.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use zubilo::Options;

use crate::harness::{Model, Place, command, contents, finish, run};

fn large_store(place: &Place) -> String {
    let records = (0..50_000u32).map(|i| (i.to_be_bytes().to_vec(), vec![b'v'; 50]));
    place.store("s", &Model::from([(b"main".to_vec(), records.collect())]))
}

/// Reads one line and hangs up.
fn read_one_line(args: &[&str]) -> (i32, String) {
    let mut child = command(args).spawn().unwrap();
    let mut line = Vec::new();
    let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
    out.read_until(b'\n', &mut line).unwrap();
    drop(out);
    assert!(!line.is_empty());
    let done = finish(child, &[]);
    (done.code, done.err)
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let place = Place::new();
    let store = large_store(&place);
    assert_eq!(read_one_line(&["scan", &store]), (0, String::new()));
    assert_eq!(read_one_line(&["scan", &store, "--json", "--reverse"]), (0, String::new()));
    // What was to be kept is incomplete; that is no secret, but no reason for a message.
    assert_eq!(read_one_line(&["dump", &store]), (4, String::new()));
    assert_eq!(read_one_line(&["dump", &store, "-f", "csv", "-e", "hex"]), (4, String::new()));
    assert_eq!(read_one_line(&["copy", &store, "-"]), (4, String::new()));
}

#[test]
fn dump_into_load_through_a_pipe() {
    let place = Place::new();
    let store = large_store(&place);
    let mut dump = command(&["dump", &store]).spawn().unwrap();
    let copy = place.arg("t");
    let load = command(&["load", &copy, "--create"]).stdin(dump.stdout.take().unwrap()).spawn();
    finish(load.unwrap(), &[]).ok();
    assert!(dump.wait().unwrap().success());
    assert!(contents(&copy) == contents(&store));
}

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Starts a load into an existing store that gets `records` records and then waits for more. Comes
/// back when it has committed `committed` records and holds uncommitted ones.
fn waiting_load(store: &str, more: &[&str], records: u32, committed: u64) -> Child {
    let args = [&["load", store, "-t", "loaded", "-f", "csv"], more].concat();
    let mut child = command(&args).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = String::from("key,value\n");
    (0..records).for_each(|i| input += &format!("{i:06},value\n"));
    child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
    wait_until_held(store, committed);
    child
}

/// Waits until somebody has committed so many records and has begun to write more.
fn wait_until_held(store: &str, committed: u64) {
    let env = Options::new().open(store).unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let read = env.read().unwrap();
        let there = read.table("loaded").map_or(0, |table| table.len());
        if there == committed && env.try_write().unwrap().is_none() {
            return;
        }
        assert!(Instant::now() < patience, "{there} records after a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for the end without closing the input before.
fn end(mut child: Child) -> (Option<i32>, String) {
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn interrupted_loads_leave_the_store_whole() {
    let place = Place::new();
    let cases = [
        ("INT", &[][..], 0, "nothing was committed"),
        ("TERM", &[], 0, "nothing was committed"),
        ("INT", &["--batch", "100"], 200, "the first 200 records were committed"),
    ];
    for (i, (name, more, committed, message)) in cases.into_iter().enumerate() {
        let store = place.small_store(&i.to_string());
        let child = waiting_load(&store, more, 250, committed);
        signal(&child, name);
        let (code, err) = end(child);
        assert_eq!(code, Some(130), "{err}");
        assert!(err.contains("interrupted") && err.contains(message), "{err}");
        let records = contents(&store).remove(&b"loaded"[..]).unwrap_or_default();
        assert_eq!(records.len() as u64, committed);
        run(&["put", &store, "after", "1", "--wait", "0"]).ok();
    }
}

/// A load that waits for input ends at once, and the store that it has made goes with it.
#[test]
fn an_interrupted_load_leaves_no_empty_store() {
    let place = Place::new();
    for (name, batch, input, left) in [
        ("nothing", &[][..], "", false),
        ("uncommitted", &[], "key,value\na,b\n", false),
        ("committed", &["--batch", "1"], "key,value\na,b\n", true),
    ] {
        let store = place.arg(name);
        let args = [&["load", &store, "--create", "-f", "csv"], batch].concat();
        let mut child = command(&args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        wait_until(|| place.path(name).exists());
        if left {
            wait_until(|| run(&["get", &store, "a"]).code == 0);
        }
        signal(&child, "INT");
        let (code, err) = end(child);
        assert_eq!(code, Some(130), "{err}");
        let message = if left { "the first record was committed" } else { "nothing was committed" };
        assert!(err.contains(message), "{err}");
        assert_eq!(place.path(name).exists(), left, "{name}");
        assert_eq!(place.path(&format!("{name}-lock")).exists(), left, "{name}");
    }
}

/// Somebody else has found the new store and uses it.
#[test]
fn a_new_store_that_others_use_stays() {
    let place = Place::new();
    for writes in [false, true] {
        let name = if writes { "written" } else { "open" };
        let store = place.arg(name);
        let args = ["load", &store, "--create", "-f", "csv"];
        let child = command(&args).stdin(Stdio::piped()).spawn().unwrap();
        // The file is there, and empty, before the store is.
        wait_until(|| Options::new().create(false).open(&store).is_ok());
        let env = Options::new().create(false).open(&store);
        if writes {
            run(&["put", &store, "--create", "k", "v"]).ok();
            drop(env);
            signal(&child, "INT");
            assert_eq!(end(child).0, Some(130));
            assert_eq!(contents(&store)[&b"main"[..]].len(), 1);
        } else {
            let env = env.unwrap();
            signal(&child, "INT");
            assert_eq!(end(child).0, Some(130));
            let mut txn = env.write().unwrap();
            txn.table_or_create("main").unwrap().put("k", "v").unwrap();
            txn.commit().unwrap();
            assert_eq!(run(&["get", &store, "k"]).ok(), "v\n");
        }
    }
}

fn wait_until(mut what: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < patience, "nothing after a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_load_leaves_the_store_whole() {
    let place = Place::new();
    let store = place.small_store("s");
    let before = contents(&store);
    let child = waiting_load(&store, &[], 250, 0);
    signal(&child, "KILL");
    assert_eq!(end(child).0, None);
    assert_eq!(contents(&store), before);
    run(&["put", &store, "after", "1", "--wait", "0"]).ok();
}
