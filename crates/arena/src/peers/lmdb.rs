//! LMDB, called as a C program would, and whatever else exports its interface: Zubilo's own
//! `liblmdb.so.0`, loaded at run time.
//!
//! SYNC: no flag, each commit flushes data, then writes its meta page through a file opened with
//! O_DSYNC. LAZY: MDB_NOMETASYNC, the last commit may be lost in a power cut, never the store.
//! MDB_NOSYNC may lose the whole store in a power cut, so it stands for NOSYNC and VOLATILE only.
//! `lmdb-map` adds MDB_WRITEMAP, the fastest setting without flushes.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::Path;
use std::ptr::{null, null_mut};

use lmdb_master_sys as ffi;

use super::dl::Table;
use super::mapped::{Lib, Move, Ptr, Store, Thread};
use super::tables::PAIRS;
use super::{About, Engine, Fault, Outcome, Variant, dl};
use crate::spec::Class;

dl::functions!(pub(crate) Api {
    fn mdb_version(*mut c_int, *mut c_int, *mut c_int) -> *mut c_char;
    fn mdb_strerror(c_int) -> *mut c_char;
    fn mdb_env_create(*mut *mut ffi::MDB_env) -> c_int;
    fn mdb_env_set_mapsize(*mut ffi::MDB_env, usize) -> c_int;
    fn mdb_env_set_maxdbs(*mut ffi::MDB_env, ffi::MDB_dbi) -> c_int;
    fn mdb_env_copy(*mut ffi::MDB_env, *const c_char) -> c_int;
    fn mdb_env_open(*mut ffi::MDB_env, *const c_char, c_uint, ffi::mdb_mode_t) -> c_int;
    fn mdb_env_sync(*mut ffi::MDB_env, c_int) -> c_int;
    fn mdb_env_close(*mut ffi::MDB_env);
    fn mdb_txn_begin(*mut ffi::MDB_env, *mut ffi::MDB_txn, c_uint, *mut *mut ffi::MDB_txn) -> c_int;
    fn mdb_txn_commit(*mut ffi::MDB_txn) -> c_int;
    fn mdb_txn_abort(*mut ffi::MDB_txn);
    fn mdb_txn_reset(*mut ffi::MDB_txn);
    fn mdb_txn_renew(*mut ffi::MDB_txn) -> c_int;
    fn mdb_dbi_open(*mut ffi::MDB_txn, *const c_char, c_uint, *mut ffi::MDB_dbi) -> c_int;
    fn mdb_get(*mut ffi::MDB_txn, ffi::MDB_dbi, *mut ffi::MDB_val, *mut ffi::MDB_val) -> c_int;
    fn mdb_put(*mut ffi::MDB_txn, ffi::MDB_dbi, *mut ffi::MDB_val, *mut ffi::MDB_val, c_uint) -> c_int;
    fn mdb_del(*mut ffi::MDB_txn, ffi::MDB_dbi, *mut ffi::MDB_val, *mut ffi::MDB_val) -> c_int;
    fn mdb_cursor_open(*mut ffi::MDB_txn, ffi::MDB_dbi, *mut *mut ffi::MDB_cursor) -> c_int;
    fn mdb_cursor_get(*mut ffi::MDB_cursor, *mut ffi::MDB_val, *mut ffi::MDB_val, ffi::MDB_cursor_op) -> c_int;
    fn mdb_cursor_close(*mut ffi::MDB_cursor);
});

/// LMDB itself, in this program.
const OWN: Api = Api {
    mdb_version: ffi::mdb_version,
    mdb_strerror: ffi::mdb_strerror,
    mdb_env_create: ffi::mdb_env_create,
    mdb_env_set_mapsize: ffi::mdb_env_set_mapsize,
    mdb_env_set_maxdbs: ffi::mdb_env_set_maxdbs,
    mdb_env_copy: ffi::mdb_env_copy,
    mdb_env_open: ffi::mdb_env_open,
    mdb_env_sync: ffi::mdb_env_sync,
    mdb_env_close: ffi::mdb_env_close,
    mdb_txn_begin: ffi::mdb_txn_begin,
    mdb_txn_commit: ffi::mdb_txn_commit,
    mdb_txn_abort: ffi::mdb_txn_abort,
    mdb_txn_reset: ffi::mdb_txn_reset,
    mdb_txn_renew: ffi::mdb_txn_renew,
    mdb_dbi_open: ffi::mdb_dbi_open,
    mdb_get: ffi::mdb_get,
    mdb_put: ffi::mdb_put,
    mdb_del: ffi::mdb_del,
    mdb_cursor_open: ffi::mdb_cursor_open,
    mdb_cursor_get: ffi::mdb_cursor_get,
    mdb_cursor_close: ffi::mdb_cursor_close,
};

/// The library named by ARENA_ZUBILO_C, or `liblmdb.so.0` where libraries lie that are built here.
/// The search path of the system is not used: it leads to LMDB.
fn foreign() -> Outcome<Api> {
    let path = std::env::var_os("ARENA_ZUBILO_C");
    Api::load(&path.unwrap_or_else(|| dl::built_here("liblmdb.so.0").into()))
}

impl Api {
    #[inline(always)]
    fn check(&self, call: &'static str, code: c_int) -> Outcome<()> {
        if code == 0 { Ok(()) } else { Err(self.fault(call, code)) }
    }

    #[cold]
    fn fault(&self, call: &'static str, code: c_int) -> Fault {
        // SAFETY: the library gives a string that lives for ever.
        let text = unsafe { dl::text((self.mdb_strerror)(code)) };
        Fault::Failed(format!("{call}: {text}"))
    }
}

pub(crate) struct Lmdb {
    store: Store<Api>,
    foreign: bool,
}

/// Records, so that the pages changed stay below the 131,071 that LMDB can list.
const LARGEST_REMOVAL: u64 = 100_000;

fn val(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

const EMPTY: ffi::MDB_val = ffi::MDB_val { mv_size: 0, mv_data: null_mut() };

/// # Safety
/// The value was filled by the library, and its transaction lives for `'t`.
#[inline(always)]
unsafe fn bytes<'t>(val: &ffi::MDB_val) -> &'t [u8] {
    // SAFETY: the library gives pointers into its map or the transaction's pages.
    unsafe { dl::bytes(val.mv_data.cast(), val.mv_size) }
}

// SAFETY: each method is a call with the arguments that it was given.
unsafe impl Lib for Api {
    #[inline(always)]
    unsafe fn begin(self, env: Ptr, writes: bool) -> Outcome<Ptr> {
        let mut txn = null_mut();
        let flags = if writes { 0 } else { ffi::MDB_RDONLY as c_uint };
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_txn_begin)(env.cast(), null_mut(), flags, &mut txn) };
        self.check("mdb_txn_begin", code)?;
        Ok(txn.cast())
    }

    #[inline(always)]
    unsafe fn commit(self, txn: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        self.check("mdb_txn_commit", unsafe { (self.mdb_txn_commit)(txn.cast()) })
    }

    unsafe fn abort(self, txn: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { (self.mdb_txn_abort)(txn.cast()) };
    }

    #[inline(always)]
    unsafe fn reset(self, txn: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        unsafe { (self.mdb_txn_reset)(txn.cast()) };
        Ok(())
    }

    #[inline(always)]
    unsafe fn renew(self, txn: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        self.check("mdb_txn_renew", unsafe { (self.mdb_txn_renew)(txn.cast()) })
    }

    unsafe fn table(self, txn: Ptr, name: Option<&CStr>, pairs: bool) -> Outcome<u32> {
        let create = if name.is_some() { ffi::MDB_CREATE } else { 0 };
        let flags = create | if pairs { ffi::MDB_DUPSORT } else { 0 };
        let (name, mut table) = (name.map_or(null(), CStr::as_ptr), 0);
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_dbi_open)(txn.cast(), name, flags as c_uint, &mut table) };
        self.check("mdb_dbi_open", code)?;
        Ok(table)
    }

    #[inline(always)]
    unsafe fn get<'t>(self, txn: Ptr, table: u32, key: &[u8]) -> Outcome<Option<&'t [u8]>> {
        let (mut key, mut data) = (val(key), EMPTY);
        // SAFETY: as the caller promises.
        unsafe {
            match (self.mdb_get)(txn.cast(), table, &mut key, &mut data) {
                0 => Ok(Some(bytes(&data))),
                ffi::MDB_NOTFOUND => Ok(None),
                code => Err(self.fault("mdb_get", code)),
            }
        }
    }

    #[inline(always)]
    unsafe fn put(
        self,
        txn: Ptr,
        table: u32,
        key: &[u8],
        value: &[u8],
        append: bool,
    ) -> Outcome<()> {
        let flags = if append { ffi::MDB_APPEND as c_uint } else { 0 };
        let (mut key, mut data) = (val(key), val(value));
        // SAFETY: as the caller promises; the library copies key and value.
        let code = unsafe { (self.mdb_put)(txn.cast(), table, &mut key, &mut data, flags) };
        self.check("mdb_put", code)
    }

    #[inline(always)]
    unsafe fn delete(self, txn: Ptr, table: u32, key: &[u8], value: Option<&[u8]>) -> Outcome<()> {
        let (mut key, mut data) = (val(key), value.map(val));
        let data = data.as_mut().map_or(null_mut(), |data| &raw mut *data);
        // SAFETY: as the caller promises; null stands for all values.
        match unsafe { (self.mdb_del)(txn.cast(), table, &mut key, data) } {
            0 | ffi::MDB_NOTFOUND => Ok(()),
            code => Err(self.fault("mdb_del", code)),
        }
    }

    unsafe fn open_cursor(self, txn: Ptr, table: u32) -> Outcome<Ptr> {
        let mut cursor = null_mut();
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_cursor_open)(txn.cast(), table, &mut cursor) };
        self.check("mdb_cursor_open", code)?;
        Ok(cursor.cast())
    }

    #[inline(always)]
    unsafe fn step<'t>(
        self,
        cursor: Ptr,
        how: Move,
        key: &[u8],
    ) -> Outcome<Option<(&'t [u8], &'t [u8])>> {
        let (mut key, mut data) = (val(key), EMPTY);
        let op = match how {
            Move::First => ffi::MDB_FIRST,
            Move::Next => ffi::MDB_NEXT,
            Move::From => ffi::MDB_SET_RANGE,
            Move::Key => ffi::MDB_SET_KEY,
            Move::NextValue => ffi::MDB_NEXT_DUP,
        };
        // SAFETY: as the caller promises.
        unsafe {
            match (self.mdb_cursor_get)(cursor.cast(), &mut key, &mut data, op) {
                0 => Ok(Some((bytes(&key), bytes(&data)))),
                ffi::MDB_NOTFOUND => Ok(None),
                code => Err(self.fault("mdb_cursor_get", code)),
            }
        }
    }

    unsafe fn close_cursor(self, cursor: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { (self.mdb_cursor_close)(cursor.cast()) };
    }

    unsafe fn sync(self, env: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        self.check("mdb_env_sync", unsafe { (self.mdb_env_sync)(env.cast(), 1) })
    }

    unsafe fn copy(self, env: Ptr, path: &CStr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_env_copy)(env.cast(), path.as_ptr()) };
        self.check("mdb_env_copy", code)
    }

    unsafe fn close(self, env: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { (self.mdb_env_close)(env.cast()) };
    }
}

impl Engine for Lmdb {
    type Session<'e> = Thread<'e, Api>;

    fn open(dir: &Path, class: Class, variant: Variant) -> Outcome<(Lmdb, About)> {
        let api = if variant == Variant::Foreign { foreign()? } else { OWN };
        // Transactions are not bound to threads: each thread keeps its own anyway.
        let mut flags = ffi::MDB_NOSUBDIR | ffi::MDB_NOTLS;
        let (flag, name) = match class {
            Class::Sync => (0, "no flag"),
            Class::Lazy => (ffi::MDB_NOMETASYNC, "MDB_NOMETASYNC"),
            Class::NoSync | Class::Volatile => (ffi::MDB_NOSYNC, "MDB_NOSYNC"),
        };
        flags |= flag;
        if variant == Variant::Map {
            flags |= ffi::MDB_WRITEMAP;
        }
        let ahead = if super::limited() { ", MDB_NORDAHEAD" } else { "" };
        if super::limited() {
            flags |= ffi::MDB_NORDAHEAD;
        }
        let path = dl::c_path(&dir.join("lmdb"))?;
        let mut env = null_mut();
        // SAFETY: the calls are made in the documented order with valid pointers.
        let store = unsafe {
            api.check("mdb_env_create", (api.mdb_env_create)(&mut env))?;
            api.check("mdb_env_set_mapsize", (api.mdb_env_set_mapsize)(env, 64 << 30))?;
            // For the work on several tables; the others use the unnamed database.
            api.check("mdb_env_set_maxdbs", (api.mdb_env_set_maxdbs)(env, 1 + PAIRS as c_uint))?;
            let code = (api.mdb_env_open)(env, path.as_ptr(), flags as c_uint, 0o644);
            api.check("mdb_env_open", code)?;
            Store::new(api, env.cast())?
        };
        // SAFETY: the library gives a string that lives for ever.
        let version = unsafe { dl::text((api.mdb_version)(null_mut(), null_mut(), null_mut())) };
        let map = if variant == Variant::Map { ", MDB_WRITEMAP" } else { "" };
        let why = match variant {
            Variant::Foreign => "lmdb.h: the flags of the same names; no mode may damage the store",
            _ => "lmdb.h: NOMETASYNC keeps integrity, NOSYNC may corrupt in a system crash",
        };
        let about = About {
            version,
            settings: format!("{name}{map}{ahead}, MDB_NOTLS, readers reset and renewed"),
            why: why.into(),
        };
        Ok((Lmdb { store, foreign: variant == Variant::Foreign }, about))
    }

    fn session(&self) -> Outcome<Thread<'_, Api>> {
        self.store.session()
    }

    /// LMDB answers MDB_TXN_FULL when 2.5 million random records are removed at once.
    fn largest_removal(&self) -> u64 {
        if self.foreign { u64::MAX } else { LARGEST_REMOVAL }
    }

    fn open_tables(&mut self) -> Outcome<()> {
        self.store.open_tables()
    }

    fn back_up(&self, dir: &Path) -> Outcome<()> {
        self.store.copy(&dl::c_path(&dir.join("lmdb"))?)?;
        // The call leaves that to its user.
        super::flush_files(dir)
    }

    fn flush(&self) -> Outcome<()> {
        self.store.flush()
    }
}
