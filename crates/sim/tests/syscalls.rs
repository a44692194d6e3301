//! Real calls of the system fail, one after the other, under the whole public interface: the program's
//! own definitions of some functions of the C library take the place of the library's.
//!
//! For each kind of call and each n the n-th call fails. No panic, no abort, an error that is no
//! damage, the old data there; the same handle goes on, or says that it must be reopened and does
//! so after that.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use zubilo::{Durability, Env, Error, Options};

/// Functions that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Kind {
    Open,
    Map,
    Lock,
    Write,
    ShortWrite,
    PartialWrite,
    /// The append of a record.
    DurableWrite,
    Allocate,
    Truncate,
    Flush,
    FlushDirectory,
    Read,
}

const KINDS: [(Kind, &[c_int]); 12] = [
    (Kind::Open, &[libc::EMFILE, libc::EACCES]),
    (Kind::Map, &[libc::ENOMEM, libc::EACCES]),
    (Kind::Lock, &[libc::ENOLCK]),
    (Kind::Write, &[libc::EIO, libc::ENOSPC, libc::EDQUOT]),
    (Kind::ShortWrite, &[libc::ENOSPC]),
    (Kind::PartialWrite, &[0]),
    (Kind::DurableWrite, &[libc::EIO, libc::ENOSPC]),
    (Kind::Allocate, &[libc::ENOSPC, libc::EDQUOT, libc::EFBIG]),
    (Kind::Truncate, &[libc::EIO]),
    (Kind::Flush, &[libc::EIO, libc::ENOSPC]),
    (Kind::FlushDirectory, &[libc::EIO]),
    (Kind::Read, &[libc::EIO]),
];

/// The kind that is counted, and fails.
static ARMED: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Calls before the one that fails; below zero when it has.
static LEFT: AtomicI64 = AtomicI64::new(0);
/// How many fail from there on.
static FAILING: AtomicI64 = AtomicI64::new(0);
static CODE: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Whether this call fails; sets the error number.
fn fails(kind: Kind) -> bool {
    if ARMED.load(Ordering::SeqCst) != kind as usize {
        return false;
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
    let left = LEFT.fetch_sub(1, Ordering::SeqCst);
    if left > 0 || left <= -FAILING.load(Ordering::SeqCst) {
        return false;
    }
    set_errno();
    true
}

fn set_errno() {
    // SAFETY: the place of the calling thread's error number.
    unsafe { *libc::__errno_location() = CODE.load(Ordering::SeqCst) as c_int };
}

fn arm(kind: Kind, after: i64, failing: i64, code: c_int) {
    CALLS.store(0, Ordering::SeqCst);
    LEFT.store(after, Ordering::SeqCst);
    FAILING.store(failing, Ordering::SeqCst);
    CODE.store(code as usize, Ordering::SeqCst);
    ARMED.store(kind as usize, Ordering::SeqCst);
}

fn disarm() -> u64 {
    ARMED.store(usize::MAX, Ordering::SeqCst);
    CALLS.load(Ordering::SeqCst)
}

/// The definitions that the program's own calls are bound to. Each does what the library's does, by
/// the system call itself.
mod instead {
    use super::*;

    // SAFETY (of all): the arguments are handed on as they came; the names are those of functions
    // with these parameters on this system, where a variable list is passed like a fixed one.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_long) -> c_int {
        if fails(Kind::Open) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn mmap(
        at: *mut c_void,
        len: usize,
        access: c_int,
        flags: c_int,
        fd: c_int,
        offset: c_long,
    ) -> *mut c_void {
        if fd >= 0 && fails(Kind::Map) {
            return libc::MAP_FAILED;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_mmap, at, len, access, flags, fd, offset) as *mut c_void }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int {
        let lock = command == libc::F_OFD_SETLK || command == libc::F_OFD_GETLK;
        if lock && fails(Kind::Lock) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_fcntl, fd, command, argument) as c_int }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn pwritev64(
        fd: c_int,
        bufs: *const libc::iovec,
        count: c_int,
        at: c_long,
    ) -> isize {
        if fails(Kind::Write) {
            return -1;
        }
        // The first half of the first buffer arrives; then it is an error, or merely all for now.
        let half = || {
            // SAFETY: the caller gave at least one buffer of at least this length.
            unsafe {
                let (from, len) = ((*bufs).iov_base, (*bufs).iov_len / 2);
                // Of the last byte alone nobody could say whether it is old or a bit of it wrong.
                let len = if len < 32 { 0 } else { len };
                libc::syscall(libc::SYS_pwrite64, fd, from, len, at) as isize
            }
        };
        if fails(Kind::PartialWrite) {
            return half();
        }
        if fails(Kind::ShortWrite) {
            half();
            set_errno();
            return -1;
        }
        // SAFETY: see above; the high half of the place is zero on this system.
        unsafe { libc::syscall(libc::SYS_pwritev, fd, bufs, count, at, 0) as isize }
    }

    /// A write that is durable by itself: it can fail as a write, and as a flush.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn pwritev2(
        fd: c_int,
        bufs: *const libc::iovec,
        count: c_int,
        at: c_long,
        flags: c_int,
    ) -> isize {
        if fails(Kind::Write) || fails(Kind::DurableWrite) || fails(Kind::Flush) {
            return -1;
        }
        let half = || {
            // SAFETY: the caller gave at least one buffer of at least this length.
            let (from, len) = unsafe { ((*bufs).iov_base, (*bufs).iov_len / 2) };
            // SAFETY: half of what the caller wants written.
            unsafe { libc::syscall(libc::SYS_pwrite64, fd, from, len, at) as isize }
        };
        if fails(Kind::PartialWrite) {
            return half();
        }
        if fails(Kind::ShortWrite) {
            half();
            set_errno();
            return -1;
        }
        // SAFETY: see above; the high half of the place is zero on this system.
        unsafe { libc::syscall(libc::SYS_pwritev2, fd, bufs, count, at, 0, flags) as isize }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn fallocate64(fd: c_int, mode: c_int, at: c_long, len: c_long) -> c_int {
        if fails(Kind::Allocate) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_fallocate, fd, mode, at, len) as c_int }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ftruncate64(fd: c_int, len: c_long) -> c_int {
        if fails(Kind::Truncate) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_ftruncate, fd, len) as c_int }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
        if fails(Kind::Flush) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn msync(at: *mut c_void, len: usize, flags: c_int) -> c_int {
        if fails(Kind::Flush) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_msync, at, len, flags) as c_int }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn fsync(fd: c_int) -> c_int {
        if fails(Kind::FlushDirectory) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn pread64(fd: c_int, into: *mut c_void, len: usize, at: c_long) -> isize {
        if fails(Kind::Read) {
            return -1;
        }
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_pread64, fd, into, len, at) as isize }
    }
}

#[derive(Clone, Copy, Debug)]
struct Way {
    durability: Durability,
    writable_map: bool,
    /// Commits are small, and go to a redo log.
    log: bool,
}

impl Way {
    fn new(durability: Durability) -> Way {
        Way { durability, writable_map: false, log: false }
    }

    fn open(&self, path: &Path) -> zubilo::Result<Env> {
        let mut geometry = zubilo::Geometry::default();
        geometry.growth = 64 << 10;
        geometry.shrink = 64 << 10;
        let options = Options::new()
            .durability(self.durability)
            .writable_map(self.writable_map)
            .geometry(geometry)
            .dirty_limit(48 << 10);
        if self.log { options.redo_log(64 << 10).open(path) } else { options.open(path) }
    }

    /// The first commits are made in pages, until every meta names the log.
    fn commits(&self) -> u8 {
        if self.log { 9 } else { 5 }
    }

    fn keys(&self) -> u32 {
        if self.log { 3 } else { 40 }
    }

    /// The number that all records of a commit hold.
    fn commit(&self, env: &Env, value: u8) -> zubilo::Result<()> {
        let mut txn = env.write()?;
        let mut table = txn.table_or_create("t")?;
        for i in 0..self.keys() {
            table.put(i.to_be_bytes(), [value; 300])?;
        }
        if !self.log {
            table.put("large", vec![value; 20_000 + 3_000 * usize::from(value % 7)])?;
        }
        txn.nested(|txn| {
            txn.table_or_create("n")?.put("key", [value])?;
            Ok(())
        })?;
        txn.commit().map(drop)
    }

    fn value(&self, env: &Env) -> zubilo::Result<u8> {
        let read = env.read()?;
        let table = match read.table("t") {
            Err(Error::NoSuchTable { .. }) => return Ok(0),
            table => table?,
        };
        let first = table.get(0u32.to_be_bytes())?.expect("the first value");
        let value = first[0];
        if !self.log {
            let large = table.get("large")?.expect("the large value");
            assert!(large.iter().all(|b| *b == value), "a mixture");
        }
        for i in 0..self.keys() {
            assert_eq!(table.get(i.to_be_bytes())?, Some(&[value; 300][..]));
        }
        assert_eq!(read.table("n")?.get("key")?, Some(&[value][..]));
        Ok(value)
    }
}

fn is_clear(error: &Error) -> bool {
    matches!(
        error,
        Error::Io { .. }
            | Error::Poisoned { .. }
            | Error::MapFull { .. }
            | Error::ReadersFull { .. }
    )
}

/// What a life with a failing call has come to: the last value acknowledged, and the last tried.
struct Come {
    acknowledged: u8,
    tried: u8,
    /// Flushes are what fails.
    flush: bool,
}

impl Come {
    /// What an open has found.
    fn take(&mut self, way: &Way, found: u8, case: &str) {
        // After a failed flush what is not known to be on disk is given up; in SYNC that is nothing
        // that was acknowledged.
        let whole = self.acknowledged;
        let given_up = self.flush && way.durability != Durability::Sync;
        assert!(found >= whole || given_up, "{case}: {found}, acknowledged {whole}");
        assert!(found <= self.tried, "{case}: {found} was never tried");
        self.acknowledged = found;
    }
}

/// A life from creation to close, in which calls may fail.
fn live(way: &Way, path: &Path, come: &mut Come, case: &str) {
    let clear = |error: Error| assert!(is_clear(&error), "{case}: {error}");
    let mut env = None;
    for value_now in 1..=way.commits() {
        if env.is_none() {
            env = match way.open(path) {
                Ok(env) => {
                    match way.value(&env) {
                        Ok(found) => come.take(way, found, case),
                        Err(error) => clear(error),
                    }
                    Some(env)
                }
                Err(error) => {
                    clear(error);
                    continue;
                }
            };
        }
        let Some(open) = &env else { continue };
        come.tried = value_now;
        match way.commit(open, value_now) {
            Ok(()) => come.acknowledged = value_now,
            Err(error) => {
                let poisoned = matches!(error, Error::Poisoned { .. });
                clear(error);
                match way.value(open) {
                    Ok(found) => assert_eq!(found, come.acknowledged, "{case}: old data"),
                    Err(error) => clear(error),
                }
                if poisoned {
                    env = None;
                }
                continue;
            }
        }
        if value_now % 2 == 0
            && let Err(error) = open.sync()
        {
            clear(error);
        }
    }
    if let Some(env) = env
        && let Err(error) = env.close()
    {
        clear(error);
    }
}

/// Nothing fails any more: is all there, and does it go on?
fn judge(way: &Way, path: &Path, come: &mut Come, case: &str) {
    let env = way.open(path).unwrap_or_else(|e| panic!("{case}: reopen: {e}"));
    let found = way.value(&env).unwrap_or_else(|e| panic!("{case}: read: {e}"));
    come.take(way, found, case);
    let report = env.check(&mut |_, _| true).unwrap_or_else(|e| panic!("{case}: check: {e}"));
    assert!(report.is_ok(), "{case}: {:?}", report.problems);
    way.commit(&env, 99).unwrap_or_else(|e| panic!("{case}: commit: {e}"));
    assert_eq!(way.value(&env).expect("read"), 99, "{case}");
    env.close().unwrap_or_else(|e| panic!("{case}: close: {e}"));
}

/// A folder in memory where there is one: the calls are what is tested, not the disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).expect("a folder")
}

fn each_call_fails(way: &Way) -> u64 {
    /// The calls of the whole program are counted: one life at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let _watched = sim::watch::watch(format!("failing calls, {way:?}"));
    let mut lives = 0;
    for (kind, codes) in KINDS {
        for (&code, failing) in codes.iter().flat_map(|c| [(c, 1), (c, i64::MAX / 2)]) {
            for after in 0.. {
                sim::watch::beat();
                let case = format!("{way:?} {kind:?} {code} after {after}, {failing} times");
                let dir = folder();
                let path = dir.path().join("store");
                let mut come = Come { acknowledged: 0, tried: 0, flush: kind == Kind::Flush };
                arm(kind, after, failing, code);
                live(way, &path, &mut come, &case);
                let came = disarm();
                judge(way, &path, &mut come, &case);
                lives += 1;
                if came <= after as u64 {
                    break;
                }
            }
        }
    }
    println!("{way:?}: {lives} lives with a failing call");
    lives
}

#[test]
fn durable_commits() {
    let way = Way::new(Durability::Sync);
    assert!(each_call_fails(&way) > 200);
}

#[test]
fn durable_commits_through_a_writable_map() {
    let way = Way { writable_map: true, ..Way::new(Durability::Sync) };
    assert!(each_call_fails(&way) > 200);
}

/// A life without failures: most of its commits are records.
fn has_records(way: &Way) {
    let dir = folder();
    let env = way.open(&dir.path().join("store")).expect("open");
    // A durable commit whose pages are not on disk is in the log.
    let is_record = |value: &u8| {
        way.commit(&env, *value).expect("commit");
        if way.durability != Durability::Sync {
            env.sync().expect("sync");
        }
        let info = env.info().expect("info");
        info.steady < info.newest
    };
    let records: Vec<u8> = (1..=way.commits()).filter(is_record).collect();
    assert!(records.len() >= 4, "in the log: {records:?}");
}

#[test]
fn durable_commits_in_a_redo_log() {
    let way = Way { log: true, ..Way::new(Durability::Sync) };
    has_records(&way);
    assert!(each_call_fails(&way) > 200);
}

#[test]
fn durable_commits_in_a_redo_log_beside_a_writable_map() {
    let way = Way { log: true, writable_map: true, ..Way::new(Durability::Sync) };
    has_records(&way);
    assert!(each_call_fails(&way) > 200);
}

/// Their thread never comes to act: only what a caller asks for can fail.
#[test]
fn lazy_commits_in_a_redo_log() {
    let (sync_bytes, sync_period) = (u64::MAX, Duration::from_secs(1 << 20));
    let way = Way { log: true, ..Way::new(Durability::Lazy { sync_bytes, sync_period }) };
    has_records(&way);
    assert!(each_call_fails(&way) > 200);
}

#[test]
fn weak_commits() {
    let way = Way::new(Durability::NoSync);
    assert!(each_call_fails(&way) > 200);
}

#[test]
fn lazy_commits() {
    let durability =
        Durability::Lazy { sync_bytes: 64 << 10, sync_period: Duration::from_millis(1) };
    let way = Way::new(durability);
    assert!(each_call_fails(&way) > 200);
}
