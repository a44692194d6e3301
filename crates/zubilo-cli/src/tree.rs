//! `zubilo tree`: how a table fills its pages: depth, fanout, fill, sizes of keys and values, largest
//! records, what keys begin with, and what could be done better.

mod hints;
mod keys;
mod sizes;

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};
use zubilo::{Env, Error, PageKind, TableOptions};

use crate::encoding::{Encoding, EncodingArgs, Encodings, escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt;
use crate::opening::{ReadArgs, table_name};
use crate::output::{Out, Progress, count, pairs, size, table};

use self::keys::Prefixes;
use self::sizes::{Largest, Sizes, bars};

/// Options of `tree`.
#[derive(Args, Debug)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// The table
    #[arg(default_value = "main")]
    table: std::ffi::OsString,
    #[command(flatten)]
    encoding: EncodingArgs,
    /// Look at the pages only, not at each record
    #[arg(long)]
    pages_only: bool,
    /// How many of the largest records to list
    #[arg(long, value_name = "N", default_value_t = 5)]
    largest: usize,
}

/// The pages of one level, or all large values.
#[derive(Default)]
struct Pages {
    pages: u64,
    entries: u64,
    /// Bytes in use.
    used: u64,
    /// Pages by tenths of them in use.
    fill: [u64; 10],
}

impl Pages {
    fn add(&mut self, count: u64, entries: usize, used: u64, page_size: u64) {
        self.pages += count;
        self.entries += entries as u64;
        self.used += used;
        let room = (count * page_size).max(1);
        let tenth = (used.saturating_mul(10) / room).min(9) as usize;
        if let Some(pages) = self.fill.get_mut(tenth) {
            *pages += count;
        }
    }

    /// The part of their room that is in use, 0 to 1.
    fn share(&self, page_size: u64) -> f64 {
        self.used as f64 / (self.pages * page_size).max(1) as f64
    }
}

/// All that is shown of a table.
struct Tree {
    name: Vec<u8>,
    options: TableOptions,
    encodings: Encodings,
    page_size: u64,
    depth: u64,
    entries: u64,
    /// By distance from the leaves.
    levels: BTreeMap<u8, Pages>,
    runs: Pages,
    /// None if only pages were looked at.
    records: Option<Records>,
}

/// What single records show.
struct Records {
    keys: Sizes,
    values: Sizes,
    largest: Largest,
    prefixes: Prefixes,
}

/// Examines the table and prints the result.
pub(crate) fn run(args: &TreeArgs) -> Done {
    let name = table_name(&args.table)?;
    let env = args.store.open_to_read_verified()?;
    interrupt::catch()?;
    let tree = look(args, &env, &name)?;
    let mut out = Out::new();
    match args.store.json {
        true => out.json(&tree.to_value())?,
        false => out.line(&tree.show())?,
    }
    out.finish()?;
    Ok(Code::Fine)
}

fn look(args: &TreeArgs, env: &Env, name: &[u8]) -> Done<Tree> {
    let what = format!("open the table \"{}\"", escape(name));
    let read = env.read().doing("begin to read")?;
    let stats = read.table_stats(name).doing(&what)?;
    let options = read.table_options(name).doing(&what)?;
    let encodings = args.encoding.of_table(&read, name, None, Encoding::Escaped).doing(&what)?;
    let mut tree = Tree {
        name: name.to_vec(),
        options,
        encodings,
        page_size: env.page_size() as u64,
        depth: u64::from(stats.depth),
        entries: stats.entries,
        levels: BTreeMap::new(),
        runs: Pages::default(),
        records: None,
    };
    walk(env, &mut tree)?;
    if !args.pages_only {
        // A table in a program's own order cannot be gone through here; its pages can.
        match read.table(name) {
            Ok(table) => tree.records = Some(Records::of(&table, &tree, args.largest)?),
            Err(Error::Incompatible { .. }) => {}
            Err(error) => return Err(Failure::store(what, &error)),
        }
    }
    Ok(tree)
}

fn walk(env: &Env, tree: &mut Tree) -> Done<()> {
    let progress = Progress::records("looking at pages", 0);
    let mut seen = 0;
    let page_size = tree.page_size;
    let report = env.walk_pages(&mut |visit| {
        seen += visit.count;
        progress.set(seen);
        if visit.table == tree.name {
            let pages = match visit.kind {
                PageKind::Branch | PageKind::Leaf => tree.levels.entry(visit.level).or_default(),
                _ => &mut tree.runs,
            };
            pages.add(visit.count, visit.entries, visit.used, page_size);
        }
        !interrupt::came()
    });
    let report = report.doing("look at the pages")?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => {
            let cause = format!("page {} is damaged: {}", problem.page, problem.reason);
            Err(Failure::new(Code::Damaged, "look at the pages", cause)
                .advise("run `zubilo chk` for the extent"))
        }
    }
}

impl Records {
    fn of(table: &zubilo::ReadTable<'_>, tree: &Tree, largest: usize) -> Done<Records> {
        let what = format!("read the table \"{}\"", escape(&tree.name));
        let progress = Progress::records("looking at records", table.len());
        let mut records = Records {
            keys: Sizes::default(),
            values: Sizes::default(),
            largest: Largest::new(largest),
            prefixes: Prefixes::default(),
        };
        let mut done = 0u64;
        for record in table.iter() {
            let (key, value) = record.doing(&what)?;
            records.keys.add(key.len() as u64);
            records.values.add(value.len() as u64);
            records.largest.add(key, value.len() as u64);
            records.prefixes.add(key);
            done += 1;
            if done.is_multiple_of(4096) {
                progress.set(done);
                if interrupt::came() {
                    return Err(Failure::store("look at the records", &Error::Stopped));
                }
            }
        }
        Ok(records)
    }
}

impl Tree {
    fn leaves(&self) -> Option<&Pages> {
        self.levels.get(&0)
    }

    fn level_name(level: u8) -> String {
        if level == 0 { "leaves".to_string() } else { format!("branches {level}") }
    }

    fn show(&self) -> String {
        let mut parts = vec![self.head(), self.show_levels()];
        if let Some(leaves) = self.leaves() {
            let tenths = |i: usize| format!("{:>3} to {:>3} %", i * 10, i * 10 + 10);
            let fill = leaves.fill.iter().enumerate().map(|(i, n)| (tenths(i), *n));
            parts.push(format!("fill of leaves\n{}", bars(fill)));
        }
        if let Some(records) = &self.records {
            parts.push(format!("sizes of keys, bytes\n{}", records.keys.show()));
            parts.push(format!("sizes of values, bytes\n{}", records.values.show()));
            let number = self.encodings.key.number().is_some();
            if let Some(prefixes) = (!number).then(|| records.prefixes.show()).flatten() {
                parts.push(prefixes);
            }
            if !records.largest.list().is_empty() {
                let mut rows = table(&["largest records", "value, bytes"], 1);
                for (bytes, key) in records.largest.list() {
                    rows.add_row([self.encodings.key.show(key), count(*bytes)]);
                }
                parts.push(rows.trim_fmt());
            }
        }
        let hints = hints::of(self);
        if !hints.is_empty() {
            parts.push(format!("hints\n  {}", hints.join("\n  ")));
        }
        parts.join("\n\n")
    }

    fn head(&self) -> String {
        let options = crate::layout::describe(&self.options);
        let pages: u64 = self.levels.values().map(|l| l.pages).sum::<u64>() + self.runs.pages;
        let mut rows = vec![
            ("table", escape(&self.name).into_owned()),
            ("records", count(self.entries)),
            ("depth", self.depth.to_string()),
            ("size", format!("{} in {} pages", size(pages * self.page_size), count(pages))),
        ];
        if !options.is_empty() {
            rows.push(("options", options));
        }
        if let Some(records) = &self.records {
            let bytes = records.keys.sum() + records.values.sum();
            let share = 100.0 * bytes as f64 / (pages * self.page_size).max(1) as f64;
            rows.push(("keys and values", format!("{}, {share:.0} % of the size", size(bytes))));
        }
        pairs(&rows)
    }

    fn show_levels(&self) -> String {
        let mut rows = table(&["level", "pages", "entries", "entries a page", "full"], 1);
        let mut row = |name: String, pages: &Pages| {
            rows.add_row([
                name,
                count(pages.pages),
                count(pages.entries),
                format!("{:.1}", pages.entries as f64 / pages.pages.max(1) as f64),
                format!("{:.0} %", 100.0 * pages.share(self.page_size)),
            ]);
        };
        for (level, pages) in self.levels.iter().rev() {
            row(Tree::level_name(*level), pages);
        }
        if self.runs.pages > 0 {
            row("large values".into(), &self.runs);
        }
        rows.trim_fmt()
    }

    fn to_value(&self) -> Value {
        let pages = |pages: &Pages| {
            json!({
                "pages": pages.pages,
                "entries": pages.entries,
                "used_bytes": pages.used,
                "fill": pages.fill,
            })
        };
        let levels = self.levels.iter().map(|(level, found)| {
            let mut value = pages(found);
            value["level"] = (*level).into();
            value
        });
        let largest = |records: &Records| {
            let list = records.largest.list().iter();
            let list = list.map(|(bytes, key)| {
                json!({ "key": self.encodings.key.to_json(key), "value_bytes": bytes })
            });
            list.collect::<Vec<_>>()
        };
        json!({
            "table": to_json(&self.name),
            "entries": self.entries,
            "depth": self.depth,
            "page_size": self.page_size,
            "options": crate::layout::to_value(&self.options),
            "levels": levels.collect::<Vec<_>>(),
            "large_values": pages(&self.runs),
            "key_bytes": self.records.as_ref().map(|r| r.keys.to_value()),
            "value_bytes": self.records.as_ref().map(|r| r.values.to_value()),
            "largest": self.records.as_ref().map(largest),
            "prefixes": self.records.as_ref().map(|r| r.prefixes.to_value()),
            "hints": hints::of(self),
        })
    }
}
