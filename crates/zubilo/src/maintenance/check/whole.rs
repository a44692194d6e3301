//! Whether a commit that nobody has flushed is all there.
//!
//! A weak commit is trusted on the same boot, since the kernel has what was written. That holds for
//! the file it was written to, not for a copy of what a disk held at some moment. In another file it
//! is trusted only if every page it can reach is whole, and is the one that was written there last:
//! a page may be the older one of the same place and still look right, but the free-space log says which
//! commit wrote it.

use std::collections::BinaryHeap;

use crate::env::meta::Meta;
use crate::num::TxnId;
use crate::space::{Delta, Extent};
use crate::tree::Snapshot;

use super::account::Account;
use super::{CheckReport, PageVisit, walk};

/// Which commit has written a page last, as far back as the free-space log goes.
struct Births {
    /// Disjoint, ascending.
    spans: Vec<(Extent, u64)>,
}

impl Births {
    fn of(deltas: &[Delta]) -> Births {
        let mut written: Vec<(Extent, u64)> =
            deltas.iter().flat_map(|d| d.allocated.iter().map(|e| (*e, d.txn))).collect();
        written.sort_unstable_by_key(|(extent, _)| extent.first);
        let mut spans: Vec<(Extent, u64)> = Vec::new();
        // Those that reach over the place the sweep is at, the youngest on top.
        let mut open: BinaryHeap<(u64, u64)> = BinaryHeap::new();
        let mut at = 0;
        let mut next = written.into_iter().peekable();
        while next.peek().is_some() || !open.is_empty() {
            while open.peek().is_some_and(|(_, end)| *end <= at) {
                open.pop();
            }
            let start = next.peek().map_or(u64::MAX, |(extent, _)| extent.first);
            if let Some(&(txn, end)) = open.peek()
                && at < start
            {
                let upto = end.min(start);
                spans.push((Extent { first: at, count: upto - at }, txn));
                at = upto;
            } else if let Some((extent, txn)) = next.next() {
                at = at.max(extent.first);
                open.push((txn, extent.first.saturating_add(extent.count)));
            }
        }
        Births { spans }
    }

    fn of_page(&self, page: u64) -> Option<u64> {
        let behind = self.spans.partition_point(|(extent, _)| extent.first <= page);
        let (extent, txn) = self.spans.get(behind.checked_sub(1)?)?;
        (page - extent.first < extent.count).then_some(*txn)
    }
}

/// Whether the trees and the free-space log of `meta`'s commit are as they were written. `snapshot` reaches to
/// its end, which lies within the file; no page of the log lies beyond `plausible_pages`. Pages of commits after `on_disk`
/// must be known by the commit that wrote them.
pub(crate) fn is_whole(
    snapshot: Snapshot<'_>,
    meta: &Meta,
    plausible_pages: u64,
    on_disk: u64,
) -> bool {
    let Ok(loaded) = meta.load_log(&snapshot, &[], plausible_pages) else { return false };
    if loaded.log.base() > on_disk {
        return false;
    }
    let births = Births::of(&loaded.deltas);
    let mut report = CheckReport { txn: TxnId(meta.txn), pages: meta.end, ..Default::default() };
    let Ok(mut account) = Account::new(meta.end) else { return false };
    let mut as_written = |visit: &PageVisit<'_>| {
        births.of_page(visit.page.0).is_none_or(|birth| birth == visit.birth.0)
    };
    let mut walk = walk::Walk {
        snapshot,
        account: &mut account,
        report: &mut report,
        progress: &mut |_, _| true,
        visit: &mut as_written,
        stopped: false,
    };
    walk.all_tables(&meta.main).is_ok() && report.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writer_of_a_page_is_known() {
        let delta = |txn, extents: &[(u64, u64)]| Delta {
            txn,
            allocated: extents.iter().map(|&(first, count)| Extent { first, count }).collect(),
            released: Vec::new(),
            end: 100,
        };
        let deltas = vec![
            delta(5, &[(10, 30)]),
            delta(6, &[(15, 2), (50, 1)]),
            delta(7, &[(16, 10), (39, 3)]),
            delta(9, &[(16, 1)]),
        ];
        let births = Births::of(&deltas);
        for page in 0..60 {
            let covers = |d: &&Delta| {
                d.allocated.iter().any(|e| (e.first..e.first + e.count).contains(&page))
            };
            let last = deltas.iter().rev().find(covers).map(|d| d.txn);
            assert_eq!(births.of_page(page), last, "page {page}");
        }
    }
}
