//! A position among the pairs of a table and all its moves; what `Cursor` is for keys, for keys with
//! their values.
//!
//! A cursor stands nowhere yet, on a pair, or behind the last record. It can also stand at a gap
//! among the values of a key, or before a record, where something was deleted under it ([`Mark`]):
//! the next step forward then stays. A step that finds nothing keeps the place.
//!
//! [`Position`] is a cursor without its pages, to be kept while the pages may not be borrowed.
//!
//! Here is where a cursor stands and what is there; `steps`, `seek`, `near` and `packed` move it, `values` is the
//! place among the values of one record.

mod near;
mod packed;
mod seek;
mod steps;
mod values;

use std::cmp::Ordering;

use crate::error::Result;
use crate::page::{Order, ValueKind};

use super::cursor::Cursor;
use super::lookup::value_of;
use super::values::{Values, values_of};
use super::{Pages, Path, Ref, Tree};
use values::ValueCursor;

pub(crate) use near::Successor;
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
    /// Behind the last record.
    End,
}

/// What was deleted where the cursor stands, so that the next step forward leads to what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    #[default]
    None,
    /// A value; the cursor stands where it was, maybe behind the last one of the key.
    Value,
    /// A record; the cursor stands on the one that followed.
    Key,
}

/// A cursor's place without the pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    path: Path,
    values: ValuePlace,
    pub(crate) stand: Stand,
    pub(crate) mark: Mark,
    /// The last step forward found nothing.
    pub(crate) eof: bool,
}

impl Position {
    /// Behind the last record.
    pub(crate) fn end() -> Position {
        Position { stand: Stand::End, eof: true, ..Position::default() }
    }

    /// Of a cursor whose record is kept elsewhere.
    pub(crate) fn parked(mark: Mark, eof: bool) -> Position {
        Position { stand: Stand::On, mark, eof, ..Position::default() }
    }
}

/// A cursor over pairs.
#[derive(Clone)]
pub(crate) struct PairCursor<'p, P: Pages<'p>> {
    pages: P,
    keys: Cursor<'p, P>,
    values: ValueCursor<'p, P>,
    order: Order,
    duplicates: bool,
    /// All values have one size.
    fixed: bool,
    stand: Stand,
    mark: Mark,
    eof: bool,
}

impl<'p, P: Pages<'p>> PairCursor<'p, P> {
    /// A cursor that stands nowhere yet.
    pub(crate) fn new(pages: P, tree: &Tree) -> PairCursor<'p, P> {
        PairCursor {
            pages,
            keys: Cursor::new(pages, &tree.desc, tree.order.clone()),
            values: ValueCursor::One(false),
            order: tree.values.clone(),
            duplicates: tree.desc.options.has_duplicates(),
            fixed: tree.desc.options.is_fixed(),
            stand: Stand::Unset,
            mark: Mark::None,
            eof: false,
        }
    }

    /// A cursor at a place of before; the tree must not have changed since.
    pub(crate) fn resume(pages: P, tree: &Tree, position: Position) -> Result<PairCursor<'p, P>> {
        let Position { path, values, stand, mark, eof } = position;
        let mut cursor = PairCursor { stand, mark, eof, ..PairCursor::new(pages, tree) };
        if stand != Stand::On {
            return Ok(cursor);
        }
        cursor.keys = Cursor::resume(pages, &tree.desc, tree.order.clone(), path)?;
        if !cursor.duplicates {
            return Ok(cursor);
        }
        let record = cursor.record()?.map(|(_, values)| values);
        cursor.values = ValueCursor::resume(pages, record, &cursor.order, values)?;
        Ok(cursor)
    }

    /// The place, for `resume`.
    pub(crate) fn detach(self) -> Position {
        let (stand, mark, eof) = (self.stand, self.mark, self.eof);
        Position { path: self.keys.into_path(), values: self.values.into_place(), stand, mark, eof }
    }

    /// The same, of a cursor that stands on no record.
    pub(crate) fn off_records(&self) -> Position {
        let (stand, mark, eof) = (self.stand, self.mark, self.eof);
        Position { stand, mark, eof, ..Position::default() }
    }

    /// The table's number.
    pub(crate) fn table(&self) -> u32 {
        self.keys.table()
    }

    pub(crate) fn stand(&self) -> Stand {
        self.stand
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    /// Whether the last step forward found nothing.
    pub(crate) fn is_past(&self) -> bool {
        self.eof
    }

    pub(crate) fn has_duplicates(&self) -> bool {
        self.duplicates
    }

    /// How two records stand to each other in the table.
    pub(crate) fn compare(&self, a: Pair<'_>, b: Pair<'_>) -> Ordering {
        let keys = self.keys.order().compare(a.0, b.0);
        if self.duplicates { keys.then_with(|| self.order.compare(a.1, b.1)) } else { keys }
    }

    /// Whether two values are the same in the table's order.
    pub(crate) fn is_same_value(&self, a: &[u8], b: &[u8]) -> bool {
        self.order.compare(a, b).is_eq()
    }

    /// Takes on what was remembered besides the place.
    pub(crate) fn set_flags(&mut self, mark: Mark, eof: bool) {
        (self.mark, self.eof) = (mark, eof);
    }

    /// The values of the record under the cursor, and the leaf they are in.
    fn record(&self) -> Result<Option<(Ref, Values<'p>)>> {
        match self.keys.entry()? {
            Some((at, entry)) => Ok(Some((at, values_of(&self.pages, at, &entry)?))),
            None => Ok(None),
        }
    }

    /// Key and value under the cursor, wherever it stands.
    #[inline]
    pub(crate) fn pair(&self) -> Result<Option<Pair<'p>>> {
        if self.stand != Stand::On {
            return Ok(None);
        }
        let Some((at, entry)) = self.keys.entry()? else { return Ok(None) };
        let value = match &self.values {
            // In the tree of names: a table's record, as it is stored.
            ValueCursor::One(false) if entry.kind == ValueKind::Tree && !self.duplicates => {
                Some(entry.value)
            }
            ValueCursor::One(false) => Some(value_of(&self.pages, at, &entry)?),
            ValueCursor::One(true) => None,
            ValueCursor::Set(set, i) if *i < set.count() => {
                Some(set.item(*i).map_err(at.damaged())?)
            }
            ValueCursor::Set(..) => None,
            ValueCursor::Tree(cursor, _) => cursor.key()?,
        };
        Ok(value.map(|value| (entry.key, value)))
    }

    /// The key under the cursor, also where the cursor stands behind the key's values.
    pub(crate) fn key(&self) -> Result<Option<&'p [u8]>> {
        if self.stand == Stand::On { self.keys.key() } else { Ok(None) }
    }

    /// As `pair`, and the mark of a deletion is gone.
    pub(crate) fn current(&mut self) -> Result<Option<Pair<'p>>> {
        self.mark = Mark::None;
        self.pair()
    }

    /// The keys' cursor has come to a record: to its first or last value.
    #[inline]
    fn enter(&mut self, last: bool) -> Result<Option<Pair<'p>>> {
        self.stand = Stand::On;
        self.mark = Mark::None;
        self.eof = false;
        if self.duplicates {
            self.enter_values(last)?;
        } else {
            self.values = ValueCursor::One(false);
        }
        self.pair()
    }

    fn enter_values(&mut self, last: bool) -> Result<()> {
        self.values = match self.record()? {
            Some((_, values)) => ValueCursor::at_edge(self.pages, values, &self.order, last)?,
            None => ValueCursor::One(false),
        };
        Ok(())
    }

    /// After a move of the keys' cursor: on its record, or nowhere when it found none.
    fn entered(&mut self, last: bool) -> Result<Option<Pair<'p>>> {
        if self.keys.position().is_none() {
            self.leave();
            return Ok(None);
        }
        self.enter(last)
    }

    pub(crate) fn leave(&mut self) {
        self.keys.leave();
        self.values = ValueCursor::One(false);
        (self.stand, self.mark, self.eof) = (Stand::Unset, Mark::None, false);
    }

    fn end(&mut self) {
        self.leave();
        (self.stand, self.eof) = (Stand::End, true);
    }

    /// Values of the key under the cursor.
    pub(crate) fn count(&self) -> Result<Option<u64>> {
        match (self.stand, &self.values) {
            (Stand::On, ValueCursor::One(_)) => Ok(self.keys.key()?.map(|_| 1)),
            (Stand::On, ValueCursor::Set(set, _)) => Ok(Some(set.count() as u64)),
            (Stand::On, ValueCursor::Tree(_, count)) => Ok(Some(*count)),
            _ => Ok(None),
        }
    }

    /// True when there is no pair under the cursor, or the last step forward found none.
    pub(crate) fn eof(&self) -> Result<bool> {
        Ok(self.eof || self.pair()?.is_none())
    }

    /// Whether the pair under the cursor is the first, of its key or of all.
    pub(crate) fn on_first(&self, of_key: bool) -> Result<bool> {
        let on = self.pair()?.is_some();
        Ok(on && self.values.is_first() && (of_key || self.keys.is_first()))
    }

    /// Whether the pair under the cursor is the last, of its key or of all.
    pub(crate) fn on_last(&self, of_key: bool) -> Result<bool> {
        let on = self.pair()?.is_some();
        Ok(on && self.values.is_last() && (of_key || self.keys.is_last()))
    }
}
