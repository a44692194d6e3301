//! The free-space log of a commit, read from the pages of the store.

use crate::error::Result;
use crate::platform::Purpose;
use crate::space::log::{self, Loaded, LogOf, SegmentReader};
use crate::tree::Snapshot;

use super::meta::{META_COUNT, Meta};

impl<'p> SegmentReader<'p> for Snapshot<'p> {
    fn segment(&self, first: u64, len: u64) -> Option<&'p [u8]> {
        self.bytes(first, len, Some(Purpose::Log))
    }
}

impl Meta {
    pub(crate) fn log_of(&self) -> LogOf<'_> {
        LogOf { root: &self.log, txn: self.txn, end: self.end, page_shift: self.page_shift }
    }

    /// The free-space log as of this commit, to whose end `snapshot` reaches. No page that it speaks
    /// of lies beyond `pages_max`.
    pub(crate) fn load_log(
        &self,
        snapshot: &Snapshot<'_>,
        pins: &[u64],
        pages_max: u64,
    ) -> Result<Loaded> {
        log::load(snapshot, &self.log_of(), META_COUNT, pins, pages_max)
    }
}
