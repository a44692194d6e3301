//! Environments: the handle, what is set before it is opened, what is shared while it is open.
//!
//! Settings lie behind a lock, since programs may read and change some of them at any time; what a
//! transaction needs at each begin lies in `Opened`, which is fixed until the close.

mod convert;
mod copy;
mod info;
mod names;
mod open;
mod readers;
mod settings;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use zubilo::Geometry;

pub(crate) use self::copy::{copy_fd, copy_to, given_file};
pub(crate) use self::info::{FIRST_TXN, stat_of};
pub(crate) use self::open::open as open_as;
use crate::abi::{self, MDB_assert_func};
use crate::beyond::{Extra, Slow};
use crate::compare;
use crate::dbi::Handles;
use crate::errors::{Code, Result};
use crate::guard::{Magic, entry, entry_or};
use crate::txn::{self, Turn};

/// An environment.
#[allow(non_camel_case_types)]
pub(crate) struct MDB_env {
    magic: Magic,
    settings: Mutex<Settings>,
    /// What `mdb_env_get_flags` gives.
    pub(crate) flags: AtomicU32,
    /// Bytes that the file may have; 0 while nobody has said.
    pub(crate) map_size: AtomicU64,
    opened: OnceLock<Opened>,
    /// A panic happened: nothing more is trusted.
    pub(crate) fatal: AtomicBool,
}

struct Settings {
    path: Option<CString>,
    max_readers: u32,
    max_dbs: u32,
    context: *mut c_void,
    on_assert: Option<MDB_assert_func>,
    /// For a store that is made; 0 leaves it to the engine.
    page_size: u32,
    /// Where the program has set one.
    geometry: Option<Geometry>,
    extra: Extra,
    /// Asked for help when readers hold pages back and the map is full.
    slow: Option<Slow>,
}

/// What an open environment has.
pub(crate) struct Opened {
    pub(crate) store: zubilo::Env,
    pub(crate) handles: Handles,
    /// Distinguishes environments in the memory of threads; gone with the environment.
    pub(crate) token: Arc<()>,
    /// How many transactions of this handle write; of two the one has ended but for its handle.
    pub(crate) writing: AtomicU32,
    /// Without a lock file.
    pub(crate) turn: Option<Arc<Turn>>,
}

/// Reader slots where a program sets none.
const READERS: u32 = 126;
/// The map size reported where nobody has set one; no bound.
pub(crate) const DEFAULT_MAP_SIZE: u64 = 1 << 20;

impl MDB_env {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What an open environment has.
    #[inline]
    pub(crate) fn opened(&self) -> Result<&Opened> {
        match self.opened.get() {
            Some(opened) if !self.fatal.load(Ordering::Relaxed) => Ok(opened),
            Some(_) => Err(Code::PANIC),
            None => Err(Code::EINVAL),
        }
    }

    /// The same, for a call that looks at the newest commit, which may be another process's.
    pub(crate) fn newest(&self) -> Result<&Opened> {
        let opened = self.opened()?;
        txn::look_in_turn(opened, || Ok(()))?;
        Ok(opened)
    }

    /// What an open environment has, though it may have failed.
    pub(crate) fn opened_or_failed(&self) -> Option<&Opened> {
        self.opened.get()
    }

    /// Changes what a store that is made at the open gets.
    pub(crate) fn before_open(
        &self,
        change: impl FnOnce(&mut Option<Geometry>, &mut u32) -> Result<()>,
    ) -> Result<()> {
        let settings = &mut *self.settings();
        change(&mut settings.geometry, &mut settings.page_size)
    }

    /// Changes options that LMDB has not.
    pub(crate) fn change_extra(&self, change: impl FnOnce(&mut Extra)) {
        change(&mut self.settings().extra);
    }

    /// The program's function for slow readers.
    pub(crate) fn slow(&self) -> Option<Slow> {
        self.settings().slow
    }

    pub(crate) fn set_slow(&self, slow: Option<Slow>) {
        self.settings().slow = slow;
    }

    pub(crate) fn set_map_size(&self, size: u64) -> Result<()> {
        settings::set_map_size(self, size)
    }

    /// Closes the store; with `sync` all commits are durable then.
    pub(crate) fn close(mut self, sync: bool) -> Result<()> {
        self.magic = Magic::DEAD;
        match self.opened.take() {
            Some(opened) if sync => Ok(opened.store.close()?),
            Some(opened) => {
                opened.store.close_without_sync();
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    /// Reports to the program that something happened which must not, if it wants to know, and trusts
    /// nothing from then on.
    pub(crate) fn fail(&self, env: *mut MDB_env, what: &CStr) {
        self.fatal.store(true, Ordering::Relaxed);
        let function = self.settings().on_assert;
        if let Some(function) = function {
            // SAFETY: the program gave it for this; it may not return, so nothing is held here.
            unsafe { function(env, what.as_ptr()) };
        }
    }
}

/// The environment behind a handle.
#[inline]
pub(crate) fn env_of<'e>(env: *const MDB_env) -> Result<&'e MDB_env> {
    if env.is_null() || !env.is_aligned() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract it comes from mdb_env_create and was not closed; of a closed one that
    // is still in memory the first word says so. Shared: all of it is behind locks or atomic.
    let found = unsafe { &*env };
    if found.magic == Magic::ENV { Ok(found) } else { Err(Code::EINVAL) }
}

/// Writes a result where the caller wants it.
pub(crate) fn put_out<T>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract it points to such a value.
    unsafe { to.write(value) };
    Ok(())
}

/// Makes an environment.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_env_create(env: *mut *mut MDB_env) -> c_int {
    entry((), || {
        let settings = Settings {
            path: None,
            max_readers: READERS,
            max_dbs: 0,
            context: std::ptr::null_mut(),
            on_assert: None,
            page_size: 0,
            geometry: None,
            extra: Extra::default(),
            slow: None,
        };
        let made = Box::new(MDB_env {
            magic: Magic::ENV,
            settings: Mutex::new(settings),
            flags: AtomicU32::new(0),
            map_size: AtomicU64::new(0),
            opened: OnceLock::new(),
            fatal: AtomicBool::new(false),
        });
        if env.is_null() {
            return Err(Code::EINVAL);
        }
        put_out(env, Box::into_raw(made))
    })
}

/// Opens a store.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_env_open(
    env: *mut MDB_env,
    path: *const c_char,
    flags: u32,
    mode: libc::mode_t,
) -> c_int {
    entry(env, || {
        let this = env_of(env)?;
        if path.is_null() {
            return Err(Code::EINVAL);
        }
        // SAFETY: by the contract a C string.
        let path = unsafe { CStr::from_ptr(path) };
        open::open(this, path, flags, mode)
    })
}

/// Closes a store and forgets the environment.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_env_close(env: *mut MDB_env) {
    entry_or((), (), || {
        // Not under a call that waits for a function of the program's.
        if env_of(env).is_err() || compare::is_called_back() {
            return;
        }
        // SAFETY: made by mdb_env_create from a box; by the contract nobody uses it any more.
        let mut env = unsafe { Box::from_raw(env) };
        env.magic = Magic::DEAD;
        drop(env);
    });
}

/// Makes all that is committed durable.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_env_sync(env: *mut MDB_env, _force: c_int) -> c_int {
    entry(env, || {
        let env = env_of(env)?;
        let opened = env.newest()?;
        if env.has(abi::env::RDONLY) {
            return Err(Code::EACCES);
        }
        Ok(opened.store.sync()?)
    })
}
