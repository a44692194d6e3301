//! Chores of this repository, run by `cargo xtask`.
//!
//! `dropin DIR` builds what takes the place of LMDB and leaves it in `DIR`: the library under all its
//! names, the headers, `lmdb.pc` and the command line tools. `install` puts these and the command
//! `zubilo` where they belong on a machine, or below `DESTDIR`.

mod dropin;
mod install;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask dropin DIR";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let done = match &arguments[..] {
        [chore, dir] if chore == "dropin" => dropin::build(Path::new(dir)),
        [chore, rest @ ..] if chore == "install" => install::install(rest),
        _ => {
            eprintln!("{USAGE}\n{}", install::USAGE);
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
