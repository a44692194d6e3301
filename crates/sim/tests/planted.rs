//! Planted bugs prove the judge: each must be found, by the workloads that can show it.

use sim::disk::SimDisk;
use sim::plan::{self, Plan};
use sim::run::{Outcome, Run};

fn plans(names: &[&str]) -> Vec<Plan> {
    plan::all().into_iter().filter(|p| names.contains(&p.name)).collect()
}

/// Runs the workloads with one seed after the other until something is wrong.
fn hunt(names: &[&str], seeds: u64, prepare: fn(&SimDisk)) -> Outcome {
    let mut all = Outcome::default();
    for seed in 0..seeds {
        for plan in plans(names) {
            all.add(Run::start(&plan, seed, 60, prepare));
            if !all.failures.is_empty() {
                return all;
            }
        }
    }
    all
}

/// A medium that acknowledges flushes and does nothing.
#[test]
fn a_disk_that_ignores_flushes() {
    let found = hunt(&["sync-small", "nosync"], 3, SimDisk::ignore_syncs);
    assert!(found.lost + found.corrupt > 0, "{} states", found.states);
}

#[cfg(feature = "planted")]
mod inside {
    use super::hunt;
    use zubilo::planted::{Bug, plant};

    fn found(bug: Bug, names: &[&str]) {
        assert_eq!(hunt(names, 1, |_| ()).failures, Vec::<String>::new());
        plant(Some(bug));
        let found = hunt(names, 40, |_| ());
        plant(None);
        assert!(found.lost + found.corrupt > 0, "{bug:?} not found in {} states", found.states);
        println!("{bug:?}: found after {} states: {}", found.states, found.failures[0]);
    }

    #[test]
    fn digest_not_verified() {
        found(Bug::DigestNotVerified, &["sync-small"]);
    }

    #[test]
    fn steady_not_pinned() {
        found(Bug::SteadyNotPinned, &["nosync", "mixed"]);
    }

    #[test]
    fn pending_not_pinned() {
        found(Bug::PendingNotPinned, &["kills-nosync", "hostile"]);
    }

    #[test]
    fn steady_overwritten() {
        found(Bug::SteadyOverwritten, &["nosync"]);
    }

    #[test]
    fn unpublished_not_cleared() {
        found(Bug::UnpublishedNotCleared, &["nosync", "kills-sync", "mixed"]);
    }

    #[test]
    fn one_flush_on_weak() {
        found(Bug::OneFlushOnWeak, &["processes"]);
    }

    #[test]
    fn not_flushed() {
        found(Bug::NotFlushed, &["sync-small"]);
    }
}
