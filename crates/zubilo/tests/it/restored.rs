//! Files that are written over in place, on the same boot, by bytes with the same newest commit number as
//! those that the lock file knows: restores of backups, copies of other branches of history.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use zubilo::{Durability, Env, Error, Options};

use crate::common::memory::MemoryFile;
use crate::common::process::{Program, apart, say, task, wait};
use crate::common::{check, fresh, put_all};

fn records(fill: u8) -> impl Iterator<Item = ([u8; 8], Vec<u8>)> {
    (0..50u64).map(move |n| (n.to_be_bytes(), vec![fill; 3000]))
}

fn open(path: &Path) -> zubilo::Result<Env> {
    Options::new().durability(Durability::NoSync).open(path)
}

fn commits(env: &Env, fills: std::ops::Range<u8>) {
    fills.for_each(|fill| _ = put_all(env, "t", records(fill)));
}

/// As a program that restores does it: the file stays, its content is another.
fn restore(path: &Path, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

const METAS: usize = 4 * 4096;

/// The second of two branches of history.
fn branch(env: &Env) {
    commits(env, 102..112);
}

#[test]
#[ignore = "program: run by other tests"]
fn child_makes_a_branch() {
    let Some(path) = task() else { return };
    branch(&open(&path).unwrap());
    say("made");
    wait();
}

/// A store whose lock file knows one branch of history; a copy of the other that was made while it was
/// written to, whose newest commit has the same number.
fn branches(path: &Path, killed: bool) -> Vec<u8> {
    let env = open(path).unwrap();
    put_all(&env, "t", records(1));
    env.close().unwrap();
    let backup = fs::read(path).unwrap();
    // Both branches begin at a restore of another commit than the lock file knows, so they take the same pages.
    put_all(&open(path).unwrap(), "t", records(2));
    restore(path, &backup);
    let env = open(path).unwrap();
    commits(&env, 2..12);
    let metas = fs::read(path).unwrap()[..METAS].to_vec();
    commits(&env, 12..22);
    let mut torn = fs::read(path).unwrap();
    torn[..METAS].copy_from_slice(&metas);
    commits(&env, 22..30);
    env.close_without_sync();
    restore(path, &backup);
    if killed {
        let mut child = Program::start("restored::child_makes_a_branch", path);
        assert_eq!(child.hear(), "made");
        child.kill();
    } else {
        let env = open(path).unwrap();
        branch(&env);
        env.close_without_sync();
    }
    torn
}

/// All of one commit, or an error.
#[track_caller]
fn assert_whole(path: &Path) {
    if let Ok(env) = open(path) {
        check(&env, "the commit that was trusted");
    }
}

#[test]
fn a_torn_copy_of_another_branch_is_not_trusted() {
    let _apart = apart();
    for killed in [false, true] {
        let (_dir, path) = fresh();
        let torn = branches(&path, killed);
        restore(&path, &torn);
        assert_whole(&path);
    }
}

/// The metas are those that the lock file knows, the pages are not.
#[test]
fn other_pages_below_the_same_metas_are_not_trusted() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let mut torn = branches(&path, false);
    torn[..METAS].copy_from_slice(&fs::read(&path).unwrap()[..METAS]);
    restore(&path, &torn);
    assert_whole(&path);
}

/// A store that was put there without its lock file, by a copy for example: a flush that fails may have lost
/// what the copy wrote. Readers may look at what is seen; nobody builds on it, then or later.
#[test]
fn a_flush_that_fails_for_who_knows_nothing_stops_writers() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let source = MemoryFile::new(&[]);
    put_all(&source.open(Options::new()).unwrap(), "t", records(1));
    for read_only in [true, false] {
        let file = MemoryFile::new(&source.image());
        let lock = Options::default_lock_path(&path);
        let options = Options::new().read_only(read_only);
        file.fail(0, 1);
        let first = file.open_beside(&path, options);
        assert!(file.heal(), "nothing was flushed");
        if read_only {
            let reader = first.unwrap();
            check(&reader, "for reading");
            let writer = file.open_beside(&path, Options::new()).unwrap();
            let begun = writer.write().map(drop);
            assert!(matches!(begun, Err(Error::Poisoned { .. })), "{begun:?}");
        } else {
            assert!(matches!(first.map(drop), Err(Error::Io { .. })));
        }
        let next = file.open_beside(&path, Options::new()).map(drop).unwrap_err();
        assert!(next.to_string().contains("after a failed flush"), "{next}");
        // Who knows better says so.
        fs::remove_file(&lock).unwrap();
        put_all(&file.open_beside(&path, Options::new()).unwrap(), "t", records(2));
        fs::remove_file(&lock).unwrap();
    }
}

/// What a restore has written may be in the kernel only; the next commit builds on it.
#[test]
fn a_restored_store_is_flushed_by_the_open() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let file = MemoryFile::new(&[]);
    let open = || file.open_beside(&path, Options::new()).unwrap();
    put_all(&open(), "t", records(1));
    let flushes_of_an_open = || {
        let before = file.flushes();
        drop(open());
        file.flushes() - before
    };
    assert_eq!(flushes_of_an_open(), 0, "after an end in order");
    file.restore(&file.image());
    assert_eq!(flushes_of_an_open(), 1, "after a restore");
    assert_eq!(flushes_of_an_open(), 0, "after the open that flushed");
}
