//! Readers that are behind: since when, and the end of those pins that their owners have left to others.
//!
//! A reader notes no time, since a look at a clock would cost as much as the rest of its begin. Whoever
//! publishes a root does; and who finds a reader on the snapshot before the newest notes the times of that
//! snapshot in the reader's slot. As each commit begins with such a look, no reader falls further behind
//! without them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::layout::W_PUBLISHED;
use super::table::pin_of;
use super::{ReaderId, ReaderInfo, Shared};
use crate::error::{Error, Result};
use crate::sync::Ordering;

/// How old the snapshot of a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    /// Since the snapshot was committed, or the store opened by the first of its users.
    pub(crate) snapshot: Duration,
    /// Since the commit after it.
    pub(crate) behind: Duration,
}

/// Milliseconds since 1970: a clock that all processes share, in whatever time namespace they are.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Shared {
    /// Before a root is published.
    pub(super) fn note_publication(&self, txn: u64) {
        self.region.words()[W_PUBLISHED + (txn & 1) as usize].store(now_ms(), Ordering::Relaxed);
    }

    /// When the newest root was published, and the one before; `None` if another one came meanwhile.
    fn published(&self, newest: u64) -> Option<[u64; 2]> {
        let at = |txn: u64| {
            let word = &self.region.words()[W_PUBLISHED + (txn & 1) as usize];
            match word.load(Ordering::Acquire) {
                // The root that the store was opened with is the first one known.
                0 => {
                    self.region.words()[W_PUBLISHED + (newest & 1) as usize].load(Ordering::Acquire)
                }
                time => time,
            }
        };
        let times = [at(newest.wrapping_sub(1)), at(newest)];
        (self.newest() == newest).then_some(times)
    }

    /// Notes the times of the snapshot before the newest where readers pin it.
    #[cold]
    pub(super) fn note_times(&self, newest: u64) {
        let (slots, before) = (self.slots(), newest.wrapping_sub(1));
        let Some(times) = self.published(newest) else { return };
        for slot in 0..slots.claimed() {
            let is_behind = pin_of(slots.txn(slot)).is_some_and(|(txn, _)| txn == before);
            if is_behind && slots.times(slot, before).is_none() {
                slots.note_times(slot, before, times);
            }
        }
    }

    /// How old the snapshot of a reader is; nobody is behind with the newest.
    pub(crate) fn age(&self, reader: &ReaderInfo) -> Age {
        let newest = self.newest();
        let times = self.published(newest).unwrap_or_default();
        let (published, replaced) = match reader.txn {
            txn if txn >= newest => (times[1], u64::MAX),
            txn if txn + 1 == newest => (times[0], times[1]),
            // Where nobody has noted it, it is behind since the commit before the newest, at least.
            txn => self.slots().times(reader.slot, txn).unwrap_or([times[0]; 2]).into(),
        };
        let now = now_ms();
        let since = |time: u64| Duration::from_millis(now.saturating_sub(time));
        Age { snapshot: since(published), behind: since(replaced) }
    }

    /// Leaves the pin of `txn` to whoever needs its pages, until [`take_up`](Self::take_up).
    pub(crate) fn offer(&self, id: &ReaderId, txn: u64) {
        if !self.is_child() {
            self.slots().offer(id.0, txn);
        }
    }

    /// Takes the pin of `txn` back. Without it nothing may be read.
    pub(crate) fn take_up(&self, id: &ReaderId, txn: u64) -> Result<()> {
        self.refuse_child()?;
        match self.slots().take_up(id.0, txn) {
            true => Ok(()),
            false => Err(Error::Expired),
        }
    }

    /// Whether others have ended the pin.
    pub(crate) fn is_expired(&self, id: &ReaderId) -> bool {
        pin_of(self.slots().txn(id.0)).is_none()
    }

    /// Ends a pin that was left to others; false if its owner is at work, or has ended it.
    pub(crate) fn expire(&self, slot: u32, txn: u64) -> bool {
        !self.is_child() && slot < self.max_readers() && self.slots().expire(slot, txn)
    }

    /// Ends the pins left to others that are behind for longer than `bound`; gives their number.
    pub(crate) fn expire_behind(&self, bound: Duration) -> u32 {
        let newest = self.newest();
        let late = self.readers().into_iter().filter(|reader| {
            reader.is_expirable && reader.txn < newest && self.age(reader).behind > bound
        });
        late.map(|reader| u32::from(self.expire(reader.slot, reader.txn))).sum()
    }
}
