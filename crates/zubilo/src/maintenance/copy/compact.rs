//! The copy without gaps: each tree is built anew from its records.

use std::ops::Range;

use crate::dirty::with_room;
use crate::env::meta::{META_COUNT, Meta, Trust};
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::header::Origin;
use crate::page::{Damage, Order, Packed, ValueKind};
use crate::space::log::LogRoot;
use crate::space::{Delta, Extent};
use crate::tree::build::{Builder, Output, PageSink};
use crate::tree::place::{Place, TreeView};
use crate::tree::values::tree_of;
use crate::tree::verify::Verifier;
use crate::tree::{Pages, RunRef, Snapshot, TreeDesc};
use crate::txn::ReadTxn;

use super::Progress;

/// Lays out all trees of the snapshot for `sink`; gives the meta of the copy. Its pages lie elsewhere than the
/// source's, so they are of an `opening` of their own.
pub(super) fn run(
    txn: &ReadTxn,
    source: &Meta,
    opening: u32,
    sink: &mut dyn PageSink,
    progress: Progress<'_>,
) -> Result<Meta> {
    let page_size = 1 << source.page_shift;
    let by = Origin { birth: source.txn, opening };
    let mut out = Output { sink, page_size, next: META_COUNT, by };
    // Whatever the store is opened with: the copy's own checksums would hide the damage for good.
    let verifier = Verifier::first_touch(txn.env().data.as_ref(), source.end);
    let snapshot = txn.snapshot().verified_by(&verifier);
    let mut copy =
        Copy { snapshot, total: source.end, progress, seen: 0, taken: Taken::new(source)? };
    let main = copy.tree(&mut out, &source.main, true)?;
    let mut meta = Meta {
        trust: Trust::Steady,
        digest: 0,
        main,
        end: out.next,
        log: LogRoot::default(),
        redo: None,
        ..source.clone()
    };
    if meta.end > META_COUNT {
        let all = Extent { first: META_COUNT, count: meta.end - META_COUNT };
        let delta =
            Delta { txn: meta.txn, allocated: vec![all], released: Vec::new(), end: meta.end };
        meta.log = LogRoot::of_one(&delta);
    }
    Ok(meta)
}

struct Copy<'c, 'p> {
    snapshot: Snapshot<'p>,
    total: u64,
    progress: Progress<'c>,
    /// Records so far.
    seen: u64,
    taken: Taken,
}

/// The pages whose records were copied. Damaged trees may lead to the same pages again and again, each
/// time with all that is in them: such a copy would have no end.
struct Taken(Vec<u64>);

impl Taken {
    fn new(source: &Meta) -> Result<Taken> {
        let words = usize::try_from(source.end.div_ceil(64)).unwrap_or(usize::MAX);
        let mut taken = with_room(words).ok_or(Error::no_memory("note the copied pages"))?;
        taken.resize(words, 0);
        Ok(Taken(taken))
    }

    /// Takes pages, each for the first time. They lie inside the store.
    fn take(&mut self, pages: Range<u64>) -> Result<()> {
        for page in pages {
            let reason = "a page belongs to two places";
            let twice = || Error::Corrupted { page: PageNo(page), reason };
            let word = self.0.get_mut((page / 64) as usize).ok_or_else(twice)?;
            if *word >> (page % 64) & 1 == 1 {
                return Err(twice());
            }
            *word |= 1 << (page % 64);
        }
        Ok(())
    }
}

impl Copy<'_, '_> {
    /// Copies a tree; in the main tree the tables go before it, so that their roots are known.
    fn tree(&mut self, out: &mut Output<'_>, desc: &TreeDesc, is_main: bool) -> Result<TreeDesc> {
        let order = desc.options.builtin_order().unwrap_or_else(Order::as_stored);
        let mut builder = Builder::like(desc, order.clone(), out.page_size);
        let tree = TreeView::new(self.snapshot, desc, &order);
        let mut place = Place::default();
        let duplicates = desc.options.has_duplicates();
        place.first(&tree)?;
        while let Some((at, entry)) = place.entry(&tree)? {
            if let Some((leaf, 0)) = place.at() {
                self.taken.take(leaf.page_no().0..leaf.page_no().0 + 1)?;
            }
            match entry.kind {
                ValueKind::Run => {
                    let run = RunRef::load(entry.value).map_err(at.damaged())?;
                    let value = self.snapshot.run(at, &run)?;
                    let pages = run.len.div_ceil(out.page_size as u64);
                    self.taken.take(run.first..run.first + pages)?;
                    builder.add_large(out, entry.key, value)?;
                }
                ValueKind::Tree if is_main => {
                    let table = TreeDesc::from_bytes(entry.value).map_err(at.damaged())?;
                    let copied = self.tree(out, &table, false)?;
                    builder.add(out, entry.key, ValueKind::Tree, &copied.to_bytes(), 1)?;
                }
                ValueKind::Tree if duplicates => {
                    let values = tree_of(&self.snapshot, at, entry.value)?;
                    let copied = self.values(out, &values, desc)?;
                    builder.add_tree(out, entry.key, &copied)?;
                }
                ValueKind::Duplicates => {
                    let set = Packed::in_record(entry.value).map_err(at.damaged())?;
                    let count = set.count() as u64;
                    builder.add(out, entry.key, entry.kind, entry.value, count)?;
                }
                kind => builder.add(out, entry.key, kind, entry.value, 1)?,
            }
            self.step(out)?;
            place.next(&tree)?;
        }
        builder.finish(out, desc.modified)
    }

    /// Copies the tree of one key's values in table `of`.
    fn values(&mut self, out: &mut Output<'_>, desc: &TreeDesc, of: &TreeDesc) -> Result<TreeDesc> {
        let due = of.of_values();
        let same = (desc.options, desc.table, desc.item_size);
        if same != (due.options, due.table, due.item_size) {
            return Err(desc.root.damaged()(Damage("a tree of values of another table")));
        }
        let order = desc.options.builtin_order().unwrap_or_else(Order::as_stored);
        let mut builder = Builder::like(desc, order.clone(), out.page_size);
        let tree = TreeView::<_, Packed<'_>>::new(self.snapshot, desc, &order);
        let mut place = Place::default();
        place.first(&tree)?;
        while let Some(value) = place.key(&tree)? {
            if let Some((leaf, 0)) = place.at() {
                self.taken.take(leaf.page_no().0..leaf.page_no().0 + 1)?;
            }
            builder.add_item(out, value)?;
            self.step(out)?;
            place.next(&tree)?;
        }
        builder.finish(out, desc.modified)
    }

    /// Counts a record.
    fn step(&mut self, out: &Output<'_>) -> Result<()> {
        self.seen += 1;
        if self.seen.is_multiple_of(1024) && !(self.progress)(out.next.min(self.total), self.total)
        {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}
