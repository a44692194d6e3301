//! Tests of the command as its users run it, as a process. Modules are named after behaviours.

mod arguments;
mod commands;
mod damage;
mod encryption;
mod failures;
mod formats;
mod harness;
mod kinds;
mod lmdb;
mod load_errors;
mod looking;
mod newcomers;
#[path = "../../../lmdb-file/tests/original/mod.rs"]
mod original;
mod originals;
mod pictures;
mod prepared;
mod salvage;
mod sharing;
mod streams;
