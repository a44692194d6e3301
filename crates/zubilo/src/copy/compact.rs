//! The copy without gaps: each tree is built anew from its records.

use crate::env::meta::{BlobRef, META_COUNT, Meta, Trust};
use crate::error::{Error, Result};
use crate::page::{Order, ValueKind};
use crate::space::{Delta, Extent};
use crate::tree::build::{Builder, Output, PageSink};
use crate::tree::{Pages, RunRef, Snapshot, TreeDesc, cursor};
use crate::txn::ReadTxn;

use super::Progress;

/// Lays out all trees of the snapshot for `sink`; gives the meta of the copy.
pub(super) fn run(
    txn: &ReadTxn,
    source: &Meta,
    sink: &mut dyn PageSink,
    progress: Progress<'_>,
) -> Result<Meta> {
    let page_size = 1 << source.page_shift;
    let mut out = Output { sink, page_size, next: META_COUNT, txn: source.txn };
    let mut copy = Copy { snapshot: txn.snapshot(), total: source.end, progress };
    let main = copy.tree(&mut out, &source.main, true)?;
    let mut meta = Meta {
        trust: Trust::Steady,
        digest: 0,
        main,
        end: out.next,
        base: BlobRef::default(),
        blob: BlobRef::default(),
        chain_len: 0,
        chain_end: out.next,
        log: Vec::new(),
        ..source.clone()
    };
    if meta.end > META_COUNT {
        let all = Extent { first: META_COUNT, count: meta.end - META_COUNT };
        let delta =
            Delta { txn: meta.txn, allocated: vec![all], released: Vec::new(), end: meta.end };
        delta.encode(&mut meta.log);
    }
    Ok(meta)
}

struct Copy<'c, 'p> {
    snapshot: Snapshot<'p>,
    total: u64,
    progress: Progress<'c>,
}

impl Copy<'_, '_> {
    /// Copies a tree; in the main tree the tables go before it, so that their roots are known.
    fn tree(&mut self, out: &mut Output<'_>, desc: &TreeDesc, is_main: bool) -> Result<TreeDesc> {
        let order = desc.options.builtin_order().unwrap_or_else(Order::as_stored);
        let page_size = out.page_size;
        let mut builder = Builder::new(desc.table, desc.options, order.clone(), page_size);
        let mut cursor = cursor::Cursor::new(self.snapshot, *desc, order);
        let mut seen = 0u32;
        cursor.first()?;
        while let Some((at, entry)) = cursor.entry()? {
            match entry.kind {
                ValueKind::Run => {
                    let run = RunRef::load(entry.value).map_err(at.damaged())?;
                    let value = self.snapshot.run(at, &run)?;
                    run.verify(value).map_err(at.damaged())?;
                    builder.add_large(out, entry.key, value)?;
                }
                ValueKind::Tree if is_main => {
                    let table = TreeDesc::from_bytes(entry.value).map_err(at.damaged())?;
                    let copied = self.tree(out, &table, false)?;
                    builder.add(out, entry.key, ValueKind::Tree, &copied.to_bytes())?;
                }
                kind => builder.add(out, entry.key, kind, entry.value)?,
            }
            seen += 1;
            if seen.is_multiple_of(1024) && !(self.progress)(out.next.min(self.total), self.total) {
                return Err(Error::Stopped);
            }
            cursor.next()?;
        }
        let mut copied = builder.finish(out, desc.modified)?;
        copied.sequence = desc.sequence;
        Ok(copied)
    }
}
