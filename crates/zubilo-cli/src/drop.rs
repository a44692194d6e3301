//! `zubilo drop`: removes a table, or all of its records.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use clap::Args;
use serde_json::json;

use crate::encoding::{escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::opening::{StoreArgs, WriteArgs, table_name};
use crate::output::{records, say, to_stderr};

/// Options of `drop`.
#[derive(Args, Debug)]
pub(crate) struct DropArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The table
    #[arg(short, long)]
    table: OsString,
    #[command(flatten)]
    write: WriteArgs,
    /// Keep the table, remove its records
    #[arg(long)]
    empty: bool,
    /// Do not ask. Where standard input is no terminal nobody can be asked, and this must be given
    #[arg(short, long)]
    yes: bool,
}

/// Asks, then drops. What was asked about is looked at again in the transaction; it is not held
/// while the answer is awaited.
pub(crate) fn run(args: &DropArgs) -> Done {
    let name = table_name(&args.table)?;
    let shown = escape(&name).into_owned();
    if !args.yes && !io::stdin().is_terminal() {
        let cause = "standard input is no terminal, so nobody can be asked";
        return Err(
            Failure::usage(format!("drop the table \"{shown}\""), cause).advise("add --yes")
        );
    }
    let env = args.store.open_to_write()?;
    if !args.yes {
        let read = env.read().doing("begin to read")?;
        let len = read.table(&name).doing(&format!("open the table \"{shown}\""))?.len();
        drop(read);
        let verb = if args.empty { "Empty" } else { "Drop" };
        if !ask(&format!("{verb} the table \"{shown}\" with {}?", records(len)))? {
            to_stderr("zubilo: drop: nothing was changed");
            return Ok(Code::NotFound);
        }
    }
    let mut txn = args.write.begin(&env)?;
    let mut table = txn.table(&name).doing(&format!("open the table \"{shown}\""))?;
    let len = table.len();
    if args.empty {
        table.clear().doing(&format!("empty the table \"{shown}\""))?;
    } else {
        txn.drop_table(&name).doing(&format!("drop the table \"{shown}\""))?;
    }
    txn.commit().doing("commit")?;
    let summary = json!({ "table": to_json(&name), "dropped": !args.empty, "deleted": len });
    let done = if args.empty { "emptied" } else { "dropped" };
    say(args.store.json, &summary, &format!("table \"{shown}\" {done}, {} deleted", records(len)))?;
    Ok(Code::Fine)
}

/// Asks on the terminal; anything but yes is no.
pub(crate) fn ask(question: &str) -> Done<bool> {
    let failed = |e: io::Error| Failure::io("ask for confirmation", &e);
    let mut err = io::stderr();
    write!(err, "{question} [y/N] ").and_then(|()| err.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
