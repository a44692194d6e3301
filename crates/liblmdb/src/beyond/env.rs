//! Environments: bounds and steps of the file, a close that does not wait.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use zubilo::Geometry;

use crate::compare;
use crate::env::{MDB_env, env_of};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn;

/// A size that may be left as it is.
fn size(value: isize) -> Option<u64> {
    u64::try_from(value).ok()
}

fn set_geometry(
    env: &MDB_env,
    [lower, upper, growth, shrink, page_size]: [Option<u64>; 5],
) -> Result<()> {
    let change = |geometry: &mut Geometry| {
        geometry.lower = lower.unwrap_or(geometry.lower);
        geometry.growth = growth.unwrap_or(geometry.growth);
        geometry.shrink = shrink.unwrap_or(geometry.shrink);
    };
    if let Some(opened) = env.opened_or_failed() {
        if page_size.is_some_and(|size| size != opened.store.page_size() as u64) {
            return Err(Code::EINVAL);
        }
        if txn::writes_here(opened) {
            return Err(Code::EINVAL);
        }
        if lower.is_some() || growth.is_some() || shrink.is_some() {
            txn::write_in_turn(opened, || {
                let mut write = opened.store.write()?;
                let mut geometry = opened.store.info()?.geometry;
                change(&mut geometry);
                write.set_geometry(geometry)?;
                write.commit()
            })??;
        }
    } else {
        env.before_open(|geometry, size| {
            if lower.is_some() || growth.is_some() || shrink.is_some() {
                change(geometry.get_or_insert_default());
            }
            if let Some(wanted) = page_size {
                *size = u32::try_from(wanted).map_err(|_| Code::EINVAL)?;
            }
            Ok(())
        })?;
    }
    match upper {
        // As the map size, which is a bound for all that the program does from now on.
        Some(upper) => env.set_map_size(upper),
        None => Ok(()),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_set_geometry(
    env: *mut MDB_env,
    lower: isize,
    _now: isize,
    upper: isize,
    growth: isize,
    shrink: isize,
    page_size: isize,
) -> c_int {
    entry(env, || {
        let sizes = [lower, upper, growth, shrink, page_size].map(size);
        if let [Some(lower), Some(upper), ..] = sizes
            && lower > upper
        {
            return Err(Code::EINVAL);
        }
        set_geometry(env_of(env)?, sizes)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_close_ex(env: *mut MDB_env, dont_sync: bool) -> c_int {
    entry((), || {
        env_of(env)?;
        if compare::is_called_back() {
            return Err(Code(libc::EBUSY));
        }
        // SAFETY: made by mdb_env_create from a box; by the contract nobody uses it any more.
        let env = unsafe { Box::from_raw(env) };
        env.fatal.store(false, Ordering::Relaxed);
        env.close(!dont_sync)
    })
}
