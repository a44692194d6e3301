//! `zubilo tables`: the tables of a store.

use clap::Args;
use comfy_table::CellAlignment;
use serde_json::{Value, json};
use zubilo::{ReadTxn, TableOptions, TableStats};

use crate::encoding::{escape, to_json};
use crate::failure::{Code, Doing, Done};
use crate::layout;
use crate::opening::ReadArgs;
use crate::output::{Out, count, size, table, to_stderr};
use crate::typed;

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
        for Named { name, .. } in &tables {
            out.line(&escape(name))?;
        }
    } else if !tables.is_empty() {
        out.line(&show(&tables, env.page_size()))?;
    }
    out.finish()?;
    if tables.is_empty() && !args.store.json {
        to_stderr(NO_TABLES);
    }
    Ok(if tables.is_empty() { Code::NotFound } else { Code::Fine })
}

/// For people, where the exit code alone would be a riddle.
pub(crate) const NO_TABLES: &str = "zubilo: the store has no tables";

/// A table, its figures and what is fixed about it.
pub(crate) struct Named {
    pub(crate) name: Vec<u8>,
    pub(crate) stats: TableStats,
    pub(crate) options: TableOptions,
    /// The types of keys and values, where it is a typed table.
    pub(crate) types: Option<String>,
}

/// All tables of a snapshot.
pub(crate) fn all(read: &ReadTxn) -> Done<Vec<Named>> {
    let names = read.tables().doing("list the tables")?;
    let named = |name: Vec<u8>| {
        let what = format!("open the table \"{}\"", escape(&name));
        // Also of a table in a program's own order, which is not known here.
        let stats = read.table_stats(&name).doing(&what)?;
        let options = read.table_options(&name).doing(&what)?;
        let types = typed::types_of(read, &name).doing(&what)?;
        Ok(Named { name, stats, options, types })
    };
    names.into_iter().map(named).collect()
}

fn pages(stats: &TableStats) -> u64 {
    stats.leaf_pages + stats.branch_pages + stats.run_pages
}

/// As JSON.
pub(crate) fn to_value(named: &Named, page_size: usize) -> Value {
    let Named { name, stats, .. } = named;
    json!({
        "name": to_json(name),
        "entries": stats.entries,
        "depth": stats.depth,
        "leaf_pages": stats.leaf_pages,
        "branch_pages": stats.branch_pages,
        "run_pages": stats.run_pages,
        "bytes": pages(stats).saturating_mul(page_size as u64),
        "modified": stats.modified.0,
        "options": layout::to_value(&named.options),
        "types": named.types,
    })
}

/// For people.
pub(crate) fn show(tables: &[Named], page_size: usize) -> String {
    let head = [
        "table",
        "records",
        "size",
        "depth",
        "leaves",
        "branches",
        "large",
        "modified by",
        "options",
    ];
    let mut shown = table(&head, 1);
    if let Some(column) = shown.column_mut(head.len() - 1) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for Named { name, stats, options, types } in tables {
        let types = types.iter().map(|types| escape(types.as_bytes()).into_owned());
        let described = std::iter::once(layout::describe(options)).chain(types);
        let described: Vec<_> = described.filter(|text| !text.is_empty()).collect();
        shown.add_row([
            escape(name).into_owned(),
            count(stats.entries),
            size(pages(stats).saturating_mul(page_size as u64)),
            stats.depth.to_string(),
            count(stats.leaf_pages),
            count(stats.branch_pages),
            count(stats.run_pages),
            stats.modified.0.to_string(),
            described.join("; "),
        ]);
    }
    shown.trim_fmt()
}
