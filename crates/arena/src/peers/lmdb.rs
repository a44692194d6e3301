//! LMDB, called as a C program would, and whatever else exports its interface: Zubilo's own
//! `liblmdb.so.0`, loaded at run time.
//!
//! SYNC: no flag, each commit flushes data, then writes its meta page through a file opened with
//! O_DSYNC. LAZY: MDB_NOMETASYNC, the last commit may be lost in a power cut, never the store.
//! MDB_NOSYNC may lose the whole store in a power cut, so it stands for NOSYNC and VOLATILE only.
//! `lmdb-map` adds MDB_WRITEMAP, the fastest setting without flushes.

use std::ffi::{CStr, c_int, c_uint};
use std::path::Path;
use std::ptr::{null, null_mut};

// LMDB 0.9.70, whose functions `support` has for the program.
use lmdb_master_sys as _;
use support::lmdb::{self as ffi, Api, LINKED, Val};

use super::mapped::{Lib, Move, Ptr, Store, Thread};
use super::tables::PAIRS;
use super::{About, Engine, Fault, Outcome, Variant, dl};
use crate::spec::Class;

/// The library named by ARENA_ZUBILO_C, or `liblmdb.so.0` where libraries lie that are built here.
/// The search path of the system is not used: it leads to LMDB.
fn foreign() -> Outcome<Api> {
    let path = std::env::var_os("ARENA_ZUBILO_C");
    let library = dl::library(&path.unwrap_or_else(|| dl::built_here("liblmdb.so.0").into()))?;
    // SAFETY: a library of this name has the functions of lmdb.h.
    unsafe { Api::find(|name| dl::symbol(library, &name.to_string_lossy())) }
}

#[inline(always)]
fn check(api: Api, call: &'static str, code: c_int) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(fault(api, call, code)) }
}

#[cold]
fn fault(api: Api, call: &'static str, code: c_int) -> Fault {
    // SAFETY: the library gives a string that lives for ever.
    let text = unsafe { dl::text((api.mdb_strerror)(code)) };
    Fault::Failed(format!("{call}: {text}"))
}

pub(crate) struct Lmdb {
    store: Store<Api>,
    foreign: bool,
}

/// Records, so that the pages changed stay below the 131,071 that LMDB can list.
const LARGEST_REMOVAL: u64 = 100_000;

// SAFETY: each method is a call with the arguments that it was given.
unsafe impl Lib for Api {
    #[inline(always)]
    unsafe fn begin(self, env: Ptr, writes: bool) -> Outcome<Ptr> {
        let mut txn = null_mut();
        let flags = if writes { 0 } else { ffi::MDB_RDONLY as c_uint };
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_txn_begin)(env.cast(), null_mut(), flags, &mut txn) };
        check(self, "mdb_txn_begin", code)?;
        Ok(txn.cast())
    }

    #[inline(always)]
    unsafe fn commit(self, txn: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        check(self, "mdb_txn_commit", unsafe { (self.mdb_txn_commit)(txn.cast()) })
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
        check(self, "mdb_txn_renew", unsafe { (self.mdb_txn_renew)(txn.cast()) })
    }

    unsafe fn table(self, txn: Ptr, name: Option<&CStr>, pairs: bool) -> Outcome<u32> {
        let create = if name.is_some() { ffi::MDB_CREATE } else { 0 };
        let flags = create | if pairs { ffi::MDB_DUPSORT } else { 0 };
        let (name, mut table) = (name.map_or(null(), CStr::as_ptr), 0);
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_dbi_open)(txn.cast(), name, flags as c_uint, &mut table) };
        check(self, "mdb_dbi_open", code)?;
        Ok(table)
    }

    #[inline(always)]
    unsafe fn get<'t>(self, txn: Ptr, table: u32, key: &[u8]) -> Outcome<Option<&'t [u8]>> {
        let (mut key, mut data) = (Val::of(key), Val::NONE);
        // SAFETY: as the caller promises.
        unsafe {
            match (self.mdb_get)(txn.cast(), table, &mut key, &mut data) {
                0 => Ok(Some(data.bytes())),
                ffi::MDB_NOTFOUND => Ok(None),
                code => Err(fault(self, "mdb_get", code)),
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
        let (mut key, mut data) = (Val::of(key), Val::of(value));
        // SAFETY: as the caller promises; the library copies key and value.
        let code = unsafe { (self.mdb_put)(txn.cast(), table, &mut key, &mut data, flags) };
        check(self, "mdb_put", code)
    }

    #[inline(always)]
    unsafe fn delete(self, txn: Ptr, table: u32, key: &[u8], value: Option<&[u8]>) -> Outcome<()> {
        let (mut key, mut data) = (Val::of(key), value.map(Val::of));
        let data = data.as_mut().map_or(null_mut(), |data| &raw mut *data);
        // SAFETY: as the caller promises; null stands for all values.
        match unsafe { (self.mdb_del)(txn.cast(), table, &mut key, data) } {
            0 | ffi::MDB_NOTFOUND => Ok(()),
            code => Err(fault(self, "mdb_del", code)),
        }
    }

    unsafe fn open_cursor(self, txn: Ptr, table: u32) -> Outcome<Ptr> {
        let mut cursor = null_mut();
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_cursor_open)(txn.cast(), table, &mut cursor) };
        check(self, "mdb_cursor_open", code)?;
        Ok(cursor.cast())
    }

    #[inline(always)]
    unsafe fn step<'t>(
        self,
        cursor: Ptr,
        how: Move,
        key: &[u8],
    ) -> Outcome<Option<(&'t [u8], &'t [u8])>> {
        let (mut key, mut data) = (Val::of(key), Val::NONE);
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
                0 => Ok(Some((key.bytes(), data.bytes()))),
                ffi::MDB_NOTFOUND => Ok(None),
                code => Err(fault(self, "mdb_cursor_get", code)),
            }
        }
    }

    unsafe fn close_cursor(self, cursor: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { (self.mdb_cursor_close)(cursor.cast()) };
    }

    unsafe fn sync(self, env: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        check(self, "mdb_env_sync", unsafe { (self.mdb_env_sync)(env.cast(), 1) })
    }

    unsafe fn copy(self, env: Ptr, path: &CStr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        let code = unsafe { (self.mdb_env_copy)(env.cast(), path.as_ptr()) };
        check(self, "mdb_env_copy", code)
    }

    unsafe fn close(self, env: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { (self.mdb_env_close)(env.cast()) };
    }
}

impl Engine for Lmdb {
    type Session<'e> = Thread<'e, Api>;

    fn open(dir: &Path, class: Class, variant: Variant) -> Outcome<(Lmdb, About)> {
        let api = if variant == Variant::Foreign { foreign()? } else { LINKED };
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
            check(api, "mdb_env_create", (api.mdb_env_create)(&mut env))?;
            check(api, "mdb_env_set_mapsize", (api.mdb_env_set_mapsize)(env, 64 << 30))?;
            // For the work on several tables; the others use the unnamed database.
            check(api, "mdb_env_set_maxdbs", (api.mdb_env_set_maxdbs)(env, 1 + PAIRS as c_uint))?;
            let code = (api.mdb_env_open)(env, path.as_ptr(), flags as c_uint, 0o644);
            check(api, "mdb_env_open", code)?;
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
