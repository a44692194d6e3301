//! Hot copies: taken while a thread goes on writing, then opened and checked.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;
use zubilo::{Env, Options};

use super::audit;
use super::change::Writer;
use super::report::{self, Report};
use super::store::Totals;

struct Copied {
    name: &'static str,
    commit: u64,
    /// Commits made while the copy was written.
    meanwhile: u64,
    len: u64,
    time: Duration,
    check: Duration,
}

/// The fourth step.
pub(crate) fn run(
    env: &Env,
    dir: &Path,
    places: u32,
    seed: u64,
    report: &mut Report,
) -> Result<()> {
    report.heading("4  Copy while writing goes on")?;
    let done = AtomicBool::new(false);
    let copies = thread::scope(|scope| {
        let writing = scope.spawn(|| -> Result<()> {
            let mut writer = Writer::new(seed.wrapping_add(1), places);
            while !done.load(Ordering::Relaxed) {
                writer.commit(env, || Ok(()))?;
            }
            Ok(())
        });
        let copies = [("plain", false), ("compacted", true)]
            .map(|(name, compact)| copy(env, dir, name, compact, places));
        done.store(true, Ordering::Relaxed);
        writing.join().map_err(|_| anyhow!("the writer panicked"))??;
        copies.into_iter().collect::<Result<Vec<_>>>()
    })?;

    let rows: Vec<_> = copies
        .iter()
        .map(|copied| {
            [
                copied.name.to_owned(),
                copied.commit.to_string(),
                report::bytes(copied.len),
                report::time(copied.time),
                report::count(copied.meanwhile),
                format!("every page and record, {}", report::time(copied.check)),
            ]
        })
        .collect();
    let head = ["copy", "of commit", "size", "time", "commits meanwhile", "checked"];
    report.table(head, &rows, 4)?;
    let file_len = env.info()?.file_len;
    report.line(format!("  the store itself: {}", report::bytes(file_len)))?;
    let copies = copies.iter().map(|copied| {
        json!({
            "kind": copied.name,
            "commit": copied.commit,
            "bytes": copied.len,
            "milliseconds": report::millis(copied.time),
            "commits_meanwhile": copied.meanwhile,
        })
    });
    report.record("copies", copies.collect());
    Ok(())
}

fn copy(env: &Env, dir: &Path, name: &'static str, compact: bool, places: u32) -> Result<Copied> {
    let path = dir.join(format!("{name}-copy.zubilo"));
    let before = env.read()?.id();
    let begun = Instant::now();
    let copied = env.copy_to_path(&path, compact, &mut |_, _| true);
    let commit = copied.with_context(|| format!("the {name} copy"))?;
    let time = begun.elapsed();
    let meanwhile = env.read()?.id().0 - commit.0;
    ensure!(commit >= before, "the {name} copy is of {commit}, made after {before}");

    let begun = Instant::now();
    let copy = Options::new().read_only(true).create(false).open(&path)?;
    let checked = audit::full(&copy, places, 1).and_then(|totals: Totals| {
        let found = totals.commit;
        ensure!(found == commit.0, "it holds commit {found}, not {commit}");
        Ok(copy.info()?.file_len)
    });
    let len = checked.with_context(|| format!("the {name} copy"))?;
    Ok(Copied { name, commit: commit.0, meanwhile, len, time, check: begun.elapsed() })
}
