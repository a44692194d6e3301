//! The copy of pages as they are.

use crate::env::meta::{META_COUNT, Meta, Trust};
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::platform::Purpose;
use crate::tree::build::PageSink;
use crate::txn::ReadTxn;

use super::Progress;

/// Bytes copied at once.
const CHUNK: u64 = 1 << 20;

/// The meta of the copy: the commit is whole when the copy is.
pub(super) fn meta(source: Meta) -> Meta {
    Meta { trust: Trust::Steady, digest: 0, ..source }
}

/// What pages serve that are not of trees, ascending and disjoint: the first, how many, and the purpose.
pub(super) type Purposes = [(u64, u64, Purpose)];

/// What page `at` serves, and the first page behind it that may serve something else.
fn purpose_at(purposes: &Purposes, at: u64) -> (Purpose, u64) {
    let behind = purposes.partition_point(|(first, count, _)| first + count <= at);
    match purposes.get(behind) {
        Some(&(first, count, purpose)) if first <= at => (purpose, first + count),
        Some(&(first, ..)) => (Purpose::Tree, first),
        None => (Purpose::Tree, u64::MAX),
    }
}

/// Copies every page that the snapshot or its free-space log use. Where one of the two stores is encrypted, `purposes`
/// says what the pages serve.
pub(super) fn run(
    txn: &ReadTxn,
    meta: &Meta,
    purposes: &Purposes,
    sink: &mut dyn PageSink,
    progress: Progress<'_>,
) -> Result<()> {
    let snapshot = txn.snapshot();
    // Nobody pins anything in a copy: what is dead there is free.
    let space = meta.load_log(&snapshot, &[], txn.env().plausible_pages())?.space;
    let mut gaps = Vec::new();
    space.for_each_free(&mut |e| gaps.push((e.first, e.first + e.count)));
    if let Some(log) = &meta.redo {
        // The copy is the snapshot: its log is empty, and has no commit after it.
        gaps.push((log.first, log.first + log.pages(meta.page_shift)));
        gaps.sort_unstable();
    }
    gaps.push((meta.end, meta.end));
    let chunk = (CHUNK >> meta.page_shift).max(1);
    let mut next = META_COUNT;
    for (gap, behind) in gaps {
        while next < gap {
            if !progress(next, meta.end) {
                return Err(Error::Stopped);
            }
            let (purpose, other) = purpose_at(purposes, next);
            let count = chunk.min(gap.min(other) - next);
            let bytes = snapshot.bytes(next, count << meta.page_shift, Some(purpose)).ok_or(
                Error::Corrupted {
                    page: PageNo(next),
                    reason: "a used page lies outside the store",
                },
            )?;
            sink.pages(next, bytes, purpose)?;
            next += count;
        }
        next = next.max(behind);
    }
    progress(meta.end, meta.end);
    Ok(())
}
