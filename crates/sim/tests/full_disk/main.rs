//! A real file system that is full: a small one in memory, and an ext4 in a file, mounted where only the
//! thread of the test sees it. Needs the right to mount; says so where it has not.
//!
//! In every mode the disk is filled up to another point and commits are made until one fails: an
//! error, never a signal; the old data is there; it goes on when there is room again. The same through
//! the C interface, in the modes that its flags choose.

#[path = "../recorded/c.rs"]
#[allow(dead_code)]
mod c;
mod c_full;
#[path = "../recorded/plan.rs"]
#[allow(dead_code)]
mod plan;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sim::watch::{beat, watch};
use zubilo::{Durability, Env, Error, Options};

/// Bytes of the file system in memory, and of the file with the other one.
const SIZE: u64 = 3 << 20;
const EXT4_SIZE: u64 = 5 << 20;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Memory,
    Ext4,
}

/// A file system of the calling thread, and of the threads that it starts.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount(kind: Kind) -> Option<Disk> {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("mounted")).expect("a folder");
        let disk = Disk(dir);
        let mounted = match kind {
            Kind::Memory => disk.mount_memory(),
            Kind::Ext4 => disk.mount_memory() && disk.mount_ext4(),
        };
        mounted.then_some(disk)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("mounted")
    }

    /// Bytes that are left.
    fn room(&self) -> u64 {
        let target = CString::new(self.path().as_os_str().as_bytes()).expect("no zero byte");
        // SAFETY: a string that ends in a zero byte, and a structure that may be all zeros.
        unsafe {
            let mut found: libc::statvfs = std::mem::zeroed();
            assert_eq!(libc::statvfs(target.as_ptr(), &mut found), 0);
            found.f_bavail * found.f_frsize
        }
    }

    /// Fills it up to what is to be left.
    fn fill(&self, left: u64) -> PathBuf {
        let ballast = self.path().join("ballast");
        std::fs::write(&ballast, vec![1; self.room().saturating_sub(left) as usize])
            .expect("ballast");
        ballast
    }

    /// On top of the other one, which only makes the mounts of this thread its own.
    fn mount_ext4(&self) -> bool {
        let image = self.0.path().join("image");
        std::fs::write(&image, vec![0; EXT4_SIZE as usize]).expect("an image");
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdout(std::process::Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let (image, target) = (image.display().to_string(), self.path().display().to_string());
        run("mkfs.ext4", &["-q", "-F", "-m", "0", &image])
            && run("mount", &["-o", "loop", &image, &target])
    }

    fn mount_memory(&self) -> bool {
        let target = CString::new(self.path().as_os_str().as_bytes()).expect("no zero byte");
        let options = CString::new(format!("size={SIZE}")).expect("no zero byte");
        // SAFETY: a mount namespace of this thread alone; all strings end in zero bytes and outlive
        // the calls.
        unsafe {
            let own = libc::unshare(libc::CLONE_NEWNS) == 0;
            let private = libc::MS_REC | libc::MS_PRIVATE;
            let (none, memory) = (c"none".as_ptr(), c"tmpfs".as_ptr());
            let (void, root) = (std::ptr::null::<libc::c_void>(), c"/".as_ptr());
            own && libc::mount(none, root, void.cast(), private, void) == 0
                && libc::mount(memory, target.as_ptr(), memory, 0, options.as_ptr().cast()) == 0
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let target = CString::new(self.path().as_os_str().as_bytes()).expect("no zero byte");
        // SAFETY: a string that ends in a zero byte. What is not mounted is left.
        unsafe { while libc::umount2(target.as_ptr(), libc::MNT_DETACH) == 0 {} };
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

fn fill(kind: Kind, options: &Options, left: u64, case: &str) {
    let disk = Disk::mount(kind).expect("mounted before");
    let (path, weight) = (disk.path().join("store"), disk.fill(left));
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
    // Emptied first: a program that another thread is about to start may have it open for a moment.
    std::fs::write(ballast, "").expect("the ballast");
    std::fs::remove_file(ballast).expect("the ballast");
    // A file system with a journal gives the blocks back when it has written that down.
    let folder = ballast.parent().expect("a folder");
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).expect("the folder");
}

/// From a disk with much room to one that has none even for an empty store.
fn rooms() -> impl Iterator<Item = u64> {
    (0..24).map(|i| i * 20_000).chain([1_000_000, 2_000_000])
}

/// Whether such a file system can be had here.
fn can_mount(kind: Kind) -> bool {
    let can = Disk::mount(kind).is_some();
    if !can {
        eprintln!("NOT TESTED: {kind:?}: no right to mount a small file system here");
    }
    can
}

fn options(durability: Durability, writable: Option<bool>) -> Options {
    let options = Options::new().durability(durability);
    match writable {
        Some(writable) => options.writable_map(writable),
        None => options,
    }
}

/// A store with one commit, and a hole of so many bytes at its end.
fn store_with_a_hole(path: &std::path::Path, options: &Options, hole: u64) {
    let env = options.clone().open(path).expect("open");
    commit(&env, 1).expect("room");
    env.close().expect("close");
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
    let len = file.metadata().expect("its length").len();
    file.set_len(len + hole).expect("a hole");
}

/// A copy of a store may have holes. A store through the map into one of them would be a signal here.
fn with_a_hole(kind: Kind, writable: Option<bool>) {
    let case = format!("{kind:?}, a hole, writable map {writable:?}");
    let disk = Disk::mount(kind).expect("mounted a moment ago");
    let path = disk.path().join("store");
    let options = options(Durability::NoSync, writable);
    store_with_a_hole(&path, &options, 2 << 20);
    disk.fill(0);
    let env = options.open(&path).unwrap_or_else(|e| panic!("{case}: {e}"));
    let mut count = 1;
    while count < 1000 {
        match commit(&env, count + 1) {
            Ok(()) => count += 1,
            Err(error) => {
                assert!(is_full(&error), "{case}: {error}");
                break;
            }
        }
    }
    assert!(count < 1000, "{case}: the disk was not full");
    judge(&env, count, &case);
}

/// A copy with more holes than the disk has room for: they are left alone. To fill them would take all
/// the room that others need, and then fail.
fn with_more_holes_than_room(kind: Kind, writable: Option<bool>) {
    let case = format!("{kind:?}, many holes, writable map {writable:?}");
    let disk = Disk::mount(kind).expect("mounted a moment ago");
    let path = disk.path().join("store");
    let options = options(Durability::NoSync, writable);
    store_with_a_hole(&path, &options, 64 << 20);
    let before = disk.room();
    let env = options.open(&path).unwrap_or_else(|e| panic!("{case}: {e}"));
    for number in 2..10 {
        commit(&env, number).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
    let after = disk.room();
    assert!(after + (512 << 10) > before, "{case}: of {before} bytes {after} are left");
    judge(&env, 9, &case);
}

fn in_every_mode(kind: Kind) {
    if !can_mount(kind) {
        return;
    }
    let _watched = watch(format!("full disk, {kind:?}"));
    for writable in [None, Some(false), Some(true)] {
        with_a_hole(kind, writable);
        with_more_holes_than_room(kind, writable);
    }
    let logged = options(Durability::Sync, None).redo_log(256 << 10);
    for left in rooms() {
        beat();
        fill(kind, &logged, left, &format!("{kind:?}, redo log, {left} bytes left"));
    }
    let lazy = Durability::Lazy { sync_bytes: 16 << 10, sync_period: Duration::from_millis(1) };
    for durability in [Durability::Sync, lazy, Durability::NoSync] {
        // Where flushes follow, the map is never writable.
        let ways = if durability == Durability::NoSync { 3 } else { 1 };
        for writable in [None, Some(false), Some(true)].into_iter().take(ways) {
            let options = options(durability, writable);
            for left in rooms() {
                beat();
                let case = format!(
                    "{kind:?}, {durability:?}, writable map {writable:?}, {left} bytes left"
                );
                fill(kind, &options, left, &case);
            }
        }
    }
}

#[test]
fn a_full_disk_is_an_error_in_every_mode() {
    in_every_mode(Kind::Memory);
}

#[test]
fn a_full_ext4_is_an_error_in_every_mode() {
    in_every_mode(Kind::Ext4);
}

#[test]
fn a_full_disk_is_an_error_of_the_c_interface_too() {
    c_full::in_every_mode(Kind::Memory);
}

#[test]
fn a_full_ext4_is_an_error_of_the_c_interface_too() {
    c_full::in_every_mode(Kind::Ext4);
}
