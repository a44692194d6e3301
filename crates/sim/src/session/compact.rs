//! A step that compacts the store in place: many commits, none of which changes what users see.

use std::sync::Arc;
use std::time::Duration;

use zubilo::CompactOptions;

use crate::disk::Mark;

use super::{Failure, Session, StepError};

/// Commits of one compaction, at most: it is stopped in time.
const COMMITS: u64 = 40;
/// Steps after which it is stopped at the latest. A few commits that lower the end follow.
const STEPS: u64 = 20;

impl Session {
    /// Compacts in small steps, to the end or not.
    pub(super) fn compact(&mut self) -> Result<(), StepError> {
        let env = self.env();
        if env.write()?.id().0 != self.newest + 1 {
            // What a killed process had written whole was taken over.
            self.look_around()?;
        }
        for txn in self.newest + 1..=self.newest + COMMITS {
            self.history.add(txn, Arc::clone(&self.now));
            self.disk.mark(Mark::Attempt(txn, Arc::clone(&self.now)));
        }
        // Nothing may depend on the clock, for sessions repeat.
        let step = [1, 16 << 10, 64 << 10, 4 << 20][self.rng.index(4)];
        let options = CompactOptions::new()
            .step(step, Duration::from_secs(600))
            .pause(Duration::ZERO)
            .fill([80, 98, 100][self.rng.index(3)]);
        let most = if self.rng.one_in(3) { self.rng.below(STEPS) } else { STEPS };
        let mut steps = 0;
        let report = env.compact(&options, &mut |_, _| {
            steps += 1;
            steps < most
        })?;
        let found = self.found()?;
        if found != self.newest + report.commits {
            let why = format!("{} commits after {} led to {found}", report.commits, self.newest);
            return Err(Failure::Misbehaved(why).into());
        }
        if self.poisoned && report.commits > 0 {
            return Err(Failure::Misbehaved("compacted after a failed flush".into()).into());
        }
        self.history.cut(found);
        self.newest = found;
        if !self.poisoned {
            self.disk.mark(Mark::Cut(found));
        }
        if report.commits > 0 {
            self.disk.mark(Mark::Durable(found));
        }
        self.compare()?;
        self.check()?;
        Ok(())
    }
}
