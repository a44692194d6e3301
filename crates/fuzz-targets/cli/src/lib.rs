//! The subcommands `load` and `import` of `zubilo`, from their own sources, as functions that can be
//! called again and again. Only what listens for Ctrl-C, and the last word on standard output, are other
//! ones.

#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../../zubilo-cli/src/encoding.rs"]
mod encoding;
#[path = "../../../zubilo-cli/src/failure.rs"]
mod failure;
#[path = "../../../zubilo-cli/src/formats/mod.rs"]
mod formats;
#[path = "../../../zubilo-cli/src/import.rs"]
mod import;
mod interrupt;
#[path = "../../../zubilo-cli/src/keys.rs"]
mod keys;
#[path = "../../../zubilo-cli/src/layout.rs"]
mod layout;
#[path = "../../../zubilo-cli/src/load.rs"]
mod load;
#[path = "../../../zubilo-cli/src/numbers.rs"]
mod numbers;
#[path = "../../../zubilo-cli/src/opening.rs"]
mod opening;
mod output;
#[path = "../../../zubilo-cli/src/typed.rs"]
mod typed;

use clap::Parser;

#[derive(Parser)]
enum Cli {
    Load(load::LoadArgs),
    Import(import::ImportArgs),
}

/// Runs `load` or `import`; returns whether it succeeded. The arguments are those of the command line,
/// from the program's name on.
///
/// # Panics
/// If the arguments themselves are refused: that is a mistake of the caller, not of the input.
pub fn run(arguments: &[&std::ffi::OsStr]) -> bool {
    let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| panic!("{error}"));
    match cli {
        Cli::Load(args) => load::run(&args).is_ok(),
        Cli::Import(args) => import::run(&args).is_ok(),
    }
}
