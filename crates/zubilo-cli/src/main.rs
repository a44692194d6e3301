//! The program `zubilo`: the command line of this process, run by the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(zubilo_cli::run(std::env::args_os()))
}
