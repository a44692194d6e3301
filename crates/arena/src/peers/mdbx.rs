//! libmdbx 0.13.7, the last version whose SAFE_NOSYNC keeps what it promises.
//!
//! SYNC: MDBX_SYNC_DURABLE. LAZY: MDBX_SAFE_NOSYNC, which keeps the last flushed commit whole, with
//! Zubilo's bounds on what may be lost (32 MiB, one second). NOSYNC and VOLATILE:
//! MDBX_UTTERLY_NOSYNC, which a power cut may destroy. MDBX_LIFORECLAIM as its documentation
//! advises for write-back caches. `libmdbx-map` adds MDBX_WRITEMAP.

use std::ffi::c_int;
use std::path::Path;
use std::ptr::{null, null_mut};

use signet_mdbx_sys as ffi;

use super::tables::{Change, Find, PAIRS, Place};
use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, dl};
use crate::spec::Class;

pub(crate) struct Mdbx {
    env: *mut ffi::MDBX_env,
    dbi: ffi::MDBX_dbi,
    /// Databases of pairs, once they are open.
    pairs: [ffi::MDBX_dbi; PAIRS],
}

// SAFETY: environments may be used by many threads; each transaction here stays in its thread.
unsafe impl Send for Mdbx {}
// SAFETY: as above.
unsafe impl Sync for Mdbx {}

/// One thread's access, with the read transaction that is reset and renewed.
pub(crate) struct Thread<'e> {
    engine: &'e Mdbx,
    idle: *mut ffi::MDBX_txn,
}

pub(crate) struct Txn {
    txn: *mut ffi::MDBX_txn,
    dbi: ffi::MDBX_dbi,
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

impl Engine for Mdbx {
    type Session<'e> = Thread<'e>;

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
        let flags = flag | more | if map { ffi::MDBX_WRITEMAP } else { 0 };
        let path = dl::c_path(&dir.join("libmdbx"))?;
        let (mut env, mut dbi) = (null_mut(), 0);
        // SAFETY: the calls are made in the documented order with valid pointers.
        let version = unsafe {
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
            let mut txn = null_mut();
            let write = ffi::MDBX_TXN_READWRITE;
            let begun = ffi::mdbx_txn_begin_ex(env, null_mut(), write, &mut txn, null_mut());
            check("mdbx_txn_begin_ex", begun)?;
            check("mdbx_dbi_open", ffi::mdbx_dbi_open(txn, null(), 0, &mut dbi))?;
            check("mdbx_txn_commit_ex", ffi::mdbx_txn_commit_ex(txn, null_mut()))?;
            ffi::mdbx_version
        };
        let about = About {
            version: format!("{}.{}.{}", version.major, version.minor, version.patch),
            settings: format!(
                "{name}, MDBX_LIFORECLAIM{}, readers reset and renewed",
                if map { ", MDBX_WRITEMAP" } else { "" }
            ),
            why: "mdbx.h: SYNC MODES, MDBX_LIFORECLAIM".into(),
        };
        Ok((Mdbx { env, dbi, pairs: [0; PAIRS] }, about))
    }

    fn session(&self) -> Outcome<Thread<'_>> {
        let idle = self.begin(ffi::MDBX_TXN_RDONLY)?;
        // SAFETY: a live read transaction.
        check("mdbx_txn_reset", unsafe { ffi::mdbx_txn_reset(idle) })?;
        Ok(Thread { engine: self, idle })
    }

    /// All of them by name: the unnamed one holds the names then.
    fn open_tables(&mut self) -> Outcome<()> {
        let txn = self.begin(ffi::MDBX_TXN_READWRITE)?;
        for (place, dup) in
            [(Place::Records, false), (Place::Pairs(0), true), (Place::Pairs(1), true)]
        {
            let name = dl::c_path(place.name().as_ref())?;
            let flags = ffi::MDBX_CREATE | if dup { ffi::MDBX_DUPSORT } else { 0 };
            let mut dbi = 0;
            // SAFETY: a live write transaction, a name that ends with zero.
            let code = unsafe { ffi::mdbx_dbi_open(txn, name.as_ptr(), flags, &mut dbi) };
            check("mdbx_dbi_open", code)?;
            match place {
                Place::Records => self.dbi = dbi,
                Place::Pairs(i) => self.pairs[i] = dbi,
            }
        }
        // SAFETY: a live transaction from which nothing borrows.
        check("mdbx_txn_commit_ex", unsafe { ffi::mdbx_txn_commit_ex(txn, null_mut()) })
    }

    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let path = dl::c_path(&dir.join("libmdbx"))?;
        // SAFETY: the environment is open, the path ends with zero.
        let code = unsafe { ffi::mdbx_env_copy(self.env, path.as_ptr(), ffi::MDBX_CP_DEFAULTS) };
        check("mdbx_env_copy", code)
    }

    fn flush(&self) -> Outcome<()> {
        // SAFETY: the environment is open.
        match unsafe { ffi::mdbx_env_sync_ex(self.env, true, false) } {
            // There was nothing to flush.
            ffi::MDBX_RESULT_TRUE => Ok(()),
            code => check("mdbx_env_sync_ex", code),
        }
    }
}

impl Mdbx {
    fn begin(&self, flags: ffi::MDBX_txn_flags) -> Outcome<*mut ffi::MDBX_txn> {
        let mut txn = null_mut();
        // SAFETY: the environment is open.
        let code =
            unsafe { ffi::mdbx_txn_begin_ex(self.env, null_mut(), flags, &mut txn, null_mut()) };
        check("mdbx_txn_begin_ex", code)?;
        Ok(txn)
    }
}

impl Drop for Mdbx {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the engine, so no transaction outlives it.
        unsafe { ffi::mdbx_env_close_ex(self.env, false) };
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        // SAFETY: a read transaction that was reset may be aborted.
        unsafe { ffi::mdbx_txn_abort(self.idle) };
    }
}

impl Session for Thread<'_> {
    type Reader<'t> = Txn;
    type Writer<'t> = Txn;

    #[inline(always)]
    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Txn) -> Outcome<R>) -> Outcome<R> {
        // SAFETY: the transaction was reset; it is live between renew and reset.
        check("mdbx_txn_renew", unsafe { ffi::mdbx_txn_renew(self.idle) })?;
        let result = work(&mut Txn { txn: self.idle, dbi: self.engine.dbi });
        // SAFETY: as above; nothing borrows from the transaction any more.
        check("mdbx_txn_reset", unsafe { ffi::mdbx_txn_reset(self.idle) })?;
        result
    }

    #[inline(always)]
    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Txn) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let txn = self.engine.begin(ffi::MDBX_TXN_READWRITE)?;
        match work(&mut Txn { txn, dbi: self.engine.dbi }) {
            Ok(result) => {
                // SAFETY: the transaction is live and nothing borrows from it any more.
                let code = unsafe { ffi::mdbx_txn_commit_ex(txn, null_mut()) };
                check("mdbx_txn_commit_ex", code)?;
                Ok(result)
            }
            Err(fault) => {
                // SAFETY: as above.
                unsafe { ffi::mdbx_txn_abort(txn) };
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
    /// One transaction and another table.
    fn at(&self, dbi: ffi::MDBX_dbi) -> Txn {
        Txn { txn: self.txn, dbi }
    }

    #[inline(always)]
    fn lookup<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let (key, mut data) = (val(key), EMPTY);
        // SAFETY: a live transaction; what it gives is used before the next call.
        unsafe {
            match ffi::mdbx_get(self.txn, self.dbi, &key, &mut data) {
                0 => Ok(see(Some(bytes(&data)))),
                ffi::MDBX_NOTFOUND => Ok(see(None)),
                code => Err(fault("mdbx_get", code)),
            }
        }
    }

    #[inline(always)]
    fn store(&mut self, key: &[u8], value: &[u8], flags: ffi::MDBX_put_flags) -> Outcome<()> {
        let (key, mut data) = (val(key), val(value));
        // SAFETY: a live write transaction; the library copies key and value.
        check("mdbx_put", unsafe { ffi::mdbx_put(self.txn, self.dbi, &key, &mut data, flags) })
    }
}

impl Txn {
    fn remove_pair(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let (key, data) = (val(key), val(value));
        // SAFETY: a live write transaction.
        match unsafe { ffi::mdbx_del(self.txn, self.dbi, &key, &data) } {
            0 | ffi::MDBX_NOTFOUND => Ok(()),
            code => Err(fault("mdbx_del", code)),
        }
    }

    /// At most `most` values under a key.
    fn values(
        &self,
        key: &[u8],
        most: u64,
        mut see: impl FnMut(&[u8]) -> Outcome<()>,
    ) -> Outcome<u64> {
        let mut cursor = null_mut();
        let (mut key, mut data, mut count) = (val(key), EMPTY, 0);
        // SAFETY: a live transaction; the cursor is closed before it ends, what it gives is used
        // before the next call.
        unsafe {
            check("mdbx_cursor_open", ffi::mdbx_cursor_open(self.txn, self.dbi, &mut cursor))?;
            let (mut op, mut code, mut seen) = (ffi::MDBX_SET_KEY, 0, Ok(()));
            while count < most && seen.is_ok() {
                code = ffi::mdbx_cursor_get(cursor, &mut key, &mut data, op);
                if code != 0 {
                    break;
                }
                seen = see(bytes(&data));
                op = ffi::MDBX_NEXT_DUP;
                count += 1;
            }
            ffi::mdbx_cursor_close(cursor);
            seen?;
            if code != 0 && code != ffi::MDBX_NOTFOUND {
                return Err(fault("mdbx_cursor_get", code));
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
        let mut cursor = null_mut();
        let mut key = from.map_or(EMPTY, val);
        let mut data = EMPTY;
        let mut count = 0;
        // SAFETY: a live transaction; the cursor is closed before it ends, what it gives is used
        // before the next call.
        unsafe {
            check("mdbx_cursor_open", ffi::mdbx_cursor_open(self.txn, self.dbi, &mut cursor))?;
            let mut op = if from.is_some() { ffi::MDBX_SET_RANGE } else { ffi::MDBX_FIRST };
            let mut code = 0;
            while count < most {
                code = ffi::mdbx_cursor_get(cursor, &mut key, &mut data, op);
                if code != 0 {
                    break;
                }
                see(bytes(&key), bytes(&data));
                op = ffi::MDBX_NEXT;
                count += 1;
            }
            ffi::mdbx_cursor_close(cursor);
            if code != 0 && code != ffi::MDBX_NOTFOUND {
                return Err(fault("mdbx_cursor_get", code));
            }
        }
        Ok(count)
    }
}

impl Writer for Txn {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.store(key, value, ffi::MDBX_UPSERT)
    }

    #[inline(always)]
    fn append(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.store(key, value, ffi::MDBX_APPEND)
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        let key = val(key);
        // SAFETY: a live write transaction.
        match unsafe { ffi::mdbx_del(self.txn, self.dbi, &key, null()) } {
            0 | ffi::MDBX_NOTFOUND => Ok(()),
            code => Err(fault("mdbx_del", code)),
        }
    }
}
