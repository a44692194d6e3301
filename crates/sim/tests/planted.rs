//! Planted bugs prove the judge: each must be found, by the workloads that can show it.
//! `cargo test --release -p sim --features planted`; `sim --planted` prints the table.

use sim::mistake::Mistake;
use sim::plan;
use sim::run::{Outcome, Run};

/// A medium that acknowledges flushes and does nothing.
#[test]
fn a_disk_that_ignores_flushes() {
    let mut all = Outcome::default();
    for plan in plan::all().iter().filter(|p| p.name == "sync-small" || p.name == "nosync") {
        all.add(Run::start(plan, 0, 60, &|disk| disk.plant(Some(Mistake::NotFlushed))));
    }
    assert!(all.lost + all.corrupt > 0, "{} states", all.states);
}

#[cfg(feature = "planted")]
fn prove_all(hunts: &[(sim::hunt::Planted, &[&str])]) {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let next = AtomicUsize::new(0);
    let failed = std::sync::Mutex::new(Vec::new());
    let work = || {
        while let Some((bug, names)) = hunts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = sim::hunt::prove(*bug, names) {
                failed.lock().unwrap().push(why);
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    assert_eq!(failed.into_inner().unwrap(), Vec::<String>::new());
}

#[cfg(feature = "planted")]
#[test]
fn every_planted_bug_is_found() {
    prove_all(&sim::hunt::HUNTS);
}

/// Of versions of tables and notes of cursors.
#[cfg(feature = "planted")]
#[test]
fn planted_bugs_of_cursors_are_found() {
    prove_all(&sim::hunt::OF_CURSORS);
}

/// Of transactions that wait for their decision.
#[cfg(feature = "planted")]
#[test]
fn planted_bugs_of_prepared_transactions_are_found() {
    prove_all(&sim::hunt::OF_PREPARED);
}
