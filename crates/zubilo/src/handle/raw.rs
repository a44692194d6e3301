//! What the C interface asks of a store as a whole.

use crate::env::adopt;
use crate::error::Result;
use crate::maintenance::memory::{self, WarmUp};
use crate::txn::raw::RawTable;
use crate::txn::raw::counted::RawRange;
use crate::txn::{ReadTxn, bounds_of, pinned};

use super::Env;

/// Pages as runs of first page and number, ascending.
pub type Runs = Vec<(u64, u64)>;

#[doc(hidden)]
impl Env {
    /// Process, thread and snapshot of each reader; of those that were parked, no snapshot.
    pub fn raw_readers(&self) -> Vec<(u32, u64, Option<u64>)> {
        let slots = self.inner.shared.kept_slots();
        slots
            .map(|(reader, pins)| (reader.pid, reader.thread, pins.then_some(reader.txn)))
            .collect()
    }

    /// Highest number of reader slots that were ever in use.
    pub fn raw_reader_slots(&self) -> u32 {
        self.inner.shared.claimed_slots()
    }

    /// As [`Env::warm_up_table`], with a table of a transaction.
    pub fn raw_warm_up(
        &self,
        txn: &ReadTxn,
        table: &RawTable,
        keys: RawRange<'_>,
        how: WarmUp,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<u64> {
        memory::warm_table(txn, &txn.raw_table(table), &bounds_of::<&[u8]>(keys), how, progress)
    }

    /// The pages that are free in the newest commit, be it that readers still hold them.
    pub fn raw_free_runs(&self) -> Result<Runs> {
        let (txn, meta) = pinned(&self.inner)?;
        let snapshot = txn.snapshot();
        let space = meta.load_log(&snapshot, &[], self.inner.plausible_pages())?.space;
        let mut runs = Vec::new();
        space.for_each_free(&mut |run| runs.push((run.first, run.count)));
        Ok(runs)
    }

    /// Takes over what others have committed to a store that is open without a lock file, whose
    /// users take turns by means of their own.
    ///
    /// # Safety
    /// No transaction of this process writes or begins meanwhile: it could take up a root of before, whose
    /// pages others reuse.
    pub unsafe fn raw_adopt(&self) -> Result<()> {
        adopt(&self.inner)
    }

    /// Says that users of the store in other processes take such turns: whatever is written for this one is
    /// written by its writers, and by calls for it.
    pub fn raw_take_turns(&self) {
        self.inner.flusher.leave_to_writers();
    }
}
