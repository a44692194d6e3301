//! Environments, transactions and cursors that end with their owners: all that programs need which do
//! not want to break rules. Errors are the codes of the library with the call that gave them.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use super::{Api, Compare, Info, MDB_MULTIPLE, MDB_NEXT, MDB_NOTFOUND, MDB_RESERVE, Stat, Val};

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its name.
    pub call: &'static str,
    /// What it returned.
    pub code: c_int,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed, error {}", self.call, self.code)
    }
}

impl std::error::Error for Failed {}

/// What a call gives.
pub(super) type Result<T> = std::result::Result<T, Failed>;

/// The code of a name or a path with a zero byte, as of other arguments that no call can take.
const INVALID_ARGUMENT: c_int = 22;

fn done(call: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Failed { call, code }) }
}

fn string(call: &'static str, bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|_| Failed { call, code: INVALID_ARGUMENT })
}

/// What is set before an environment is opened; 0 for nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Setup {
    /// Bytes of the map.
    pub map_size: usize,
    /// Places for readers.
    pub max_readers: u32,
    /// Named tables.
    pub max_dbs: u32,
    /// Flags of the environment.
    pub flags: u32,
    /// Rights of a file that is made.
    pub mode: u32,
}

impl Setup {
    /// For tests: a map of 256 MiB, 100 tables, and these flags.
    pub fn test(flags: u32) -> Setup {
        Setup { map_size: 256 << 20, max_readers: 0, max_dbs: 100, flags, mode: 0o644 }
    }
}

/// An environment.
pub struct Env {
    api: &'static Api,
    env: *mut c_void,
}

// SAFETY: the interface lets many threads use an environment; transactions and cursors are bound to
// their threads and are neither `Send` nor `Sync`.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: made by mdb_env_create; transactions borrow this and have ended.
        unsafe { (self.api.mdb_env_close)(self.env) };
    }
}

impl Env {
    /// Opens an environment of a library.
    pub fn open(api: &'static Api, path: &Path, setup: Setup) -> Result<Env> {
        let path = string("mdb_env_open", path.as_os_str().as_bytes())?;
        let mut env = null_mut();
        // SAFETY: takes a place for the result.
        done("mdb_env_create", unsafe { (api.mdb_env_create)(&mut env) })?;
        let made = Env { api, env };
        // SAFETY: the environment lives; the string too. What cannot be set is no reason not to open.
        let code = unsafe {
            if setup.map_size > 0 {
                (api.mdb_env_set_mapsize)(env, setup.map_size);
            }
            if setup.max_readers > 0 {
                (api.mdb_env_set_maxreaders)(env, setup.max_readers);
            }
            if setup.max_dbs > 0 {
                (api.mdb_env_set_maxdbs)(env, setup.max_dbs);
            }
            (api.mdb_env_open)(env, path.as_ptr(), setup.flags, setup.mode)
        };
        done("mdb_env_open", code).map(|()| made)
    }

    /// Figures of the environment.
    pub fn info(&self) -> Result<Info> {
        let mut info = Info::EMPTY;
        // SAFETY: the environment lives, and the place for the result.
        done("mdb_env_info", unsafe { (self.api.mdb_env_info)(self.env, &mut info) })?;
        Ok(info)
    }

    /// Figures of the unnamed table.
    pub fn stat(&self) -> Result<Stat> {
        let mut stat = Stat::default();
        // SAFETY: as above.
        done("mdb_env_stat", unsafe { (self.api.mdb_env_stat)(self.env, &mut stat) })?;
        Ok(stat)
    }

    /// Sets flags, or clears them.
    pub fn set_flags(&self, flags: u32, on: bool) -> Result<()> {
        // SAFETY: the environment lives.
        let code = unsafe { (self.api.mdb_env_set_flags)(self.env, flags, on.into()) };
        done("mdb_env_set_flags", code)
    }

    /// Flushes what has not been flushed.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the environment lives.
        done("mdb_env_sync", unsafe { (self.api.mdb_env_sync)(self.env, 1) })
    }

    /// Copies to a path.
    pub fn copy(&self, to: &Path, flags: u32) -> Result<()> {
        let path = string("mdb_env_copy2", to.as_os_str().as_bytes())?;
        // SAFETY: the environment lives, and the string.
        let code = unsafe { (self.api.mdb_env_copy2)(self.env, path.as_ptr(), flags) };
        done("mdb_env_copy2", code)
    }

    /// Copies to a file that is open.
    pub fn copy_to(&self, fd: c_int, flags: u32) -> Result<()> {
        // SAFETY: the environment lives; the descriptor is open, or the call fails.
        let code = unsafe { (self.api.mdb_env_copyfd2)(self.env, fd, flags) };
        done("mdb_env_copyfd2", code)
    }

    /// The list of readers, as the library words it.
    pub fn readers(&self) -> String {
        unsafe extern "C" fn add(line: *const std::ffi::c_char, list: *mut c_void) -> c_int {
            // SAFETY: called below with the string that is passed there, and a C string.
            unsafe {
                let line = std::ffi::CStr::from_ptr(line).to_string_lossy();
                (*list.cast::<String>()).push_str(&line);
            }
            0
        }
        let mut list = String::new();
        let to: *mut String = &mut list;
        // SAFETY: the function fits the context.
        unsafe { (self.api.mdb_reader_list)(self.env, Some(add), to.cast()) };
        list
    }

    /// Frees the places of dead readers and gives their number.
    pub fn check_readers(&self) -> c_int {
        let mut dead = 0;
        // SAFETY: the environment lives, and the place for the result.
        unsafe { (self.api.mdb_reader_check)(self.env, &mut dead) };
        dead
    }

    /// Begins a transaction.
    pub fn begin(&self, flags: u32) -> Result<Txn<'_>> {
        Txn::begin(self.api, self.env, null_mut(), flags)
    }
}

/// A transaction; undone when it is dropped.
pub struct Txn<'e> {
    api: &'static Api,
    env: *mut c_void,
    txn: *mut c_void,
    life: PhantomData<&'e Env>,
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        if !self.txn.is_null() {
            // SAFETY: it lives, cursors borrow it and are closed.
            unsafe { (self.api.mdb_txn_abort)(self.txn) };
        }
    }
}

impl<'e> Txn<'e> {
    fn begin(
        api: &'static Api,
        env: *mut c_void,
        parent: *mut c_void,
        flags: u32,
    ) -> Result<Txn<'e>> {
        let mut txn = null_mut();
        // SAFETY: environment and parent live as long as the transaction, which borrows them.
        let code = unsafe { (api.mdb_txn_begin)(env, parent, flags, &mut txn) };
        done("mdb_txn_begin", code)?;
        Ok(Txn { api, env, txn, life: PhantomData })
    }

    /// Begins a transaction in this one, which waits for its end.
    pub fn nested(&mut self) -> Result<Txn<'_>> {
        Txn::begin(self.api, self.env, self.txn, 0)
    }

    /// Keeps the changes.
    pub fn commit(mut self) -> Result<()> {
        let txn = std::mem::replace(&mut self.txn, null_mut());
        // SAFETY: it lives, and nobody uses it any more.
        done("mdb_txn_commit", unsafe { (self.api.mdb_txn_commit)(txn) })
    }

    /// A table; without a name the unnamed one.
    pub fn table(&self, name: Option<&[u8]>, flags: u32) -> Result<c_uint> {
        let name = name.map(|name| string("mdb_dbi_open", name)).transpose()?;
        let start = name.as_ref().map_or(null(), |name| name.as_ptr());
        let mut dbi = 0;
        // SAFETY: the transaction lives, and the string.
        let code = unsafe { (self.api.mdb_dbi_open)(self.txn, start, flags, &mut dbi) };
        done("mdb_dbi_open", code).map(|()| dbi)
    }

    /// Closes a handle.
    pub fn close(&self, dbi: c_uint) {
        // SAFETY: the environment lives; the handle is not used any more.
        unsafe { (self.api.mdb_dbi_close)(self.env, dbi) };
    }

    /// Orders the keys of a table by a function.
    ///
    /// # Safety
    /// The function is an order and reads no more than its arguments.
    pub unsafe fn set_compare(&self, dbi: c_uint, compare: Compare) -> Result<()> {
        // SAFETY: the transaction lives; the function is there as long as this program.
        let code = unsafe { (self.api.mdb_set_compare)(self.txn, dbi, Some(compare)) };
        done("mdb_set_compare", code)
    }

    /// Orders the values of each key by a function.
    ///
    /// # Safety
    /// As for `set_compare`.
    pub unsafe fn set_dupsort(&self, dbi: c_uint, compare: Compare) -> Result<()> {
        // SAFETY: as above.
        let code = unsafe { (self.api.mdb_set_dupsort)(self.txn, dbi, Some(compare)) };
        done("mdb_set_dupsort", code)
    }

    /// Figures of a table.
    pub fn stat(&self, dbi: c_uint) -> Result<Stat> {
        let mut stat = Stat::default();
        // SAFETY: the transaction lives, and the place for the result.
        done("mdb_stat", unsafe { (self.api.mdb_stat)(self.txn, dbi, &mut stat) })?;
        Ok(stat)
    }

    /// Flags of a table.
    pub fn flags(&self, dbi: c_uint) -> Result<u32> {
        let mut flags = 0;
        // SAFETY: as above.
        done("mdb_dbi_flags", unsafe { (self.api.mdb_dbi_flags)(self.txn, dbi, &mut flags) })?;
        Ok(flags)
    }

    /// Deletes all records of a table, or the table.
    pub fn drop_table(&mut self, dbi: c_uint, delete: bool) -> Result<()> {
        // SAFETY: the transaction lives.
        done("mdb_drop", unsafe { (self.api.mdb_drop)(self.txn, dbi, c_int::from(delete)) })
    }

    /// Stores a record.
    pub fn put(&mut self, dbi: c_uint, key: &[u8], value: &[u8], flags: u32) -> Result<()> {
        assert_eq!(flags & (MDB_RESERVE | MDB_MULTIPLE), 0, "these have methods of their own");
        let (mut key, mut value) = (Val::of(key), Val::of(value));
        // SAFETY: the transaction lives, and what the values point to.
        done("mdb_put", unsafe { (self.api.mdb_put)(self.txn, dbi, &mut key, &mut value, flags) })
    }

    /// Stores a record in the place that the library gives for its value.
    pub fn put_in_place(&mut self, dbi: c_uint, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut key, mut place) = (Val::of(key), Val { size: value.len(), ..Val::NONE });
        // SAFETY: the transaction lives; the place has the size that was asked for until the next call.
        unsafe {
            let code = (self.api.mdb_put)(self.txn, dbi, &mut key, &mut place, MDB_RESERVE);
            done("mdb_put", code)?;
            std::ptr::copy_nonoverlapping(value.as_ptr(), place.data.cast(), value.len());
        }
        Ok(())
    }

    /// The value of a key, the first if there are many; it holds until the transaction changes.
    pub fn get(&self, dbi: c_uint, key: &[u8]) -> Result<Option<&[u8]>> {
        let (mut key, mut value) = (Val::of(key), Val::NONE);
        // SAFETY: the transaction lives, and the place for the result, which changes need this for.
        unsafe {
            match (self.api.mdb_get)(self.txn, dbi, &mut key, &mut value) {
                MDB_NOTFOUND => Ok(None),
                code => done("mdb_get", code).map(|()| Some(value.bytes())),
            }
        }
    }

    /// Deletes a key, or one of its values; false if there is none.
    pub fn del(&mut self, dbi: c_uint, key: &[u8], value: Option<&[u8]>) -> Result<bool> {
        let (mut key, mut value) = (Val::of(key), value.map(Val::of));
        let value = value.as_mut().map_or(null_mut(), |value| &raw mut *value);
        // SAFETY: the transaction lives, and what the values point to.
        match unsafe { (self.api.mdb_del)(self.txn, dbi, &mut key, value) } {
            MDB_NOTFOUND => Ok(false),
            code => done("mdb_del", code).map(|()| true),
        }
    }

    /// A cursor.
    pub fn cursor(&self, dbi: c_uint) -> Result<Cursor<'_>> {
        let mut cursor = null_mut();
        // SAFETY: the transaction outlives the cursor, which borrows it.
        let code = unsafe { (self.api.mdb_cursor_open)(self.txn, dbi, &mut cursor) };
        done("mdb_cursor_open", code)?;
        Ok(Cursor { api: self.api, cursor, life: PhantomData })
    }

    /// All records of a table, in its order.
    pub fn records(&self, dbi: c_uint) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut cursor = self.cursor(dbi)?;
        let mut all = Vec::new();
        loop {
            match cursor.go(MDB_NEXT) {
                Ok((key, value)) => all.push((key.to_vec(), value.to_vec())),
                Err(Failed { code: MDB_NOTFOUND, .. }) => return Ok(all),
                Err(failed) => return Err(failed),
            }
        }
    }
}

/// A cursor.
pub struct Cursor<'t> {
    api: &'static Api,
    cursor: *mut c_void,
    life: PhantomData<&'t ()>,
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: it lives, for its transaction does.
        unsafe { (self.api.mdb_cursor_close)(self.cursor) };
    }
}

impl Cursor<'_> {
    /// A move; what it gives holds until the next call.
    pub fn go(&mut self, how: u32) -> Result<(&[u8], &[u8])> {
        self.step(Val::NONE, how)
    }

    /// A move that takes a key.
    pub fn go_to(&mut self, key: &[u8], how: u32) -> Result<(&[u8], &[u8])> {
        self.step(Val::of(key), how)
    }

    fn step(&mut self, mut key: Val, how: u32) -> Result<(&[u8], &[u8])> {
        let mut value = Val::NONE;
        // SAFETY: the cursor lives, and the places for the results.
        let code = unsafe { (self.api.mdb_cursor_get)(self.cursor, &mut key, &mut value, how) };
        done("mdb_cursor_get", code)?;
        // SAFETY: filled by the library, or the caller's key; good until the transaction changes.
        Ok(unsafe { (key.bytes(), value.bytes()) })
    }

    /// Stores a record.
    pub fn put(&mut self, key: &[u8], value: &[u8], flags: u32) -> Result<()> {
        assert_eq!(flags & (MDB_RESERVE | MDB_MULTIPLE), 0, "these have methods of their own");
        let (mut key, mut value) = (Val::of(key), Val::of(value));
        // SAFETY: the cursor lives, and what the values point to.
        done("mdb_cursor_put", unsafe {
            (self.api.mdb_cursor_put)(self.cursor, &mut key, &mut value, flags)
        })
    }

    /// Stores values of one size under a key; `values` has one after the other.
    pub fn put_many(&mut self, key: &[u8], values: &[u8], size: usize) -> Result<()> {
        let (mut key, count) = (Val::of(key), values.len() / size);
        let first = Val { size, ..Val::of(values) };
        let mut pair = [first, Val { size: count, ..Val::NONE }];
        // SAFETY: the cursor lives; the flag takes the two elements, and `count` values are there.
        done("mdb_cursor_put", unsafe {
            (self.api.mdb_cursor_put)(self.cursor, &mut key, pair.as_mut_ptr(), MDB_MULTIPLE)
        })
    }
}
