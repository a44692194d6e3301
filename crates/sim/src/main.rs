//! The long run: `cargo run --release -p sim -- --states 1000000 --seed 1`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sim::plan::{self, Plan, Twist};
use sim::run::{Outcome, Run};
use sim::session::faults::each_call;

/// Steps of a session in which each call fails once.
const FAULT_STEPS: u64 = 24;

const USAGE: &str = "\
usage: sim [--states N] [--seed S] [--workload NAME] [--threads T] [--short] [--list]
  --states N      judge at least N states (default 20000)
  --seed S        first seed; later runs count up from it (default 1)
  --workload NAME only this workload, once with the seed: repeats what a failure names
  --threads T     default: as many as processors
  --short         a fixed run of a few minutes at most
  --faults        lets each call of each kind fail in sessions of the plain workloads
  --planted       hunts each planted bug and prints the table (needs the feature planted); after
                  --workload only those whose workloads' names begin so
  --list          names of the workloads";

struct Wish {
    states: u64,
    seed: u64,
    only: Option<String>,
    threads: usize,
    repeat: bool,
    faults: bool,
}

fn parse() -> Result<Option<Wish>, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut wish =
        Wish { states: 20_000, seed: 1, only: None, threads, repeat: false, faults: false };
    let mut args = std::env::args().skip(1);
    let mut sized = false;
    while let Some(arg) = args.next() {
        let mut number = |name: &str| -> Result<u64, String> {
            let text = args.next().ok_or(format!("{name} needs a number"))?;
            text.parse().map_err(|_| format!("{name}: {text} is no number"))
        };
        match arg.as_str() {
            "--states" => {
                wish.states = number("--states")?;
                sized = true;
            }
            "--seed" => wish.seed = number("--seed")?,
            "--threads" => wish.threads = number("--threads")?.max(1) as usize,
            "--workload" => wish.only = args.next(),
            "--faults" => wish.faults = true,
            "--short" => wish.states = 20_000,
            "--planted" => return planted(wish.only.as_deref().unwrap_or("")).map(|()| None),
            "--list" => {
                plan::all().iter().for_each(|p| println!("{}", p.name));
                return Ok(None);
            }
            _ => return Err(USAGE.into()),
        }
    }
    wish.repeat = wish.only.is_some() && !sized;
    Ok(Some(wish))
}

#[cfg(feature = "planted")]
fn planted(beginning: &str) -> Result<(), String> {
    println!("| planted bug | workloads | states until found | found as |");
    println!("|---|---|---|---|");
    let all =
        sim::hunt::HUNTS.into_iter().chain(sim::hunt::OF_CURSORS).chain(sim::hunt::OF_PREPARED);
    let is_meant =
        |names: &[&str]| beginning.is_empty() || names.iter().any(|n| n.starts_with(beginning));
    let mut failed = Vec::new();
    for (bug, names) in all.filter(|(_, names)| is_meant(names)) {
        let found = match sim::hunt::prove(bug, names) {
            Ok(found) => found,
            Err(why) => {
                failed.push(why);
                continue;
            }
        };
        let names = if names.is_empty() { "decay".into() } else { names.join(", ") };
        let failure = found.failure.unwrap_or_default();
        println!("| {bug:?} | {names} | {} | {failure} |", found.states);
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

#[cfg(not(feature = "planted"))]
fn planted(_beginning: &str) -> Result<(), String> {
    Err("build with --features planted".into())
}

#[derive(Default)]
struct Table {
    by_workload: BTreeMap<&'static str, Outcome>,
}

fn work(wish: &Wish, plans: &[Plan], next: &AtomicU64, done: &AtomicU64, table: &Mutex<Table>) {
    loop {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        let (round, at) = (turn / plans.len() as u64, (turn % plans.len() as u64) as usize);
        let finished =
            if wish.repeat { round > 0 } else { done.load(Ordering::Relaxed) >= wish.states };
        if finished {
            return;
        }
        let plan = &plans[at];
        let seed = wish.seed + round;
        let outcome = if wish.faults {
            each_call(plan, seed, plan.steps.min(FAULT_STEPS))
        } else {
            Run::start(plan, seed, plan.states, &|_| ())
        };
        done.fetch_add(outcome.states, Ordering::Relaxed);
        for failure in &outcome.failures {
            eprintln!("FAILED --workload {failure}");
        }
        let mut table = table.lock().unwrap_or_else(|e| e.into_inner());
        table.by_workload.entry(plan.name).or_default().add(outcome);
    }
}

fn main() -> ExitCode {
    let wish = match parse() {
        Ok(Some(wish)) => wish,
        Ok(None) => return ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let mut plans = plan::all();
    if let Some(only) = &wish.only {
        plans.retain(|p| p.name == only);
    }
    if wish.faults {
        plans.retain(|p| p.twist == Twist::Plain);
    }
    if plans.is_empty() {
        eprintln!("no such workload; --list shows them");
        return ExitCode::from(2);
    }
    let started = Instant::now();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let table = Mutex::new(Table::default());
    std::thread::scope(|scope| {
        for _ in 0..wish.threads {
            scope.spawn(|| work(&wish, &plans, &next, &done, &table));
        }
    });
    let table = table.into_inner().unwrap_or_else(|e| e.into_inner());
    let mut all = Outcome::default();
    println!(
        "{:18} {:>9} {:>8} {:>6} {:>11}",
        "workload", "states", "corrupt", "lost", "misbehaved"
    );
    for (name, outcome) in table.by_workload {
        print_line(name, &outcome);
        all.add(outcome);
    }
    print_line("all", &all);
    println!("{:.1} s, seeds from {}", started.elapsed().as_secs_f64(), wish.seed);
    if all.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_line(name: &str, o: &Outcome) {
    println!("{name:18} {:>9} {:>8} {:>6} {:>11}", o.states, o.corrupt, o.lost, o.misbehaved);
}
