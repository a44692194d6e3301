//! `zubilo verify`: checks several stores, such as all copies of a backup, with a line for each.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use zubilo::Error;

use crate::encoding::escape;
use crate::failure::{Code, Done, Failure};
use crate::interrupt;
use crate::keys::KeyArgs;
use crate::opening::ReadArgs;
use crate::output::{Out, Progress, records, size, to_stderr};

/// Options of `verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The stores: files, or folders with data.mdb
    #[arg(required = true)]
    stores: Vec<PathBuf>,
    /// Machine-readable output, a line a store
    #[arg(long)]
    pub(crate) json: bool,
    /// Use no lock files. Only for stores that nobody has open, such as copies on a read-only disk
    #[arg(long)]
    no_lock: bool,
    /// Say nothing of stores that are whole
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    keys: KeyArgs,
}

/// What was found in a store that opened.
struct Found {
    records: u64,
    tables: u64,
    bytes: u64,
    problems: Vec<String>,
    untrusted: Option<u64>,
    seconds: f64,
}

/// Verifies the stores one after the other; the worst of them decides the exit code.
pub(crate) fn run(args: &VerifyArgs) -> Done {
    interrupt::catch()?;
    let mut out = Out::new();
    let mut worst = Code::Fine;
    for store in &args.stores {
        let found = verify(args, store);
        let code = match &found {
            Ok(found) if found.problems.is_empty() => Code::Fine,
            Ok(_) => Code::Damaged,
            Err(failure) if failure.code == Code::Interrupted => return found.map(|_| worst),
            Err(failure) => failure.code,
        };
        // Damage is worse than what could not be looked at.
        worst = match (worst, code) {
            (worst, Code::Fine) => worst,
            (Code::Damaged, _) => Code::Damaged,
            (_, code) => code,
        };
        if args.json {
            out.json(&to_value(store, &found))?;
        } else {
            show(args, store, &found, &mut out)?;
        }
    }
    out.finish()?;
    Ok(worst)
}

fn verify(args: &VerifyArgs, store: &Path) -> Done<Found> {
    let begun = Instant::now();
    let env = ReadArgs::of(store, args.json, args.no_lock, &args.keys).open_to_report()?;
    let what = || format!("verify {}", store.display());
    let failed = |error: Error| Failure::store(what(), &error);
    let info = env.info().map_err(failed)?;
    let progress = Progress::pages("verifying");
    let report = env.check(&mut |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    });
    drop(progress);
    let report = report.map_err(failed)?;
    let problem = |p: &zubilo::Problem| match p.table.as_deref() {
        Some(name) if !name.is_empty() => {
            format!("page {}, table \"{}\": {}", p.page, escape(name), p.reason)
        }
        _ => format!("page {}: {}", p.page, p.reason),
    };
    Ok(Found {
        records: report.entries,
        tables: report.tables,
        bytes: report.pages.saturating_mul(info.page_size as u64),
        problems: report.problems.iter().map(problem).collect(),
        untrusted: info.untrusted.map(|txn| txn.0),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

fn to_value(store: &Path, found: &Done<Found>) -> Value {
    let path = store.display().to_string();
    match found {
        Ok(found) => json!({
            "path": path,
            "ok": found.problems.is_empty(),
            "tables": found.tables,
            "entries": found.records,
            "bytes": found.bytes,
            "untrusted": found.untrusted,
            "problems": found.problems,
            "seconds": found.seconds,
        }),
        Err(failure) => json!({ "path": path, "ok": false, "error": failure.to_string() }),
    }
}

fn show(args: &VerifyArgs, store: &Path, found: &Done<Found>, out: &mut Out) -> Done<()> {
    let path = store.display();
    let found = match found {
        Ok(found) => found,
        Err(failure) => {
            to_stderr(&format!("zubilo: {failure}"));
            return out.line(&format!("{path}: not verified"));
        }
    };
    let speed = size((found.bytes as f64 / found.seconds.max(1e-6)) as u64);
    let looked = format!("{} in {}, {speed} a second", size(found.bytes), records(found.records));
    match found.problems.first() {
        None if args.quiet && found.untrusted.is_none() => {}
        None => out.line(&format!("{path}: all is well: {looked}"))?,
        Some(first) => {
            let number = found.problems.len();
            let plural = if number == 1 { "" } else { "s" };
            out.line(&format!("{path}: {number} problem{plural}, the first: {first}"))?;
        }
    }
    match found.untrusted {
        Some(txn) => out.line(&format!("{path}: holds a newer commit, {txn}, that is not trusted")),
        None => Ok(()),
    }
}
