//! `mdb_load`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lmdb_tools::run("mdb_load", lmdb_tools::load)
}
