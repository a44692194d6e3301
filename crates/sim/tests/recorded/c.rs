//! The C interface as a program uses it: opening, the changes of a plan, and all that is there.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::null_mut;

use liblmdb_linked as _;

use crate::plan::{Op, State, TABLES};

#[repr(C)]
struct Val(usize, *const c_void);

unsafe extern "C" {
    fn mdb_env_create(env: *mut *mut c_void) -> c_int;
    fn mdb_env_open(env: *mut c_void, path: *const c_char, flags: c_uint, m: c_uint) -> c_int;
    fn mdb_env_set_mapsize(env: *mut c_void, size: usize) -> c_int;
    fn mdb_env_set_maxdbs(env: *mut c_void, dbs: c_uint) -> c_int;
    fn mdb_env_set_flags(env: *mut c_void, flags: c_uint, on: c_int) -> c_int;
    fn mdb_env_sync(env: *mut c_void, force: c_int) -> c_int;
    fn mdb_env_copy2(env: *mut c_void, path: *const c_char, flags: c_uint) -> c_int;
    fn mdb_env_close(env: *mut c_void);
    fn mdb_txn_begin(e: *mut c_void, p: *mut c_void, f: c_uint, t: *mut *mut c_void) -> c_int;
    fn mdb_txn_commit(txn: *mut c_void) -> c_int;
    fn mdb_txn_abort(txn: *mut c_void);
    fn mdb_dbi_open(t: *mut c_void, name: *const c_char, f: c_uint, d: *mut c_uint) -> c_int;
    fn mdb_drop(txn: *mut c_void, dbi: c_uint, delete: c_int) -> c_int;
    fn mdb_put(t: *mut c_void, d: c_uint, k: *mut Val, v: *mut Val, f: c_uint) -> c_int;
    fn mdb_del(t: *mut c_void, d: c_uint, k: *mut Val, v: *mut Val) -> c_int;
    fn mdb_cursor_open(txn: *mut c_void, dbi: c_uint, cursor: *mut *mut c_void) -> c_int;
    fn mdb_cursor_put(c: *mut c_void, k: *mut Val, v: *mut Val, flags: c_uint) -> c_int;
    fn mdb_cursor_get(c: *mut c_void, k: *mut Val, v: *mut Val, op: c_uint) -> c_int;
    fn mdb_cursor_close(cursor: *mut c_void);
}

pub(crate) const NOSUBDIR: c_uint = 0x4000;
pub(crate) const NOSYNC: c_uint = 0x1_0000;
pub(crate) const NOMETASYNC: c_uint = 0x4_0000;
pub(crate) const WRITEMAP: c_uint = 0x8_0000;
pub(crate) const MAPASYNC: c_uint = 0x10_0000;
pub(crate) const NOTLS: c_uint = 0x20_0000;
pub(crate) const READ_ONLY: c_uint = 0x2_0000;
/// No flag of the interface: the program changes its flags.
pub(crate) const CHANGING: c_uint = 0x8000_0000;
const CREATE: c_uint = 0x4_0000;
const RESERVE: c_uint = 0x1_0000;
const MULTIPLE: c_uint = 0x8_0000;
const NEXT: c_uint = 8;
const NOTFOUND: c_int = -30798;

fn val(bytes: &[u8]) -> Val {
    Val(bytes.len(), bytes.as_ptr().cast())
}

fn none() -> Val {
    Val(0, null_mut())
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).expect("a path")
}

fn fine(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// An environment.
pub(crate) struct Store {
    env: *mut c_void,
    nested: bool,
}

/// A transaction that reads, for as long as it lives.
pub(crate) struct Held(*mut c_void);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: made by `Store::hold`, ended only here.
        unsafe { mdb_txn_abort(self.0) };
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: made by `Store::open`, closed only here, with no transaction left.
        unsafe { mdb_env_close(self.env) };
    }
}

impl Store {
    pub(crate) fn open(path: &Path, flags: c_uint) -> Result<Store, c_int> {
        let (path, mut env) = (c_path(path), null_mut());
        // SAFETY: as the interface demands; what did not open is closed by the handle.
        unsafe {
            fine(mdb_env_create(&mut env))?;
            let store = Store { env, nested: flags & WRITEMAP == 0 };
            fine(mdb_env_set_mapsize(env, 64 << 20))?;
            fine(mdb_env_set_maxdbs(env, 16))?;
            fine(mdb_env_open(env, path.as_ptr(), flags | NOSUBDIR, 0o644))?;
            Ok(store)
        }
    }

    pub(crate) fn set_flags(&self, flags: c_uint, on: bool) -> Result<(), c_int> {
        // SAFETY: an open environment.
        fine(unsafe { mdb_env_set_flags(self.env, flags, on.into()) })
    }

    pub(crate) fn sync(&self) -> Result<(), c_int> {
        // SAFETY: an open environment.
        fine(unsafe { mdb_env_sync(self.env, 1) })
    }

    pub(crate) fn copy(&self, to: &Path, compact: bool) -> Result<(), c_int> {
        let path = c_path(to);
        // SAFETY: an open environment, a string that outlives the call.
        fine(unsafe { mdb_env_copy2(self.env, path.as_ptr(), compact.into()) })
    }

    fn begin(&self, parent: *mut c_void, flags: c_uint) -> Result<*mut c_void, c_int> {
        let mut txn = null_mut();
        // SAFETY: an open environment, and a parent of it or none.
        fine(unsafe { mdb_txn_begin(self.env, parent, flags, &mut txn) })?;
        Ok(txn)
    }

    pub(crate) fn hold(&self) -> Result<Held, c_int> {
        Ok(Held(self.begin(null_mut(), READ_ONLY)?))
    }

    /// Makes the changes in a transaction, which is kept or not.
    pub(crate) fn write(&self, ops: &[Op], kept: bool) -> Result<(), c_int> {
        let txn = self.begin(null_mut(), 0)?;
        self.end(txn, self.apply(txn, ops), kept)
    }

    fn end(&self, txn: *mut c_void, done: Result<(), c_int>, kept: bool) -> Result<(), c_int> {
        if done.is_ok() && kept {
            // SAFETY: a transaction that is open, and no cursor of it.
            return fine(unsafe { mdb_txn_commit(txn) });
        }
        // SAFETY: as above.
        unsafe { mdb_txn_abort(txn) };
        done
    }

    fn apply(&self, txn: *mut c_void, ops: &[Op]) -> Result<(), c_int> {
        for op in ops {
            match op {
                Op::Nested(ops, kept) if self.nested => {
                    let level = self.begin(txn, 0)?;
                    self.end(level, self.apply(level, ops), *kept)?;
                }
                Op::Nested(ops, true) => self.apply(txn, ops)?,
                Op::Nested(_, false) => {}
                Op::Put(table, ..)
                | Op::PutAll(table, ..)
                | Op::Delete(table, ..)
                | Op::Clear(table)
                | Op::Drop(table) => {
                    let (name, kind) = TABLES[*table];
                    let (name, mut dbi) = (CString::new(name).expect("a name"), 0);
                    // SAFETY: a transaction that is open, a string that outlives the call.
                    fine(unsafe { mdb_dbi_open(txn, name.as_ptr(), kind | CREATE, &mut dbi) })?;
                    change(txn, dbi, op, kind)?;
                }
            }
        }
        Ok(())
    }

    /// All that is there.
    pub(crate) fn dump(&self) -> Result<State, c_int> {
        let held = self.hold()?;
        let mut names = Vec::new();
        // SAFETY: the transaction lives as long as `held`; no name is the table of tables.
        unsafe {
            let mut main = 0;
            fine(mdb_dbi_open(held.0, std::ptr::null(), 0, &mut main))?;
            each(held.0, main, |name, _| names.push(name.to_vec()))?;
        }
        let mut state = State::new();
        for name in names {
            let c_name = CString::new(name.clone()).expect("a name");
            let records = state.entry(String::from_utf8(name).expect("a name")).or_default();
            let mut dbi = 0;
            // SAFETY: as above.
            unsafe {
                fine(mdb_dbi_open(held.0, c_name.as_ptr(), 0, &mut dbi))?;
                each(held.0, dbi, |key, value| {
                    records.entry(key.to_vec()).or_default().insert(value.to_vec());
                })?;
            }
        }
        Ok(state)
    }
}

/// Every record of a table.
///
/// # Safety
/// The transaction is open and has this table.
unsafe fn each(
    txn: *mut c_void,
    dbi: c_uint,
    mut tell: impl FnMut(&[u8], &[u8]),
) -> Result<(), c_int> {
    let mut cursor = null_mut();
    // SAFETY: what the cursor points to is valid as long as the transaction changes nothing.
    unsafe {
        fine(mdb_cursor_open(txn, dbi, &mut cursor))?;
        let end = loop {
            let (mut key, mut value) = (none(), none());
            match mdb_cursor_get(cursor, &mut key, &mut value, NEXT) {
                0 => {}
                code => break code,
            }
            let slice = |val: &Val| match val.0 {
                0 => &[][..],
                len => std::slice::from_raw_parts(val.1.cast::<u8>(), len),
            };
            tell(slice(&key), slice(&value));
        };
        mdb_cursor_close(cursor);
        if end == NOTFOUND { Ok(()) } else { Err(end) }
    }
}

fn change(txn: *mut c_void, dbi: c_uint, op: &Op, kind: u32) -> Result<(), c_int> {
    let found = |code| if code == NOTFOUND { Ok(()) } else { fine(code) };
    // SAFETY: the transaction is open and has the table; keys and values outlive the calls, and
    // reserved places are written before the next call.
    unsafe {
        match op {
            // A place that the program fills itself.
            Op::Put(_, key, value) if kind == 0 && value.len() % 2 == 1 => {
                let mut place = Val(value.len(), null_mut());
                fine(mdb_put(txn, dbi, &mut val(key), &mut place, RESERVE))?;
                std::ptr::copy_nonoverlapping(
                    value.as_ptr(),
                    place.1.cast_mut().cast(),
                    value.len(),
                );
                Ok(())
            }
            Op::Put(_, key, value) => fine(mdb_put(txn, dbi, &mut val(key), &mut val(value), 0)),
            Op::PutAll(_, key, values) => {
                let (mut cursor, bytes) = (null_mut(), values.as_ptr().cast());
                fine(mdb_cursor_open(txn, dbi, &mut cursor))?;
                let mut pair = [Val(8, bytes), Val(values.len(), null_mut())];
                let code = mdb_cursor_put(cursor, &mut val(key), pair.as_mut_ptr(), MULTIPLE);
                mdb_cursor_close(cursor);
                fine(code)
            }
            Op::Delete(_, key, None) => found(mdb_del(txn, dbi, &mut val(key), null_mut())),
            Op::Delete(_, key, Some(value)) => {
                found(mdb_del(txn, dbi, &mut val(key), &mut val(value)))
            }
            Op::Clear(_) => fine(mdb_drop(txn, dbi, 0)),
            Op::Drop(_) => fine(mdb_drop(txn, dbi, 1)),
            Op::Nested(..) => Ok(()),
        }
    }
}
