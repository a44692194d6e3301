//! `mdb_drop`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lmdb_tools::run("mdb_drop", lmdb_tools::drop)
}
