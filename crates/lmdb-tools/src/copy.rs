//! `mdb_copy`: copies an environment, also while it is in use, to a path or to the standard output.

use std::path::Path;

use support::lmdb::{self, Failed, Setup};

use crate::api::{describe, open};
use crate::options::Options;
use crate::{Result, Stop, show_version};

const USAGE: &str = "[-V] [-c] [-n] srcpath [dstpath]";

fn failed(what: &str, failed: Failed) -> Stop {
    let Failed { code, .. } = failed;
    Stop::Failed(format!("%s: {what} failed, error {code} ({})", describe(code)))
}

/// Runs the tool.
pub fn copy(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, "+Vcn", USAGE)?;
    if options.has('V') {
        return Err(show_version());
    }
    let (from, to) = match &options.paths[..] {
        [from] => (from, None),
        [from, to] => (from, Some(to.as_str())),
        _ => return Err(Stop::Usage(USAGE)),
    };
    let flags = if options.has('n') { lmdb::MDB_NOSUBDIR } else { 0 } | lmdb::MDB_RDONLY;
    let setup = Setup { flags, mode: 0o600, ..Setup::default() };
    let env = open(from, setup)?.map_err(|code| failed("opening environment", code))?;
    let flags = if options.has('c') { lmdb::MDB_CP_COMPACT } else { 0 };
    let copied = match to {
        Some(path) => env.copy(Path::new(path), flags),
        None => env.copy_to(libc::STDOUT_FILENO, flags),
    };
    copied.map_err(|code| failed("copying", code))
}
