//! What tables offer in every kind of transaction: figures, iterators, look-ups.

use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};

use crate::dirty::View;
use crate::error::{Error, Result};
use crate::page::{self, Entry, Order, ValueKind};
use crate::tree::pair_range::PairRange;
use crate::tree::range::{Bounds, OwnedKey, Range};
use crate::tree::values::{ValuesIter, first_value, values_of};
use crate::tree::{self, Pages, Snapshot, Tree, TreeDesc, lookup};

/// Figures of a table.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let stats = env.read()?.table("t")?.stats();
/// assert_eq!((stats.entries, stats.depth, stats.leaf_pages), (1, 1, 1));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
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
    /// Pages of trees that hold the values of one key each.
    pub value_pages: u64,
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
            value_pages: desc.value_pages,
            modified: crate::num::TxnId(desc.modified),
        }
    }
}

/// Turns any range of byte strings into bounds.
pub(crate) fn bounds_of<K: AsRef<[u8]>>(range: impl RangeBounds<K>) -> Bounds {
    let own = |bound: Bound<&K>| bound.map(|k| OwnedKey::from(k.as_ref()));
    Bounds { start: own(range.start_bound()), end: own(range.end_bound()) }
}

/// The bounds of all keys whose normal forms start with that of `prefix`: in byte order those that
/// start with it, in the reversed orders those that end with it. An error in a caller's order.
pub(crate) fn prefix_bounds(order: &Order, prefix: &[u8]) -> Result<Bounds> {
    let turned = |mut key: Vec<u8>| {
        if matches!(order, Order::Reversed) {
            key.reverse();
        }
        key
    };
    if order.is_custom() {
        return Err(NO_PREFIXES);
    }
    let mut end = turned(prefix.to_vec());
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(turned(end).as_slice().into())
        }
        None => Bound::Unbounded,
    };
    Ok(Bounds { start: Bound::Included(prefix.into()), end })
}

const NO_PREFIXES: Error =
    Error::Invalid("a custom order need not keep keys with a common prefix together");

/// Iterator over records in key order, from both ends.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| {
///     let mut table = txn.table_or_create("t")?;
///     (0..10u8).try_for_each(|n| table.put([n], [n * n]))
/// })?;
/// let read = env.read()?;
/// let table = read.table("t")?;
/// let sum: u32 = table.iter().map(|r| r.map(|(_, v)| u32::from(v[0]))).sum::<zubilo::Result<_>>()?;
/// assert_eq!(sum, 285);
/// let last = table.iter().next_back().transpose()?;
/// assert_eq!(last, Some((&[9][..], &[81][..])));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "iterators read nothing until they are advanced"]
pub struct Iter<'t> {
    /// What is left of the leaf at the front; taken out of `inner`.
    offsets: std::slice::Iter<'t, [u8; 2]>,
    page: &'t [u8],
    at: tree::Ref,
    inner: Either<'t>,
    /// To be reported before the end. The error lies here, and not in what the steps give back, so that
    /// a step whose record is at hand moves nothing but the record's two slices.
    failure: Option<Error>,
}

enum Either<'t> {
    // In place: a search allocates nothing.
    Read(Range<'t, Snapshot<'t>>),
    Write(Range<'t, View<'t>>),
    /// Tables with many values under a key.
    ReadPairs(Box<PairRange<'t, Snapshot<'t>>>),
    WritePairs(Box<PairRange<'t, View<'t>>>),
}

impl<'t> Iter<'t> {
    /// The records that a read transaction finds inside bounds.
    #[inline]
    pub(crate) fn reading(pages: Snapshot<'t>, tree: &Tree, bounds: Result<Bounds>) -> Iter<'t> {
        let (bounds, failure) = or_all(bounds);
        let inner = if tree.desc.options.has_duplicates() && failure.is_none() {
            Either::ReadPairs(Box::new(PairRange::new(pages, tree, bounds)))
        } else {
            let ended = failure.is_some();
            Either::Read(Range::new(pages, &tree.desc, tree.order.clone(), bounds, ended))
        };
        Iter { offsets: [].iter(), page: &[], at: tree::Ref::NONE, inner, failure }
    }

    /// The same for the write transaction.
    #[inline]
    pub(crate) fn writing(pages: View<'t>, tree: &Tree, bounds: Result<Bounds>) -> Iter<'t> {
        let (bounds, failure) = or_all(bounds);
        let inner = if tree.desc.options.has_duplicates() && failure.is_none() {
            Either::WritePairs(Box::new(PairRange::new(pages, tree, bounds)))
        } else {
            let ended = failure.is_some();
            Either::Write(Range::new(pages, &tree.desc, tree.order.clone(), bounds, ended))
        };
        Iter { offsets: [].iter(), page: &[], at: tree::Ref::NONE, inner, failure }
    }

    /// On to the next leaf, or the next pair, which it gives. At the end neither.
    #[inline(always)]
    fn refill(&mut self) -> Option<Pair<'t>> {
        let run = match &mut self.inner {
            Either::Read(range) => range.take_run(),
            Either::Write(range) => range.take_run(),
            Either::ReadPairs(pairs) => return kept(pairs.next()?, &mut self.failure),
            Either::WritePairs(pairs) => return kept(pairs.next()?, &mut self.failure),
        };
        match run {
            Ok(Some(run)) => {
                (self.offsets, self.page, self.at) = (run.offsets.iter(), run.page, run.at);
            }
            Ok(None) => {}
            Err(error) => self.failure = Some(error),
        }
        None
    }

    /// A large value, or a damaged record.
    #[cold]
    fn slowly(&mut self, offset: usize) -> Option<Pair<'t>> {
        let entry = page::entry_at(self.page, offset).map_err(self.at.damaged());
        let value = entry.and_then(|entry| {
            let value = match &self.inner {
                Either::Read(range) => range.value(self.at, &entry)?,
                Either::Write(range) => range.value(self.at, &entry)?,
                // Their pairs do not come from here.
                Either::ReadPairs(_) | Either::WritePairs(_) => entry.value,
            };
            Ok((entry.key, value))
        });
        if value.is_err() {
            self.offsets = [].iter();
            match &mut self.inner {
                Either::Read(range) => range.end(),
                Either::Write(range) => range.end(),
                Either::ReadPairs(_) | Either::WritePairs(_) => {}
            }
        }
        kept(value, &mut self.failure)
    }

    /// The next pair, where that is no small record of the leaf at hand.
    #[inline(never)]
    fn next_slowly(&mut self) -> Option<Pair<'t>> {
        if self.offsets.len() == 0 {
            let pair = self.refill();
            if pair.is_some() {
                return pair;
            }
        }
        let offset = usize::from(u16::from_le_bytes(*self.offsets.next()?));
        match page::entry_at(self.page, offset) {
            Ok(entry) if entry.kind == ValueKind::Inline => Some((entry.key, entry.value)),
            _ => self.slowly(offset),
        }
    }

    /// The error to be reported, or the end.
    #[cold]
    fn end(&mut self) -> Option<Error> {
        self.failure.take()
    }
}

impl<'t> Iterator for Iter<'t> {
    type Item = Result<(&'t [u8], &'t [u8])>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(offset) = self.offsets.as_slice().first() {
            let offset = usize::from(u16::from_le_bytes(*offset));
            if let Ok(entry) = page::entry_at(self.page, offset)
                && entry.kind == ValueKind::Inline
            {
                self.offsets.next();
                return Some(Ok((entry.key, entry.value)));
            }
        }
        match self.next_slowly() {
            Some(pair) => Some(Ok(pair)),
            None => self.end().map(Err),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.end() {
            return Some(Err(error));
        }
        let rest = std::mem::take(&mut self.offsets).len();
        match &mut self.inner {
            Either::Read(range) => {
                range.give_back(rest);
                range.next_back()
            }
            Either::Write(range) => {
                range.give_back(rest);
                range.next_back()
            }
            Either::ReadPairs(pairs) => pairs.next_back(),
            Either::WritePairs(pairs) => pairs.next_back(),
        }
    }
}

impl FusedIterator for Iter<'_> {}

/// Iterator over the values of one key in order, from both ends.
///
/// ```
/// use zubilo::TableOptions;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let mut tags = txn.table_or_create_with("tags", &TableOptions::new().duplicates())?;
/// ["b", "c", "a"].iter().try_for_each(|value| tags.put("key", value))?;
/// let values = tags.get_all("key")?;
/// assert_eq!(values.remaining(), 3);
/// assert!(values.map(|v| v.unwrap()).eq([b"a", b"b", b"c"]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "iterators read nothing until they are advanced"]
pub struct ValueIter<'t> {
    inner: EitherValues<'t>,
}

enum EitherValues<'t> {
    Read(ValuesIter<'t, Snapshot<'t>>),
    Write(ValuesIter<'t, View<'t>>),
}

impl<'t> ValueIter<'t> {
    pub(crate) fn reading(inner: ValuesIter<'t, Snapshot<'t>>) -> ValueIter<'t> {
        ValueIter { inner: EitherValues::Read(inner) }
    }

    pub(crate) fn writing(inner: ValuesIter<'t, View<'t>>) -> ValueIter<'t> {
        ValueIter { inner: EitherValues::Write(inner) }
    }

    /// Number of values still to come.
    pub fn remaining(&self) -> u64 {
        match &self.inner {
            EitherValues::Read(values) => values.len(),
            EitherValues::Write(values) => values.len(),
        }
    }
}

impl<'t> Iterator for ValueIter<'t> {
    type Item = Result<&'t [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.inner {
            EitherValues::Read(values) => values.next(),
            EitherValues::Write(values) => values.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // After an error fewer come.
        (0, usize::try_from(self.remaining()).ok())
    }
}

impl DoubleEndedIterator for ValueIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.inner {
            EitherValues::Read(values) => values.next_back(),
            EitherValues::Write(values) => values.next_back(),
        }
    }
}

impl FusedIterator for ValueIter<'_> {}

/// A record: key and value.
type Pair<'t> = (&'t [u8], &'t [u8]);

/// The pair, or nothing, and the error is kept.
fn kept<'t>(pair: Result<Pair<'t>>, failure: &mut Option<Error>) -> Option<Pair<'t>> {
    match pair {
        Ok(pair) => Some(pair),
        Err(error) => {
            *failure = Some(error);
            None
        }
    }
}

/// Bounds, or instead of them any and why.
#[inline(always)]
fn or_all(bounds: Result<Bounds>) -> (Bounds, Option<Error>) {
    match bounds {
        Ok(bounds) => (bounds, None),
        Err(error) => (Bounds { start: Bound::Unbounded, end: Bound::Unbounded }, Some(error)),
    }
}

/// The values of a key as a record holds them, and where the record is.
type Found<'t> = (tree::Ref, Entry<'t>);

/// The record of a key.
fn find<'t, P: Pages<'t>>(pages: &P, tree: &Tree, key: &[u8]) -> Result<Option<Found<'t>>> {
    lookup::get_entry(pages, &tree.desc, &tree.order, key)
}

/// The values of a key.
pub(crate) fn values_of_key<'t, P: Pages<'t>>(
    pages: P,
    tree: &Tree,
    key: &[u8],
) -> Result<ValuesIter<'t, P>> {
    match find(&pages, tree, key)? {
        Some((at, entry)) => ValuesIter::new(pages, at, &entry, &tree.values),
        None => Ok(ValuesIter::empty()),
    }
}

/// The number of values of a key.
pub(crate) fn count_of_key<'t, P: Pages<'t>>(pages: &P, tree: &Tree, key: &[u8]) -> Result<u64> {
    match find(pages, tree, key)? {
        Some((at, entry)) if tree.desc.options.has_duplicates() => {
            Ok(values_of(pages, at, &entry)?.count())
        }
        found => Ok(u64::from(found.is_some())),
    }
}

/// The first value of a key, and how many there are.
pub(crate) fn first_and_count<'t, P: Pages<'t>>(
    pages: &P,
    tree: &Tree,
    key: &[u8],
) -> Result<Option<(&'t [u8], u64)>> {
    let Some((at, entry)) = find(pages, tree, key)? else { return Ok(None) };
    let count = values_of(pages, at, &entry)?.count();
    Ok(Some((first_value(pages, at, &entry)?, count)))
}

/// Whether a key has a value.
pub(crate) fn has_pair<'t, P: Pages<'t>>(
    pages: &P,
    tree: &Tree,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    match find(pages, tree, key)? {
        Some((at, entry)) => {
            let values = values_of(pages, at, &entry)?;
            Ok(values.find(pages, &tree.values, value)?.is_some())
        }
        None => Ok(false),
    }
}
