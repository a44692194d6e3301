//! `zubilo tables`: the tables of a store.

use clap::Args;
use serde_json::{Value, json};
use zubilo::{ReadTxn, TableStats};

use crate::encoding::{escape, to_json};
use crate::failure::{Code, Doing, Done};
use crate::opening::ReadArgs;
use crate::output::{Out, count, size, table, tell};

/// Options of `tables`.
#[derive(Args, Debug)]
pub(crate) struct TablesArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// Only the names, one a line
    #[arg(long, conflicts_with = "json")]
    names: bool,
}

/// Lists the tables; exit code 1 if there is none.
pub(crate) fn run(args: &TablesArgs) -> Done {
    let env = args.store.open_to_read()?;
    let read = env.read().doing("begin to read")?;
    let tables = all(&read)?;
    let mut out = Out::new();
    if args.store.json {
        let list: Vec<_> = tables.iter().map(|t| to_value(t, env.page_size())).collect();
        out.json(&json!({ "tables": list }))?;
    } else if args.names {
        for (name, _) in &tables {
            out.line(&escape(name))?;
        }
    } else if !tables.is_empty() {
        out.line(&show(&tables, env.page_size()))?;
    }
    out.finish()?;
    if tables.is_empty() && !args.store.json {
        tell(NO_TABLES);
    }
    Ok(if tables.is_empty() { Code::NotFound } else { Code::Fine })
}

/// For people, where the exit code alone would be a riddle.
pub(crate) const NO_TABLES: &str = "zubilo: the store has no tables";

/// A table's name and figures.
pub(crate) type Named = (Vec<u8>, TableStats);

/// All tables of a snapshot.
pub(crate) fn all(read: &ReadTxn) -> Done<Vec<Named>> {
    let names = read.tables().doing("list the tables")?;
    let stats = |name: Vec<u8>| {
        let stats = read.table(&name).map(|table| table.stats());
        stats.doing(&format!("open the table \"{}\"", escape(&name))).map(|stats| (name, stats))
    };
    names.into_iter().map(stats).collect()
}

fn pages(stats: &TableStats) -> u64 {
    stats.leaf_pages + stats.branch_pages + stats.run_pages
}

/// As JSON.
pub(crate) fn to_value((name, stats): &Named, page_size: usize) -> Value {
    json!({
        "name": to_json(name),
        "entries": stats.entries,
        "depth": stats.depth,
        "leaf_pages": stats.leaf_pages,
        "branch_pages": stats.branch_pages,
        "run_pages": stats.run_pages,
        "bytes": pages(stats).saturating_mul(page_size as u64),
        "modified": stats.modified.0,
    })
}

/// For people.
pub(crate) fn show(tables: &[Named], page_size: usize) -> String {
    let head = ["table", "records", "size", "depth", "leaves", "branches", "large", "modified by"];
    let mut shown = table(&head, 1);
    for (name, stats) in tables {
        shown.add_row([
            escape(name).into_owned(),
            count(stats.entries),
            size(pages(stats).saturating_mul(page_size as u64)),
            stats.depth.to_string(),
            count(stats.leaf_pages),
            count(stats.branch_pages),
            count(stats.run_pages),
            stats.modified.0.to_string(),
        ]);
    }
    shown.trim_fmt()
}
