//! Several real processes: killed writers and readers, forked children, exclusive use.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use zubilo::{Durability, Env, Error, Options, Result};

use crate::common::process::{Program, apart, ended_well, fork, say, task, wait};
use crate::common::{Rng, check, contents, fresh, number, put_all, seed};

fn keys(env: &Env, table: &str) -> BTreeSet<u64> {
    let read = env.read().unwrap();
    let Ok(table) = read.table(table) else { return BTreeSet::new() };
    table.iter().map(|r| u64::from_be_bytes(r.unwrap().0.try_into().unwrap())).collect()
}

fn count(env: &Env, n: u64) {
    put_all(env, "t", [(n.to_be_bytes(), vec![n as u8; 300])]);
}

// ---- programs that other tests start ----

#[test]
#[ignore = "program: run by other tests"]
fn child_in_a_transaction() {
    let Some(path) = task() else { return };
    let env = Options::new().dirty_limit(50 << 10).open(path).unwrap();
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("lost").unwrap();
    for n in 0..5000u64 {
        table.put(n.to_be_bytes(), [1; 200]).unwrap();
    }
    say("ready");
    wait();
    unreachable!("killed before");
}

#[test]
#[ignore = "program: run by other tests"]
fn child_commits() {
    let Some(path) = task() else { return };
    let durability = match std::env::var("WEAK") {
        Ok(_) => Durability::NoSync,
        Err(_) => Durability::Sync,
    };
    let env = Options::new().durability(durability).dirty_limit(30 << 10).open(path).unwrap();
    let first = env.read().unwrap().id().0 << 32;
    for n in first.. {
        // Sometimes large enough to spill.
        let size = if n % 7 == 0 { 100_000 } else { 300 };
        put_all(&env, "t", [(n.to_be_bytes(), vec![n as u8; size])]);
        say(n);
    }
}

#[test]
#[ignore = "program: run by other tests"]
fn child_reads() {
    let Some(path) = task() else { return };
    let env = Options::new().open(path).unwrap();
    let read = env.read().unwrap();
    say(read.id().0);
    wait();
    let found = contents(&read);
    say(found[&b"t"[..]].len());
}

#[test]
#[ignore = "program: run by other tests"]
fn child_opens() {
    let Some(path) = task() else { return };
    let exclusive = std::env::var("EXCLUSIVE").is_ok();
    match Options::new().exclusive(exclusive).open(path) {
        Ok(env) => {
            say("open");
            wait();
            put_all(&env, "child", [("k", "v")]);
            say("done");
            wait();
        }
        Err(Error::Busy(_)) => say("busy"),
        Err(other) => say(other),
    }
}

// ---- tests ----

/// The next writer goes on at once, in a process that had the store open and in a new one.
#[test]
fn a_writer_killed_in_its_transaction_delays_nobody() {
    let _apart = apart();
    for stays_open in [true, false] {
        let (_dir, path) = fresh();
        let mut env = Options::new().open(&path).unwrap();
        count(&env, 1);
        let before = contents(&env.read().unwrap());
        if !stays_open {
            env.close().unwrap();
        }
        let mut child = Program::start("processes::child_in_a_transaction", &path);
        assert_eq!(child.hear(), "ready");
        if stays_open {
            assert!(env_of(&path).try_write().unwrap().is_none(), "the child holds the lock");
        }
        child.kill();
        let start = Instant::now();
        env = Options::new().open(&path).unwrap();
        count(&env, 2);
        assert!(start.elapsed() < Duration::from_secs(5), "waited {:?}", start.elapsed());
        check(&env, "after a killed writer");
        let mut after = contents(&env.read().unwrap());
        assert!(after.get_mut(&b"t"[..]).unwrap().remove(&2u64.to_be_bytes()[..]).is_some());
        assert_eq!(after, before);
    }
}

fn env_of(path: &Path) -> Env {
    Options::new().open(path).unwrap()
}

/// Killed at any moment: what it had acknowledged is there, and nothing but that and perhaps the
/// commit under way.
#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    let _apart = apart();
    let seed = seed(900);
    let mut rng = Rng::new(seed);
    for weak in [false, true] {
        let (_dir, path) = fresh();
        let mut acknowledged = BTreeSet::new();
        for round in 0..number("ZUBILO_CASES", 8) {
            let keep = rng.one_in(2).then(|| env_of(&path));
            let mut child = Program::start_as("processes::child_commits", &path, |command| {
                if weak { command.env("WEAK", "") } else { command }
            });
            for _ in 0..rng.below(40) {
                acknowledged.insert(child.hear().parse::<u64>().unwrap());
            }
            std::thread::sleep(Duration::from_micros(rng.below(5000)));
            for n in child.kill_and_hear() {
                acknowledged.insert(n.parse().unwrap());
            }
            let what = format!("seed {seed}, weak {weak}, round {round}");
            let env = keep.unwrap_or_else(|| env_of(&path));
            let found = keys(&env, "t");
            assert!(
                found.is_superset(&acknowledged),
                "{what}: lost {:?}",
                acknowledged.difference(&found)
            );
            assert!(found.len() <= acknowledged.len() + 1, "{what}: more than was committed");
            acknowledged = found;
            check(&env, &what);
            put_all(&env, "other", [("k", "v")]);
            check(&env, &what);
        }
        assert!(acknowledged.len() > 20);
    }
}

/// Without an explicit call its snapshot is held back no longer.
#[test]
fn a_dead_reader_is_cleaned_up_by_the_writer() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    put_all(&env, "t", (0..5000u64).map(|n| (n.to_be_bytes(), [0; 200])));
    env.sync().unwrap();
    let mut child = Program::start("processes::child_reads", &path);
    let snapshot: u64 = child.hear().parse().unwrap();
    for round in 1..4u8 {
        put_all(&env, "t", (0..5000u64).map(|n| (n.to_be_bytes(), [round; 200])));
        env.sync().unwrap();
    }
    let readers = env.readers();
    assert_eq!(readers.len(), 1);
    assert_eq!((readers[0].pid, readers[0].txn.0, readers[0].lag), (child.id(), snapshot, 3));
    let retired = |env: &Env| env.check(&mut |_, _| true).unwrap().retired_pages;
    assert!(retired(&env) > 250, "the reader sees nothing?");
    child.kill();
    let start = Instant::now();
    loop {
        put_all(&env, "t", [(0u64.to_be_bytes(), [9; 200])]);
        env.sync().unwrap();
        if env.readers().is_empty() && retired(&env) < 50 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "held back by a dead reader");
        std::thread::sleep(Duration::from_millis(20));
    }
    check(&env, "without the dead reader");
}

#[test]
fn a_living_reader_of_another_process_keeps_its_snapshot() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = env_of(&path);
    put_all(&env, "t", (0..1000u64).map(|n| (n.to_be_bytes(), [0; 200])));
    let mut child = Program::start("processes::child_reads", &path);
    child.hear();
    for _ in 0..20 {
        put_all(&env, "t", (0..1000u64).map(|n| (n.to_be_bytes(), [1; 200])));
        let mut txn = env.write().unwrap();
        txn.table("t").unwrap().clear().unwrap();
        txn.commit().unwrap();
    }
    child.go();
    assert_eq!(child.hear(), "1000");
    child.finish();
    assert!(env.readers().is_empty());
}

/// The lock file belongs to the file, not to the name by which it is found.
#[test]
fn a_symbolic_link_leads_to_the_same_lock_file() {
    let _apart = apart();
    let (dir, path) = fresh();
    let env = env_of(&path);
    count(&env, 1);
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    let mut child = Program::start("processes::child_reads", &link);
    child.hear();
    assert_eq!(env.readers().len(), 1, "the other process is not seen");
    child.go();
    assert_eq!(child.hear(), "1");
    child.finish();
    let names = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 3, "more than store, lock file and link");
}

#[test]
fn exclusive_use_keeps_others_out() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = Options::new().exclusive(true).open(&path).unwrap();
    count(&env, 1);
    let mut child = Program::start("processes::child_opens", &path);
    assert_eq!(child.hear(), "busy");
    child.finish();
    env.close().unwrap();
    // The other way round: shared use keeps an exclusive one out, as long as it lasts.
    let env = env_of(&path);
    let exclusive = || {
        Program::start_as("processes::child_opens", &path, |command| command.env("EXCLUSIVE", ""))
    };
    let mut child = exclusive();
    assert_eq!(child.hear(), "busy");
    child.finish();
    env.close().unwrap();
    let mut child = exclusive();
    assert_eq!(child.hear(), "open");
    assert!(matches!(Options::new().open(&path), Err(Error::Busy(_))));
    child.go();
    assert_eq!(child.hear(), "done");
    // Killed: free at once.
    child.kill();
    let env = env_of(&path);
    assert_eq!(contents(&env.read().unwrap()).len(), 2);
    check(&env, "after exclusive use");
}

#[track_caller]
fn assert_forked<T>(result: Result<T>) {
    assert!(matches!(result, Err(Error::Forked)), "work in a forked child");
}

fn assert_handle_refused(env: &Env, copy: &Path) {
    assert_forked(env.read());
    assert_forked(env.write());
    assert_forked(env.try_write());
    assert_forked(env.update(|_| Ok(())));
    assert_forked(env.sync());
    assert_forked(env.info());
    assert_forked(env.clean_readers());
    assert_forked(env.check(&mut |_, _| true));
    assert_forked(env.walk_pages(&mut |_| true));
    assert_forked(env.copy_to_path(copy, false, &mut |_, _| true));
    assert_forked(env.copy_to_writer(&mut std::io::sink(), true, &mut |_, _| true));
    assert_forked(env.clone().close());
    assert_forked(env.reader());
    assert_forked(env.space());
    assert!(!copy.exists());
}

/// Every start of a program is a fork for a moment, with a copy of all descriptors.
#[test]
fn a_closed_store_is_closed_while_a_forked_child_lives() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = env_of(&path);
    put_all(&env, "t", [("k", "old")]);
    let image = std::fs::read(&path).unwrap();
    put_all(&env, "t", [("k", "new")]);
    let (heard, mut tell) = std::io::pipe().unwrap();
    let child = fork(|| {
        // SAFETY: the parent's descriptor; so its end ends the child, too.
        unsafe { libc::close(tell.as_raw_fd()) };
        drop((&heard).read(&mut [0]));
    });
    env.close().unwrap();
    // Nobody has the store open: it may be replaced, removed, used alone.
    std::fs::write(&path, image).unwrap();
    let env = Options::new().exclusive(true).open(&path).unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().get("k").unwrap(), Some(&b"old"[..]));
    env.close().unwrap();
    let env = env_of(&path);
    put_all(&env, "t", [("k", "newer")]);
    tell.write_all(b"!").unwrap();
    assert!(ended_well(child));
}

#[test]
fn a_forked_child_is_refused_on_every_handle() {
    let _apart = apart();
    let (dir, path) = fresh();
    let env = env_of(&path);
    count(&env, 1);
    let mut read = env.read().unwrap();
    let shared = env.read().unwrap().into_shared();
    let mut reader = env.reader().unwrap();
    let mut txn = env.write().unwrap();
    txn.table("t").unwrap().put("inherited", "x").unwrap();
    let copy = dir.path().join("copy");
    let child = fork(|| {
        assert_handle_refused(&env, &copy);
        assert_forked(reader.begin());
        assert_forked(read.refresh());
        assert_forked(read.table("t").map(drop));
        assert_forked(read.tables());
        assert_forked(shared.get_owned("t", "k"));
        assert_forked(txn.tables());
        assert_forked(txn.table("t").map(drop));
        assert_forked(txn.drop_table("t"));
        assert_forked(txn.nested(|_| Ok(())));
        assert_forked(txn.set_geometry(Default::default()));
        // Commit and drop take what they are given. The parent's own values are not dropped here.
        // SAFETY: this process ends by `_exit` and does not touch the originals any more.
        let (txn, read, shared, env) = unsafe {
            use std::ptr::read as take;
            (
                take(&raw const txn),
                take(&raw const read),
                take(&raw const shared),
                take(&raw const env),
            )
        };
        assert_forked(txn.commit());
        drop((read, shared, env));
        // Opened anew the child is a user like any other.
        let own = Options::new().open(&path).unwrap();
        assert_eq!(own.readers().len(), 2);
        assert!(own.try_write().unwrap().is_none());
        assert_eq!(contents(&own.read().unwrap())[&b"t"[..]].len(), 1);
    });
    assert!(ended_well(child));
    // Nothing of the parent's was touched.
    assert_eq!(env.readers().len(), 2);
    txn.table("t").unwrap().put("more", "x").unwrap();
    txn.commit().unwrap();
    read.refresh().unwrap();
    assert_eq!(read.table("t").unwrap().len(), 3);
    assert_eq!(shared.table("t").unwrap().len(), 1);
    let child = fork(|| {
        let own = Options::new().open(&path).unwrap();
        put_all(&own, "child", [("k", "v")]);
    });
    assert!(ended_well(child));
    assert_eq!(contents(&env.read().unwrap()).len(), 2);
    check(&env, "after forks");
}

/// Writers of several processes take turns, and follow each other's account of pages.
#[test]
fn writers_of_several_processes_take_turns() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let mut children: Vec<_> = (0..2)
        .map(|_| {
            Program::start_as("processes::child_commits", &path, |command| command.env("WEAK", ""))
        })
        .collect();
    for n in 0..60 {
        // Numbers that no child uses.
        count(&env, u64::MAX - n);
        children.iter_mut().for_each(|child| drop(child.hear()));
        if n % 10 == 0 {
            check(&env, "among other writers");
        }
    }
    children.into_iter().for_each(Program::kill);
    assert!(keys(&env, "t").len() >= 120);
    check(&env, "at the end");
}
