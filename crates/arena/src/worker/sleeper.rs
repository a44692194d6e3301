//! A reader that sleeps on its snapshot while the store is changed: what that costs in space. Three
//! phases of the same work; the reader holds its snapshot through the second.

use std::path::Path;
use std::time::Instant;

use super::dataset::Dataset;
use super::timing::{Clock, Latency};
use super::writes::shared_quads;
use super::{Done, timed};
use crate::data::Data;
use crate::disk;
use crate::keys::KEY_MAX;
use crate::peers::{Engine, Outcome, Reader, Session};
use crate::spec::Bound;

/// Looks at the disk in each phase.
const LOOKS: u64 = 16;

/// A store and the work on it.
struct Work<'w> {
    data: &'w Data,
    datasets: &'w mut [Dataset],
    dir: &'w Path,
    quads: u64,
    /// Transactions of a phase.
    commits: u64,
    done: u64,
    bytes: u64,
    latency: Latency,
    growth: Vec<(u64, u64)>,
}

/// `bound.ops` transactions in all, at most its seconds.
pub(super) fn run<E: Engine>(
    engine: &E,
    data: &Data,
    datasets: &mut [Dataset],
    dir: &Path,
    quads: u64,
    bound: Bound,
) -> Outcome<Done> {
    engine.writes_beside_readers()?;
    let mut work = Work {
        data,
        datasets,
        dir,
        quads,
        commits: (bound.ops / 3).max(1),
        done: 0,
        bytes: 0,
        latency: Latency::new(),
        growth: Vec::new(),
    };
    let clock = Clock::start(bound);
    let (mut writer, mut sleeper) = (engine.session()?, engine.session()?);
    let (kept, during) = timed(|| {
        work.look();
        work.phase(&mut writer, &clock)?;
        let serial = work.datasets[0].alive(0);
        let key = data.key(serial, &mut [0; KEY_MAX]).to_vec();
        let kept = sleeper.read(|reader| {
            // The oldest record is the first to be deleted: a snapshot goes on showing it.
            let before = reader.get(&key, |value| value.is_some())?;
            work.phase(&mut writer, &clock)?;
            Ok(before && reader.get(&key, |value| value.is_some())?)
        })?;
        work.phase(&mut writer, &clock)?;
        Ok(kept)
    })?;
    let part = work.latency.into_part(work.done, during.wall_s);
    let phases = if work.done < 3 * work.commits { "; stopped by the clock" } else { "" };
    let note = match kept {
        true => format!("the reader kept its snapshot{phases}"),
        false => format!("the reader had no snapshot: it saw what was changed meanwhile{phases}"),
    };
    let mut done = Done { user_bytes: work.bytes, ..Done::of(part, during) };
    (done.growth, done.note) = (work.growth, Some(note));
    Ok(done)
}

impl Work<'_> {
    fn look(&mut self) {
        self.growth.push((self.done, disk::usage(self.dir).0));
    }

    fn phase(&mut self, writer: &mut impl Session, clock: &Clock) -> Outcome<()> {
        let every = self.commits.div_ceil(LOOKS);
        for i in 1..=self.commits {
            // What is taken from the datasets must be done.
            if !clock.goes_on(self.done) {
                break;
            }
            let quads = shared_quads(self.datasets, self.quads);
            if quads.is_empty() {
                break;
            }
            let began = Instant::now();
            writer.write(|writer| {
                let mut value = Vec::new();
                quads.iter().try_for_each(|quad| quad.apply(writer, self.data, &mut value))
            })?;
            self.latency.add(began);
            self.bytes += quads.iter().map(|quad| quad.bytes(self.data)).sum::<u64>();
            self.done += 1;
            if i % every == 0 || i == self.commits {
                self.look();
            }
        }
        Ok(())
    }
}
