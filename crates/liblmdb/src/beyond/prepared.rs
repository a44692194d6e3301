//! Two-phase commits.

use std::ffi::c_int;
use std::time::UNIX_EPOCH;

use zubilo::PreparedId;

use crate::abi::MDB_val;
use crate::env::{FIRST_TXN, MDB_env, env_of, put_out};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{self, MDB_txn};
use crate::values::bytes;

/// Bytes of a tag, at most.
const TAG_MAX: usize = 64;

/// As in `zubilo.h`.
#[repr(C)]
#[allow(non_camel_case_types)]
pub(super) struct zubilo_prepared {
    id: u64,
    txnid: u64,
    since: u64,
    words: [u64; 3],
    tag_size: u64,
    tag: [u8; TAG_MAX],
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_txn_prepare(
    txn: *mut MDB_txn,
    tag: *const MDB_val,
    id: *mut u64,
) -> c_int {
    entry(txn, || {
        let tag = if tag.is_null() { &[] } else { bytes(tag)? };
        if id.is_null() || tag.len() > TAG_MAX {
            return Err(Code::EINVAL);
        }
        put_out(id, txn::prepare(txn, tag)?.0)
    })
}

fn show(env: *mut MDB_env) -> Result<zubilo_prepared> {
    let found = env_of(env)?.opened()?.store.prepared()?.ok_or(Code::NOTFOUND)?;
    let mut tag = [0; TAG_MAX];
    tag[..found.tag.len()].copy_from_slice(&found.tag);
    Ok(zubilo_prepared {
        id: found.id.0,
        txnid: found.txn.0.saturating_sub(FIRST_TXN),
        since: found.since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        words: found.user_words,
        tag_size: found.tag.len() as u64,
        tag,
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_env_prepared(
    env: *mut MDB_env,
    place: *mut zubilo_prepared,
) -> c_int {
    entry(env, || put_out(place, show(env)?))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_commit_prepared(env: *mut MDB_env, id: u64) -> c_int {
    entry(env, || {
        env_of(env)?.opened()?.store.commit_prepared(PreparedId(id))?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_roll_back_prepared(env: *mut MDB_env, id: u64) -> c_int {
    entry(env, || Ok(env_of(env)?.opened()?.store.roll_back_prepared(PreparedId(id))?))
}
