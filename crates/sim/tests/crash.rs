//! A few thousand crash states of each kind of workload; the long run is `cargo run -p sim`.

use sim::plan::{self, Plan};
use sim::run::{Outcome, Run};
use sim::{branches, prepared};

fn survive(wanted: impl Fn(&Plan) -> bool, seed: u64, states: u64) {
    let mut all = Outcome::default();
    for plan in plan::all().iter().filter(|p| wanted(p)) {
        all.add(Run::start(plan, seed, states.min(plan.states), &|_| ()));
    }
    assert!(all.failures.is_empty(), "\n{}\n", all.failures.join("\n"));
    assert!(all.states > states, "only {} states", all.states);
}

#[test]
fn creation() {
    survive(|p| p.name == "creation", 7, 400);
}

#[test]
fn durable_commits() {
    survive(|p| p.name.starts_with("sync"), 7, 70);
}

#[test]
fn weak_commits() {
    survive(|p| p.name.starts_with("nosync") || p.name.starts_with("mixed"), 7, 100);
}

#[test]
fn killed_processes() {
    survive(|p| p.name.starts_with("kills"), 7, 150);
}

#[test]
fn interleaved_checkpoints() {
    survive(|p| p.name == "interleaved" || p.name == "hostile", 7, 150);
}

#[test]
fn compactions() {
    survive(|p| p.name.starts_with("compact"), 7, 100);
}

#[test]
fn the_redo_log() {
    survive(|p| p.name.starts_with("log"), 7, 60);
}

#[test]
fn rings_that_grow_and_go() {
    survive(|p| p.name.starts_with("ring"), 7, 60);
}

#[test]
fn branches_of_history() {
    let mut all = Outcome::default();
    for (seed, name) in (0..12).flat_map(|seed| branches::NAMES.map(|name| (seed, name))) {
        all.add(branches::run(name, seed, &|_| ()));
    }
    assert!(all.failures.is_empty(), "\n{}\n", all.failures.join("\n"));
    assert!(all.states > 100, "only {} states", all.states);
}

#[test]
fn failing_calls() {
    survive(|p| p.name.starts_with("faults"), 7, 150);
}

/// The same seed gives the same run.
#[test]
fn runs_repeat() {
    let plans = plan::all();
    for name in ["sync-small", "hostile", "faults-sync"] {
        let plan = plans.iter().find(|p| p.name == name).expect("a workload");
        let states = |_| Run::start(plan, 3, 40, &|_| ()).states;
        let counts: Vec<u64> = (0..2).map(states).collect();
        assert_eq!(counts[0], counts[1], "{name}");
    }
}

/// `PREPARED_SEEDS=10000` for a long run.
#[test]
fn prepared_transactions() {
    let mut all = Outcome::default();
    let seeds = 0..support::number("PREPARED_SEEDS", 8);
    for (seed, name) in seeds.flat_map(|seed| prepared::NAMES.map(|name| (seed, name))) {
        all.add(prepared::run(name, seed, &|_| ()));
    }
    println!("{} states of prepared transactions", all.states);
    assert!(all.failures.is_empty(), "{:#?}", all.failures);
    assert!(all.states > 500, "{}", all.states);
}
