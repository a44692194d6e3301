//! What can be set and asked of an environment.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

use crate::abi::{MAX_KEY, MDB_assert_func, env as flag};
use crate::errors::{Code, Result};
use crate::guard::{entry, entry_or};
use crate::txn;

use super::{DEFAULT_MAP_SIZE, MDB_env, env_of, put_out};

/// The map size that is reported.
pub(super) fn map_size(env: &MDB_env, used: u64) -> u64 {
    match env.map_size.load(Ordering::Relaxed) {
        0 => DEFAULT_MAP_SIZE.max(used),
        size => size,
    }
}

/// The bound that holds where this map size is asked for, or the stored one by 0; 0 is none. It is raised to
/// what is in use, as LMDB raises it. But a full store is a little longer than its own bound (`limit_of`), and
/// that raises nothing: else it would grow by so much at each open.
pub(super) fn bound(wanted: u64, stored: u64, used: u64) -> u64 {
    let filled = if used <= txn::limit_of(stored).hard { used.min(stored) } else { used };
    match wanted {
        0 if stored == u64::MAX => 0,
        0 => stored.max(filled),
        wanted => wanted.max(filled),
    }
}

/// No process has more addresses.
pub(super) const ADDRESSES: u64 = 1 << 47;

pub(super) fn set_map_size(env: &MDB_env, size: u64) -> Result<()> {
    let Some(opened) = env.opened.get() else {
        env.map_size.store(size, Ordering::Relaxed);
        return Ok(());
    };
    if txn::writes_here(opened) {
        return Err(Code::EINVAL);
    }
    if size > ADDRESSES {
        return Err(Code(libc::ENOMEM));
    }
    let info = env.newest()?.store.info()?;
    env.map_size.store(bound(size, info.geometry.upper, info.used_len), Ordering::Relaxed);
    Ok(())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_set_mapsize(env: *mut MDB_env, size: usize) -> c_int {
    entry(env, || set_map_size(env_of(env)?, size as u64))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_set_maxreaders(
    env: *mut MDB_env,
    readers: c_uint,
) -> c_int {
    entry(env, || {
        let env = env_of(env)?;
        if env.opened.get().is_some() || readers < 1 {
            return Err(Code::EINVAL);
        }
        env.settings().max_readers = readers;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_get_maxreaders(
    env: *mut MDB_env,
    readers: *mut c_uint,
) -> c_int {
    entry(env, || put_out(readers, env_of(env)?.settings().max_readers))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_set_maxdbs(env: *mut MDB_env, dbs: c_uint) -> c_int {
    entry(env, || {
        let env = env_of(env)?;
        if env.opened.get().is_some() {
            return Err(Code::EINVAL);
        }
        env.settings().max_dbs = dbs;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_get_maxkeysize(_env: *mut MDB_env) -> c_int {
    MAX_KEY as c_int
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_set_flags(
    env: *mut MDB_env,
    flags: c_uint,
    on: c_int,
) -> c_int {
    entry(env, || {
        let env = env_of(env)?;
        if flags & !flag::CHANGEABLE != 0 {
            return Err(Code::EINVAL);
        }
        let before = env.flags.load(Ordering::Relaxed);
        let after = if on != 0 { before | flags } else { before & !flags };
        if let Some(opened) = env.opened.get()
            && after & flag::RDONLY == 0
        {
            opened.store.set_lazy(after & (flag::NOSYNC | flag::MAPASYNC) != 0)?;
        }
        env.flags.store(after, Ordering::Relaxed);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_get_flags(env: *mut MDB_env, flags: *mut c_uint) -> c_int {
    entry(env, || put_out(flags, env_of(env)?.flags.load(Ordering::Relaxed) & flag::ALL))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_get_path(
    env: *mut MDB_env,
    path: *mut *const c_char,
) -> c_int {
    entry(env, || {
        // The string lives as long as the environment: it is set once.
        let start = env_of(env)?.settings().path.as_deref().map(CStr::as_ptr);
        put_out(path, start.unwrap_or(std::ptr::null()))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_get_fd(env: *mut MDB_env, fd: *mut c_int) -> c_int {
    entry(env, || {
        let descriptor = env_of(env)?.opened.get().and_then(|o| o.store.descriptor());
        put_out(fd, descriptor.unwrap_or(-1))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_set_userctx(
    env: *mut MDB_env,
    context: *mut c_void,
) -> c_int {
    entry(env, || {
        env_of(env)?.settings().context = context;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_get_userctx(env: *mut MDB_env) -> *mut c_void {
    entry_or(env, std::ptr::null_mut(), || {
        env_of(env).map_or(std::ptr::null_mut(), |env| env.settings().context)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_set_assert(
    env: *mut MDB_env,
    function: Option<MDB_assert_func>,
) -> c_int {
    entry(env, || {
        env_of(env)?.settings().on_assert = function;
        Ok(())
    })
}
