//! Kyoto Cabinet's TreeDB, the library of the system, through its C interface.
//!
//! SYNC: hard transactions, which flush to the device. NOSYNC: soft ones, which reach the kernel;
//! their log of old pages is not flushed, so a power cut may damage the file: there is no LAZY.
//! VOLATILE: no transactions, changes wait in the page cache. A transaction holds the only lock of
//! the store: readers wait, and there are no snapshots. The caches of pages and of the map are as
//! large as the other engines'.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

use super::dl::Table;
use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, cache, dl};
use crate::spec::Class;

type Ptr = *mut c_void;
type Full =
    unsafe extern "C" fn(*const u8, usize, *const u8, usize, *mut usize, Ptr) -> *const c_char;
type Empty = unsafe extern "C" fn(*const u8, usize, *mut usize, Ptr) -> *const c_char;

dl::functions!(Api {
    fn kcdbnew() -> Ptr;
    fn kcdbdel(Ptr);
    fn kcdbopen(Ptr, *const c_char, u32) -> i32;
    fn kcdbclose(Ptr) -> i32;
    fn kcdbemsg(Ptr) -> *const c_char;
    fn kcdbaccept(Ptr, *const u8, usize, Full, Empty, Ptr, i32) -> i32;
    fn kcdbset(Ptr, *const u8, usize, *const u8, usize) -> i32;
    fn kcdbremove(Ptr, *const u8, usize) -> i32;
    fn kcdbbegintran(Ptr, i32) -> i32;
    fn kcdbendtran(Ptr, i32) -> i32;
    fn kcdbcursor(Ptr) -> Ptr;
    fn kccurdel(Ptr);
    fn kccurjump(Ptr) -> i32;
    fn kccurjumpkey(Ptr, *const u8, usize) -> i32;
    fn kccuraccept(Ptr, Full, Ptr, i32, i32) -> i32;
    fn kcdbcopy(Ptr, *const c_char) -> i32;
    fn kcdbsync(Ptr, i32, *const c_void, Ptr) -> i32;
});

/// Writer and create.
const OPEN: u32 = 1 << 1 | 1 << 2;

pub(crate) struct Kyoto {
    api: Api,
    db: Ptr,
    /// Whether transactions flush; none without transactions.
    hard: Option<bool>,
}

// SAFETY: the library's handles may be used by many threads at once.
unsafe impl Send for Kyoto {}
// SAFETY: as above.
unsafe impl Sync for Kyoto {}

/// The store as it is now.
#[derive(Clone, Copy)]
pub(crate) struct Now {
    api: Api,
    db: Ptr,
}

impl Now {
    #[cold]
    fn fault(&self, call: &'static str) -> Fault {
        // SAFETY: the library gives a string that lives for ever.
        let text = unsafe { dl::text((self.api.kcdbemsg)(self.db)) };
        Fault::Failed(format!("{call}: {text}"))
    }

    #[inline(always)]
    fn check(&self, call: &'static str, done: i32) -> Outcome<()> {
        if done != 0 { Ok(()) } else { Err(self.fault(call)) }
    }
}

impl Engine for Kyoto {
    type Session<'e> = &'e Kyoto;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Kyoto, About)> {
        let hard = match class {
            Class::Sync => Some(true),
            Class::NoSync => Some(false),
            Class::Volatile => None,
            Class::Lazy => {
                let reason = "a soft transaction's log is not flushed before pages are overwritten";
                return Err(Fault::Absent(reason.into()));
            }
        };
        let api = Api::load("libkyotocabinet.so.16".as_ref())?;
        // Linear chains and no compression; caches of map and pages share what the others have.
        let tuning = format!("opts=l#msiz={}#pccap={}", cache() / 2, cache() / 2);
        let path = format!("{}#{tuning}", dir.join("kyoto.kct").display());
        let path = CString::new(path).map_err(Fault::of("path"))?;
        // SAFETY: the handle is closed and freed with the engine.
        let db = unsafe { (api.kcdbnew)() };
        let engine = Kyoto { api, db, hard };
        // SAFETY: the path ends with zero.
        engine.now().check("open", unsafe { (api.kcdbopen)(db, path.as_ptr(), OPEN) })?;
        let how = match hard {
            Some(true) => "hard transactions",
            Some(false) => "soft transactions",
            None => "no transactions",
        };
        let about = About {
            version: "1.2.79".into(),
            settings: format!("TreeDB, {how}, {tuning}"),
            why: "its documentation of begin_transaction and of tuning".into(),
        };
        Ok((engine, about))
    }

    fn session(&self) -> Outcome<&Kyoto> {
        Ok(self)
    }

    fn begins_snapshots(&self) -> Outcome<()> {
        Err(Fault::Absent("it has no snapshots: to begin a read does nothing".into()))
    }

    fn flush(&self) -> Outcome<()> {
        // SAFETY: the store is open; no processor is given.
        let done =
            unsafe { (self.api.kcdbsync)(self.db, 1, std::ptr::null(), std::ptr::null_mut()) };
        self.now().check("synchronize", done)
    }

    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let path = dl::c_path(&dir.join("kyoto.kct"))?;
        // SAFETY: the store is open, the path ends with zero.
        self.now().check("copy", unsafe { (self.api.kcdbcopy)(self.db, path.as_ptr()) })?;
        super::flush_files(dir)
    }
}

impl Kyoto {
    fn now(&self) -> Now {
        Now { api: self.api, db: self.db }
    }
}

impl Drop for Kyoto {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the engine, so none uses the store any more.
        unsafe {
            (self.api.kcdbclose)(self.db);
            (self.api.kcdbdel)(self.db);
        }
    }
}

impl Session for &Kyoto {
    type Reader<'t> = Now;
    type Writer<'t> = Now;

    #[inline(always)]
    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Now) -> Outcome<R>) -> Outcome<R> {
        work(&mut self.now())
    }

    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Now) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let mut now = self.now();
        let Some(hard) = self.hard else { return work(&mut now) };
        // SAFETY: the store is open.
        now.check("begin", unsafe { (self.api.kcdbbegintran)(self.db, i32::from(hard)) })?;
        let result = work(&mut now);
        // SAFETY: a transaction of this thread is running.
        let done = unsafe { (self.api.kcdbendtran)(self.db, i32::from(result.is_ok())) };
        let result = result?;
        now.check("end", done)?;
        Ok(result)
    }
}

/// What a look-up is for, and what came of it.
struct Visit<F, R> {
    see: Option<F>,
    result: Option<R>,
}

/// # Safety
/// The library calls it with a value that lives through the call and the visit it was given.
unsafe extern "C" fn full<F: FnOnce(Option<&[u8]>) -> R, R>(
    _: *const u8,
    _: usize,
    value: *const u8,
    len: usize,
    _: *mut usize,
    visit: Ptr,
) -> *const c_char {
    // SAFETY: as above; the record is left as it is, which null says.
    unsafe {
        let visit = &mut *visit.cast::<Visit<F, R>>();
        visit.result = visit.see.take().map(|see| see(Some(dl::bytes(value, len))));
    }
    std::ptr::null()
}

/// # Safety
/// The library calls it with the visit it was given.
unsafe extern "C" fn empty<F: FnOnce(Option<&[u8]>) -> R, R>(
    _: *const u8,
    _: usize,
    _: *mut usize,
    visit: Ptr,
) -> *const c_char {
    // SAFETY: as above; null leaves the place empty.
    unsafe {
        let visit = &mut *visit.cast::<Visit<F, R>>();
        visit.result = visit.see.take().map(|see| see(None));
    }
    std::ptr::null()
}

/// # Safety
/// The library calls it with key and value that live through the call and the closure it was given.
unsafe extern "C" fn step<F: FnMut(&[u8], &[u8])>(
    key: *const u8,
    key_len: usize,
    value: *const u8,
    len: usize,
    _: *mut usize,
    see: Ptr,
) -> *const c_char {
    // SAFETY: as above; null leaves the record as it is.
    unsafe { (*see.cast::<F>())(dl::bytes(key, key_len), dl::bytes(value, len)) };
    std::ptr::null()
}

#[inline(always)]
fn lookup<F: FnOnce(Option<&[u8]>) -> R, R>(now: &Now, key: &[u8], see: F) -> Outcome<R> {
    let mut visit = Visit { see: Some(see), result: None };
    let place = (&raw mut visit).cast();
    // SAFETY: the visit lives through the call, which is all that the callbacks need.
    let done = unsafe {
        (now.api.kcdbaccept)(now.db, key.as_ptr(), key.len(), full::<F, R>, empty::<F, R>, place, 0)
    };
    now.check("accept", done)?;
    visit.result.ok_or_else(|| now.fault("accept"))
}

impl Reader for Now {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        lookup(self, key, see)
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        fn next<F: FnMut(&[u8], &[u8])>(api: &Api, cursor: Ptr, see: &mut F) -> c_int {
            let see: *mut F = see;
            // SAFETY: the closure lives through the call.
            unsafe { (api.kccuraccept)(cursor, step::<F>, see.cast(), 0, 1) }
        }
        let (api, mut see, mut count) = (self.api, see, 0);
        // SAFETY: the cursor is deleted before the store is closed.
        unsafe {
            let cursor = (api.kcdbcursor)(self.db);
            let found = match from {
                Some(key) => (api.kccurjumpkey)(cursor, key.as_ptr(), key.len()),
                None => (api.kccurjump)(cursor),
            };
            while found != 0 && count < most && next(&api, cursor, &mut see) != 0 {
                count += 1;
            }
            (api.kccurdel)(cursor);
        }
        Ok(count)
    }
}

impl Writer for Now {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let set = self.api.kcdbset;
        // The pointer of an empty slice is small, and the library takes 0 and 1 for orders.
        let value = if value.is_empty() { &b"-"[..0] } else { value };
        // SAFETY: the store copies what it is given.
        let done = unsafe { set(self.db, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
        self.check("set", done)
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        lookup(self, key, see)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        // SAFETY: the store copies what it is given.
        self.check("remove", unsafe { (self.api.kcdbremove)(self.db, key.as_ptr(), key.len()) })
    }
}
