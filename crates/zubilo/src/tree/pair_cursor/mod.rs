//! A position among the pairs of a table and all its moves; what `Cursor` is for keys, for keys with
//! their values.
//!
//! A cursor stands nowhere yet, on a pair, or behind the last record. It can also stand at a gap
//! among the values of a key, or before a record, where something was deleted under it ([`Mark`]):
//! the next step forward then stays. A step that finds nothing keeps the place.
//!
//! [`Position`] is a cursor without its pages, to be kept while the pages may not be borrowed.

mod packed;

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::page::{Items, Order, Set, ValueKind};

use super::cursor::Cursor;
pub use super::seek::Seek;
use super::values::{Values, values_of};
use super::{Pages, Path, Ref, Tree};
use crate::tree::lookup::value_of;

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

/// Place among the values of a record.
#[derive(Clone, Debug, Default)]
enum ValuePlace {
    /// On the only value.
    #[default]
    One,
    /// Behind the only value.
    Behind,
    Set(usize),
    Tree(Path),
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
    /// Of a cursor whose record is kept elsewhere.
    pub(crate) fn parked(mark: Mark, eof: bool) -> Position {
        Position { stand: Stand::On, mark, eof, ..Position::default() }
    }
}

/// Values of the record under a cursor and the place among them.
#[derive(Clone)]
enum ValueCursor<'p, P: Pages<'p>> {
    /// The only value, or behind it.
    One(Behind),
    Set(Set<'p>, usize),
    Tree(Box<Cursor<'p, P, Items<'p>>>, u64),
}

/// Whether a cursor stands behind what it is at.
type Behind = bool;

const NOT_FIXED: Error = Error::Incompatible("the table's values are not all of one size");

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
        cursor.values = match (cursor.record()?, values) {
            (_, ValuePlace::Behind) => ValueCursor::One(true),
            (Some((_, Values::Set(set))), ValuePlace::Set(i)) => ValueCursor::Set(set, i),
            (Some((_, Values::Tree(desc))), ValuePlace::Tree(path)) => {
                let order = cursor.order.clone();
                let tree = Cursor::resume(pages, &desc, order, path)?;
                ValueCursor::Tree(Box::new(tree), desc.entries)
            }
            _ => ValueCursor::One(false),
        };
        Ok(cursor)
    }

    /// The place, for `resume`.
    pub(crate) fn detach(self) -> Position {
        let values = match self.values {
            ValueCursor::One(false) => ValuePlace::One,
            ValueCursor::One(true) => ValuePlace::Behind,
            ValueCursor::Set(_, i) => ValuePlace::Set(i),
            ValueCursor::Tree(cursor, _) => ValuePlace::Tree(cursor.into_path()),
        };
        let (stand, mark, eof) = (self.stand, self.mark, self.eof);
        Position { path: self.keys.into_path(), values, stand, mark, eof }
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

    // ---- values of the record ----

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
            Some((_, Values::Set(set))) => {
                let i = if last { set.count() - 1 } else { 0 };
                ValueCursor::Set(set, i)
            }
            Some((_, Values::Tree(desc))) => {
                let mut cursor = Cursor::new(self.pages, &desc, self.order.clone());
                if last {
                    cursor.last()?
                } else {
                    cursor.first()?
                }
                ValueCursor::Tree(Box::new(cursor), desc.entries)
            }
            _ => ValueCursor::One(false),
        };
        Ok(())
    }

    /// To the next value of the record; false, and nothing moves, when there is none.
    fn step_value(&mut self) -> Result<bool> {
        match &mut self.values {
            ValueCursor::One(_) => Ok(false),
            ValueCursor::Set(set, i) => {
                let more = *i + 1 < set.count();
                *i += usize::from(more);
                Ok(more)
            }
            ValueCursor::Tree(cursor, _) => {
                if cursor.key()?.is_none() {
                    return Ok(false);
                }
                let more = cursor.next()?;
                if !more {
                    cursor.last()?;
                }
                Ok(more)
            }
        }
    }

    /// To the value before; false, and nothing moves, when there is none.
    fn step_value_back(&mut self) -> Result<bool> {
        match &mut self.values {
            ValueCursor::One(behind) => Ok(std::mem::take(behind)),
            ValueCursor::Set(_, i) => {
                let more = *i > 0;
                *i -= usize::from(more);
                Ok(more)
            }
            ValueCursor::Tree(cursor, _) => {
                let more = cursor.prev()?;
                if !more {
                    cursor.first()?;
                }
                Ok(more)
            }
        }
    }

    /// To the first value that is not less than `value`, or behind the last one; whether it equals
    /// `value`. The keys' cursor stands on a record.
    fn seek_value(&mut self, value: &[u8]) -> Result<bool> {
        let Some((at, values)) = self.record()? else { return Ok(false) };
        match values {
            Values::One(own) => {
                let found = self.order.compare(value, own);
                self.values = ValueCursor::One(found.is_gt());
                Ok(found.is_eq())
            }
            Values::Set(set) => {
                let found = set.search(&self.order, value).map_err(at.damaged())?;
                let (Ok(i) | Err(i)) = found;
                self.values = ValueCursor::Set(set, i);
                Ok(found.is_ok())
            }
            Values::Tree(desc) => {
                let mut cursor = Cursor::new(self.pages, &desc, self.order.clone());
                let found = cursor.seek_or_behind(value)?;
                self.values = ValueCursor::Tree(Box::new(cursor), desc.entries);
                Ok(found)
            }
        }
    }

    // ---- moves ----

    pub(crate) fn first(&mut self) -> Result<Option<Pair<'p>>> {
        self.keys.first()?;
        self.entered(false)
    }

    pub(crate) fn last(&mut self) -> Result<Option<Pair<'p>>> {
        self.keys.last()?;
        self.entered(true)
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

    /// Whether the cursor stands on a record with one value, where no deletion must be minded: its
    /// steps are those of the keys' cursor.
    #[inline(always)]
    fn is_simple(&self) -> bool {
        self.stand == Stand::On
            && self.mark == Mark::None
            && !self.duplicates
            && matches!(self.values, ValueCursor::One(false))
    }

    /// The pair under such a cursor.
    #[inline(always)]
    fn simple_pair(&self) -> Result<Option<Pair<'p>>> {
        match self.keys.entry()? {
            Some((_, entry)) if entry.kind == ValueKind::Inline => {
                Ok(Some((entry.key, entry.value)))
            }
            _ => self.pair(),
        }
    }

    /// The leaf's page and the places of the records behind the cursor's, where its steps are those of
    /// the keys' cursor and its last one found something; see [`PairCursor::advance`].
    #[inline]
    pub(crate) fn rest_of_leaf(&self) -> Option<(&'p [u8], &'p [[u8; 2]])> {
        let (_, leaf, i) = self.keys.position().filter(|_| self.is_simple() && !self.eof)?;
        Some((leaf.page(), leaf.offsets().get(i + 1..)?))
    }

    /// As many steps as were made among the records of `rest_of_leaf`.
    pub(crate) fn advance(&mut self, steps: usize) {
        if let Some((.., i)) = self.keys.position() {
            self.keys.set_index(i + steps);
        }
    }

    /// To the next pair; where the cursor stands nowhere yet, to the first.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Pair<'p>>> {
        if !self.is_simple() {
            return self.next_slowly();
        }
        if self.keys.next()? {
            self.eof = false;
            return self.simple_pair();
        }
        self.keys.last()?;
        self.eof = true;
        Ok(None)
    }

    fn next_slowly(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.stand, std::mem::take(&mut self.mark)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) => Ok(None),
            (Stand::On, Mark::Key) => self.pair(),
            (Stand::On, Mark::None) if !self.duplicates => self.next_record(),
            (Stand::On, mark) => {
                let stays = mark == Mark::Value && self.pair()?.is_some();
                if stays || self.step_value()? { self.stepped() } else { self.next_record() }
            }
        }
    }

    /// The value to which a step led.
    #[inline]
    fn stepped(&mut self) -> Result<Option<Pair<'p>>> {
        self.eof = false;
        self.pair()
    }

    #[inline]
    fn next_record(&mut self) -> Result<Option<Pair<'p>>> {
        if self.keys.next()? {
            return self.enter(false);
        }
        self.keys.last()?;
        self.eof = true;
        Ok(None)
    }

    fn prev_record(&mut self) -> Result<Option<Pair<'p>>> {
        if self.keys.prev()? {
            return self.enter(true);
        }
        self.keys.first()?;
        Ok(None)
    }

    /// To the pair before; where the cursor stands nowhere yet, to the last.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<Option<Pair<'p>>> {
        if self.is_simple() && self.keys.prev()? {
            self.eof = false;
            return self.simple_pair();
        }
        self.prev_slowly()
    }

    fn prev_slowly(&mut self) -> Result<Option<Pair<'p>>> {
        self.mark = Mark::None;
        if self.stand != Stand::On {
            return self.last();
        }
        self.eof = false;
        if self.step_value_back()? { self.pair() } else { self.prev_record() }
    }

    /// To the next value of the same key.
    pub(crate) fn next_value(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.stand, std::mem::take(&mut self.mark)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) | (_, Mark::Key) => Ok(None),
            (Stand::On, mark) => {
                let stays = mark == Mark::Value && self.pair()?.is_some();
                if stays || self.step_value()? { self.stepped() } else { Ok(None) }
            }
        }
    }

    /// To the value before of the same key.
    pub(crate) fn prev_value(&mut self) -> Result<Option<Pair<'p>>> {
        self.mark = Mark::None;
        match self.stand {
            Stand::Unset => self.last(),
            Stand::End => Ok(None),
            Stand::On => {
                if self.step_value_back()? {
                    self.stepped()
                } else {
                    Ok(None)
                }
            }
        }
    }

    /// To the first value of the next key.
    pub(crate) fn next_key(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.stand, std::mem::take(&mut self.mark)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) => Ok(None),
            (Stand::On, Mark::Key) => self.pair(),
            (Stand::On, _) => self.next_record(),
        }
    }

    /// To the last value of the key before.
    pub(crate) fn prev_key(&mut self) -> Result<Option<Pair<'p>>> {
        if self.stand != Stand::On {
            return self.last();
        }
        // Where there is none the place among the values stays, with its mark.
        if self.mark == Mark::Key {
            let several = !matches!(self.values, ValueCursor::One(_));
            self.mark = if several { Mark::Value } else { Mark::None };
        }
        self.eof = false;
        self.prev_record()
    }

    /// To the first or last value of the same key.
    pub(crate) fn edge_value(&mut self, last: bool) -> Result<Option<Pair<'p>>> {
        if self.stand == Stand::On { self.enter(last) } else { Ok(None) }
    }

    /// To the first value of `key`; nowhere when there is none.
    pub(crate) fn seek_exact(&mut self, key: &[u8]) -> Result<Option<Pair<'p>>> {
        if self.keys.seek(key)? {
            return self.enter(false);
        }
        self.leave();
        Ok(None)
    }

    /// To the first value of the first key that is not less than `key`; behind the last record when
    /// there is none.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<Option<Pair<'p>>> {
        self.keys.seek(key)?;
        self.on_or_end()
    }

    fn on_or_end(&mut self) -> Result<Option<Pair<'p>>> {
        if self.keys.position().is_none() {
            self.end();
            return Ok(None);
        }
        self.enter(false)
    }

    /// To the nearest value of `key` that compares so with `value`; nowhere when there is none.
    pub(crate) fn seek_value_by(
        &mut self,
        seek: Seek,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Pair<'p>>> {
        if self.keys.seek(key)? {
            self.enter(false)?;
            let same = self.seek_value(value)?;
            let is_there = match seek {
                Seek::Equal => same,
                Seek::GreaterOrEqual => self.pair()?.is_some(),
                Seek::Greater => {
                    if same {
                        self.step_value()?
                    } else {
                        self.pair()?.is_some()
                    }
                }
                Seek::LessOrEqual if same => true,
                Seek::LessOrEqual | Seek::Less => self.step_value_back()?,
            };
            if is_there {
                return self.pair();
            }
        }
        self.leave();
        Ok(None)
    }

    /// To the nearest key that compares so with `key`, at the end of its values that is nearer;
    /// behind the last record, or nowhere if it was sought downwards, when there is none.
    pub(crate) fn seek_key_by(&mut self, seek: Seek, key: &[u8]) -> Result<Option<Pair<'p>>> {
        match seek {
            Seek::Equal => return self.seek_exact(key),
            Seek::GreaterOrEqual => return self.seek(key),
            _ => {}
        }
        let found = self.keys.seek(key)?;
        match seek {
            Seek::Greater => {
                if found {
                    self.keys.next()?;
                }
                self.on_or_end()
            }
            _ if found && seek == Seek::LessOrEqual => self.enter(true),
            _ => {
                if self.keys.position().is_none() {
                    self.keys.last()?;
                } else {
                    self.keys.prev()?;
                }
                self.entered(true)
            }
        }
    }

    /// To the nearest pair that compares so with the one given.
    pub(crate) fn seek_pair_by(
        &mut self,
        seek: Seek,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Pair<'p>>> {
        if !self.keys.seek(key)? {
            return match seek {
                Seek::Equal => self.seek_exact(key),
                Seek::Less | Seek::LessOrEqual => self.seek_key_by(Seek::Less, key),
                Seek::GreaterOrEqual | Seek::Greater => self.seek(key),
            };
        }
        self.enter(false)?;
        let found = self.seek_value(value)?;
        match seek {
            Seek::Equal if found => self.pair(),
            Seek::Equal => {
                self.leave();
                Ok(None)
            }
            Seek::GreaterOrEqual | Seek::Greater => {
                let skip = found && seek == Seek::Greater;
                if (!skip && self.pair()?.is_some()) || self.step_value()? {
                    return self.pair();
                }
                self.keys.next()?;
                self.on_or_end()
            }
            Seek::Less | Seek::LessOrEqual => {
                if (found && seek == Seek::LessOrEqual) || self.step_value_back()? {
                    return self.pair();
                }
                self.keys.prev()?;
                self.entered(true)
            }
        }
    }

    // ---- after changes ----

    /// To the place of a pair that may be gone. If it is, the cursor stands at the gap, marked.
    /// Without a value: of a key, or with `behind` to the place behind its last value. True when
    /// what was sought is there.
    pub(crate) fn seek_back(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        behind: bool,
    ) -> Result<bool> {
        let mut found = self.keys.seek(key)?;
        self.on_or_end()?;
        if self.stand != Stand::On {
            return Ok(false);
        }
        if !found {
            self.mark = Mark::Key;
        } else if let Some(value) = value.filter(|_| self.duplicates) {
            found = self.seek_value(value)?;
            if !found {
                self.mark = Mark::Value;
            }
        } else if behind {
            self.enter(true)?;
            match &mut self.values {
                ValueCursor::One(behind) => *behind = true,
                ValueCursor::Set(_, i) => *i += 1,
                ValueCursor::Tree(cursor, _) => cursor.step_behind(),
            }
            self.mark = Mark::Value;
        }
        Ok(found)
    }

    // ---- questions ----

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

    fn on_first_value(&self) -> bool {
        match &self.values {
            ValueCursor::One(_) => true,
            ValueCursor::Set(_, i) => *i == 0,
            ValueCursor::Tree(cursor, _) => cursor.is_first(),
        }
    }

    fn on_last_value(&self) -> bool {
        match &self.values {
            ValueCursor::One(_) => true,
            ValueCursor::Set(set, i) => *i + 1 == set.count(),
            ValueCursor::Tree(cursor, _) => cursor.is_last(),
        }
    }

    /// Whether the pair under the cursor is the first, of its key or of all.
    pub(crate) fn on_first(&self, of_key: bool) -> Result<bool> {
        let on = self.pair()?.is_some();
        Ok(on && self.on_first_value() && (of_key || self.keys.is_first()))
    }

    /// Whether the pair under the cursor is the last, of its key or of all.
    pub(crate) fn on_last(&self, of_key: bool) -> Result<bool> {
        let on = self.pair()?.is_some();
        Ok(on && self.on_last_value() && (of_key || self.keys.is_last()))
    }

    // ---- many values at once ----
}
