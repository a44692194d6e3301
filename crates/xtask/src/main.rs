//! Chores of this repository, run by `cargo xtask`.
//!
//! `dropin DIR` builds what takes the place of LMDB and leaves it in `DIR`: the library under all its
//! names, the headers, `lmdb.pc` and the command line tools.

mod dropin;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask dropin DIR";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let done = match &arguments[..] {
        [chore, dir] if chore == "dropin" => dropin::build(Path::new(dir)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
