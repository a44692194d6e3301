//! Beside other processes: this one is the other process.

use std::time::{Duration, Instant};

use zubilo::Options;

use crate::harness::{Place, contents, run, run_with};

#[test]
fn beside_a_reader_everything_works() {
    let place = Place::new();
    let store = place.small_store("s");
    let env = Options::new().open(&store).unwrap();
    let read = env.read().unwrap();
    run(&["put", &store, "new", "1"]).ok();
    run(&["del", &store, "a"]).ok();
    run_with(&["load", &store, "-f", "csv"], b"key,value\nmore,2\n").ok();
    run(&["chk", &store, "-q"]).ok();
    run(&["copy", &store, &place.arg("copy")]).ok();
    let shown = run(&["stat", &store, "--json"]).json();
    let reader = &shown["readers"][0];
    assert_eq!(shown["readers"].as_array().map(Vec::len), Some(1), "{shown}");
    assert_eq!(reader["pid"], std::process::id());
    assert_eq!(reader["lag"], 3);
    assert_eq!(reader["txn"].as_u64(), Some(read.id().0));
    assert!(shown["retired_bytes"].as_u64() > Some(0), "{shown}");
    let shown = run(&["stat", &store]).ok();
    assert!(shown.contains("1 of 1024") && shown.contains("commits behind"), "{shown}");
    run(&["drop", &store, "-t", "main", "-y"]).ok();
    assert_eq!(read.table("main").unwrap().len(), 4, "the snapshot has not moved");
}

#[test]
fn beside_a_writer_readers_work_and_writers_wait() {
    let place = Place::new();
    let store = place.small_store("s");
    let env = Options::new().open(&store).unwrap();
    let mut txn = env.write().unwrap();
    txn.table("main").unwrap().put("unseen", "1").unwrap();
    run(&["get", &store, "unseen"]).code(1);
    assert_eq!(run(&["scan", &store, "--count"]).ok(), "4\n");
    for args in [["stat", &store], ["chk", &store], ["dump", &store]] {
        run(&args).ok();
    }
    let busy: [&[&str]; 3] = [
        &["put", &store, "k", "v", "--wait", "0"],
        &["del", &store, "a", "--wait", "0"],
        &["drop", &store, "-t", "main", "-y", "--wait", "0"],
    ];
    for args in busy {
        run(args).code(4).says("another process is writing").says("--wait");
    }
    run_with(&["load", &store, "--wait", "0", "-f", "csv"], b"key,value\nk,v\n")
        .code(4)
        .says("nothing was committed");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&["put", &store, "waited", "1", "--wait", "60"]));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished());
        txn.commit().unwrap();
        waiting.join().unwrap().ok();
    });
    drop(env);
    let main = contents(&store).remove(&b"main"[..]).unwrap();
    assert!(main.contains_key(&b"unseen"[..]) && main.contains_key(&b"waited"[..]));
    assert_eq!(main.len(), 6);
}

#[test]
fn an_exclusive_owner_keeps_everyone_out() {
    let place = Place::new();
    let store = place.small_store("s");
    // A command that another test is just starting holds, until its exec, the locks that this
    // process had at its fork.
    let open = || Options::new().exclusive(true).open(&store);
    let patience = Instant::now() + Duration::from_secs(20);
    let env = loop {
        match open() {
            Err(zubilo::Error::Busy(_)) if Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => break opened.unwrap(),
        }
    };
    for args in [&["scan", &store][..], &["put", &store, "k", "v"], &["stat", &store]] {
        run(args).code(4).says("end the process that has it open");
    }
    drop(env);
    while run(&["scan", &store]).code != 0 {
        assert!(Instant::now() < patience, "still locked");
    }
}

/// The drop-in keeps its stores in folders, under LMDB's names: the command takes the folder, and meets
/// the drop-in's programs in their lock file. With one of its own there would be two writers.
#[test]
fn a_folder_of_the_drop_in_has_one_writer() {
    let place = Place::new();
    let folder = place.dir().to_str().unwrap();
    let data = place.small_store("data.mdb");
    assert!(place.path("lock.mdb").exists());
    for store in [folder, &data] {
        run(&["put", store, "k", "v"]).ok();
        assert_eq!(run(&["get", store, "k"]).ok(), "v\n");
        run(&["salvage", store, "-f", "jsonl"]).ok();
    }
    let program = Options::new().lock_path(place.path("lock.mdb")).open(&data).unwrap();
    let txn = program.write().unwrap();
    for store in [folder, &data] {
        run(&["put", store, "k", "2", "--wait", "0"]).code(4).says("another process is writing");
    }
    txn.abort();
    assert!(!place.path("data.mdb-lock").exists());
    run(&["import", folder, &place.arg("new")]).code(3).says("a Zubilo store already");
}
