//! What LMDB has no setting for: options of an open, and the open that keeps others out.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::time::Duration;

use zubilo::{Durability, Options, Scrub, VerifyReads};

use crate::env::{MDB_env, env_of, open_as};
use crate::errors::{Code, Result};
use crate::guard::entry;

use super::log;

/// How many options there are; `zubilo.h` numbers them, and `Extra::apply` says what each is.
const COUNT: usize = 13;
const RESERVE: usize = 10;

/// Largest value of each option.
const MOST: [u64; COUNT] = [
    u64::MAX,
    2,
    u64::MAX,
    u32::MAX as u64,
    2,
    u64::MAX,
    u32::MAX as u64,
    1,
    1,
    1,
    1 << 46,
    u32::MAX as u64,
    u64::MAX,
];

/// What was set of them.
#[derive(Clone, Default)]
pub(crate) struct Extra {
    set: [Option<u64>; COUNT],
    exclusive: bool,
    /// Options that hold the key of an encrypted store, and nothing else.
    key: Option<Options>,
}

impl Extra {
    /// Address space to reserve, at least.
    pub(crate) fn reserve(&self) -> Option<u64> {
        self.set[RESERVE]
    }

    /// Whether a key was given.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// What was set, and the messages.
    pub(crate) fn apply(&self, mut options: Options) -> Options {
        let [
            dirty,
            durability,
            bytes,
            period,
            verify,
            rate,
            wait,
            huge,
            map,
            create,
            _,
            behind,
            held,
        ] = self.set;
        if let Some(key) = &self.key {
            options = options.encrypted_like(key);
        }
        if let Some(dirty) = dirty {
            options = options.dirty_limit(dirty);
        }
        if let Some(behind) = behind {
            options = options.expire_behind(Duration::from_millis(behind));
        }
        if let Some(held) = held {
            options = options.expire_held(held);
        }
        if let Some(verify) = verify {
            options = options.verify_reads(match verify {
                0 => VerifyReads::Never,
                1 => VerifyReads::FirstTouch,
                _ => VerifyReads::Always,
            });
        }
        if let Some(bytes_per_second) = rate {
            let period = Duration::from_secs(wait.unwrap_or(24 * 60 * 60));
            options = options.scrub(Scrub { bytes_per_second, period });
        }
        options
            .durability(match durability {
                None | Some(0) => Durability::Sync,
                Some(1) => Durability::Lazy {
                    sync_bytes: bytes.unwrap_or(32 << 20),
                    sync_period: Duration::from_millis(period.unwrap_or(1000)),
                },
                Some(_) => Durability::NoSync,
            })
            .huge_pages(huge == Some(1))
            .writable_map(map == Some(1))
            .create(create != Some(0))
            .exclusive(self.exclusive)
            .audit(log::audits())
            .logger(zubilo::Level::Debug, log::pass_on)
    }
}

fn set(env: &MDB_env, option: c_int, value: u64) -> Result<()> {
    let at = usize::try_from(option).ok().filter(|at| *at < COUNT).ok_or(Code::EINVAL)?;
    let known = MOST.get(at).is_some_and(|most| value <= *most);
    if !known || env.opened_or_failed().is_some() {
        return Err(Code::EINVAL);
    }
    env.change_extra(|extra| extra.set[at] = Some(value));
    Ok(())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_env_set(
    env: *mut MDB_env,
    option: c_int,
    value: u64,
) -> c_int {
    entry(env, || set(env_of(env)?, option, value))
}

fn set_key(env: &MDB_env, key: Options) -> Result<()> {
    if env.opened_or_failed().is_some() {
        return Err(Code::EINVAL);
    }
    env.change_extra(|extra| extra.key = Some(key));
    Ok(())
}

/// The bytes at a place that the program names.
fn bytes_of<'b>(at: *const c_void, len: usize) -> Result<&'b [u8]> {
    if at.is_null() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract so many bytes, which stay during the call.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_env_set_key(
    env: *mut MDB_env,
    key: *const c_void,
    len: usize,
) -> c_int {
    entry(env, || {
        let key = bytes_of(key, len)?.try_into().map_err(|_| Code::EINVAL)?;
        set_key(env_of(env)?, Options::new().encryption_key(key))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_env_set_passphrase(
    env: *mut MDB_env,
    passphrase: *const c_void,
    len: usize,
) -> c_int {
    entry(env, || {
        let passphrase = bytes_of(passphrase, len)?;
        set_key(env_of(env)?, Options::new().passphrase(passphrase))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_open_ex(
    env: *mut MDB_env,
    path: *const c_char,
    flags: c_uint,
    mode: libc::mode_t,
    exclusive: *mut c_int,
) -> c_int {
    entry(env, || {
        let this = env_of(env)?;
        if path.is_null() {
            return Err(Code::EINVAL);
        }
        // SAFETY: by the contract it points to a number, or nowhere.
        let wanted = unsafe { exclusive.as_ref() }.is_some_and(|wanted| *wanted != 0);
        // SAFETY: by the contract a C string.
        let path = unsafe { CStr::from_ptr(path) };
        this.change_extra(|extra| extra.exclusive = wanted);
        let opened = open_as(this, path, flags, mode);
        this.change_extra(|extra| extra.exclusive = false);
        opened?;
        if !exclusive.is_null() {
            crate::env::put_out(exclusive, c_int::from(wanted))?;
        }
        Ok(())
    })
}
