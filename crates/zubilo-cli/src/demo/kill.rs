//! A process that commits durably is killed in the middle of its work, again and again. Nothing
//! that it reported as committed may be missing, and nothing may be there in half.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use zubilo::{Env, Options, TxnId};

use super::audit::{self, Depth};
use super::change::Writer;
use super::process::{self, Role, Worker};
use super::report::{self, Report};
use super::store::{self, Totals};

const SIGKILL: i32 = 9;

/// What the process says when its transaction has begun, and before the number of one that is
/// committed.
const BEGUN: &str = "begun";
const COMMITTED: &str = "committed ";

/// In a writing process: commits durably and reports each commit, until it is killed.
pub(crate) fn child(path: &Path, places: u32, seed: u64) -> Result<()> {
    let env = Options::new().create(false).open(path)?;
    let end = process::asked_to_end();
    let mut writer = Writer::new(seed, places);
    while !end.load(Ordering::Relaxed) {
        let commit = writer.commit(&env, || process::say(BEGUN))?;
        process::say(&format!("{COMMITTED}{commit}"))?;
    }
    Ok(())
}

/// A life of the writing process, as its parent saw it.
#[derive(Default)]
struct Life {
    acknowledged: Vec<u64>,
    /// Its last words were that a transaction has begun.
    in_transaction: bool,
}

impl Life {
    fn hear(&mut self, line: &str) -> Result<()> {
        if let Some(commit) = line.strip_prefix(COMMITTED) {
            self.acknowledged.push(commit.parse().context("a commit's number")?);
            self.in_transaction = false;
        } else if line == BEGUN {
            self.in_transaction = true;
        } else {
            bail!("the writing process says {line:?}");
        }
        Ok(())
    }
}

/// Starts the process, lets it work, kills it at a random moment.
fn live_and_die(path: &Path, places: u32, rng: &mut fastrand::Rng) -> Result<Life> {
    let mut worker = Worker::start(Role::Writer, path, places, rng.u64(..))?;
    let mut life = Life::default();
    let commits = rng.usize(1..=60);
    let mut begun = Instant::now();
    while life.acknowledged.len() < commits {
        let line = worker.line()?.context("the writing process ended; its error is above")?;
        if life.acknowledged.is_empty() && !life.in_transaction {
            begun = Instant::now();
        }
        life.hear(&line)?;
    }
    // Anywhere within the next transaction or the one after: in its changes, writes or flush.
    let one = begun.elapsed() / u32::try_from(commits)?;
    thread::sleep(one.mul_f64(2.0 * rng.f64()));
    worker.kill()?;
    let status = worker.wait()?;
    ensure!(status.signal() == Some(SIGKILL), "the process ended by itself: {status}");
    while let Some(line) = worker.line()? {
        life.hear(&line)?;
    }
    Ok(life)
}

/// All rounds.
#[derive(Default)]
struct Rounds {
    rounds: u64,
    acknowledged: u64,
    in_transaction: u64,
    /// Committed, but killed before it could say so.
    unsaid: u64,
    reopened: Vec<Duration>,
    /// While this process had the store open: until it had the dead writer's lock.
    taken_over: Vec<Duration>,
    checked: Duration,
}

impl Rounds {
    /// Everything that was acknowledged is there, and at most one commit more.
    fn compare(&mut self, env: &Env, before: Totals, life: &Life, places: u32) -> Result<Totals> {
        let begun = Instant::now();
        let totals = audit::full(env, places, 100)?;
        let read = env.read()?;
        let journal = read.table(store::JOURNAL)?;
        for commit in &life.acknowledged {
            let there = journal.get(commit.to_be_bytes())?.is_some();
            ensure!(there, "commit {commit} was acknowledged and is lost");
        }
        let acknowledged = life.acknowledged.len() as u64;
        let unsaid = totals.batches.checked_sub(before.batches + acknowledged);
        let unsaid = unsaid.context("the journal is shorter than before")?;
        ensure!(unsaid <= 1, "{unsaid} commits more than were acknowledged");
        self.rounds += 1;
        self.acknowledged += acknowledged;
        self.in_transaction += u64::from(life.in_transaction);
        self.unsaid += unsaid;
        self.checked += begun.elapsed();
        Ok(totals)
    }

    /// A round in which nobody has the store open but the process that dies.
    fn alone(&mut self, path: &Path, places: u32, rng: &mut fastrand::Rng) -> Result<()> {
        let before = Totals::of(&open(path)?.read()?)?;
        let life = live_and_die(path, places, rng)?;
        let begun = Instant::now();
        let env = open(path)?;
        self.reopened.push(begun.elapsed());
        self.compare(&env, before, &life, places)?;
        Writer::new(rng.u64(..), places).commit(&env, || Ok(())).map(drop)
    }

    /// A round in which this process has a snapshot meanwhile, and writes on when the other is dead.
    fn attended(&mut self, path: &Path, places: u32, rng: &mut fastrand::Rng) -> Result<()> {
        let env = open(path)?;
        let held = env.read()?;
        let before = Totals::of(&held)?;
        let life = live_and_die(path, places, rng)?;
        let mut took = Duration::ZERO;
        self.compare(&env, before, &life, places)?;
        let begun = Instant::now();
        let mine: TxnId = Writer::new(rng.u64(..), places).commit(&env, || {
            took = begun.elapsed();
            Ok(())
        })?;
        self.taken_over.push(took);
        let after = Totals::of(&env.read()?)?;
        ensure!(after.commit == mine.0, "commit {mine} is not the newest");
        let still = audit::snapshot(&held, Depth::Visits).context("the snapshot held meanwhile")?;
        ensure!(still.totals == before, "the snapshot held meanwhile has changed");
        Ok(())
    }
}

fn open(path: &Path) -> Result<Env> {
    Ok(Options::new().create(false).open(path)?)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The fifth step.
pub(crate) fn run(
    path: &Path,
    places: u32,
    seed: u64,
    rounds: u64,
    report: &mut Report,
) -> Result<()> {
    report.heading("5  Kill the writer")?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut all = Rounds::default();
    for round in 0..rounds {
        let done = if round % 2 == 0 {
            all.alone(path, places, &mut rng)
        } else {
            all.attended(path, places, &mut rng)
        };
        done.with_context(|| format!("kill {} of {rounds}, --seed {seed}", round + 1))?;
    }
    audit::full(&open(path)?, places, 1).context("after the last kill")?;

    let (reopen, take_over) = (median(&mut all.reopened), median(&mut all.taken_over));
    show(&all, seed, reopen, take_over, report)?;
    report.record(
        "kill",
        json!({
            "rounds": all.rounds,
            "seed": seed,
            "inside_a_transaction": all.in_transaction,
            "acknowledged": all.acknowledged,
            "lost": 0,
            "unsaid": all.unsaid,
            "reopen_milliseconds": report::millis(reopen),
            "take_over_milliseconds": report::millis(take_over),
        }),
    );
    Ok(())
}

fn show(
    all: &Rounds,
    seed: u64,
    reopen: Duration,
    take_over: Duration,
    report: &Report,
) -> Result<()> {
    report.line(format!(
        "  {} times SIGKILL at a random moment, {} of them inside a transaction (seed {seed})",
        all.rounds, all.in_transaction
    ))?;
    report.line(format!(
        "  durable commits acknowledged: {}; lost: 0; in half: 0; committed but not yet reported: {}",
        report::count(all.acknowledged),
        all.unsaid
    ))?;
    report.line(format!("  opened again in {} (median)", report::time(reopen)))?;
    if !all.taken_over.is_empty() {
        report.line(format!(
            "  dead writer's lock taken over in {} by a process that was still there",
            report::time(take_over)
        ))?;
    }
    report.line(format!(
        "  each time every page was checked and the journal done anew in memory: {} in all",
        report::time(all.checked)
    ))?;
    report.line("  (a dead process, not a power cut: those are simulated in crates/sim)")?;
    Ok(())
}
