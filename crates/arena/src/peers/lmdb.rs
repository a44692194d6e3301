//! LMDB, called as a C program would, and whatever else exports its interface: Zubilo's own
//! `liblmdb.so.0`, loaded at run time.
//!
//! SYNC: no flag, each commit flushes data, then writes its meta page through a file opened with
//! O_DSYNC. LAZY: MDB_NOMETASYNC, the last commit may be lost in a power cut, never the store.
//! MDB_NOSYNC may lose the whole store in a power cut, so it stands for NOSYNC and VOLATILE only.
//! `lmdb-map` adds MDB_WRITEMAP, the fastest setting without flushes.

use std::ffi::{c_char, c_int, c_uint};
use std::path::Path;
use std::ptr::{null, null_mut};

use lmdb_master_sys as ffi;

use super::dl::Table;
use super::tables::{Change, Find, PAIRS, Place};
use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, dl};
use crate::spec::Class;

dl::functions!(Api {
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

/// An open environment with its default database.
pub(crate) struct Lmdb {
    api: Api,
    env: *mut ffi::MDB_env,
    dbi: ffi::MDB_dbi,
    /// Databases of pairs, once they are open.
    pairs: [ffi::MDB_dbi; PAIRS],
}

// SAFETY: environments may be used by many threads; each transaction here stays in its thread.
unsafe impl Send for Lmdb {}
// SAFETY: as above.
unsafe impl Sync for Lmdb {}

/// One thread's access, with the read transaction that is reset and renewed.
pub(crate) struct Thread<'e> {
    engine: &'e Lmdb,
    idle: *mut ffi::MDB_txn,
}

/// A transaction and the database.
pub(crate) struct Txn {
    api: Api,
    txn: *mut ffi::MDB_txn,
    dbi: ffi::MDB_dbi,
}

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

impl Engine for Lmdb {
    type Session<'e> = Thread<'e>;

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
        let path = dl::c_path(&dir.join("lmdb"))?;
        let (mut env, mut dbi) = (null_mut(), 0);
        // SAFETY: the calls are made in the documented order with valid pointers.
        unsafe {
            api.check("mdb_env_create", (api.mdb_env_create)(&mut env))?;
            api.check("mdb_env_set_mapsize", (api.mdb_env_set_mapsize)(env, 64 << 30))?;
            // For the work on several tables; the others use the unnamed database.
            api.check("mdb_env_set_maxdbs", (api.mdb_env_set_maxdbs)(env, 1 + PAIRS as c_uint))?;
            let code = (api.mdb_env_open)(env, path.as_ptr(), flags as c_uint, 0o644);
            api.check("mdb_env_open", code)?;
            let mut txn = null_mut();
            api.check("mdb_txn_begin", (api.mdb_txn_begin)(env, null_mut(), 0, &mut txn))?;
            api.check("mdb_dbi_open", (api.mdb_dbi_open)(txn, null(), 0, &mut dbi))?;
            api.check("mdb_txn_commit", (api.mdb_txn_commit)(txn))?;
        }
        // SAFETY: the library gives a string that lives for ever.
        let version = unsafe { dl::text((api.mdb_version)(null_mut(), null_mut(), null_mut())) };
        let map = if variant == Variant::Map { ", MDB_WRITEMAP" } else { "" };
        let why = match variant {
            Variant::Foreign => "lmdb.h: the flags of the same names; no mode may damage the store",
            _ => "lmdb.h: NOMETASYNC keeps integrity, NOSYNC may corrupt in a system crash",
        };
        let about = About {
            version,
            settings: format!("{name}{map}, MDB_NOTLS, readers reset and renewed"),
            why: why.into(),
        };
        Ok((Lmdb { api, env, dbi, pairs: [0; PAIRS] }, about))
    }

    fn session(&self) -> Outcome<Thread<'_>> {
        let idle = self.begin(ffi::MDB_RDONLY as c_uint)?;
        // SAFETY: a live read transaction.
        unsafe { (self.api.mdb_txn_reset)(idle) };
        Ok(Thread { engine: self, idle })
    }

    /// All of them by name: the unnamed one holds the names then.
    fn open_tables(&mut self) -> Outcome<()> {
        let api = self.api;
        let txn = self.begin(0)?;
        for (place, dup) in
            [(Place::Records, false), (Place::Pairs(0), true), (Place::Pairs(1), true)]
        {
            let name = dl::c_path(place.name().as_ref())?;
            let flags = (ffi::MDB_CREATE | if dup { ffi::MDB_DUPSORT } else { 0 }) as c_uint;
            let mut dbi = 0;
            // SAFETY: a live write transaction, a name that ends with zero.
            let code = unsafe { (api.mdb_dbi_open)(txn, name.as_ptr(), flags, &mut dbi) };
            api.check("mdb_dbi_open", code)?;
            match place {
                Place::Records => self.dbi = dbi,
                Place::Pairs(i) => self.pairs[i] = dbi,
            }
        }
        // SAFETY: a live transaction from which nothing borrows.
        api.check("mdb_txn_commit", unsafe { (api.mdb_txn_commit)(txn) })
    }

    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let path = dl::c_path(&dir.join("lmdb"))?;
        // SAFETY: the environment is open, the path ends with zero.
        let code = unsafe { (self.api.mdb_env_copy)(self.env, path.as_ptr()) };
        self.api.check("mdb_env_copy", code)
    }

    fn flush(&self) -> Outcome<()> {
        // SAFETY: the environment is open.
        self.api.check("mdb_env_sync", unsafe { (self.api.mdb_env_sync)(self.env, 1) })
    }
}

impl Lmdb {
    fn begin(&self, flags: c_uint) -> Outcome<*mut ffi::MDB_txn> {
        let mut txn = null_mut();
        // SAFETY: the environment is open.
        let code = unsafe { (self.api.mdb_txn_begin)(self.env, null_mut(), flags, &mut txn) };
        self.api.check("mdb_txn_begin", code)?;
        Ok(txn)
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the engine, so no transaction outlives it.
        unsafe { (self.api.mdb_env_close)(self.env) };
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        // SAFETY: a read transaction that was reset may be aborted.
        unsafe { (self.engine.api.mdb_txn_abort)(self.idle) };
    }
}

impl Session for Thread<'_> {
    type Reader<'t> = Txn;
    type Writer<'t> = Txn;

    #[inline(always)]
    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Txn) -> Outcome<R>) -> Outcome<R> {
        let Lmdb { api, dbi, .. } = *self.engine;
        // SAFETY: the transaction was reset; it is live between renew and reset.
        api.check("mdb_txn_renew", unsafe { (api.mdb_txn_renew)(self.idle) })?;
        let result = work(&mut Txn { api, txn: self.idle, dbi });
        // SAFETY: as above; nothing borrows from the transaction any more.
        unsafe { (api.mdb_txn_reset)(self.idle) };
        result
    }

    #[inline(always)]
    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Txn) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let Lmdb { api, dbi, .. } = *self.engine;
        let txn = self.engine.begin(0)?;
        match work(&mut Txn { api, txn, dbi }) {
            Ok(result) => {
                // SAFETY: the transaction is live and nothing borrows from it any more.
                api.check("mdb_txn_commit", unsafe { (api.mdb_txn_commit)(txn) })?;
                Ok(result)
            }
            Err(fault) => {
                // SAFETY: as above.
                unsafe { (api.mdb_txn_abort)(txn) };
                Err(fault)
            }
        }
    }

    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        let pairs = self.engine.pairs;
        self.write(|records| {
            for Change { place, key, value, gone } in changes {
                match (place, gone) {
                    (Place::Records, false) => records.put(key, value)?,
                    (Place::Records, true) => records.delete(key)?,
                    (Place::Pairs(i), false) => records.at(pairs[*i]).put(key, value)?,
                    (Place::Pairs(i), true) => records.at(pairs[*i]).remove_pair(key, value)?,
                }
            }
            Ok(())
        })
    }

    fn find(&mut self, find: Find<'_>, mut see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        let pairs = self.engine.pairs[find.pairs];
        self.read(|records| {
            let pairs = records.at(pairs);
            pairs.values(find.key, find.most, |value| match find.records {
                true => records.lookup(value, |record| see(value, record)),
                false => {
                    see(value, None);
                    Ok(())
                }
            })
        })
    }
}

impl Txn {
    /// One transaction and another database.
    fn at(&self, dbi: ffi::MDB_dbi) -> Txn {
        Txn { api: self.api, txn: self.txn, dbi }
    }

    #[inline(always)]
    fn lookup<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let (mut key, mut data) = (val(key), EMPTY);
        // SAFETY: a live transaction; what it gives is used before the next call.
        unsafe {
            match (self.api.mdb_get)(self.txn, self.dbi, &mut key, &mut data) {
                0 => Ok(see(Some(bytes(&data)))),
                ffi::MDB_NOTFOUND => Ok(see(None)),
                code => Err(self.api.fault("mdb_get", code)),
            }
        }
    }

    #[inline(always)]
    fn store(&mut self, key: &[u8], value: &[u8], flags: c_uint) -> Outcome<()> {
        let (mut key, mut data) = (val(key), val(value));
        // SAFETY: a live write transaction; the library copies key and value.
        let code = unsafe { (self.api.mdb_put)(self.txn, self.dbi, &mut key, &mut data, flags) };
        self.api.check("mdb_put", code)
    }
}

impl Txn {
    fn remove_pair(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let (mut key, mut data) = (val(key), val(value));
        // SAFETY: a live write transaction.
        match unsafe { (self.api.mdb_del)(self.txn, self.dbi, &mut key, &mut data) } {
            0 | ffi::MDB_NOTFOUND => Ok(()),
            code => Err(self.api.fault("mdb_del", code)),
        }
    }

    /// At most `most` values under a key.
    fn values(
        &self,
        key: &[u8],
        most: u64,
        mut see: impl FnMut(&[u8]) -> Outcome<()>,
    ) -> Outcome<u64> {
        let api = self.api;
        let mut cursor = null_mut();
        let (mut key, mut data, mut count) = (val(key), EMPTY, 0);
        // SAFETY: a live transaction; the cursor is closed before it ends, what it gives is used
        // before the next call.
        unsafe {
            api.check("mdb_cursor_open", (api.mdb_cursor_open)(self.txn, self.dbi, &mut cursor))?;
            let (mut op, mut code, mut seen) = (ffi::MDB_SET_KEY, 0, Ok(()));
            while count < most && seen.is_ok() {
                code = (api.mdb_cursor_get)(cursor, &mut key, &mut data, op);
                if code != 0 {
                    break;
                }
                seen = see(bytes(&data));
                op = ffi::MDB_NEXT_DUP;
                count += 1;
            }
            (api.mdb_cursor_close)(cursor);
            seen?;
            if code != 0 && code != ffi::MDB_NOTFOUND {
                return Err(api.fault("mdb_cursor_get", code));
            }
        }
        Ok(count)
    }
}

impl Reader for Txn {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    #[inline(always)]
    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let api = self.api;
        let mut cursor = null_mut();
        let mut key = from.map_or(EMPTY, val);
        let mut data = EMPTY;
        let mut count = 0;
        // SAFETY: a live transaction; the cursor is closed before it ends, what it gives is
        // used before the next call.
        unsafe {
            api.check("mdb_cursor_open", (api.mdb_cursor_open)(self.txn, self.dbi, &mut cursor))?;
            let mut op = if from.is_some() { ffi::MDB_SET_RANGE } else { ffi::MDB_FIRST };
            let mut code = 0;
            while count < most {
                code = (api.mdb_cursor_get)(cursor, &mut key, &mut data, op);
                if code != 0 {
                    break;
                }
                see(bytes(&key), bytes(&data));
                op = ffi::MDB_NEXT;
                count += 1;
            }
            (api.mdb_cursor_close)(cursor);
            if code != 0 && code != ffi::MDB_NOTFOUND {
                return Err(api.fault("mdb_cursor_get", code));
            }
        }
        Ok(count)
    }
}

impl Writer for Txn {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.store(key, value, 0)
    }

    #[inline(always)]
    fn append(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.store(key, value, ffi::MDB_APPEND as c_uint)
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        let mut key = val(key);
        // SAFETY: a live write transaction.
        match unsafe { (self.api.mdb_del)(self.txn, self.dbi, &mut key, null_mut()) } {
            0 | ffi::MDB_NOTFOUND => Ok(()),
            code => Err(self.api.fault("mdb_del", code)),
        }
    }
}
