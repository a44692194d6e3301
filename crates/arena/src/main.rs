//! The arena: measures Zubilo against its peers.
//!
//! `field` runs the whole field: one process for each engine (`worker`, which drives one of `peers`),
//! in interleaved rounds, after `plan`s; `report` shows what came out. `versus` measures against LMDB in one process.
//! `data` and `keys` make the records, `spec` is the language between driver and workers.

mod clock;
mod data;
mod disk;
mod keys;
mod peers;
mod spec;
mod stats;
mod versus;
mod worker;

use clap::{Parser, Subcommand};

/// Benchmarks of embedded ordered key-value stores.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Zubilo against LMDB in one process, with the targets that were set.
    VersusLmdb(versus::Config),
    /// Serves one engine on standard input and output; the driver starts it.
    #[command(hide = true)]
    Worker { engine: String },
}

fn main() {
    match Arguments::parse().command {
        Command::VersusLmdb(config) => versus::run(config),
        Command::Worker { engine } => worker::run(&engine),
    }
}
