//! The command `zubilo` as a function, [`run`]: its subcommands and exit codes. The binary calls it, and
//! so does `python -m zubilo`. Each subcommand is a module of its own; they share `opening` (store and transactions), `encoding` and `range` (arguments), `output`,
//! `failure` (exit codes and messages) and `interrupt`.

mod bench;
mod chk;
mod commits;
mod compact;
mod copy;
mod create;
mod del;
#[cfg(feature = "demo")]
mod demo;
mod drop;
mod dump;
mod encoding;
mod export;
mod failure;
mod formats;
mod generate;
mod get;
mod import;
mod interrupt;
mod keys;
mod layout;
mod load;
mod map;
mod numbers;
mod opening;
mod output;
mod prepared;
mod put;
mod range;
mod readers;
mod restore;
mod salvage;
mod scan;
mod shell;
mod stat;
mod tables;
mod top;
mod tree;
mod typed;
mod verify;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use failure::{Code, Done};

/// An embedded, transactional, ordered key-value store: look into it, change it, check it.
///
/// Exit codes: 0 done; 1 not found, nothing matched; 2 wrong use; 3 the store is damaged or the
/// file is no store; 4 everything else; 130 interrupted.
#[derive(Parser)]
#[command(name = "zubilo", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints the values under keys
    Get(get::GetArgs),
    /// Stores a record
    Put(put::PutArgs),
    /// Makes a table with its options, and the store if there is none
    Create(create::CreateTableArgs),
    /// Removes records, by key or by range
    Del(del::DelArgs),
    /// Prints records in order, a key and its value a line
    Scan(scan::ScanArgs),
    /// Lists the tables
    Tables(tables::TablesArgs),
    /// Figures of the store: space, durability, readers, tables
    Stat(stat::StatArgs),
    /// Who reads the store, and how many commits it lags
    Readers(readers::ReadersArgs),
    /// A live view: commits, readers, space, tables
    Top(top::TopArgs),
    /// The file as a picture, in the terminal or for a browser
    Map(map::MapArgs),
    /// How a table fills its pages: depth, fill, sizes, largest records, hints
    Tree(tree::TreeArgs),
    /// Checks every page, every key and the account of free space
    Chk(chk::ChkArgs),
    /// Checks several stores, a line each
    Verify(verify::VerifyArgs),
    /// Writes tables as text to standard output
    Dump(dump::DumpArgs),
    /// Reads records from a file or standard input into tables
    Load(load::LoadArgs),
    /// Takes over all tables of a data file of LMDB into a new store, and compares them
    Import(import::ImportArgs),
    /// Writes tables as a dump that LMDB's own mdb_load reads
    Export(export::ExportArgs),
    /// Copies the store while it is used, to a file or standard output
    Copy(copy::CopyArgs),
    /// Makes a new store of a copy and of the changes since
    Restore(restore::RestoreArgs),
    /// Makes the store smaller in its place, while it is used
    Compact(compact::CompactArgs),
    /// Brings out what is still readable of a damaged store
    Salvage(salvage::SalvageArgs),
    /// Lists the commits that a store's file still names, and goes back to one of them
    Commits(commits::CommitsArgs),
    /// Shows the transaction that is prepared and waits for its decision, and makes it
    Prepared(prepared::PreparedArgs),
    /// Removes a table, or all of its records
    Drop(drop::DropArgs),
    /// A prompt: tables, records, transactions, snapshots
    Shell(shell::ShellArgs),
    /// A quick look at this machine: flushes of the disk, loads, look-ups, commits
    Bench(bench::BenchArgs),
    /// Prints completions for a shell
    Completions(generate::CompletionsArgs),
    /// Prints the manual page, or writes those of all commands into a folder
    Man(generate::ManArgs),
    /// Shows on real data what the store does, with timings and sizes
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
}

/// Runs the command line `args`, whose first word is the program's name, and gives the exit code. It
/// writes to the standard output and error of the process and may set a handler for Ctrl-C, so it is
/// for a process whose main program it is.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come here too. If this fails, nobody is left to hear of it.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(Code::Usage as u8);
        }
    };
    match cli.command {
        Command::Get(args) => end(get::run(&args), args.store.json, Listener::View),
        Command::Put(args) => end(put::run(&args), args.store.json, Listener::View),
        Command::Create(args) => end(create::run(&args), args.store.json, Listener::View),
        Command::Del(args) => end(del::run(&args), args.store.json, Listener::View),
        Command::Scan(args) => end(scan::run(&args), args.store.json, Listener::View),
        Command::Tables(args) => end(tables::run(&args), args.store.json, Listener::View),
        Command::Stat(args) => end(stat::run(&args), args.store.json, Listener::View),
        Command::Readers(args) => end(readers::run(&args), args.store.json, Listener::View),
        Command::Top(args) => end(top::run(&args), args.store.json, Listener::View),
        Command::Map(args) => end(map::run(&args), args.store.json, Listener::View),
        Command::Shell(args) => end(shell::run(&args), args.store.json, Listener::View),
        Command::Bench(args) => end(bench::run(&args), args.json, Listener::View),
        Command::Tree(args) => end(tree::run(&args), args.store.json, Listener::View),
        Command::Verify(args) => end(verify::run(&args), args.json, Listener::View),
        Command::Completions(args) => end(generate::completions(&args), false, Listener::Archive),
        Command::Man(args) => end(generate::man(&args), false, Listener::Archive),
        Command::Chk(args) => end(chk::run(&args), args.store.json, Listener::View),
        Command::Dump(args) => end(dump::run(&args), args.store.json, Listener::Archive),
        Command::Load(args) => end(load::run(&args), args.store.json, Listener::View),
        Command::Import(args) => end(import::run(&args), args.store.json, Listener::View),
        Command::Export(args) => end(export::run(&args), args.store.json, Listener::Archive),
        Command::Copy(args) => end(copy::run(&args), args.store.json, Listener::Archive),
        Command::Restore(args) => end(restore::run(&args), args.store.json, Listener::View),
        Command::Compact(args) => end(compact::run(&args), args.store.json, Listener::View),
        Command::Salvage(args) => end(salvage::run(&args), args.store.json, Listener::Archive),
        Command::Commits(args) => end(commits::run(&args), args.store.json, Listener::View),
        Command::Prepared(args) => end(prepared::run(&args), args.store.json, Listener::View),
        Command::Drop(args) => end(drop::run(&args), args.store.json, Listener::View),
        #[cfg(feature = "demo")]
        Command::Demo(args) => match demo::run(&args) {
            Ok(()) => Code::Fine as u8,
            Err(error) => {
                output::to_stderr(&format!("zubilo: {error:#}"));
                Code::Other as u8
            }
        },
    }
}

/// What it means when the reader of standard output leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listener {
    /// It has seen enough.
    View,
    /// It misses a part.
    Archive,
}

/// Reports a failure and gives the exit code.
fn end(done: Done, as_json: bool, listener: Listener) -> u8 {
    let code = match done {
        Ok(code) => code,
        Err(failure) if failure.pipe => match listener {
            Listener::View => Code::Fine,
            Listener::Archive => Code::Other,
        },
        Err(failure) => {
            failure.report(as_json);
            failure.code
        }
    };
    code as u8
}
