//! `mdb_copy`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lmdb_tools::run("mdb_copy", lmdb_tools::copy)
}
