//! A real file system that is full: a small one in memory, mounted where only the thread of the test
//! sees it. Needs the right to mount; says so where it has not.
//!
//! In every mode the disk is filled up to another point and commits are made until one fails: an
//! error, never a signal; the old data is there; it goes on when there is room again.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use sim::watch::{beat, watch};
use zubilo::{Durability, Env, Error, Options};

/// Bytes of the file system.
const SIZE: u64 = 3 << 20;

/// A file system of the calling thread, and of the threads that it starts.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> Option<Disk> {
        let dir = tempfile::tempdir().expect("a folder");
        let target = CString::new(dir.path().as_os_str().as_bytes()).expect("no zero byte");
        let options = CString::new(format!("size={SIZE}")).expect("no zero byte");
        // SAFETY: a mount namespace of this thread alone; all strings end in zero bytes and outlive
        // the calls.
        let mounted = unsafe {
            let own = libc::unshare(libc::CLONE_NEWNS) == 0;
            let private = libc::MS_REC | libc::MS_PRIVATE;
            let (none, memory) = (c"none".as_ptr(), c"tmpfs".as_ptr());
            let (void, root) = (std::ptr::null::<libc::c_void>(), c"/".as_ptr());
            own && libc::mount(none, root, void.cast(), private, void) == 0
                && libc::mount(memory, target.as_ptr(), memory, 0, options.as_ptr().cast()) == 0
        };
        mounted.then_some(Disk(dir))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let target = CString::new(self.0.path().as_os_str().as_bytes()).expect("no zero byte");
        // SAFETY: a string that ends in a zero byte.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.raw_os_error() == Some(libc::ENOSPC))
}

fn commit(env: &Env, number: u32) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    let mut table = txn.table_or_create("t")?;
    table.put(number.to_be_bytes(), vec![number as u8; 5000 + 1000 * (number as usize % 9)])?;
    for i in 0..30u32 {
        table.put([b"small".as_slice(), &i.to_be_bytes()].concat(), number.to_be_bytes())?;
    }
    txn.commit().map(drop)
}

/// All records that `count` commits left.
fn judge(env: &Env, count: u32, case: &str) {
    let report = env.check(&mut |_, _| true).unwrap_or_else(|e| panic!("{case}: check: {e}"));
    assert!(report.is_ok(), "{case}: {:?}", report.problems);
    let read = env.read().unwrap_or_else(|e| panic!("{case}: read: {e}"));
    if count == 0 {
        assert!(read.tables().expect("tables").is_empty(), "{case}");
        return;
    }
    let table = read.table("t").unwrap_or_else(|e| panic!("{case}: table: {e}"));
    assert_eq!(table.len(), u64::from(count) + 30, "{case}");
    for number in 1..=count {
        let found = table.get(number.to_be_bytes()).expect("get").expect("the value");
        assert_eq!(found.len(), 5000 + 1000 * (number as usize % 9), "{case}");
        assert!(found.iter().all(|b| *b == number as u8), "{case}: value {number}");
    }
}

fn fill(options: &Options, ballast: u64, case: &str) {
    let disk = Disk::mount().expect("mounted before");
    let (path, weight) = (disk.0.path().join("store"), disk.0.path().join("ballast"));
    std::fs::write(&weight, vec![1; ballast as usize]).expect("ballast");
    let mut count = 0;
    match options.clone().open(&path) {
        Ok(env) => {
            let full = loop {
                match commit(&env, count + 1) {
                    Ok(()) => count += 1,
                    Err(error) => break error,
                }
                assert!(count < 2000, "{case}: it does not get full");
            };
            assert!(is_full(&full), "{case}: {full}");
            for _ in 0..3 {
                judge(&env, count, case);
                // A smaller one may fit where a larger one did not.
                match commit(&env, count + 1) {
                    Ok(()) => count += 1,
                    Err(error) => assert!(is_full(&error), "{case}: {error}"),
                }
            }
            if let Err(error) = env.sync() {
                assert!(is_full(&error), "{case}: {error}");
            }
            make_room(&weight);
            commit(&env, count + 1).unwrap_or_else(|e| panic!("{case}: with room again: {e}"));
            count += 1;
            judge(&env, count, case);
            env.close().unwrap_or_else(|e| panic!("{case}: close: {e}"));
        }
        Err(error) => {
            assert!(is_full(&error), "{case}: {error}");
            make_room(&weight);
        }
    }
    let env = options.clone().open(&path).unwrap_or_else(|e| panic!("{case}: reopen: {e}"));
    judge(&env, count, case);
    commit(&env, count + 1).unwrap_or_else(|e| panic!("{case}: after a reopen: {e}"));
}

fn make_room(ballast: &Path) {
    std::fs::remove_file(ballast).expect("the ballast");
}

#[test]
fn a_full_disk_is_an_error_in_every_mode() {
    if Disk::mount().is_none() {
        eprintln!("NOT TESTED: no right to mount a small file system here");
        return;
    }
    let _watched = watch("full disk".into());
    let lazy = Durability::Lazy { sync_bytes: 16 << 10, sync_period: Duration::from_millis(1) };
    for durability in [Durability::Sync, lazy, Durability::NoSync] {
        for writable in [false, true] {
            let options = Options::new().durability(durability).writable_map(writable);
            // From a disk with much room to one that has none even for an empty store.
            for left in (0..24).map(|i| i * 20_000).chain([1_000_000, 2_000_000]) {
                beat();
                let case = format!("{durability:?}, writable map {writable}, {left} bytes left");
                fill(&options, SIZE - left.max(4096), &case);
            }
        }
    }
}
