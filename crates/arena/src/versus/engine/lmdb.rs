//! LMDB, called as a C program would.

use std::ffi::{CStr, CString, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

// LMDB 0.9.70, whose functions `support` has for the program.
use lmdb_master_sys as _;
use support::lmdb::{self as ffi, Val, linked};

use super::{Engine, Mode, Reader, Settings, Writer};

/// An open environment with its default database.
pub(crate) struct Lmdb {
    env: *mut c_void,
    dbi: c_uint,
    path: PathBuf,
}

// SAFETY: environments may be used by many threads; each transaction here stays in its thread.
unsafe impl Send for Lmdb {}
// SAFETY: as above.
unsafe impl Sync for Lmdb {}

/// The library's name and version.
pub(crate) fn version() -> String {
    // SAFETY: the library returns a string that lives for ever.
    let text = unsafe { CStr::from_ptr(linked::mdb_version(null_mut(), null_mut(), null_mut())) };
    text.to_string_lossy().into_owned()
}

#[track_caller]
fn check(code: i32) {
    assert_eq!(code, 0, "LMDB refused");
}

impl Engine for Lmdb {
    type Reader<'t> = Txn;
    type Writer<'t> = Txn;

    fn create(dir: &Path, settings: Settings) -> Lmdb {
        let path = dir.join("lmdb");
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        let mut flags = ffi::MDB_NOSUBDIR | ffi::MDB_NOTLS;
        flags |= match settings.mode {
            Mode::Sync => 0,
            Mode::Lazy => ffi::MDB_NOMETASYNC,
            Mode::NoSync => ffi::MDB_NOSYNC,
        };
        if settings.write_map {
            flags |= ffi::MDB_WRITEMAP;
        }
        let mut env = null_mut();
        let mut dbi = 0;
        // SAFETY: the calls are made in the documented order with valid pointers.
        unsafe {
            check(linked::mdb_env_create(&mut env));
            check(linked::mdb_env_set_mapsize(env, 64 << 30));
            check(linked::mdb_env_open(env, name.as_ptr(), flags as c_uint, 0o644));
            let mut txn = null_mut();
            check(linked::mdb_txn_begin(env, null_mut(), 0, &mut txn));
            check(linked::mdb_dbi_open(txn, null(), 0, &mut dbi));
            check(linked::mdb_txn_commit(txn));
        }
        Lmdb { env, dbi, path }
    }

    fn read<R>(&self, work: impl for<'t> FnOnce(Txn) -> R) -> R {
        let txn = self.begin(ffi::MDB_RDONLY);
        let result = work(Txn { txn, dbi: self.dbi });
        // SAFETY: the transaction is live and nothing borrows from it any more.
        unsafe { linked::mdb_txn_abort(txn) };
        result
    }

    fn begin_end(&self, times: u64) {
        for _ in 0..times {
            let txn = self.begin(ffi::MDB_RDONLY);
            // SAFETY: the transaction is live.
            unsafe { linked::mdb_txn_abort(txn) };
        }
    }

    fn renew(&self, times: u64) {
        let txn = self.begin(ffi::MDB_RDONLY);
        // SAFETY: a read-only transaction may be reset and renewed.
        unsafe {
            for _ in 0..times {
                linked::mdb_txn_reset(txn);
                check(linked::mdb_txn_renew(txn));
            }
            linked::mdb_txn_abort(txn);
        }
    }

    fn write<R>(&self, work: impl for<'t> FnOnce(&mut Txn) -> R) -> R {
        let txn = self.begin(0);
        let result = work(&mut Txn { txn, dbi: self.dbi });
        // SAFETY: the transaction is live and nothing borrows from it any more.
        check(unsafe { linked::mdb_txn_commit(txn) });
        result
    }

    fn write_shared<R: Send>(&self, work: impl for<'t> FnOnce(&mut Txn) -> R + Send) -> R {
        self.write(work)
    }

    fn sync(&self) {
        // SAFETY: the environment is open.
        check(unsafe { linked::mdb_env_sync(self.env, 1) });
    }

    fn disk_bytes(&self) -> u64 {
        super::allocated(&self.path)
    }
}

impl Lmdb {
    fn begin(&self, flags: c_uint) -> *mut c_void {
        let mut txn = null_mut();
        // SAFETY: the environment is open.
        check(unsafe { linked::mdb_txn_begin(self.env, null_mut(), flags, &mut txn) });
        txn
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: no transaction outlives the borrow of self that made it.
        unsafe { linked::mdb_env_close(self.env) };
    }
}

/// A transaction and the database.
pub(crate) struct Txn {
    txn: *mut c_void,
    dbi: c_uint,
}

impl Txn {
    #[inline(always)]
    fn lookup(&self, key: &[u8]) -> Option<&[u8]> {
        let (mut key, mut data) = (Val::of(key), Val::NONE);
        // SAFETY: a live transaction; the result is borrowed from self.
        unsafe {
            match linked::mdb_get(self.txn, self.dbi, &mut key, &mut data) {
                0 => Some(data.bytes()),
                ffi::MDB_NOTFOUND => None,
                code => panic!("LMDB refused: {code}"),
            }
        }
    }

    fn store(&mut self, key: &[u8], value: &[u8], flags: u32) {
        let (mut key, mut data) = (Val::of(key), Val::of(value));
        // SAFETY: a live write transaction; the library copies key and value.
        check(unsafe { linked::mdb_put(self.txn, self.dbi, &mut key, &mut data, flags) });
    }

    fn walk(&self, from: Option<&[u8]>, count: usize, mut each: impl FnMut(&[u8], &[u8])) {
        let mut cursor = null_mut();
        let mut key = from.map_or(Val::NONE, Val::of);
        let mut data = Val::NONE;
        // SAFETY: a live transaction; the cursor is closed before it ends, what it gives is
        // borrowed for the call only.
        unsafe {
            check(linked::mdb_cursor_open(self.txn, self.dbi, &mut cursor));
            let mut op = if from.is_some() { ffi::MDB_SET_RANGE } else { ffi::MDB_FIRST };
            for _ in 0..count {
                if linked::mdb_cursor_get(cursor, &mut key, &mut data, op) != 0 {
                    break;
                }
                each(key.bytes(), data.bytes());
                op = ffi::MDB_NEXT;
            }
            linked::mdb_cursor_close(cursor);
        }
    }
}

impl Reader for Txn {
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.lookup(key)
    }

    /// LMDB has no batched look-up.
    #[inline(always)]
    fn get_many(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) {
        for (i, key) in keys.iter().enumerate() {
            found(i, self.lookup(key));
        }
    }

    fn scan(&self, each: impl FnMut(&[u8], &[u8])) {
        self.walk(None, usize::MAX, each);
    }

    fn range(&self, from: &[u8], count: usize, each: impl FnMut(&[u8], &[u8])) {
        self.walk(Some(from), count, each);
    }
}

impl Writer for Txn {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.store(key, value, 0);
    }

    fn append(&mut self, key: &[u8], value: &[u8]) {
        self.store(key, value, ffi::MDB_APPEND);
    }

    fn get(&mut self, key: &[u8]) -> Option<&[u8]> {
        self.lookup(key)
    }

    fn delete(&mut self, key: &[u8]) -> bool {
        let mut key = Val::of(key);
        // SAFETY: a live write transaction.
        match unsafe { linked::mdb_del(self.txn, self.dbi, &mut key, null_mut()) } {
            0 => true,
            ffi::MDB_NOTFOUND => false,
            code => panic!("LMDB refused: {code}"),
        }
    }
}
