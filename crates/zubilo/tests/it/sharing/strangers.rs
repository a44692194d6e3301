//! Other users of the machine, who may read a store or its lock file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zubilo::{Env, Error, Options};

use super::store;
use crate::common::process::{Program, apart, may_mount, say, task, wait};
use crate::common::{contents, fresh, put_all};

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// With a mask of its own for new files.
#[test]
#[ignore = "program: run by other tests"]
fn child_makes_lock_files() {
    let Some(dir) = task() else { return };
    for (n, (mode, mask, expected)) in [
        (0o644, 0o022, 0o600),
        (0o600, 0o022, 0o600),
        (0o664, 0o002, 0o660),
        (0o664, 0o022, 0o600),
        (0o666, 0o000, 0o666),
        (0o444, 0o000, 0o600),
    ]
    .into_iter()
    .enumerate()
    {
        // SAFETY: sets the mask of this process, which runs this test alone.
        unsafe { libc::umask(mask) };
        let path = dir.join(format!("store{n}"));
        let lock = Options::default_lock_path(&path);
        let env = Options::new().mode(mode).open(&path).unwrap();
        assert_eq!(mode_of(&lock), expected, "mode {mode:o}, mask {mask:o}");
        env.close().unwrap();
        // One that was left by an earlier version.
        fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).unwrap();
        Options::new().mode(mode).open(&path).unwrap().close().unwrap();
        assert_eq!(mode_of(&lock), 0o600);
    }
    say("all");
}

/// Who may not write a lock file has no use for it, but could hold locks on it.
#[test]
fn a_lock_file_can_be_read_by_those_only_who_may_write_it() {
    let _apart = apart();
    let (dir, _) = fresh();
    let program = "sharing::strangers::child_makes_lock_files";
    let mut child = Program::start(program, dir.path());
    assert_eq!(child.hear(), "all");
    child.finish();
}

/// Takes a lock for reading on all of a file and what is behind it.
fn hold(path: &Path) -> Option<fs::File> {
    use std::os::fd::AsRawFd;
    let file = fs::File::open(path).ok()?;
    // SAFETY: all zeros are a value of this plain structure.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_RDLCK as libc::c_short;
    // SAFETY: the descriptor is open and the structure outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
    (done == 0).then_some(file)
}

#[test]
#[ignore = "program: run by other tests"]
fn child_holds_read_locks() {
    let Some(path) = task() else { return };
    // SAFETY: plain calls that change this process only.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setgid(65534), 0);
        assert_eq!(libc::setuid(65534), 0);
    }
    let data = hold(&path);
    let lock = hold(&Options::default_lock_path(&path));
    say(format!("data {}, lock {}", data.is_some(), lock.is_some()));
    wait();
}

/// The store is readable for everybody, and somebody makes the most of it.
#[test]
fn who_may_only_read_a_store_keeps_nobody_out() {
    let _apart = apart();
    if !may_mount("who_may_only_read_a_store_keeps_nobody_out") {
        return;
    }
    let (dir, path) = fresh();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    store(&path).close().unwrap();
    assert_eq!(mode_of(&path), 0o644);
    let program = "sharing::strangers::child_holds_read_locks";
    let mut stranger = Program::start(program, &path);
    assert_eq!(stranger.hear(), "data true, lock false");
    for exclusive in [false, true] {
        let env = Options::new().exclusive(exclusive).open(&path).unwrap();
        put_all(&env, "u", [("k", "v")]);
        env.close().unwrap();
    }
    let mut reader = Program::start("sharing::child_keeps_slices", &path);
    assert_eq!(reader.hear(), "keeps 50");
    reader.finish();
    stranger.finish();
}

fn is_busy(opened: Result<Env, Error>) -> bool {
    matches!(opened, Err(Error::Busy(_)))
}

/// Who may use the lock file but not write the data file, as LMDB's programs arrange for readers: part
/// of it by the usual name, and by no other.
#[test]
#[ignore = "program: run by other tests"]
fn child_reads_as_nobody() {
    let Some(path) = task() else { return };
    // SAFETY: plain calls that change this process only.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setgid(65534), 0);
        assert_eq!(libc::setuid(65534), 0);
    }
    match Options::new().read_only(true).open(&path) {
        Ok(env) => {
            say(format!("found {}", contents(&env.read().unwrap()).len()));
            wait();
        }
        Err(error) => say(format!("refused: {error}")),
    }
}

const NOBODY: &str = "sharing::strangers::child_reads_as_nobody";

/// A store that a process without permission to write it reads.
fn read_by_nobody() -> (TempDir, PathBuf, Program) {
    let (dir, path) = fresh();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    store(&path).close().unwrap();
    let lock = Options::default_lock_path(&path);
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o666)).unwrap();
    let mut reader = Program::start(NOBODY, &path);
    assert_eq!(reader.hear(), "found 1");
    (dir, path, reader)
}

#[test]
fn a_reader_without_permission_to_write_is_minded() {
    let _apart = apart();
    if !may_mount("a_reader_without_permission_to_write_is_minded") {
        return;
    }
    let (dir, path, reader) = read_by_nobody();
    assert_eq!(mode_of(&path), 0o644);
    // By another name, which tells that it has several.
    let other = dir.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    assert!(is_busy(Options::new().open(&other)), "the reader was not seen");
    Options::new().open(&path).unwrap().close().unwrap();
    reader.finish();
    let mut reader = Program::start(NOBODY, &other);
    let said = reader.hear();
    assert!(said.contains("several names") || said.contains("denied"), "{said}");
    reader.finish();
}

/// The data file is renamed under a reader, and its lock file is not, or that one is deleted.
#[test]
fn a_reader_without_permission_to_write_is_minded_after_a_rename() {
    let _apart = apart();
    if !may_mount("a_reader_without_permission_to_write_is_minded_after_a_rename") {
        return;
    }
    let (dir, path, reader) = read_by_nobody();
    fs::rename(Options::default_lock_path(&path), dir.path().join("aside")).unwrap();
    assert!(is_busy(Options::new().open(&path)), "by a new lock file: the reader was not seen");
    let other = dir.path().join("other");
    fs::rename(&path, &other).unwrap();
    for attempt in 0..2 {
        assert!(is_busy(Options::new().open(&other)), "attempt {attempt}: the reader was not seen");
    }
    let mut second = Program::start(NOBODY, &other);
    let said = second.hear();
    assert!(said.contains("another lock file") || said.contains("denied"), "{said}");
    second.finish();
    reader.finish();
    Options::new().open(&other).unwrap().close().unwrap();
    // From now on it is the file's usual name: who may merely read it keeps nobody out.
    let program = "sharing::strangers::child_holds_read_locks";
    let mut stranger = Program::start(program, &other);
    assert_eq!(stranger.hear(), "data true, lock false");
    Options::new().open(&other).unwrap().close().unwrap();
    stranger.finish();
}

/// What lies where the lock file should, and is none, is refused as it was found.
#[test]
fn a_file_that_is_no_lock_file_keeps_its_mode() {
    let _apart = apart();
    let (dir, path) = fresh();
    let other = dir.path().join("notes");
    fs::write(&other, "not a lock file").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    let opened = Options::new().lock_path(&other).open(&path);
    assert!(matches!(opened, Err(Error::NotAStore { .. })));
    assert_eq!((mode_of(&other), fs::read(&other).unwrap().len()), (0o644, 15));
}
