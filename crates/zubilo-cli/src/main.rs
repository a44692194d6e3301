//! The command `zubilo`: its subcommands and exit codes.

mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An embedded, transactional, ordered key-value store: look into it, change it, check it.
#[derive(Parser)]
#[command(name = "zubilo", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows on real data what the store does, with timings and sizes.
    Demo(demo::DemoArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zubilo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
