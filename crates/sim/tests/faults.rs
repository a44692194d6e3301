//! Every call of a session fails once, and then for longer. The full run is `sim --faults`.

use sim::plan;
use sim::session::faults::each_call;

fn endured(names: &[&str], steps: u64, at_least: u64) {
    let mut sessions = 0;
    for plan in plan::all().iter().filter(|p| names.contains(&p.name)) {
        let outcome = each_call(plan, 11, steps);
        assert!(outcome.failures.is_empty(), "\n{}\n", outcome.failures.join("\n"));
        sessions += outcome.states;
    }
    assert!(sessions >= at_least, "only {sessions} sessions");
}

#[test]
fn durable_commits() {
    endured(&["sync-small", "sync-large"], 10, 100);
}

#[test]
fn weak_commits() {
    endured(&["nosync", "nosync-large"], 14, 100);
}

#[test]
fn spills() {
    endured(&["sync-spill"], 6, 100);
}

#[test]
fn compactions() {
    endured(&["compact-sync", "compact-nosync"], 10, 100);
}

#[test]
fn writable_maps() {
    endured(&["sync-map", "nosync-map"], 10, 100);
}
