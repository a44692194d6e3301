//! What the fuzzers of `fuzz/` run: each target is a function of bytes that must return, whatever
//! the bytes are, with a list of inputs to start from. `tests/smoke.rs` runs them on these inputs and
//! on changed ones, so that they work when the fuzzers are not run.
//!
//! `files` has stores and files of LMDB that bytes damage, `text` what is loaded as text, `calls` the
//! programs of calls to the C interface.

mod calls;
#[path = "../../zubilo/tests/it/common/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod common;
#[path = "../../zubilo/tests/it/hostile/exercise.rs"]
mod exercise;
mod files;
#[path = "../../zubilo/tests/it/hostile/stores.rs"]
mod stores;
mod text;

use std::path::{Path, PathBuf};

/// A target.
pub struct Target {
    /// As the fuzzer is called.
    pub name: &'static str,
    /// Runs it on an input. Panics, does not return, or faults if something is wrong.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const ALL: [Target; 8] = [
    Target { name: "pages", run: zubilo::fuzz::pages, seeds: files::page_seeds },
    Target { name: "redo", run: zubilo::fuzz::redo, seeds: zubilo::fuzz::redo_seeds },
    Target { name: "store", run: files::store, seeds: files::store_seeds },
    Target { name: "salvage", run: files::salvage, seeds: files::store_seeds },
    Target { name: "lmdb_import", run: files::lmdb_import, seeds: files::lmdb_seeds },
    Target { name: "load", run: text::load, seeds: text::seeds },
    Target { name: "mdb_load", run: text::mdb_load, seeds: text::mdb_seeds },
    Target { name: "c_calls", run: calls::run, seeds: calls::seeds },
];

/// The target of this name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> &'static Target {
    ALL.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"))
}

/// A fresh folder, in memory where the system has such a place: a fuzzer makes thousands a second.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = made.expect("a folder can be made");
    let path = dir.path().to_path_buf();
    (dir, path)
}
