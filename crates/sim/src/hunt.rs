//! The proof of the judge: bugs planted in the engine and at its disk, and what finds them.

use zubilo::planted::{Bug, plant};

use crate::branches;
use crate::cursors;
use crate::decay;
use crate::disk::SimDisk;
use crate::mistake::Mistake;
use crate::plan;
use crate::prepared;
use crate::run::{Outcome, Run};

/// States of one workload before the next one's turn.
const STATES: u64 = 80;
/// Rounds before a bug counts as not found.
const ROUNDS: u64 = 60;

/// Where a bug is planted.
#[derive(Clone, Copy, Debug)]
pub enum Planted {
    /// At the disk's interface.
    Disk(Mistake),
    /// Inside the engine: no call shows it.
    Engine(Bug),
}

/// A bug, and the workloads that can show it; none for damage of the medium.
pub const HUNTS: [(Planted, &[&str]); 56] = [
    (Planted::Disk(Mistake::NotFlushed), &["sync-small"]),
    (Planted::Disk(Mistake::AcknowledgedEarly), &["sync-small"]),
    (Planted::Disk(Mistake::PagesNotFlushed), &["sync-spill"]),
    (Planted::Disk(Mistake::DirectoryNotFlushed), &["creation"]),
    (Planted::Disk(Mistake::OpenNotFlushed), &["sync-small", "kills-sync", "mixed"]),
    (Planted::Engine(Bug::DigestNotVerified), &["sync-small"]),
    (Planted::Engine(Bug::MetaNotVerified), &["nosync", "sync-spill"]),
    (Planted::Engine(Bug::PageNotVerified), &[]),
    (Planted::Engine(Bug::BootNotCompared), &["nosync"]),
    (Planted::Engine(Bug::CopyTrusted), &["nosync"]),
    (Planted::Engine(Bug::AttemptsForgotten), &["hidden-hostile", "hidden-processes"]),
    (Planted::Engine(Bug::OneFlushOnWeak), &["processes"]),
    (Planted::Engine(Bug::PublishedBeforeWritten), &["kills-sync"]),
    (Planted::Engine(Bug::SteadyOverwritten), &["nosync"]),
    (Planted::Engine(Bug::NewestOverwritten), &["kills-nosync", "faults-nosync"]),
    (Planted::Engine(Bug::UnpublishedNotCleared), &["nosync", "kills-sync", "mixed"]),
    (Planted::Disk(Mistake::WipeNotFlushed), &["kills-spill", "faults-spill"]),
    (Planted::Disk(Mistake::PagesNotFlushed), &["nosync"]),
    (Planted::Engine(Bug::SteadyTooEarly), &["interleaved", "hostile"]),
    (Planted::Engine(Bug::PendingBeforeSteady), &["stores"]),
    (Planted::Engine(Bug::FailedMetaForgotten), &["faults-syncs"]),
    (Planted::Engine(Bug::SteadyNotPinned), &["nosync", "mixed"]),
    (Planted::Engine(Bug::PendingNotPinned), &["kills-nosync", "hostile"]),
    (Planted::Engine(Bug::FlushingNotPinned), &["interleaved", "processes"]),
    (Planted::Engine(Bug::ReadersNotPinned), &["sync-small"]),
    (Planted::Disk(Mistake::FailedFlushIgnored), &["faults-sync"]),
    (Planted::Engine(Bug::FreedForgotten), &["sync-small"]),
    (Planted::Engine(Bug::MapKeptAfterError), &["faults-sync"]),
    (Planted::Disk(Mistake::CutTooFar), &["nosync-large"]),
    (Planted::Engine(Bug::SpilledForgotten), &["sync-spill", "faults-spill"]),
    (Planted::Disk(Mistake::NotFlushed), &["log-small"]),
    (Planted::Engine(Bug::RecordNotFlushed), &["log-small"]),
    (Planted::Engine(Bug::RecordNotVerified), &["log-large"]),
    (Planted::Engine(Bug::RecordsNotChained), &["log-branches"]),
    (Planted::Engine(Bug::ChainNotReseeded), &["log-branches"]),
    (Planted::Engine(Bug::OpeningNotInChain), &["log-branches"]),
    (Planted::Engine(Bug::RecordAfterMeta), &["log-two", "stores-log"]),
    (Planted::Engine(Bug::RecordNotVoided), &["log-failed"]),
    (Planted::Engine(Bug::RecordNotWrapped), &["log-laps"]),
    (Planted::Engine(Bug::RingFreedTooEarly), &["log-laps"]),
    (Planted::Engine(Bug::RingNotBooked), &["log-small"]),
    (Planted::Engine(Bug::OldRingNotPinned), &["ring-switched", "ring-apart"]),
    (Planted::Engine(Bug::OldRingNotFreed), &["ring-grows"]),
    (Planted::Engine(Bug::OldMetasLeft), &["log-small"]),
    (Planted::Engine(Bug::ChangesNotLogged), &["log-small"]),
    (Planted::Engine(Bug::UndoneChangesLogged), &["log-small", "log-tables"]),
    (Planted::Engine(Bug::GapInTheLog), &["log-mixed", "log-processes"]),
    (Planted::Disk(Mistake::NotFlushed), &["lazy-small"]),
    (Planted::Engine(Bug::EarlierRecordsNotFlushed), &["lazy-processes", "lazy-mixed"]),
    (Planted::Engine(Bug::HopeTakenForLog), &["lazy-small", "lazy-laps"]),
    (Planted::Engine(Bug::RingFlushNotWrapped), &["lazy-laps"]),
    (Planted::Engine(Bug::RecordOfCopyTrusted), &["lazy-small", "lazy-exhaustive"]),
    (Planted::Engine(Bug::OldMetasLeft), &["lazy-small"]),
    (Planted::Engine(Bug::OneFlushOnWeak), &["log-tables"]),
    (Planted::Engine(Bug::SteadyNotPinned), &["log-small"]),
    (Planted::Engine(Bug::SteadyOverwritten), &["log-small"]),
];

/// Bugs that cursors show, inside one transaction.
pub const OF_CURSORS: [(Planted, &[&str]); 4] = [
    (Planted::Engine(Bug::ChangeKeepsVersion), &["cursors"]),
    (Planted::Engine(Bug::EarlyWriteKeepsVersions), &["cursors-early"]),
    (Planted::Engine(Bug::CursorsNotNoted), &["cursors"]),
    (Planted::Engine(Bug::CursorsNotRestored), &["cursors-nested"]),
];

/// Bugs of transactions that are prepared.
pub const OF_PREPARED: [(Planted, &[&str]); 7] = [
    (Planted::Engine(Bug::PreparedWiped), &["prepared"]),
    (Planted::Engine(Bug::PreparedForgotten), &["prepared"]),
    (Planted::Engine(Bug::PreparedCut), &["prepared-weak"]),
    (Planted::Engine(Bug::PreparedByNumber), &["prepared"]),
    (Planted::Engine(Bug::PreparedOverwritten), &["prepared"]),
    (Planted::Engine(Bug::PreparedBeforePages), &["prepared"]),
    (Planted::Engine(Bug::RollBackNotFlushed), &["prepared"]),
];

/// How a hunt ended.
pub struct Catch {
    /// States judged, the one that showed the bug included.
    pub states: u64,
    /// What was wrong in it; none if nothing was.
    pub failure: Option<String>,
}

/// Looks for a bug, which is there on the calling thread only.
pub fn hunt(bug: Option<Planted>, names: &[&str], rounds: u64) -> Catch {
    let (engine, mistake) = match bug {
        Some(Planted::Engine(bug)) => (Some(bug), None),
        Some(Planted::Disk(mistake)) => (None, Some(mistake)),
        None => (None, None),
    };
    plant(engine);
    let prepare = |disk: &SimDisk| disk.plant(mistake);
    let mut all = Outcome::default();
    for seed in 0..rounds {
        let plans = plan::all().into_iter().filter(|p| names.contains(&p.name));
        for plan in plans {
            all.add(Run::start(&plan, seed, STATES, &prepare));
        }
        for name in names {
            all.add(cursors::run(name, seed));
            all.add(branches::run(name, seed, &prepare));
            all.add(prepared::run(name, seed, &prepare));
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
pub fn prove(bug: Planted, names: &[&str]) -> Result<Catch, String> {
    if let Some(failure) = hunt(None, names, 1).failure {
        return Err(format!("{bug:?}: found although it was not planted: {failure}"));
    }
    let found = hunt(Some(bug), names, ROUNDS);
    match found.failure {
        Some(_) => Ok(found),
        None => Err(format!("{bug:?}: not found in {} states", found.states)),
    }
}
