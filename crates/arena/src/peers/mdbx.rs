//! libmdbx 0.13.7, the last version whose SAFE_NOSYNC keeps what it promises.
//!
//! SYNC: MDBX_SYNC_DURABLE. LAZY: MDBX_SAFE_NOSYNC, which keeps the last flushed commit whole, with
//! Zubilo's bounds on what may be lost (32 MiB, one second). NOSYNC and VOLATILE:
//! MDBX_UTTERLY_NOSYNC, which a power cut may destroy. MDBX_LIFORECLAIM as its documentation
//! advises for write-back caches. `libmdbx-map` adds MDBX_WRITEMAP.

use std::ffi::{CStr, c_int};
use std::path::Path;
use std::ptr::{null, null_mut};

use signet_mdbx_sys as ffi;

use super::mapped::{Lib, Move, Ptr, Store, Thread};
use super::tables::PAIRS;
use super::{About, Engine, Fault, Outcome, Variant, dl};
use crate::spec::Class;

/// The library, which is linked in.
#[derive(Clone, Copy)]
pub(crate) struct Calls;

pub(crate) struct Mdbx {
    store: Store<Calls>,
}

#[inline(always)]
fn check(call: &'static str, code: c_int) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(fault(call, code)) }
}

#[cold]
fn fault(call: &'static str, code: c_int) -> Fault {
    // SAFETY: the library gives a string that lives at least until the next error of this thread.
    let text = unsafe { dl::text(ffi::mdbx_strerror(code)) };
    Fault::Failed(format!("{call}: {text}"))
}

fn val(bytes: &[u8]) -> ffi::MDBX_val {
    ffi::MDBX_val { iov_len: bytes.len(), iov_base: bytes.as_ptr().cast_mut().cast() }
}

const EMPTY: ffi::MDBX_val = ffi::MDBX_val { iov_len: 0, iov_base: null_mut() };

/// # Safety
/// The value was filled by the library, and its transaction lives for `'t`.
#[inline(always)]
unsafe fn bytes<'t>(val: &ffi::MDBX_val) -> &'t [u8] {
    // SAFETY: the library gives pointers into its map or the transaction's pages.
    unsafe { dl::bytes(val.iov_base.cast(), val.iov_len) }
}

// SAFETY: each method is a call with the arguments that it was given.
unsafe impl Lib for Calls {
    #[inline(always)]
    unsafe fn begin(self, env: Ptr, writes: bool) -> Outcome<Ptr> {
        let mut txn = null_mut();
        let flags = if writes { ffi::MDBX_TXN_READWRITE } else { ffi::MDBX_TXN_RDONLY };
        // SAFETY: as the caller promises.
        let code =
            unsafe { ffi::mdbx_txn_begin_ex(env.cast(), null_mut(), flags, &mut txn, null_mut()) };
        check("mdbx_txn_begin_ex", code)?;
        Ok(txn.cast())
    }

    #[inline(always)]
    unsafe fn commit(self, txn: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        check("mdbx_txn_commit_ex", unsafe { ffi::mdbx_txn_commit_ex(txn.cast(), null_mut()) })
    }

    unsafe fn abort(self, txn: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { ffi::mdbx_txn_abort(txn.cast()) };
    }

    #[inline(always)]
    unsafe fn reset(self, txn: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        check("mdbx_txn_reset", unsafe { ffi::mdbx_txn_reset(txn.cast()) })
    }

    #[inline(always)]
    unsafe fn renew(self, txn: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        check("mdbx_txn_renew", unsafe { ffi::mdbx_txn_renew(txn.cast()) })
    }

    unsafe fn table(self, txn: Ptr, name: Option<&CStr>, pairs: bool) -> Outcome<u32> {
        let create = if name.is_some() { ffi::MDBX_CREATE } else { 0 };
        let flags = create | if pairs { ffi::MDBX_DUPSORT } else { 0 };
        let (name, mut table) = (name.map_or(null(), CStr::as_ptr), 0);
        // SAFETY: as the caller promises.
        let code = unsafe { ffi::mdbx_dbi_open(txn.cast(), name, flags, &mut table) };
        check("mdbx_dbi_open", code)?;
        Ok(table)
    }

    #[inline(always)]
    unsafe fn get<'t>(self, txn: Ptr, table: u32, key: &[u8]) -> Outcome<Option<&'t [u8]>> {
        let (key, mut data) = (val(key), EMPTY);
        // SAFETY: as the caller promises.
        unsafe {
            match ffi::mdbx_get(txn.cast(), table, &key, &mut data) {
                0 => Ok(Some(bytes(&data))),
                ffi::MDBX_NOTFOUND => Ok(None),
                code => Err(fault("mdbx_get", code)),
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
        let flags = if append { ffi::MDBX_APPEND } else { ffi::MDBX_UPSERT };
        let (key, mut data) = (val(key), val(value));
        // SAFETY: as the caller promises; the library copies key and value.
        let code = unsafe { ffi::mdbx_put(txn.cast(), table, &key, &mut data, flags) };
        check("mdbx_put", code)
    }

    #[inline(always)]
    unsafe fn delete(self, txn: Ptr, table: u32, key: &[u8], value: Option<&[u8]>) -> Outcome<()> {
        let (key, data) = (val(key), value.map(val));
        let data = data.as_ref().map_or(null(), |data| &raw const *data);
        // SAFETY: as the caller promises; null stands for all values.
        match unsafe { ffi::mdbx_del(txn.cast(), table, &key, data) } {
            0 | ffi::MDBX_NOTFOUND => Ok(()),
            code => Err(fault("mdbx_del", code)),
        }
    }

    unsafe fn open_cursor(self, txn: Ptr, table: u32) -> Outcome<Ptr> {
        let mut cursor = null_mut();
        // SAFETY: as the caller promises.
        let code = unsafe { ffi::mdbx_cursor_open(txn.cast(), table, &mut cursor) };
        check("mdbx_cursor_open", code)?;
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
            Move::First => ffi::MDBX_FIRST,
            Move::Next => ffi::MDBX_NEXT,
            Move::From => ffi::MDBX_SET_RANGE,
            Move::Key => ffi::MDBX_SET_KEY,
            Move::NextValue => ffi::MDBX_NEXT_DUP,
        };
        // SAFETY: as the caller promises.
        unsafe {
            match ffi::mdbx_cursor_get(cursor.cast(), &mut key, &mut data, op) {
                0 => Ok(Some((bytes(&key), bytes(&data)))),
                ffi::MDBX_NOTFOUND => Ok(None),
                code => Err(fault("mdbx_cursor_get", code)),
            }
        }
    }

    unsafe fn close_cursor(self, cursor: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { ffi::mdbx_cursor_close(cursor.cast()) };
    }

    unsafe fn sync(self, env: Ptr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        match unsafe { ffi::mdbx_env_sync_ex(env.cast(), true, false) } {
            // There was nothing to flush.
            ffi::MDBX_RESULT_TRUE => Ok(()),
            code => check("mdbx_env_sync_ex", code),
        }
    }

    unsafe fn copy(self, env: Ptr, path: &CStr) -> Outcome<()> {
        // SAFETY: as the caller promises.
        let code = unsafe { ffi::mdbx_env_copy(env.cast(), path.as_ptr(), ffi::MDBX_CP_DEFAULTS) };
        check("mdbx_env_copy", code)
    }

    unsafe fn close(self, env: Ptr) {
        // SAFETY: as the caller promises.
        unsafe { ffi::mdbx_env_close_ex(env.cast(), false) };
    }
}

impl Engine for Mdbx {
    type Session<'e> = Thread<'e, Calls>;

    fn open(dir: &Path, class: Class, variant: Variant) -> Outcome<(Mdbx, About)> {
        let (flag, name) = match class {
            Class::Sync => (ffi::MDBX_SYNC_DURABLE, "MDBX_SYNC_DURABLE"),
            Class::Lazy => {
                (ffi::MDBX_SAFE_NOSYNC, "MDBX_SAFE_NOSYNC, sync_bytes 32 MiB, period 1 s")
            }
            Class::NoSync | Class::Volatile => (ffi::MDBX_UTTERLY_NOSYNC, "MDBX_UTTERLY_NOSYNC"),
        };
        let map = variant == Variant::Map;
        let more = ffi::MDBX_NOSUBDIR | ffi::MDBX_NOSTICKYTHREADS | ffi::MDBX_LIFORECLAIM;
        let (ahead, ahead_name) = match super::limited() {
            true => (ffi::MDBX_NORDAHEAD, ", MDBX_NORDAHEAD"),
            false => (0, ""),
        };
        let flags = flag | more | ahead | if map { ffi::MDBX_WRITEMAP } else { 0 };
        let path = dl::c_path(&dir.join("libmdbx"))?;
        let mut env = null_mut();
        // SAFETY: the calls are made in the documented order with valid pointers.
        let (version, store) = unsafe {
            check("mdbx_env_create", ffi::mdbx_env_create(&mut env))?;
            let geometry = ffi::mdbx_env_set_geometry(env, -1, -1, 64 << 30, -1, -1, 4096);
            check("mdbx_env_set_geometry", geometry)?;
            // For the work on several tables; the others use the unnamed one.
            let tables = ffi::mdbx_env_set_option(env, ffi::MDBX_opt_max_db, 1 + PAIRS as u64);
            check("mdbx_env_set_option", tables)?;
            check("mdbx_env_open", ffi::mdbx_env_open(env, path.as_ptr(), flags, 0o644))?;
            // Refused before the environment is open.
            if class == Class::Lazy {
                for (option, value) in
                    [(ffi::MDBX_opt_sync_bytes, 32 << 20), (ffi::MDBX_opt_sync_period, 1 << 16)]
                {
                    check("mdbx_env_set_option", ffi::mdbx_env_set_option(env, option, value))?;
                }
            }
            (ffi::mdbx_version, Store::new(Calls, env.cast())?)
        };
        let about = About {
            version: format!("{}.{}.{}", version.major, version.minor, version.patch),
            settings: format!(
                "{name}, MDBX_LIFORECLAIM{}{ahead_name}, readers reset and renewed",
                if map { ", MDBX_WRITEMAP" } else { "" }
            ),
            why: "mdbx.h: SYNC MODES, MDBX_LIFORECLAIM".into(),
        };
        Ok((Mdbx { store }, about))
    }

    fn session(&self) -> Outcome<Thread<'_, Calls>> {
        self.store.session()
    }

    fn open_tables(&mut self) -> Outcome<()> {
        self.store.open_tables()
    }

    fn back_up(&self, dir: &Path) -> Outcome<()> {
        self.store.copy(&dl::c_path(&dir.join("libmdbx"))?)
    }

    fn flush(&self) -> Outcome<()> {
        self.store.flush()
    }
}
