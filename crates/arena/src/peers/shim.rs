//! Engines whose C interface needs their header: WiredTiger and Berkeley DB. `tools/arena-peers.sh`
//! compiles the libraries from `crates/arena/shims`, where their settings stand and why.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use super::dl::Table;
use super::tables::{Change, Find, Place};
use super::{
    About, Engine, Fault, MODEST_TRANSACTION, Outcome, Reader, Session, Variant, Writer, cache, dl,
};
use crate::spec::Class;

type Ptr = *mut c_void;
type See = unsafe extern "C" fn(Ptr, *const u8, usize, *const u8, usize);

dl::functions!(Api {
    fn peer_version() -> *const c_char;
    fn peer_error(c_int) -> *const c_char;
    fn peer_settings(c_int) -> *const c_char;
    fn peer_why() -> *const c_char;
    fn peer_open(*const c_char, c_int, usize, *mut Ptr) -> c_int;
    fn peer_flush(Ptr) -> c_int;
    fn peer_close(Ptr) -> c_int;
    fn peer_session(Ptr, *mut Ptr) -> c_int;
    fn peer_end(Ptr);
    fn peer_begin(Ptr, c_int) -> c_int;
    fn peer_commit(Ptr) -> c_int;
    fn peer_abort(Ptr);
    fn peer_get(Ptr, *const u8, usize, *mut *const u8, *mut usize) -> c_int;
    fn peer_put(Ptr, *const u8, usize, *const u8, usize) -> c_int;
    fn peer_delete(Ptr, *const u8, usize) -> c_int;
    fn peer_seek(Ptr, *const u8, usize, *mut *const u8, *mut usize, *mut *const u8, *mut usize) -> c_int;
    fn peer_next(Ptr, *mut *const u8, *mut usize, *mut *const u8, *mut usize) -> c_int;
    fn peer_rest(Ptr);
    fn peer_backup(Ptr, *const c_char) -> c_int;
    fn peer_compact(Ptr) -> c_int;
    fn peer_tables(Ptr) -> c_int;
    fn peer_pair(Ptr, c_int, *const u8, usize, *const u8, usize, c_int) -> c_int;
    fn peer_find(Ptr, c_int, *const u8, usize, u64, c_int, See, Ptr, *mut u64) -> c_int;
});

/// There is no such record, or none more.
const NONE: c_int = 1_000_001;
/// Another transaction was in the way: roll back and try again.
const AGAIN: c_int = 1_000_002;
/// Tries of one transaction before it counts as failed.
const TRIES: usize = 10_000;

pub(crate) struct Shim {
    api: Api,
    store: Ptr,
    /// Whether read transactions are snapshots.
    snapshots: bool,
}

// SAFETY: the stores may be used by many threads at once, each with a session of its own.
unsafe impl Send for Shim {}
// SAFETY: as above.
unsafe impl Sync for Shim {}

/// A session; it stays in its thread.
pub(crate) struct Thread {
    api: Api,
    session: Ptr,
    /// Whether a call in this transaction was asked to try again.
    again: bool,
}

// SAFETY: sessions may move between threads as long as one uses them at a time.
unsafe impl Send for Thread {}

impl Engine for Shim {
    type Session<'e> = Thread;

    fn open(dir: &Path, class: Class, variant: Variant) -> Outcome<(Shim, About)> {
        let name = match variant {
            Variant::Berkeley => "libarena-berkeley.so",
            _ => "libarena-wiredtiger.so",
        };
        let api = Api::load(dl::built_here(name).as_os_str()).map_err(|fault| match fault {
            Fault::Missing(why) => Fault::Missing(format!("{why}; run tools/arena-peers.sh")),
            other => other,
        })?;
        let dir = dir.join("store");
        std::fs::create_dir_all(&dir).map_err(Fault::of("create the directory"))?;
        let path = dl::c_path(&dir)?;
        let class = match class {
            Class::Sync => 0,
            Class::Lazy => 1,
            Class::NoSync => 2,
            Class::Volatile => 3,
        };
        let mut shim = Shim { api, store: null_mut(), snapshots: variant != Variant::Berkeley };
        // SAFETY: the shims take one of these classes and a path that ends with zero; their
        // strings live for ever.
        unsafe {
            let code = (api.peer_open)(path.as_ptr(), class, cache(), &mut shim.store);
            check(&api, "open", code)?;
            let about = About {
                version: dl::text((api.peer_version)()),
                settings: format!(
                    "{}, cache {} MiB",
                    dl::text((api.peer_settings)(class)),
                    cache() >> 20
                ),
                why: dl::text((api.peer_why)()),
            };
            Ok((shim, about))
        }
    }

    fn session(&self) -> Outcome<Thread> {
        let mut session = null_mut();
        // SAFETY: the store is open; the session is ended when it is dropped.
        let code = unsafe { (self.api.peer_session)(self.store, &mut session) };
        check(&self.api, "session", code)?;
        Ok(Thread { api: self.api, session, again: false })
    }

    /// WiredTiger keeps what is not committed in its cache, where the writer itself must then make room.
    fn largest_transaction(&self) -> u64 {
        if self.snapshots { MODEST_TRANSACTION } else { u64::MAX }
    }

    fn begins_snapshots(&self) -> Outcome<()> {
        let reason = "it reads without snapshots here: to begin a read does nothing";
        if self.snapshots { Ok(()) } else { Err(Fault::Absent(reason.into())) }
    }

    fn flush(&self) -> Outcome<()> {
        // SAFETY: the store is open.
        check(&self.api, "flush", unsafe { (self.api.peer_flush)(self.store) })
    }

    fn open_tables(&mut self) -> Outcome<()> {
        // SAFETY: the store is open.
        check(&self.api, "open tables", unsafe { (self.api.peer_tables)(self.store) })
    }

    fn compact(&mut self) -> Outcome<()> {
        // SAFETY: the store is open.
        check(&self.api, "compact", unsafe { (self.api.peer_compact)(self.store) })
    }

    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let dir = dir.join("store");
        std::fs::create_dir(&dir).map_err(Fault::of("create the directory"))?;
        let path = dl::c_path(&dir)?;
        // SAFETY: the store is open, the path ends with zero.
        let code = unsafe { (self.api.peer_backup)(self.store, path.as_ptr()) };
        check(&self.api, "backup", code)?;
        super::flush_files(&dir)
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        if !self.store.is_null() {
            // SAFETY: sessions are dropped before the engine, by those who made them.
            unsafe { (self.api.peer_close)(self.store) };
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the session.
        unsafe { (self.api.peer_end)(self.session) };
    }
}

#[inline(always)]
fn check(api: &Api, call: &'static str, code: c_int) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(fault(api, call, code)) }
}

#[cold]
fn fault(api: &Api, call: &'static str, code: c_int) -> Fault {
    let text = match code {
        NONE => "no such record".into(),
        AGAIN => "another transaction is in the way".into(),
        // SAFETY: the engine's own code; the string lives until the next error.
        code => unsafe { dl::text((api.peer_error)(code)) },
    };
    Fault::Failed(format!("{call}: {text}"))
}

impl Thread {
    #[inline(always)]
    fn check(&mut self, call: &'static str, code: c_int) -> Outcome<()> {
        self.again |= code == AGAIN;
        check(&self.api, call, code)
    }

    #[inline(always)]
    fn lookup<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let (mut value, mut len) = (null(), 0);
        // SAFETY: a live session; the value is used before the next call.
        unsafe {
            let get = self.api.peer_get;
            match get(self.session, key.as_ptr(), key.len(), &mut value, &mut len) {
                0 => Ok(see(Some(dl::bytes(value, len)))),
                NONE => Ok(see(None)),
                code => self.check("get", code).map(|()| see(None)),
            }
        }
    }

    fn begin(&mut self, writes: bool) -> Outcome<()> {
        self.again = false;
        // SAFETY: a live session without a transaction.
        let code = unsafe { (self.api.peer_begin)(self.session, c_int::from(writes)) };
        self.check("begin", code)
    }

    fn end<R>(&mut self, result: Outcome<R>) -> Outcome<R> {
        // SAFETY: a live session; aborting without a transaction does no harm.
        let result = result.inspect_err(|_| unsafe { (self.api.peer_abort)(self.session) })?;
        // SAFETY: a live session with a transaction.
        let code = unsafe { (self.api.peer_commit)(self.session) };
        self.check("commit", code)?;
        Ok(result)
    }
}

impl Session for Thread {
    type Reader<'t> = Thread;
    type Writer<'t> = Thread;

    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Thread) -> Outcome<R>) -> Outcome<R> {
        self.begin(false)?;
        let result = work(self);
        self.end(result)
    }

    /// A call outside of a transaction is one by itself.
    #[inline(always)]
    fn get_once<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let result = self.lookup(key, see);
        // SAFETY: a live session; lets go of the page that it stands on.
        unsafe { (self.api.peer_rest)(self.session) };
        result
    }

    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Thread) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        for _ in 1..TRIES {
            let result = self.begin(true).and_then(|()| work(self));
            match self.end(result) {
                Err(_) if self.again => {}
                done => return done,
            }
        }
        Err(fault(&self.api, "write", AGAIN))
    }

    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        self.write(|thread| {
            for Change { place, key, value, gone } in changes {
                match (place, gone) {
                    (Place::Records, false) => thread.put(key, value)?,
                    (Place::Records, true) => thread.delete(key)?,
                    (Place::Pairs(i), gone) => thread.pair(*i, key, value, *gone)?,
                }
            }
            Ok(())
        })
    }

    fn find(&mut self, find: Find<'_>, see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        self.read(|thread| thread.values(find, see))
    }
}

/// # Safety
/// The library calls it with bytes that live through the call and the closure it was given.
unsafe extern "C" fn seen<F: FnMut(&[u8], Option<&[u8]>)>(
    see: Ptr,
    value: *const u8,
    value_len: usize,
    record: *const u8,
    record_len: usize,
) {
    // SAFETY: as above; null stands for no record.
    unsafe {
        let record = (!record.is_null()).then(|| dl::bytes(record, record_len));
        (*see.cast::<F>())(dl::bytes(value, value_len), record);
    }
}

impl Thread {
    fn pair(&mut self, pairs: usize, key: &[u8], value: &[u8], gone: bool) -> Outcome<()> {
        let (change, gone) = (self.api.peer_pair, c_int::from(gone));
        let (place, key_len) = (pairs as c_int, key.len());
        let (key, value, len) = (key.as_ptr(), value.as_ptr(), value.len());
        // SAFETY: a live session in a transaction; the engine copies what it is given.
        let code = unsafe { change(self.session, place, key, key_len, value, len, gone) };
        if code == NONE { Ok(()) } else { self.check("pair", code) }
    }

    fn values<F: FnMut(&[u8], Option<&[u8]>)>(&mut self, find: Find<'_>, see: F) -> Outcome<u64> {
        let (mut see, mut count) = (see, 0);
        let (key, len) = (find.key.as_ptr(), find.key.len());
        let (pairs, records) = (find.pairs as c_int, c_int::from(find.records));
        let context: *mut F = &mut see;
        // SAFETY: a live session; the closure lives through the call.
        let code = unsafe {
            let (look, session) = (self.api.peer_find, self.session);
            let context = context.cast();
            look(session, pairs, key, len, find.most, records, seen::<F>, context, &mut count)
        };
        self.check("find", code).map(|()| count)
    }
}

impl Reader for Thread {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let api = self.api;
        let (mut key, mut key_len, mut value, mut value_len) = (null(), 0, null(), 0);
        let mut count = 0;
        // SAFETY: a live session; key and value are used before the next call.
        unsafe {
            let (start, len) = from.map_or((null(), 0), |key| (key.as_ptr(), key.len()));
            let (key, key_len) = (&mut key, &mut key_len);
            let (value, value_len) = (&mut value, &mut value_len);
            let mut code =
                (api.peer_seek)(self.session, start, len, key, key_len, value, value_len);
            while code == 0 && count < most {
                see(dl::bytes(*key, *key_len), dl::bytes(*value, *value_len));
                count += 1;
                if count < most {
                    code = (api.peer_next)(self.session, key, key_len, value, value_len);
                }
            }
            (api.peer_rest)(self.session);
            if code != NONE {
                self.check("walk", code)?;
            }
        }
        Ok(count)
    }
}

impl Writer for Thread {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let put = self.api.peer_put;
        // SAFETY: a live session in a transaction; the engine copies what it is given.
        let code =
            unsafe { put(self.session, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
        self.check("put", code)
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        // SAFETY: as in put.
        let code = unsafe { (self.api.peer_delete)(self.session, key.as_ptr(), key.len()) };
        if code == NONE { Ok(()) } else { self.check("delete", code) }
    }
}
