//! `mdb_stat`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lmdb_tools::run("mdb_stat", lmdb_tools::stat)
}
