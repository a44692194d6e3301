//! `mdb_dump`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lmdb_tools::run("mdb_dump", lmdb_tools::dump)
}
