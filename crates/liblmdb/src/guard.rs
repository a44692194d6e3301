//! The one way in: no panic leaves the library, no dead handle is used.
//!
//! Every exported function runs inside [`entry`] or one of its kin. A panic becomes `MDB_PANIC`.
//! Handles begin with a word that says what they are and whether they live.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cursor::{MDB_cursor, cursor_of};
use crate::env::{MDB_env, env_of};
use crate::errors::{Code, Result};
use crate::txn::{MDB_txn, txn_of};

/// The first word of a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct Magic(u64);

impl Magic {
    pub(crate) const ENV: Magic = Magic(u64::from_le_bytes(*b"ZubiEnv\x01"));
    pub(crate) const TXN: Magic = Magic(u64::from_le_bytes(*b"ZubiTxn\x01"));
    pub(crate) const CURSOR: Magic = Magic(u64::from_le_bytes(*b"ZubiCur\x01"));
    pub(crate) const DEAD: Magic = Magic(u64::from_le_bytes(*b"ZubiDead"));
}

/// A handle that a function was called with: leads to the environment that a panic spoils.
pub(crate) trait Owner: Copy {
    fn env(self) -> *mut MDB_env;
}

impl Owner for () {
    fn env(self) -> *mut MDB_env {
        std::ptr::null_mut()
    }
}

impl Owner for *mut MDB_env {
    fn env(self) -> *mut MDB_env {
        self
    }
}

impl Owner for *mut MDB_txn {
    fn env(self) -> *mut MDB_env {
        txn_of(self).map_or(std::ptr::null_mut(), |txn| txn.spoil())
    }
}

impl Owner for *mut MDB_cursor {
    fn env(self) -> *mut MDB_env {
        cursor_of(self).map_or(std::ptr::null_mut(), |cursor| cursor.txn().env())
    }
}

/// Runs an exported function.
#[inline(always)]
pub(crate) fn entry(owner: impl Owner, run: impl FnOnce() -> Result<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => panicked(owner.env()),
    }
}

/// Runs an exported function that cannot report.
pub(crate) fn entry_or<T>(owner: impl Owner, otherwise: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        panicked(owner.env());
        otherwise
    })
}

/// The state of the environment is no longer trusted, and the program hears of it if it wants to know.
#[cold]
fn panicked(env: *mut MDB_env) -> c_int {
    if let Ok(found) = env_of(env) {
        found.fail(env, c"liblmdb on Zubilo: an operation has panicked; close the environment");
    }
    Code::PANIC.0
}
