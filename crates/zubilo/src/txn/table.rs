//! What tables offer in every kind of transaction: figures, iterators, cursors.

use std::ops::{Bound, RangeBounds};

use crate::error::{Error, Result};
use crate::page::{self, Order, ValueKind};
use crate::tree::range::{Bounds, Range};
use crate::tree::{self, Pages, TreeDesc, cursor};

/// Figures of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// Records.
    pub entries: u64,
    /// Levels of the tree; 0 when empty.
    pub depth: u32,
    /// Pages with records.
    pub leaf_pages: u64,
    /// Pages above them.
    pub branch_pages: u64,
    /// Pages of values that have runs of their own.
    pub run_pages: u64,
    /// Transaction that changed the table last.
    pub modified: crate::num::TxnId,
}

impl TableStats {
    pub(crate) fn of(desc: &TreeDesc) -> TableStats {
        TableStats {
            entries: desc.entries,
            depth: u32::from(desc.depth),
            leaf_pages: desc.leaf_pages,
            branch_pages: desc.branch_pages,
            run_pages: desc.run_pages,
            modified: crate::num::TxnId(desc.modified),
        }
    }
}

/// Turns any range of byte strings into bounds.
pub(crate) fn bounds_of<K: AsRef<[u8]>>(range: impl RangeBounds<K>) -> Bounds {
    let own = |bound: Bound<&K>| bound.map(|k| k.as_ref().to_vec());
    Bounds { start: own(range.start_bound()), end: own(range.end_bound()) }
}

/// The bounds of all keys whose normal forms start with that of `prefix`: in byte order those that
/// start with it, in the reversed orders those that end with it. None in a caller's order.
pub(crate) fn prefix_bounds(order: &Order, prefix: &[u8]) -> Option<Bounds> {
    let turned = |mut key: Vec<u8>| {
        if matches!(order, Order::Reversed) {
            key.reverse();
        }
        key
    };
    if order.is_plain() {
        return None;
    }
    let mut end = turned(prefix.to_vec());
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(turned(end))
        }
        None => Bound::Unbounded,
    };
    Some(Bounds { start: Bound::Included(prefix.to_vec()), end })
}

const NO_PREFIXES: Error =
    Error::Invalid("in a caller's order keys with a common prefix need not stand together");

/// Iterator over records in key order, from both ends.
pub struct Iter<'t> {
    /// What is left of the leaf at the front; taken out of `inner`.
    offsets: std::slice::Iter<'t, [u8; 2]>,
    page: &'t [u8],
    at: tree::Ref,
    inner: Either<'t>,
}

enum Either<'t> {
    Read(Box<Range<'t, tree::Snapshot<'t>>>),
    Write(Box<Range<'t, crate::dirty::View<'t>>>),
}

macro_rules! in_range {
    ($self:ident, $range:ident => $body:expr) => {
        match &mut $self.inner {
            Either::Read($range) => $body,
            Either::Write($range) => $body,
        }
    };
}

impl<'t> Iter<'t> {
    pub(crate) fn reading(range: Range<'t, tree::Snapshot<'t>>) -> Iter<'t> {
        Iter::new(Either::Read(Box::new(range)))
    }

    pub(crate) fn writing(range: Range<'t, crate::dirty::View<'t>>) -> Iter<'t> {
        Iter::new(Either::Write(Box::new(range)))
    }

    fn new(inner: Either<'t>) -> Iter<'t> {
        Iter { offsets: [].iter(), page: &[], at: tree::Ref::NONE, inner }
    }

    /// On to the next leaf; false at the end.
    #[inline(never)]
    fn refill(&mut self) -> Result<bool> {
        let Some(run) = in_range!(self, range => range.take_run())? else { return Ok(false) };
        (self.offsets, self.page, self.at) = (run.offsets.iter(), run.page, run.at);
        Ok(true)
    }

    /// A large value, or a damaged record.
    #[cold]
    fn slowly(&mut self, offset: usize) -> Result<Pair<'t>> {
        let entry = page::entry_at(self.page, offset).map_err(self.at.damaged());
        let value = entry.and_then(|entry| {
            let value = in_range!(self, range => range.value(self.at, &entry))?;
            Ok((entry.key, value))
        });
        if value.is_err() {
            self.offsets = [].iter();
            in_range!(self, range => range.end());
        }
        value
    }
}

impl<'t> Iterator for Iter<'t> {
    type Item = Result<(&'t [u8], &'t [u8])>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(offset) = self.offsets.next() {
                let offset = usize::from(u16::from_le_bytes(*offset));
                return match page::entry_at(self.page, offset) {
                    Ok(entry) if entry.kind != ValueKind::Run => Some(Ok((entry.key, entry.value))),
                    _ => Some(self.slowly(offset)),
                };
            }
            match self.refill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.offsets).len();
        in_range!(self, range => {
            range.give_back(rest);
            range.next_back()
        })
    }
}

/// A position in a table, moved by hand. It borrows its transaction, so the table does not change
/// under it.
pub struct Cursor<'t> {
    inner: CursorKind<'t>,
}

enum CursorKind<'t> {
    Read(cursor::Cursor<'t, tree::Snapshot<'t>>),
    Write(cursor::Cursor<'t, crate::dirty::View<'t>>),
}

macro_rules! on {
    ($self:ident, $c:ident => $body:expr) => {
        match &mut $self.inner {
            CursorKind::Read($c) => $body,
            CursorKind::Write($c) => $body,
        }
    };
}

/// A record: key and value.
type Pair<'t> = (&'t [u8], &'t [u8]);

impl<'t> Cursor<'t> {
    pub(crate) fn reading(cursor: cursor::Cursor<'t, tree::Snapshot<'t>>) -> Cursor<'t> {
        Cursor { inner: CursorKind::Read(cursor) }
    }

    pub(crate) fn writing(cursor: cursor::Cursor<'t, crate::dirty::View<'t>>) -> Cursor<'t> {
        Cursor { inner: CursorKind::Write(cursor) }
    }

    /// To the first record.
    pub fn first(&mut self) -> Result<Option<Pair<'t>>> {
        on!(self, c => { c.first()?; c.pair() })
    }

    /// To the last record.
    pub fn last(&mut self) -> Result<Option<Pair<'t>>> {
        on!(self, c => { c.last()?; c.pair() })
    }

    /// To the first record whose key is not less than `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Pair<'t>>> {
        on!(self, c => { c.seek(key.as_ref())?; c.pair() })
    }

    /// To the record under `key`; none, and nowhere, when there is none.
    pub fn seek_exact(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Pair<'t>>> {
        on!(self, c => if c.seek(key.as_ref())? { c.pair() } else { c.leave(); Ok(None) })
    }

    /// To the next record; to the first one when the cursor stands nowhere yet.
    #[expect(clippy::should_implement_trait, reason = "a cursor also goes back")]
    pub fn next(&mut self) -> Result<Option<Pair<'t>>> {
        on!(self, c => {
            if c.position().is_some() { c.next()?; } else { c.first()?; }
            c.pair()
        })
    }

    /// To the record before; to the last one when the cursor stands nowhere yet.
    pub fn prev(&mut self) -> Result<Option<Pair<'t>>> {
        on!(self, c => {
            if c.position().is_some() { c.prev()?; } else { c.last()?; }
            c.pair()
        })
    }

    /// The record under the cursor.
    pub fn current(&mut self) -> Result<Option<Pair<'t>>> {
        on!(self, c => c.pair())
    }
}

/// Iterators over any pages.
pub(crate) fn range<'t, P: Pages<'t>>(pages: P, tree: &tree::Tree, bounds: Bounds) -> Range<'t, P> {
    Range::new(pages, tree.desc, tree.order.clone(), bounds)
}

/// As `range`, over the keys with a prefix.
pub(crate) fn prefixed<'t, P: Pages<'t>>(
    pages: P,
    tree: &tree::Tree,
    prefix: &[u8],
) -> Range<'t, P> {
    match prefix_bounds(&tree.order, prefix) {
        Some(bounds) => range(pages, tree, bounds),
        None => Range::failed(pages, tree.desc, tree.order.clone(), NO_PREFIXES),
    }
}
