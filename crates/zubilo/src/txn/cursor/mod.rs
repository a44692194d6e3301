//! Cursors as users have them: a position in a table, moved by hand.
//!
//! [`Cursor`] only reads and borrows its transaction. `write` changes a table through a cursor,
//! `registry` keeps the cursors of a write transaction right while its tables change, `parked` a place that
//! is taken along to another transaction.

mod parked;
mod registry;
mod write;

use std::cmp::Ordering;
use std::fmt;

use crate::dirty::View;
use crate::error::{Error, Result};
use crate::tree::cursor::{CursorState, Pair, Stand, compare};
use crate::tree::{Snapshot, Tree};

pub use crate::tree::cursor::Seek;
pub use parked::ParkedCursor;
pub use registry::CursorId;
pub(super) use registry::Cursors;
pub use registry::Standing;
pub use write::{PutFlags, WriteCursor};

/// Values of one size as they lie in the store, one after the other.
///
/// ```
/// use zubilo::TableOptions;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let numbers = TableOptions::new().fixed_duplicates();
/// let mut numbers = txn.table_or_create_with("numbers", &numbers)?;
/// for n in [30u32, 10, 20] {
///     numbers.put("key", n.to_be_bytes())?;
/// }
/// let mut cursor = numbers.cursor()?;
/// cursor.first()?;
/// let values = cursor.packed_values()?.expect("values of one size");
/// assert_eq!((values.len(), values.value_size(), values.as_bytes().len()), (3, 4, 12));
/// assert_eq!(values.iter().next(), Some(&10u32.to_be_bytes()[..]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedValues<'t> {
    bytes: &'t [u8],
    size: usize,
}

impl<'t> PackedValues<'t> {
    /// All values, one after the other.
    pub fn as_bytes(&self) -> &'t [u8] {
        self.bytes
    }

    /// Size of each.
    pub fn value_size(&self) -> usize {
        self.size
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        // Of size 0 there is one only.
        self.bytes.len().checked_div(self.size).unwrap_or(1)
    }

    /// Never true: where there is no value there is nothing to give.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each value.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'t [u8]> + 't {
        let PackedValues { bytes, size } = *self;
        (0..self.len()).map(move |i| bytes.get(i * size..(i + 1) * size).unwrap_or_default())
    }
}

/// Bytes and the size of each value, as they are handed out.
pub(super) fn as_packed<'t>(
    values: Result<Option<(&'t [u8], usize)>>,
) -> Result<Option<PackedValues<'t>>> {
    Ok(values?.map(|(bytes, size)| PackedValues { bytes, size }))
}

/// The moves of a cursor. `$run!(self, c => ...)` runs them on the inner cursor `c`.
macro_rules! moves {
    ($run:ident, $life:lifetime) => {
        /// To the first record (`FIRST`).
        pub fn first(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.first())
        }

        /// To the last record (`LAST`).
        pub fn last(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.last())
        }

        /// To the record before (`PREV`); to the last one when the cursor stands nowhere yet. At the
        /// start the cursor keeps its place.
        pub fn prev(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.prev())
        }

        /// To the next value of the same key (`NEXT_DUP`).
        pub fn next_value(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.next_value())
        }

        /// To the value before of the same key (`PREV_DUP`).
        pub fn prev_value(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.prev_value())
        }

        /// To the first value of the next key (`NEXT_NODUP`).
        pub fn next_key(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.next_key())
        }

        /// To the last value of the key before (`PREV_NODUP`).
        pub fn prev_key(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.prev_key())
        }

        /// To the first value of the key under the cursor (`FIRST_DUP`); none where there is none.
        pub fn first_value(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.edge_value(false))
        }

        /// To the last value of the key under the cursor (`LAST_DUP`).
        pub fn last_value(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.edge_value(true))
        }

        /// To the first record whose key is not less than `key` (`SET_RANGE`). If there is none the
        /// cursor stands after the last one, from where [`Self::prev`] leads back.
        pub fn seek(
            &mut self,
            key: impl AsRef<[u8]>,
        ) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.seek(key.as_ref()))
        }

        /// To the first value under `key` (`SET_KEY`); none, and nowhere, when there is none.
        pub fn seek_exact(
            &mut self,
            key: impl AsRef<[u8]>,
        ) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.seek_exact(key.as_ref()))
        }

        /// To the record with this key and value (`GET_BOTH`); none, and nowhere, when there is none.
        pub fn seek_pair(
            &mut self,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
        ) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.seek_value_by(Seek::Equal, key.as_ref(), value.as_ref()))
        }

        /// To the first value under `key` that is not less than `value` (`GET_BOTH_RANGE`); none, and
        /// nowhere, when there is none.
        pub fn seek_value(
            &mut self,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
        ) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.seek_value_by(Seek::GreaterOrEqual, key.as_ref(), value.as_ref()))
        }

        /// To the nearest value under `key` that stands so to `value`; none, and nowhere, when there
        /// is none (`TO_EXACT_KEY_VALUE_...`).
        pub fn seek_value_by(
            &mut self,
            seek: Seek,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
        ) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.seek_value_by(seek, key.as_ref(), value.as_ref()))
        }

        /// To the nearest key that stands so to `key`: its first value where it is sought upwards or
        /// exactly, its last where downwards.
        pub fn seek_by(
            &mut self,
            seek: Seek,
            key: impl AsRef<[u8]>,
        ) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.seek_key_by(seek, key.as_ref()))
        }

        /// To the nearest record, in the order of keys and then values, that stands so to this key
        /// and value (`SET_LOWERBOUND` is [`Seek::GreaterOrEqual`], `SET_UPPERBOUND`
        /// [`Seek::Greater`]).
        pub fn seek_pair_by(
            &mut self,
            seek: Seek,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
        ) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.seek_pair_by(seek, key.as_ref(), value.as_ref()))
        }

        /// The record under the cursor (`GET_CURRENT`). After a deletion it is the one that followed;
        /// the next step forward then leads on from there.
        pub fn current(&mut self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            $run!(self, c => c.current())
        }

        /// The key under the cursor, also where the cursor stands after the last of the key's values;
        /// other than [`Self::current`] this leaves the next step forward as it is.
        pub fn key(&mut self) -> Result<Option<&$life [u8]>> {
            $run!(self, c => c.key())
        }

        /// All values of the key that lie packed where the cursor stands, without a copy
        /// (`GET_MULTIPLE`). The cursor then stands on the last of them. Only where all values have
        /// one size.
        pub fn packed_values(&mut self) -> Result<Option<PackedValues<$life>>> {
            $run!(self, c => as_packed(c.packed_here()))
        }

        /// The values packed behind those where the cursor stands, of the same key
        /// (`NEXT_MULTIPLE`).
        pub fn next_packed_values(&mut self) -> Result<Option<PackedValues<$life>>> {
            $run!(self, c => as_packed(c.packed_behind()))
        }

        /// The values packed before those where the cursor stands, of the same key
        /// (`PREV_MULTIPLE`).
        pub fn prev_packed_values(&mut self) -> Result<Option<PackedValues<$life>>> {
            $run!(self, c => as_packed(c.packed_before()))
        }

        /// Number of values of the key under the cursor; none where there is none.
        pub fn count(&mut self) -> Result<Option<u64>> {
            $run!(self, c => c.count())
        }

        /// True when there is no record under the cursor, or the last step forward found none.
        pub fn eof(&mut self) -> Result<bool> {
            $run!(self, c => c.eof())
        }

        /// Whether the cursor stands on the first record.
        pub fn on_first(&mut self) -> Result<bool> {
            $run!(self, c => c.on_first(false))
        }

        /// Whether the cursor stands on the last record.
        pub fn on_last(&mut self) -> Result<bool> {
            $run!(self, c => c.on_last(false))
        }

        /// Whether the cursor stands on the first value of its key.
        pub fn on_first_value(&mut self) -> Result<bool> {
            $run!(self, c => c.on_first(true))
        }

        /// Whether the cursor stands on the last value of its key.
        pub fn on_last_value(&mut self) -> Result<bool> {
            $run!(self, c => c.on_last(true))
        }

        /// Whether the cursor was ever placed: false when it is new or an exact search failed.
        pub fn is_placed(&mut self) -> Result<bool> {
            $run!(self, c => Ok(c.stand() != Stand::Unset))
        }
    };
}
pub(super) use moves;

/// A position in a table, moved by hand. It borrows its transaction, so the table does not change
/// under it; to change it through a cursor see [`crate::WriteCursor`]. A clone stands where the original
/// does and moves by itself.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| {
///     let mut table = txn.table_or_create("t")?;
///     (0..10u8).try_for_each(|n| table.put([n], "value"))
/// })?;
/// let read = env.read()?;
/// let table = read.table("t")?;
/// let mut cursor = table.cursor();
/// let found = cursor.seek([5])?;
/// assert_eq!(found, Some((&[5][..], &b"value"[..])));
/// assert_eq!(cursor.prev()?.map(|record| record.0), Some(&[4][..]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone)]
pub struct Cursor<'t> {
    state: CursorState,
    tree: Tree,
    pages: AnyPages<'t>,
}

#[derive(Clone, Copy)]
enum AnyPages<'t> {
    Read(Snapshot<'t>),
    Write(View<'t>),
}

macro_rules! on {
    ($self:ident, $c:ident => $body:expr) => {
        match $self.pages {
            AnyPages::Read(pages) => {
                #[allow(unused_mut, reason = "not all moves change it")]
                let mut $c = $self.state.at(pages, &$self.tree)?;
                $body
            }
            AnyPages::Write(pages) => {
                #[allow(unused_mut, reason = "not all moves change it")]
                let mut $c = $self.state.at(pages, &$self.tree)?;
                $body
            }
        }
    };
}

impl<'t> Cursor<'t> {
    #[inline]
    pub(crate) fn reading(pages: Snapshot<'t>, tree: &Tree, state: CursorState) -> Cursor<'t> {
        Cursor { state, tree: tree.to_read(), pages: AnyPages::Read(pages) }
    }

    pub(crate) fn writing(pages: View<'t>, tree: &Tree, state: CursorState) -> Cursor<'t> {
        Cursor { state, tree: tree.to_read(), pages: AnyPages::Write(pages) }
    }

    fn table(&self) -> u32 {
        self.tree.desc.table
    }

    fn pair(&self) -> Result<Option<Pair<'t>>> {
        match self.pages {
            AnyPages::Read(pages) => self.state.pair(pages, &self.tree),
            AnyPages::Write(pages) => self.state.pair(pages, &self.tree),
        }
    }

    /// How the record under this cursor stands to that under another one of the same table, in the
    /// table's order; none when one of them stands on no record (`cursor_compare`).
    ///
    /// ```
    /// use std::cmp::Ordering;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| {
    ///     let mut table = txn.table_or_create("t")?;
    ///     (0..10u8).try_for_each(|n| table.put([n], "value"))
    /// })?;
    /// let read = env.read()?;
    /// let table = read.table("t")?;
    /// let (mut low, mut high) = (table.cursor(), table.cursor());
    /// assert_eq!(low.compare(&high)?, None);
    /// low.seek([3])?;
    /// high.seek([7])?;
    /// assert_eq!(low.compare(&high)?, Some(Ordering::Less));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn compare(&self, other: &Cursor<'_>) -> Result<Option<Ordering>> {
        if self.table() != other.table() {
            return Err(Error::Invalid("the cursors are of different tables"));
        }
        let (Some(own), Some(others)) = (self.pair()?, other.pair()?) else { return Ok(None) };
        Ok(Some(compare(&self.tree, own, others)))
    }

    /// As [`Cursor::park`], into a place that was used before, which spares its memory.
    pub fn park_into(&self, parked: &mut ParkedCursor) -> Result<()> {
        match self.pages {
            AnyPages::Read(pages) => parked.note(&self.state, pages, &self.tree),
            AnyPages::Write(pages) => parked.note(&self.state, pages, &self.tree),
        }
    }

    /// To the next record (`NEXT`): the next value of the key, or the first of the next key; to
    /// the first one when the cursor stands nowhere yet. At the end the cursor keeps its place.
    #[expect(clippy::should_implement_trait, reason = "a cursor also goes back")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&'t [u8], &'t [u8])>> {
        if let AnyPages::Read(pages) = &self.pages
            && let Some(pair) = self.state.step_in_leaf(pages)
        {
            return Ok(Some(pair));
        }
        on!(self, c => c.next())
    }

    moves!(on, 't);
}

/// The number of the table, and the key under the cursor.
impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.pair().map(|pair| pair.map(|(key, _)| key));
        f.debug_struct("Cursor")
            .field("table", &self.table())
            .field("key", &key)
            .finish_non_exhaustive()
    }
}
