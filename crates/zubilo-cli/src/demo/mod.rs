//! `zubilo demo`: a real data set, loaded, indexed, queried, copied and killed.
//!
//! Every step verifies what it shows; the first thing that does not hold ends the demonstration
//! with an error. The steps are in the order of the files that own them: `store`, `queries`,
//! `readers`, `copies`, `kill`.

mod audit;
mod change;
mod copies;
mod data;
mod folder;
mod globe;
mod kill;
mod process;
mod queries;
mod readers;
mod report;
mod store;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use zubilo::{Durability, Env, Options};

use folder::Folder;
use process::Role;
use report::Report;

/// Options of the demonstration.
#[derive(Args)]
#[command(after_help = format!("Data: {}.", data::SOURCE))]
pub(crate) struct DemoArgs {
    /// Keep the store and its copies in this directory, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print nothing but a summary, as JSON.
    #[arg(long)]
    json: bool,
    /// Load this many places of the data set instead of all.
    #[arg(long, value_name = "N")]
    records: Option<usize>,
    /// A small run: 5000 places, half a second of writing, 4 kills.
    #[arg(long)]
    quick: bool,
    /// How often the writing process is killed [default: 12].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    kills: Option<u64>,
    /// Seed of all that is random; a new one each time by default.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// What this process was started for by another one.
    #[arg(long, hide = true, requires = "store")]
    role: Option<Role>,
    #[arg(long, hide = true)]
    store: Option<PathBuf>,
}

/// The size of a run.
struct Plan {
    records: Option<usize>,
    span: Duration,
    kills: u64,
    seed: u64,
}

impl Plan {
    fn of(args: &DemoArgs) -> Plan {
        let quick = args.quick;
        Plan {
            records: args.records.or(quick.then_some(5000)),
            span: Duration::from_millis(if quick { 500 } else { 2000 }),
            kills: args.kills.unwrap_or(if quick { 4 } else { 12 }),
            seed: args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
        }
    }
}

/// Runs it, or the part that another process asks for.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    if let (Some(role), Some(store)) = (args.role, &args.store) {
        let places = u32::try_from(args.records.unwrap_or(1))?;
        return match role {
            Role::Reader => readers::child(store),
            Role::Writer => kill::child(store, places, args.seed.unwrap_or(0)),
        };
    }
    let mut report = Report::new(args.json);
    let done = in_directory(args, &mut report);
    report.finish(done.as_ref().err())?;
    done
}

fn in_directory(args: &DemoArgs, report: &mut Report) -> Result<()> {
    let plan = Plan::of(args);
    let Some(dir) = &args.keep else {
        let folder = Folder::new()?;
        steps(&plan, folder.path(), report)?;
        folder.remove()?;
        report.line("  the store is deleted; --keep DIR keeps it")?;
        return Ok(());
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let empty = fs::read_dir(dir)?.next().is_none();
    ensure!(empty, "--keep: {} is not empty; name a new directory", dir.display());
    steps(&plan, dir, report)?;
    report.line(format!("  kept: {}", store_in(dir).display()))?;
    Ok(())
}

fn store_in(dir: &Path) -> PathBuf {
    dir.join("places.zubilo")
}

fn steps(plan: &Plan, dir: &Path, report: &mut Report) -> Result<()> {
    let begun = Instant::now();
    let path = store_in(dir);
    let data = data::load(plan.records)?;
    let places = u32::try_from(data.len())?;
    report.line(format!("Data: {} places of the world", report::count(data.len() as u64)))?;
    report.line(format!("      {}", data::SOURCE))?;
    report.line(format!("Store: {}", path.display()))?;

    let env = Options::new().open(&path)?;
    load(&env, &data, report)?;
    queries::run(&env, &data, plan.seed, report)?;
    env.close()?;
    drop(data);

    // Other options need another open.
    let env = Options::new().durability(Durability::LAZY).create(false).open(&path)?;
    readers::run(&env, places, plan.seed, plan.span, report)?;
    copies::run(&env, dir, places, plan.seed, report)?;
    env.close()?;

    kill::run(&path, places, plan.seed, plan.kills, report)?;
    report.heading("Everything held")?;
    let time = begun.elapsed();
    report.record("milliseconds", report::millis(time));
    report.line(format!(
        "  no torn snapshot, no lost commit, no damaged page; {}",
        report::time(time)
    ))?;
    Ok(())
}

/// The first step.
fn load(env: &Env, data: &[data::Place], report: &mut Report) -> Result<()> {
    report.heading("1  Load and index, one durable transaction a table")?;
    let loaded = store::load(env, data)?;
    let rows: Vec<_> = loaded
        .iter()
        .map(|table| {
            [
                table.table.to_owned(),
                report::count(table.records),
                report::bytes(table.bytes),
                report::bytes(table.leaf_pages * env.page_size() as u64),
                report::time(table.time),
                report::per_second(table.records, table.time),
            ]
        })
        .collect();
    report.table(["table", "records", "keys and values", "leaf pages", "time", ""], &rows, 5)?;
    audit::full(env, u32::try_from(data.len())?, 1).context("after the load")?;
    let file_len = env.info()?.file_len;
    report.line(format!("  file: {}; every page and record checked", report::bytes(file_len)))?;
    let tables = loaded.iter().map(|table| {
        json!({
            "table": table.table,
            "records": table.records,
            "bytes": table.bytes,
            "milliseconds": report::millis(table.time),
        })
    });
    report.record("source", data::SOURCE.into());
    report.record("load", json!({ "tables": tables.collect::<Vec<_>>(), "file_bytes": file_len }));
    Ok(())
}
