//! Other processes take snapshots without pause and verify each, while this process writes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use zubilo::{Env, Options, ReadTxn};

use super::audit::{self, Depth};
use super::change::Writer;
use super::process::{self, Role, Worker};
use super::report::{self, Report};

const READERS: u64 = 2;

/// A reader adds up all visits in one snapshot of this many, and goes through all records in one of
/// [`DEEP_EVERY`]. In all the others it looks at what the newest commit changed.
const VISITS_EVERY: u64 = 64;
const DEEP_EVERY: u64 = 256;

fn depth(snapshot: u64) -> Depth {
    match snapshot {
        n if n.is_multiple_of(DEEP_EVERY) => Depth::Records { step: 50 },
        n if n.is_multiple_of(VISITS_EVERY) => Depth::Visits,
        _ => Depth::Newest,
    }
}

/// What the readers saw, all together.
#[derive(Default)]
struct Seen {
    /// Each of another commit.
    snapshots: u64,
    reads: u64,
    violations: u64,
    first: Option<String>,
}

impl Seen {
    fn json(&self) -> Value {
        json!({
            "snapshots": self.snapshots,
            "reads": self.reads,
            "violations": self.violations,
            "first_violation": self.first,
        })
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let report: Value = serde_json::from_str(line).context("a reader's report is not JSON")?;
        let number = |name: &str| {
            report[name].as_u64().with_context(|| format!("a reader's report has no {name}"))
        };
        self.snapshots += number("snapshots")?;
        self.reads += number("reads")?;
        self.violations += number("violations")?;
        if let (None, Some(first)) = (&self.first, report["first_violation"].as_str()) {
            self.first = Some(first.to_owned());
        }
        Ok(())
    }
}

/// In a reading process: verifies snapshots until asked to end, then reports.
pub(crate) fn child(path: &Path) -> Result<()> {
    let env = Options::new().read_only(true).create(false).open(path)?;
    let end = process::asked_to_end();
    let mut read = env.read()?;
    process::say("ready")?;
    let mut seen = Seen::default();
    loop {
        match audit::snapshot(&read, depth(seen.snapshots)) {
            Ok(audit) => seen.reads += audit.reads,
            Err(error) => {
                seen.violations += 1;
                seen.first.get_or_insert(format!("{error:#}"));
            }
        }
        seen.snapshots += 1;
        if !next(&mut read, &end)? {
            break;
        }
        if seen.snapshots == 1 {
            process::say("a new commit")?;
        }
    }
    process::say(&seen.json().to_string())?;
    let first = seen.first.as_deref().unwrap_or_default();
    ensure!(seen.violations == 0, "{} torn snapshots; the first: {first}", seen.violations);
    Ok(())
}

/// On to the next commit; false when the process is asked to end.
fn next(read: &mut ReadTxn, end: &AtomicBool) -> Result<bool> {
    let before = read.id();
    while !end.load(Ordering::Relaxed) {
        read.refresh()?;
        if read.id() != before {
            return Ok(true);
        }
        thread::yield_now();
    }
    Ok(false)
}

/// The third step.
pub(crate) fn run(
    env: &Env,
    places: u32,
    seed: u64,
    span: Duration,
    report: &mut Report,
) -> Result<()> {
    report.heading(&format!("3  Write while {READERS} other processes read"))?;
    let start = |n| Worker::start(Role::Reader, env.path(), places, seed.wrapping_add(n));
    let mut readers = (0..READERS).map(start).collect::<Result<Vec<_>>>()?;
    for reader in &readers {
        reader.expect("ready")?;
    }

    let mut writer = Writer::new(seed, places);
    let begun = Instant::now();
    let (mut commits, mut late) = (0, READERS);
    // On a busy machine the readers may get their turn late.
    while begun.elapsed() < span || late > 0 {
        writer.commit(env, || Ok(()))?;
        commits += 1;
        if late > 0 {
            for reader in &readers {
                late -= u64::from(reader.has_spoken()?);
            }
        }
        ensure!(begun.elapsed() < process::PATIENCE, "{late} readers never see a new commit");
    }
    let time = begun.elapsed();

    let mut seen = Seen::default();
    for reader in &mut readers {
        reader.stop();
        let line = reader.line()?.context("a reader ended without a report; its error is above")?;
        seen.add(&line)?;
        reader.wait()?;
    }
    show(&seen, commits, time, env.info()?.file_len, report)?;
    let first = seen.first.as_deref().unwrap_or_default();
    ensure!(seen.violations == 0, "{} snapshots were torn; the first: {first}", seen.violations);
    Ok(())
}

fn show(
    seen: &Seen,
    commits: u64,
    time: Duration,
    file_len: u64,
    report: &mut Report,
) -> Result<()> {
    report.line(format!(
        "  writer: {} commits in {}, {} (lazy durability: flushed in the background)",
        report::count(commits),
        report::time(time),
        report::per_second(commits, time)
    ))?;
    report.line(format!(
        "  readers: {} snapshots, {} reads in them: sums, records and indexes agree",
        report::count(seen.snapshots),
        report::count(seen.reads)
    ))?;
    let torn = seen.violations;
    report.line(format!("  torn snapshots: {torn}; file now {}", report::bytes(file_len)))?;
    let mut value = seen.json();
    value["processes"] = READERS.into();
    value["writer_commits"] = commits.into();
    value["writer_commits_per_second"] = report::rate(commits, time).round().into();
    report.record("readers", value);
    Ok(())
}
