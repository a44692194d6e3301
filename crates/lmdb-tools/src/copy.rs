//! `mdb_copy`: copies an environment, also while it is in use, to a path or to the standard output.

use std::ffi::c_int;

use crate::api::{Env, Setup, describe, number};
use crate::options::Options;
use crate::{Result, Stop, show_version};

const USAGE: &str = "[-V] [-c] [-n] srcpath [dstpath]";

fn failed(what: &str, code: c_int) -> Stop {
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
    let flags = if options.has('n') { number::NOSUBDIR } else { 0 } | number::RDONLY;
    let setup = Setup { flags, mode: 0o600, ..Setup::default() };
    let env = Env::open(from, setup)?.map_err(|code| failed("opening environment", code))?;
    let flags = if options.has('c') { number::CP_COMPACT } else { 0 };
    env.copy(to, flags)?.map_err(|code| failed("copying", code))
}
