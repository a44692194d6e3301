//! The driver: starts a process for each engine, lets them take turns, keeps what they answer.
//!
//! In each stage all engines hold a store with the same records. Each task is done once by all to
//! warm up, then in rounds A B C, C B A, ..., so that what disturbs the machine disturbs all, and
//! once more while system calls are counted.

mod child;
mod environment;
pub(crate) mod plan;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::peers::ENTRIES;
use crate::report::digest::RowDigest;
use crate::report::record::{Cell, Ending, Entrant, FAILED, Report, Row, StageReport, Standing};
use crate::report::table;
use crate::spec::{Bound, Command, Reply, Work};
use child::Child;
use plan::{Stage, Task};

/// Longest that a command may take beyond the time it was given.
const PATIENCE: Duration = Duration::from_secs(1800);

/// What the command line asks for.
pub(crate) struct Settings {
    pub(crate) plan: String,
    pub(crate) stages: Vec<Stage>,
    pub(crate) engines: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) seed: u64,
    /// Time for all of it: rows that come late have one round each.
    pub(crate) limit: Option<Duration>,
    /// The report, written anew after each stage: a run that is cut short loses one stage.
    pub(crate) out: PathBuf,
}

/// Seconds of work before a process is killed.
const CHURN: f64 = 0.1;

/// One engine in one stage.
struct Runner {
    name: &'static str,
    dir: PathBuf,
    child: Option<Child>,
}

struct Field<'s> {
    settings: &'s Settings,
    program: PathBuf,
    report: Report,
    bar: ProgressBar,
    began: Instant,
}

/// Measures the whole plan, or what an earlier run of the same plan has left of it.
pub(crate) fn run(settings: &Settings, resume: bool) -> std::io::Result<Report> {
    let earlier = if resume { Report::read(&settings.out)? } else { None };
    let report = match earlier {
        Some(report) => continued(report, new_report(settings))?,
        None => new_report(settings),
    };
    let program = std::env::current_exe()?;
    let all: usize = settings.stages.iter().map(steps).sum();
    let bar = ProgressBar::new((all * report.entrants.len()) as u64);
    let style = "{elapsed_precise} [{wide_bar}] {percent}% {eta} left  {msg}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    let mut field = Field { settings, program, report, bar, began: Instant::now() };
    for (number, stage) in settings.stages.iter().enumerate() {
        let count = settings.stages.len();
        let name =
            format!("stage {} of {count}: {} {}", number + 1, stage.name, stage.class.name());
        if field.report.stages.iter().any(|s| s.name == stage.name && s.class == stage.class) {
            field.bar.inc((steps(stage) * field.report.entrants.len()) as u64);
            field.bar.suspend(|| println!("{name}: kept"));
            continue;
        }
        field.bar.suspend(|| println!("\n{name}"));
        field.stage(stage)?;
        field.report.save(&settings.out)?;
    }
    field.bar.finish_and_clear();
    let took = format!("{:.0} s", field.began.elapsed().as_secs_f64());
    field.report.environment.push(("took".into(), took));
    let end = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    field.report.environment.push(("load at end".into(), end.trim().into()));
    field.report.save(&settings.out)?;
    Ok(field.report)
}

/// Steps of the progress for each engine: to open, to work, to close.
fn steps(stage: &Stage) -> usize {
    2 + stage.tasks.iter().map(|t| turns(stage, t)).sum::<usize>()
}

/// The earlier report, if what would be measured now may stand beside what it has.
fn continued(mut earlier: Report, now: Report) -> std::io::Result<Report> {
    let names = |report: &Report| report.entrants.iter().map(|e| e.name.clone()).collect();
    let facts = |report: &Report| {
        let mut facts: Vec<String> = names(report);
        facts.push(report.plan.clone());
        let lasting = ["commit", "seed", "cpu", "kernel", "file system", "flags"];
        facts.extend(lasting.map(|name| format!("{name} {}", report.fact(name))));
        facts
    };
    let (was, is) = (facts(&earlier), facts(&now));
    if let Some((was, is)) = was.iter().zip(&is).find(|(was, is)| was != is) {
        let text = format!("the report to go on with is of another run: {was}, not {is}");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text));
    }
    let text = format!("{}, behind {} stages", now.fact("date"), earlier.stages.len());
    earlier.environment.push(("resumed".into(), text));
    Ok(earlier)
}

fn new_report(settings: &Settings) -> Report {
    let entrants = ENTRIES.iter().filter(|e| settings.engines.iter().any(|n| n == e.name));
    let entrants = entrants.map(|entry| Entrant {
        name: entry.name.into(),
        what: entry.what.into(),
        version: None,
        missing: None,
        standings: Vec::new(),
    });
    Report {
        plan: settings.plan.clone(),
        environment: environment::describe(settings),
        entrants: entrants.collect(),
        stages: Vec::new(),
    }
}

/// Of the environment, where the kernel does not let them be counted.
const CALLS: &str = "system calls";

/// Share of the time by which work may lag behind before rounds are left out.
const LAG: f64 = 0.04;

/// Rounds of a task, with one to warm up before and one to count calls behind, where they are of use.
fn turns(stage: &Stage, task: &Task) -> usize {
    stage.rounds + usize::from(is_warmed(task)) + usize::from(task.work.has_calls())
}

fn is_warmed(task: &Task) -> bool {
    !task.work.is_load() && !task.work.is_done_once()
}

impl Field<'_> {
    fn stage(&mut self, stage: &Stage) -> std::io::Result<()> {
        let root = self.settings.dir.join("stage");
        std::fs::create_dir_all(&root)?;
        let mut runners = self.open(stage, &root);
        let mut rows = Vec::new();
        for task in &stage.tasks {
            let row = self.task(stage, task, &mut runners);
            let digest = RowDigest::of(stage.class, &row);
            self.bar.suspend(|| table::print_row(stage.name, stage.class, &digest));
            rows.push(row);
        }
        let endings = self.close(stage, runners);
        let (name, class, shape) = (stage.name.to_owned(), stage.class, stage.shape);
        let report = StageReport { name, class, shape, rows, endings };
        self.bar.suspend(|| table::print_endings(&report));
        self.report.stages.push(report);
        std::fs::remove_dir_all(&root)
    }

    fn open(&mut self, stage: &Stage, root: &Path) -> Vec<Runner> {
        let mut runners: Vec<Runner> = Vec::new();
        for entry in ENTRIES {
            let Some(at) = self.report.entrants.iter().position(|e| e.name == entry.name) else {
                continue;
            };
            self.step(|| format!("{} {}: {} opens", stage.name, stage.class.name(), entry.name));
            if self.report.entrants[at].missing.is_some() {
                continue;
            }
            let dir = root.join(entry.name);
            let command = Command::Open {
                dir: dir.to_string_lossy().into_owned(),
                class: stage.class,
                shape: stage.shape,
                seed: self.settings.seed,
                fill: stage.fill,
                memory: stage.memory,
            };
            // Those before it have not written all that they will.
            let to_come = |r: &Runner| match stage.fill {
                true => stage.growth(),
                false => stage.space().saturating_sub(crate::disk::usage(&r.dir).0),
            };
            let promised = runners.iter().map(to_come).sum();
            let (need, free) = (stage.space(), crate::disk::free(root).saturating_sub(promised));
            let (child, reply) = match Child::start(&self.program, entry.name) {
                // A full disk would spoil what the others measure.
                Ok(_) if need > free => {
                    let (need, free) = (need >> 20, free >> 20);
                    let reason = format!("{need} MiB of disk are needed, {free} MiB are free");
                    (None, Reply::Failed { reason })
                }
                Ok(mut child) => {
                    let reply = child.ask(&command, &dir, PATIENCE).0;
                    (Some(child), reply)
                }
                Err(error) => (None, Reply::Failed { reason: error.to_string() }),
            };
            if self.admit(at, stage, reply) {
                runners.push(Runner { name: entry.name, dir, child });
            }
        }
        runners
    }

    /// Notes how an engine was opened or why not.
    fn admit(&mut self, at: usize, stage: &Stage, reply: Reply) -> bool {
        let entrant = &mut self.report.entrants[at];
        let (settings, why) = match reply {
            Reply::Open { version, settings, why } => {
                entrant.version = Some(version);
                (Some(settings), why)
            }
            Reply::Missing { reason } => {
                entrant.missing = Some(reason);
                return false;
            }
            Reply::Absent { reason } => (None, reason),
            Reply::Failed { reason } => (None, format!("{FAILED} in {}: {reason}", stage.name)),
            other => (None, format!("{FAILED} in {}: answered with {other:?}", stage.name)),
        };
        let opened = settings.is_some();
        let standing = Standing { class: stage.class, settings, why };
        if !entrant.standings.contains(&standing) {
            entrant.standings.push(standing);
        }
        opened
    }

    fn task(&mut self, stage: &Stage, task: &Task, runners: &mut [Runner]) -> Row {
        let mut cells: Vec<Cell> =
            runners.iter().map(|r| Cell { engine: r.name.into(), ..Cell::default() }).collect();
        let planned = turns(stage, task);
        let last = if self.is_late() { planned + 1 - stage.rounds } else { planned };
        self.bar.inc(((planned - last) * runners.len()) as u64);
        for turn in 0..last {
            let warm = is_warmed(task) && turn == 0;
            let audit = task.work.has_calls() && turn + 1 == last;
            for i in 0..runners.len() {
                let i = if turn % 2 == 0 { i } else { runners.len() - 1 - i };
                let runner = &mut runners[i];
                self.step(|| {
                    format!("{} {}: {} {}", stage.name, stage.class.name(), task.name, runner.name)
                });
                // A pass to warm up or to count calls may be short.
                let share = if audit || warm { 0.25 } else { 1.0 };
                let bound = Bound { seconds: task.bound.seconds * share, ..task.bound };
                runner.turn(&mut cells[i], task.work, bound, warm, audit);
            }
        }
        let why = cells.iter().find_map(|cell| cell.audit.as_ref()?.audit_missing.as_ref());
        if let Some(why) = why.filter(|_| self.report.fact(CALLS).is_empty()) {
            self.report.environment.push((CALLS.into(), format!("not counted: {why}")));
        }
        Row { name: task.name.clone(), work: task.work, bound: task.bound, cells }
    }

    fn close(&mut self, stage: &Stage, runners: Vec<Runner>) -> Vec<Ending> {
        let mut endings = Vec::new();
        for mut runner in runners {
            self.step(|| format!("{} closes", runner.name));
            if runner.child.is_none() {
                continue;
            }
            let mut end = Ending {
                engine: runner.name.into(),
                records: 0,
                disk_bytes: 0,
                apparent_bytes: 0,
                reopen_s: 0.0,
                killed_open_s: None,
                trouble: None,
            };
            match runner.end(&self.program, stage, self.settings.seed) {
                Reply::Closed { records, disk_bytes, apparent_bytes, reopen_s, killed_open_s } => {
                    end.killed_open_s = killed_open_s;
                    end = Ending { records, disk_bytes, apparent_bytes, reopen_s, ..end };
                }
                Reply::Failed { reason } => end.trouble = Some(reason),
                other => end.trouble = Some(format!("answered with {other:?}")),
            }
            endings.push(end);
        }
        endings
    }

    /// Whether the time is used up faster than the work is done.
    fn is_late(&self) -> bool {
        let Some(limit) = self.settings.limit else { return false };
        let done = self.bar.position() as f64 / self.bar.length().unwrap_or(1).max(1) as f64;
        self.began.elapsed().as_secs_f64() > limit.as_secs_f64() * (done + LAG)
    }

    fn step(&self, what: impl FnOnce() -> String) {
        self.bar.inc(1);
        self.bar.set_message(what());
    }
}

impl Runner {
    /// Ends the store's life, where the stage says so by killing its process in the midst of work.
    fn end(&mut self, program: &Path, stage: &Stage, seed: u64) -> Reply {
        let ended = || Reply::Failed { reason: "the process has ended".into() };
        let Some(mut child) = self.child.take() else { return ended() };
        if !stage.kill {
            return child.ask(&Command::Close, &self.dir, PATIENCE).0;
        }
        let churn = Command::Churn { seconds: CHURN };
        let records = match child.ask(&churn, &self.dir, PATIENCE).0 {
            Reply::Churned { records } => records,
            other => return other,
        };
        child.kill();
        let dir = self.dir.to_string_lossy().into_owned();
        let (class, shape) = (stage.class, stage.shape);
        let recover = Command::Recover { dir, class, shape, seed, records };
        match Child::start(program, self.name) {
            Ok(mut child) => child.ask(&recover, &self.dir, PATIENCE).0,
            Err(error) => Reply::Failed { reason: error.to_string() },
        }
    }

    /// One measurement. An engine that failed is left out of what follows on this store.
    fn turn(&mut self, cell: &mut Cell, work: Work, bound: Bound, warm: bool, audit: bool) {
        let Some(child) = self.child.as_mut() else {
            cell.trouble.get_or_insert_with(|| "failed in an earlier row of this stage".into());
            return;
        };
        let limit = PATIENCE + Duration::from_secs_f64(bound.seconds * 10.0);
        let (reply, peak) = child.ask(&Command::Run { work, bound, audit }, &self.dir, limit);
        match reply {
            Reply::Ran { sample } if audit => cell.audit = Some(*sample),
            Reply::Ran { .. } if warm => {}
            Reply::Ran { sample } => {
                cell.take(*sample);
                cell.disk_peak = cell.disk_peak.max(peak);
            }
            Reply::Absent { reason } => cell.trouble = Some(reason),
            Reply::Failed { reason } => {
                cell.trouble = Some(format!("{FAILED}: {reason}"));
                self.child = None;
            }
            other => cell.trouble = Some(format!("{FAILED}: answered with {other:?}")),
        }
    }
}
