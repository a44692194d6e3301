//! Both libraries: the original, linked in, and ours, loaded from where it was built.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

// The original.
use lmdb_master_sys as _;
use support::lmdb::{Api, LINKED};

/// A library and what it is called.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    pub(crate) label: &'static str,
    pub(crate) api: &'static Api,
}

/// The original; `LMDB_ORIGINAL` names another build of it.
pub(crate) fn original() -> Library {
    static LOADED: OnceLock<Api> = OnceLock::new();
    let api = LOADED.get_or_init(|| match std::env::var_os("LMDB_ORIGINAL") {
        Some(path) => load(Path::new(&path)),
        None => LINKED,
    });
    Library { label: "LMDB", api }
}

/// Ours.
pub(crate) fn ours() -> Library {
    static LOADED: OnceLock<Api> = OnceLock::new();
    Library { label: "Zubilo", api: LOADED.get_or_init(|| load(library())) }
}

fn load(path: &Path) -> Api {
    // SAFETY: these libraries have the functions of lmdb.h.
    unsafe { Api::load(path) }.unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The library as it is built for these tests; `LMDB_OURS` names another one.
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("LMDB_OURS") {
            return path.into();
        }
        // The tests' own program lies in `target/PROFILE/deps`.
        let program = std::env::current_exe().expect("this program");
        let profile = program.ancestors().nth(2).expect("target/PROFILE").to_path_buf();
        let built = profile.join("liblmdb.so");
        let release = profile.file_name().is_some_and(|name| name == "release");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "-p", "liblmdb"]);
        cargo.args(release.then_some("--release"));
        cargo.arg("--target-dir").arg(profile.parent().expect("target"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().expect("cargo runs").success(), "the library was not built");
        built
    })
}

/// The moves of cursors, by their numbers.
pub(crate) fn name_of(op: u32) -> &'static str {
    const NAMES: [&str; 19] = [
        "FIRST",
        "FIRST_DUP",
        "GET_BOTH",
        "GET_BOTH_RANGE",
        "GET_CURRENT",
        "GET_MULTIPLE",
        "LAST",
        "LAST_DUP",
        "NEXT",
        "NEXT_DUP",
        "NEXT_MULTIPLE",
        "NEXT_NODUP",
        "PREV",
        "PREV_DUP",
        "PREV_NODUP",
        "SET",
        "SET_KEY",
        "SET_RANGE",
        "PREV_MULTIPLE",
    ];
    NAMES.get(op as usize).copied().unwrap_or("none")
}
