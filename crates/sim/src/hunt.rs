//! The proof of the judge: bugs planted in the engine, and what finds them.

use zubilo::planted::{Bug, plant};

use crate::decay;
use crate::plan;
use crate::run::{Outcome, Run};

/// States of one workload before the next one's turn.
const STATES: u64 = 80;
/// Rounds before a bug counts as not found.
const ROUNDS: u64 = 60;

/// A bug, and the workloads that can show it; none for damage of the medium.
pub const HUNTS: [(Bug, &[&str]); 29] = [
    (Bug::NotFlushed, &["sync-small"]),
    (Bug::AcknowledgedEarly, &["sync-small"]),
    (Bug::PagesNotFlushed, &["sync-spill"]),
    (Bug::DirectoryNotFlushed, &["creation"]),
    (Bug::OpenNotFlushed, &["sync-small", "kills-sync", "mixed"]),
    (Bug::DigestNotVerified, &["sync-small"]),
    (Bug::MetaNotVerified, &["nosync", "sync-spill"]),
    (Bug::PageNotVerified, &[]),
    (Bug::BootNotCompared, &["nosync"]),
    (Bug::CopyBelieved, &["nosync"]),
    (Bug::OneFlushOnWeak, &["processes"]),
    (Bug::PublishedBeforeWritten, &["kills-sync"]),
    (Bug::SteadyOverwritten, &["nosync"]),
    (Bug::NewestOverwritten, &["kills-nosync", "faults-nosync"]),
    (Bug::UnpublishedNotCleared, &["nosync", "kills-sync", "mixed"]),
    (Bug::WipeNotFlushed, &["kills-spill", "faults-spill"]),
    (Bug::CheckpointUnflushed, &["nosync"]),
    (Bug::SteadyTooEarly, &["interleaved", "hostile"]),
    (Bug::PendingBeforeSteady, &["stores"]),
    (Bug::FailedMetaForgotten, &["faults-syncs"]),
    (Bug::SteadyNotPinned, &["nosync", "mixed"]),
    (Bug::PendingNotPinned, &["kills-nosync", "hostile"]),
    (Bug::FlushingNotPinned, &["interleaved", "processes"]),
    (Bug::ReadersNotPinned, &["sync-small"]),
    (Bug::FailedFlushIgnored, &["faults-sync"]),
    (Bug::FreedForgotten, &["sync-small"]),
    (Bug::MapKeptAfterError, &["faults-sync"]),
    (Bug::CutTooFar, &["nosync-large"]),
    (Bug::SpilledForgotten, &["sync-spill", "faults-spill"]),
];

/// How a hunt ended.
pub struct Catch {
    /// States judged, the one that showed the bug included.
    pub states: u64,
    /// What was wrong in it; none if nothing was.
    pub failure: Option<String>,
}

/// Looks for a bug, which the engine has on the calling thread only.
pub fn hunt(bug: Option<Bug>, names: &[&str], rounds: u64) -> Catch {
    plant(bug);
    let mut all = Outcome::default();
    for seed in 0..rounds {
        let plans = plan::all().into_iter().filter(|p| names.contains(&p.name));
        for plan in plans {
            all.add(Run::start(&plan, seed, STATES, |_| ()));
        }
        if names.is_empty() {
            all.add(decay::flips(seed, STATES));
        }
        if !all.failures.is_empty() {
            break;
        }
    }
    plant(None);
    Catch { states: all.states, failure: all.failures.into_iter().next() }
}

/// Hunts one of the list. With the bug it must be found; without it nothing is.
pub fn prove(bug: Bug, names: &[&str]) -> Result<Catch, String> {
    if let Some(failure) = hunt(None, names, 1).failure {
        return Err(format!("{bug:?}: found although it was not planted: {failure}"));
    }
    let found = hunt(Some(bug), names, ROUNDS);
    match found.failure {
        Some(_) => Ok(found),
        None => Err(format!("{bug:?}: not found in {} states", found.states)),
    }
}
