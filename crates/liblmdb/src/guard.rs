//! The one way in: no panic leaves the library, no dead handle is used.
//!
//! Every exported function runs inside [`entry`] or one of its kin. A panic becomes `MDB_PANIC`.
//! Handles begin with a word that says what they are and whether they live.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errors::{Code, Result};

/// The first word of a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Magic(u64);

impl Magic {
    pub const ENV: Magic = Magic(u64::from_le_bytes(*b"ZubiEnv\x01"));
    pub const TXN: Magic = Magic(u64::from_le_bytes(*b"ZubiTxn\x01"));
    pub const CURSOR: Magic = Magic(u64::from_le_bytes(*b"ZubiCur\x01"));
    pub const DEAD: Magic = Magic(u64::from_le_bytes(*b"ZubiDead"));
}

/// Runs an exported function.
#[inline(always)]
pub fn entry(run: impl FnOnce() -> Result<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => Code::PANIC.0,
    }
}

/// Runs an exported function that cannot report.
pub fn entry_or<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(otherwise)
}
