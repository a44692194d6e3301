//! The cursor: a position among the pairs of a table, as plain data ([`CursorState`]), and its moves.
//!
//! The state borrows nothing, so the Rust API, the registry of a write transaction, the C interface and parked
//! cursors all keep the same. To be moved it is handed the pages and the tree ([`CursorState::at`]). The way
//! to its record is good as long as the tree has the version whose stamp the state bears. Who changes a tree
//! has the cursors on it note their records before ([`CursorState::note`]); `at` finds a noted record
//! again.
//!
//! A cursor stands nowhere yet, on a pair, or after the last record. It can also stand at a gap
//! among the values of a key, or before a record, where something was deleted under it ([`Gap`]):
//! the next step forward then stays. A step that finds nothing keeps the place.
//!
//! Here is where a cursor stands and what is there; `steps`, `seek` and `packed` move it, `values` is the
//! place among the values of one record, `again` notes records and finds them again.

mod again;
mod packed;
mod seek;
mod steps;
mod values;

use std::cmp::Ordering;

use crate::error::Result;
use crate::page::ValueKind;

use super::lookup::value_of;
use super::place::{Place, TreeView};
use super::values::{Values, values_of};
use super::{Pages, Ref, Tree};
use again::Noted;

pub(crate) use again::Removed;
pub use seek::Seek;
pub(crate) use values::ValuePlace;

/// A key and its value.
pub(crate) type Pair<'p> = (&'p [u8], &'p [u8]);

/// Where a cursor stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Nowhere yet.
    #[default]
    Unset,
    /// On a record.
    On,
    /// After the last record.
    End,
}

/// What was deleted where the cursor stands, so that the next step forward leads to what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gap {
    #[default]
    None,
    /// A value; the cursor stands where it was, maybe after the last one of the key.
    Value,
    /// A record; the cursor stands on the one that followed.
    Key,
}

/// A cursor as it is kept.
#[derive(Clone, Default)]
pub(crate) struct CursorState {
    /// The way to the record; of a noted one, as it was before the tree changed.
    keys: Place,
    /// The place among its values, likewise.
    values: ValuePlace,
    stand: Stand,
    gap: Gap,
    /// The last step forward found nothing.
    eof: bool,
    /// The record is found again by its bytes: a caller's function is not asked.
    by_bytes: bool,
    /// What is noted of the record in `key` and `value`.
    noted: Noted,
    /// The version of the tree in which the way is right.
    stamp: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// A cursor in its table as pages show it, ready to move.
pub(crate) struct InTable<'c, P> {
    pages: P,
    tree: &'c Tree,
    state: &'c mut CursorState,
}

impl CursorState {
    /// Of a cursor that is found again without a function of the caller's.
    pub(crate) fn by_bytes() -> CursorState {
        CursorState { by_bytes: true, ..CursorState::default() }
    }

    /// The cursor in its table. If the tree has changed since, it finds its record again.
    #[inline(always)]
    pub(crate) fn at<'c, 'p, P: Pages<'p>>(
        &'c mut self,
        pages: P,
        tree: &'c Tree,
    ) -> Result<InTable<'c, P>> {
        if self.stamp != tree.version {
            self.find_again(pages, tree)?;
        }
        self.noted = Noted::Nothing;
        Ok(InTable { pages, tree, state: self })
    }

    /// Whether the way is right in a snapshot, whose trees never change.
    #[inline(always)]
    pub(crate) fn is_of_snapshot(&self) -> bool {
        self.stamp == 0
    }

    /// Stands nowhere; the memory for keys and values is kept.
    pub(crate) fn leave(&mut self) {
        self.keys.leave();
        self.values = ValuePlace::One;
        (self.stand, self.gap, self.eof) = (Stand::Unset, Gap::None, false);
        self.noted = Noted::Nothing;
    }

    pub(crate) fn stand(&self) -> Stand {
        self.stand
    }

    /// The values of the record, and the leaf they are in. The way must be right, as for all that follows.
    fn record<'p, P: Pages<'p>>(&self, pages: P, tree: &Tree) -> Result<Option<(Ref, Values<'p>)>> {
        match self.keys.entry(&keys_of(pages, tree))? {
            Some((at, entry)) => Ok(Some((at, values_of(&pages, at, &entry)?))),
            None => Ok(None),
        }
    }

    /// Key and value under the cursor, wherever it stands.
    #[inline]
    pub(crate) fn pair<'p, P: Pages<'p>>(&self, pages: P, tree: &Tree) -> Result<Option<Pair<'p>>> {
        if self.stand != Stand::On {
            return Ok(None);
        }
        let Some((at, entry)) = self.keys.entry(&keys_of(pages, tree))? else { return Ok(None) };
        let value = match &self.values {
            // In the tree of names: a table's record, as it is stored.
            ValuePlace::One
                if entry.kind == ValueKind::Tree && !tree.desc.options.has_duplicates() =>
            {
                Some(entry.value)
            }
            ValuePlace::One => Some(value_of(&pages, at, &entry)?),
            ValuePlace::Behind => None,
            several => several.value(pages, &tree.values, at, &entry)?,
        };
        Ok(value.map(|value| (entry.key, value)))
    }

    /// The key under the cursor, also where it stands behind the key's values.
    pub(crate) fn key<'p, P: Pages<'p>>(&self, pages: P, tree: &Tree) -> Result<Option<&'p [u8]>> {
        if self.stand == Stand::On { self.keys.key(&keys_of(pages, tree)) } else { Ok(None) }
    }
}

/// The records of a table.
#[inline(always)]
fn keys_of<'a, 'p, P: Pages<'p>>(pages: P, tree: &'a Tree) -> TreeView<'a, 'p, P> {
    TreeView::new(pages, &tree.desc, &tree.order)
}

/// How two records of a table stand to each other.
pub(crate) fn compare(tree: &Tree, a: Pair<'_>, b: Pair<'_>) -> Ordering {
    let keys = tree.order.compare(a.0, b.0);
    let several = tree.desc.options.has_duplicates();
    if several { keys.then_with(|| tree.values.compare(a.1, b.1)) } else { keys }
}

impl<'c, 'p, P: Pages<'p>> InTable<'c, P> {
    #[inline(always)]
    fn keys(&self) -> TreeView<'c, 'p, P> {
        keys_of(self.pages, self.tree)
    }

    #[inline(always)]
    fn has_duplicates(&self) -> bool {
        self.tree.desc.options.has_duplicates()
    }

    /// The table's number.
    pub(crate) fn table(&self) -> u32 {
        self.tree.desc.table
    }

    /// Has another one stand where this does, and note it.
    pub(crate) fn note_in(&self, other: &mut CursorState) -> Result<()> {
        other.note_of(self.state, self.pages, self.tree)
    }

    /// To nowhere.
    pub(crate) fn leave(&mut self) {
        self.state.leave();
    }

    /// Notes its record; gives a copy.
    pub(crate) fn noted(&mut self) -> Result<CursorState> {
        self.state.note(self.pages, self.tree)?;
        Ok(self.state.clone())
    }

    /// Where it stands.
    pub(crate) fn stand(&self) -> Stand {
        self.state.stand
    }

    /// What was deleted where it stands.
    pub(crate) fn gap(&self) -> Gap {
        self.state.gap
    }

    /// Takes on what was remembered besides the place.
    pub(crate) fn set_flags(&mut self, gap: Gap, eof: bool) {
        (self.state.gap, self.state.eof) = (gap, eof);
    }

    /// Whether two values are the same in the table's order.
    pub(crate) fn is_same_value(&self, a: &[u8], b: &[u8]) -> bool {
        self.tree.values.compare(a, b).is_eq()
    }

    fn record(&self) -> Result<Option<Values<'p>>> {
        Ok(self.state.record(self.pages, self.tree)?.map(|(_, values)| values))
    }

    /// See [`CursorState::pair`].
    #[inline]
    pub(crate) fn pair(&self) -> Result<Option<Pair<'p>>> {
        self.state.pair(self.pages, self.tree)
    }

    /// See [`CursorState::key`].
    pub(crate) fn key(&self) -> Result<Option<&'p [u8]>> {
        self.state.key(self.pages, self.tree)
    }

    /// As `pair`, and the gap of a deletion is forgotten.
    pub(crate) fn current(&mut self) -> Result<Option<Pair<'p>>> {
        self.state.gap = Gap::None;
        self.pair()
    }

    /// The way leads to a record: to its first or last value.
    #[inline]
    fn enter(&mut self, last: bool) -> Result<Option<Pair<'p>>> {
        self.state.stand = Stand::On;
        self.state.gap = Gap::None;
        self.state.eof = false;
        self.state.values = ValuePlace::One;
        if self.has_duplicates() {
            self.enter_values(last)?;
        }
        self.pair()
    }

    fn enter_values(&mut self, last: bool) -> Result<()> {
        if let Some(values) = self.record()? {
            self.state.values = ValuePlace::at_edge(self.pages, values, &self.tree.values, last)?;
        }
        Ok(())
    }

    /// After a move of the way: on its record, or nowhere when it found none.
    fn entered(&mut self, last: bool) -> Result<Option<Pair<'p>>> {
        if self.state.keys.is_nowhere() {
            self.state.leave();
            return Ok(None);
        }
        self.enter(last)
    }

    fn end(&mut self) {
        self.state.leave();
        (self.state.stand, self.state.eof) = (Stand::End, true);
    }

    /// To the next value of the record; false, and nothing moves, when there is none.
    fn step_value(&mut self, back: bool) -> Result<bool> {
        let state = &mut *self.state;
        if !back && state.values.step_in_leaf() {
            return Ok(true);
        }
        match state.values {
            ValuePlace::One => return Ok(false),
            ValuePlace::Behind if !back => return Ok(false),
            ValuePlace::Behind => {
                state.values = ValuePlace::One;
                return Ok(true);
            }
            ValuePlace::Set(_) | ValuePlace::Tree(_) => {}
        }
        let Some(values) = self.record()? else { return Ok(false) };
        self.state.values.step(self.pages, &values, &self.tree.values, back)
    }

    /// Values of the key under the cursor.
    pub(crate) fn count(&self) -> Result<Option<u64>> {
        if self.state.stand != Stand::On {
            return Ok(None);
        }
        match &self.state.values {
            ValuePlace::One | ValuePlace::Behind => Ok(self.key()?.map(|_| 1)),
            _ => Ok(self.record()?.map(|values| values.count())),
        }
    }

    /// True when there is no pair under the cursor, or the last step forward found none.
    pub(crate) fn eof(&self) -> Result<bool> {
        Ok(self.state.eof || self.pair()?.is_none())
    }

    /// Whether the pair under the cursor is the first, of its key or of all.
    pub(crate) fn on_first(&self, of_key: bool) -> Result<bool> {
        let on = self.pair()?.is_some() && self.state.values.is_first();
        Ok(on && (of_key || self.state.keys.is_first()))
    }

    /// Whether the pair under the cursor is the last, of its key or of all.
    pub(crate) fn on_last(&self, of_key: bool) -> Result<bool> {
        let (on, values) = (self.pair()?.is_some(), &self.state.values);
        let last = match values {
            ValuePlace::Set(i) if on => self.count()? == Some(*i as u64 + 1),
            _ => values.is_last(),
        };
        Ok(on && last && (of_key || self.state.keys.is_last()))
    }
}
