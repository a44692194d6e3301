//! The C interface of LMDB 0.9, built as `liblmdb.so.0`: programs compiled against LMDB's header
//! run on Zubilo.
//!
//! `abi` and `errors` hold what can never change; `guard` is the one way in, and `values` that of bytes; `env`,
//! `txn`, `dbi`, `data`, `cursor` hold the exported functions by group, `beyond` those that LMDB does not have.
//! What differs from LMDB is in `docs/lmdb-compatibility.md`. State that programs cannot see lies in the engine; here is only
//! what LMDB's rules add: who may use which handle, and when.

// What a caller of an exported function must keep is written for C, in lmdb.h and zubilo.h.
#![allow(clippy::missing_safety_doc)]

mod abi;
mod beyond;
mod compare;
mod cursor;
mod data;
mod dbi;
mod env;
mod errors;
mod guard;
#[cfg(small_panics)]
mod panics;
mod txn;
mod values;
mod version;
