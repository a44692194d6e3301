//! The smallest program for each bug that was found after it had been made.

use std::io::{self, IoSlice};
use std::path::Path;

use zubilo::platform::{self, Advice, DataFile, FileId, OpenFile, WritableMap};
use zubilo::{Durability, Env, Error, Options, TxnId};

use crate::common::memory::MemoryFile;
use crate::common::{check, fresh, geometry, put_all};

fn commit(env: &Env, value: u8) -> TxnId {
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    for i in 0..50u32 {
        table.put(i.to_be_bytes(), [value; 200]).unwrap();
    }
    txn.commit().unwrap()
}

/// A commit that wrote no page had the digest 0 instead of that of nothing, and was not trusted.
#[test]
fn a_commit_without_pages_survives_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let env = Options::new().open(&path).unwrap();
    commit(&env, 1);
    let mut txn = env.write().unwrap();
    txn.drop_table("t").unwrap();
    let id = txn.commit().unwrap();
    env.close().unwrap();
    let env = Options::new().open(&path).unwrap();
    let read = env.read().unwrap();
    assert_eq!(read.id(), id);
    assert!(read.tables().unwrap().is_empty());
}

/// A store of a megabyte, and a transaction beyond its end that was given up.
fn given_up_beyond_the_end(path: &Path) -> Env {
    let cut_soon = geometry(|g| g.shrink = 4096);
    let options = Options::new().durability(Durability::NoSync).geometry(cut_soon);
    let env = options.dirty_limit(64 << 10).open(path).unwrap();
    put_all(&env, "t", (0..10_000u32).map(|i| (i.to_be_bytes(), [1; 100])));
    env.sync().unwrap();
    let mut txn = env.write().unwrap();
    let mut table = txn.table("t").unwrap();
    (0..20u32).for_each(|i| table.put(i.to_be_bytes(), [2; 50_000]).unwrap());
    txn.abort();
    env
}

/// A transaction that was given up left the end of the used part raised; the file was cut to the newest
/// commit's, and a commit that took no page, so that nothing asked whether the file was long enough,
/// wrote down the raised one: an open did not trust it, durable as it was.
#[test]
fn a_commit_without_pages_does_not_end_behind_the_file() {
    let (_dir, path) = fresh();
    let env = given_up_beyond_the_end(&path);
    let long = env.info().unwrap().file_len;
    env.sync().unwrap();
    assert!(env.info().unwrap().file_len < long, "nothing was cut");
    let mut txn = env.write().unwrap();
    txn.set_user_words([1, 2, 3]).unwrap();
    let id = txn.commit().unwrap();
    let info = env.info().unwrap();
    assert!(info.used_len <= info.file_len, "{info:?}");
    env.close().unwrap();
    let env = Options::new().open(&path).unwrap();
    assert_eq!(env.read().unwrap().id(), id);
    check(&env, "opened again");
}

/// The same raised end: pages after a new upper bound counted as free.
#[test]
fn what_was_given_up_is_not_used_beyond_a_new_bound() {
    let (_dir, path) = fresh();
    let env = given_up_beyond_the_end(&path);
    let upper = env.info().unwrap().used_len + (16 << 12);
    let mut txn = env.write().unwrap();
    txn.set_geometry(geometry(|g| g.upper = upper)).unwrap();
    txn.table("t").unwrap().put("key", "value").unwrap();
    txn.commit().unwrap();
    let info = env.info().unwrap();
    assert!(info.used_len <= upper, "{info:?}");
    check(&env, "with a bound");
}

/// Closing one handle switched off the final flush of all others.
#[test]
fn the_last_handle_makes_commits_durable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let other = env.clone();
    env.close().unwrap();
    let id = commit(&other, 1);
    drop(other);
    let env = Options::new().open(&path).unwrap();
    assert_eq!(env.info().unwrap().steady, id);
}

/// Metas that were not trusted at one open could be trusted at a later one, over pages that had
/// been used again.
#[test]
fn a_rejected_commit_never_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let how = OpenFile {
        read_only: false,
        create: true,
        mode: 0o644,
        reserve: 1 << 30,
        writable_map: WritableMap::No,
        large_calls: false,
    };
    let open = |boot: u8, options: Options| {
        Env::open_parts(platform::open_data(&path, &how).unwrap().0, [boot; 16], options).unwrap()
    };
    let env = open(1, Options::new().durability(Durability::NoSync));
    commit(&env, 1);
    env.sync().unwrap();
    for value in 2..6 {
        commit(&env, value);
    }
    env.close_without_sync();

    // Another boot: the weak commits are rolled back, and a new one is acknowledged.
    let env = open(2, Options::new());
    let id = commit(&env, 77);
    drop(env);

    // The boot of the weak commits again.
    let env = open(1, Options::new());
    let read = env.read().unwrap();
    assert_eq!(read.id(), id);
    let table = read.table("t").unwrap();
    assert_eq!(table.get(0u32.to_be_bytes()).unwrap(), Some(&[77; 200][..]));
    assert!(env.check(&mut |_, _| true).unwrap().is_ok());
}

/// An older meta whose pages lay in the tail that was cut since was verified at open: a fault.
#[test]
fn an_open_does_not_read_the_cut_tail_of_an_older_commit() {
    let (_dir, path) = fresh();
    let geometry = geometry(|g| (g.shrink, g.growth) = (64 << 10, 64 << 10));
    let env = Options::new().geometry(geometry).open(&path).unwrap();
    // Small commits first: later ones find room below the large value.
    (0..4).for_each(|n| {
        put_all(&env, "t", [("b", [n; 10])]);
    });
    put_all(&env, "t", [("a", vec![1; 1 << 20])]);
    let long = std::fs::metadata(&path).unwrap().len();
    (0..2).for_each(|n| {
        put_all(&env, "t", [("a", [n; 10])]);
    });
    assert!(std::fs::metadata(&path).unwrap().len() < long / 2, "nothing was cut");
    env.close().unwrap();
    let env = Options::new().open(&path).unwrap();
    check(&env, "after the cut");
}

/// Two metas of one transaction: an open trusted one, a check then read the other, whose end lay
/// far outside of the file.
#[test]
fn the_meta_in_use_is_the_one_that_was_trusted() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    put_all(&env, "t", [("a", [1; 10])]);
    let newest = env.info().unwrap().newest.0;
    env.close().unwrap();
    let mut bytes = file.image();
    let txn = |meta: &[u8]| u64::from_le_bytes(meta[56..64].try_into().unwrap());
    let right = (0..4).find(|i| txn(&bytes[i * 4096..]) == newest).unwrap();
    for other in (0..4).filter(|i| *i != right) {
        let mut meta = bytes[right * 4096..][..4096].to_vec();
        meta[64..72].copy_from_slice(&(1u64 << 40).to_le_bytes());
        zubilo::seal_meta(&mut meta);
        bytes[other * 4096..][..4096].copy_from_slice(&meta);
    }
    let env = MemoryFile::new(&bytes).open(Options::new()).unwrap();
    assert!(env.info().unwrap().used_len < 1 << 20);
    check(&env, "with a wrong double");
    put_all(&env, "t", [("b", [1; 10])]);
    check(&env, "after a commit");
}

/// Any step of growth can be stored; the sum of length and step ran over.
#[test]
fn the_greatest_step_of_growth_is_harmless() {
    let (_dir, path) = fresh();
    let greatest = geometry(|g| (g.growth, g.upper) = (u64::MAX, 8 << 20));
    let env = Options::new().geometry(greatest).open(&path).unwrap();
    put_all(&env, "t", [("k", vec![1; 1 << 20])]);
    put_all(&env, "t", [("l", vec![1; 1 << 20])]);
    check(&env, "with the greatest step");
}

/// The bounds of the free-space log were those of the address space of this open, while the log
/// still spoke of the time when the store was larger.
#[test]
fn a_store_that_has_shrunk_opens_with_less_address_space() {
    let (_dir, path) = fresh();
    let env = Options::new().reserve(1 << 30).open(&path).unwrap();
    commit(&env, 1);
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("big").unwrap();
    for i in 0..40u32 {
        table.put(i.to_be_bytes(), vec![1; 4 << 20]).unwrap();
    }
    txn.commit().unwrap();
    let mut txn = env.write().unwrap();
    txn.drop_table("big").unwrap();
    txn.commit().unwrap();
    for i in 0..10 {
        commit(&env, i);
    }
    env.close().unwrap();
    let env = Options::new().reserve(64 << 20).open(&path).unwrap();
    check(&env, "with less room");
    commit(&env, 2);
    check(&env, "after a commit");
}

/// A second private reader table knew nothing of the readers in the first one.
#[test]
fn without_a_lock_file_a_closed_store_with_a_reader_is_not_opened_again() {
    let (_dir, path) = fresh();
    let open = || Options::new().lock_file(false).open(&path);
    let env = open().unwrap();
    commit(&env, 1);
    let read = env.read().unwrap();
    drop(env);
    assert!(matches!(open(), Err(Error::Busy(_))));
    drop(read);
    commit(&open().unwrap(), 2);
}

/// Another process was killed, or failed, after it had cut the tail of the file and before it had
/// said so: the next commit through the map ended with SIGBUS.
#[test]
fn a_tail_that_was_cut_without_a_word_is_not_written_through_the_map() {
    let (_dir, path) = fresh();
    let how = OpenFile {
        read_only: false,
        create: true,
        mode: 0o600,
        reserve: 1 << 30,
        writable_map: WritableMap::Yes,
        large_calls: false,
    };
    let data = FailsAfterCut(platform::open_data(&path, &how).unwrap().0);
    let options = Options::new().geometry(geometry(|g| (g.shrink, g.growth) = (1 << 20, 1 << 20)));
    let env = Env::open_parts(Box::new(data), [1; 16], options).unwrap();
    let large = vec![7; 16 << 20];
    put_all(&env, "large", [("k", large.clone())]);
    let mut txn = env.write().unwrap();
    txn.drop_table("large").unwrap();
    txn.commit().unwrap();
    let cut = (0..5).any(|i| {
        commit(&env, i);
        std::fs::metadata(&path).unwrap().len() < 16 << 20
    });
    assert!(cut, "nothing was cut");
    put_all(&env, "large", [("k", large.clone())]);
    check(&env, "after the cut");
}

/// The real file; cutting it works and is reported to have failed.
struct FailsAfterCut(Box<dyn DataFile>);

// SAFETY: the file inside keeps the promises.
unsafe impl DataFile for FailsAfterCut {
    fn base(&self) -> *const u8 {
        self.0.base()
    }
    fn reserved(&self) -> u64 {
        self.0.reserved()
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn write_at(&self, offset: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.0.write_at(offset, bufs)
    }
    fn grow(&self, new_len: u64, zeroed_written: bool) -> io::Result<()> {
        self.0.grow(new_len, zeroed_written)
    }
    fn truncate(&self, new_len: u64) -> io::Result<()> {
        self.0.truncate(new_len)?;
        Err(io::Error::from_raw_os_error(libc::EIO))
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
    fn writable(&self) -> Option<*mut u8> {
        self.0.writable()
    }
    fn advise(&self, offset: u64, len: u64, advice: Advice) -> io::Result<()> {
        self.0.advise(offset, len, advice)
    }
    fn id(&self) -> FileId {
        self.0.id()
    }
    fn path(&self) -> &Path {
        self.0.path()
    }
}
