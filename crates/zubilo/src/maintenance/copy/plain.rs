//! The copy of pages as they are.

use crate::env::meta::{META_COUNT, Meta, Trust};
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::tree::build::PageSink;
use crate::txn::ReadTxn;

use super::Progress;

/// Bytes copied at once.
const CHUNK: u64 = 1 << 20;

/// The meta of the copy: the commit is whole when the copy is.
pub(super) fn meta(source: Meta) -> Meta {
    Meta { trust: Trust::Steady, digest: 0, ..source }
}

/// Copies every page that the snapshot or its free-space log use.
pub(super) fn run(
    txn: &ReadTxn,
    meta: &Meta,
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
            let count = chunk.min(gap - next);
            let bytes = snapshot.bytes(next, count << meta.page_shift).ok_or(Error::Corrupted {
                page: PageNo(next),
                reason: "a used page lies outside the store",
            })?;
            sink.pages(next, bytes)?;
            next += count;
        }
        next = next.max(behind);
    }
    progress(meta.end, meta.end);
    Ok(())
}
