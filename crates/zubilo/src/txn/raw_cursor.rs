//! Cursors without a borrow, for the C interface: a position among records and, where a key has
//! many values, among these.
//!
//! A [`RawCursor`] holds views of pages whose life the caller vouches for: it must be dropped, or
//! left alone for ever, once its transaction ends or changes. Moves that find nothing leave it
//! where it was, unless they say otherwise.

use crate::dirty::View;
use crate::error::Result;
use crate::page::{Entry, Items, LeafPage, Order, Set, ValueKind};
use crate::tree::cursor::Cursor;
use crate::tree::lookup::{self, descend_items};
use crate::tree::values::{Values, values_of};
use crate::tree::{Pages, Path, Ref, Snapshot, Tree, TreeDesc};

use super::raw::RawTable;
use super::read::ReadTxn;
use super::write::WriteTxn;

/// A key and a value.
pub type RawPair = (&'static [u8], &'static [u8]);

/// A position in a table, or nowhere.
pub struct RawCursor {
    walk: Either,
}

enum Either {
    Read(Walk<Snapshot<'static>>),
    Write(Walk<View<'static>>),
}

/// The record under the cursor and the position among its values.
struct Walk<P: Pages<'static>> {
    pages: P,
    records: Cursor<'static, P>,
    value_order: Order,
    duplicates: bool,
    at: Ref,
    entry: Option<Entry<'static>>,
    values: Position<P>,
}

enum Position<P: Pages<'static>> {
    One(&'static [u8]),
    Set(Set<'static>, usize),
    Tree(Box<Cursor<'static, P, Items<'static>>>, TreeDesc),
}

impl ReadTxn {
    /// A cursor that stands nowhere yet.
    ///
    /// # Safety
    /// It, and the slices that it gives, are not used after the transaction has ended or been
    /// moved to another snapshot.
    pub unsafe fn raw_cursor(&self, table: &RawTable) -> RawCursor {
        // SAFETY: the caller vouches for the life of the snapshot.
        let pages =
            unsafe { std::mem::transmute::<Snapshot<'_>, Snapshot<'static>>(self.snapshot()) };
        RawCursor { walk: Either::Read(Walk::new(pages, table.tree())) }
    }
}

impl WriteTxn {
    /// A cursor that stands nowhere yet.
    ///
    /// # Safety
    /// It, and the slices that it gives, are not used after the transaction has ended or changed
    /// anything.
    pub unsafe fn raw_cursor(&self, table: usize) -> RawCursor {
        let view = self.ws.view();
        // SAFETY: the caller vouches that nothing is changed while the view is used.
        let pages = unsafe { std::mem::transmute::<View<'_>, View<'static>>(view) };
        RawCursor { walk: Either::Write(Walk::new(pages, self.tree(table))) }
    }
}

macro_rules! on {
    ($self:ident, $walk:ident => $body:expr) => {
        match &mut $self.walk {
            Either::Read($walk) => $body,
            Either::Write($walk) => $body,
        }
    };
}

impl RawCursor {
    /// What is under the cursor; none when it stands nowhere.
    #[inline]
    pub fn current(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => walk.current())
    }

    /// To the first record; nowhere in an empty table.
    pub fn first(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => walk.first())
    }

    /// To the last record; nowhere in an empty table.
    pub fn last(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => walk.last())
    }

    /// To the next record.
    #[inline]
    pub fn step(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => walk.next())
    }

    /// To the record before.
    #[inline]
    pub fn step_back(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => walk.prev())
    }

    /// To the next value of this key.
    pub fn next_value(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => if walk.step_value(false)? { walk.current() } else { Ok(None) })
    }

    /// To the value before of this key.
    pub fn prev_value(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => if walk.step_value(true)? { walk.current() } else { Ok(None) })
    }

    /// To the first value of the next key.
    pub fn next_key(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => walk.step_key(false))
    }

    /// To the last value of the key before.
    pub fn prev_key(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => walk.step_key(true))
    }

    /// To the first value of this key.
    pub fn first_value(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => { walk.edge_value(false)?; walk.current() })
    }

    /// To the last value of this key.
    pub fn last_value(&mut self) -> Result<Option<RawPair>> {
        on!(self, walk => { walk.edge_value(true)?; walk.current() })
    }

    /// To the first record with a key not less than `key`, nowhere if there is none; true if the
    /// key is there.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        on!(self, walk => walk.seek(key))
    }

    /// To the first record not less than key and value; true if it is there. With `same_key` only
    /// to one with this key, else nowhere.
    pub fn seek_pair(&mut self, key: &[u8], value: &[u8], same_key: bool) -> Result<bool> {
        on!(self, walk => walk.seek_pair(key, value, same_key))
    }

    /// The number of values of this key; 0 when the cursor stands nowhere.
    pub fn count(&mut self) -> Result<u64> {
        on!(self, walk => Ok(walk.count()))
    }

    /// The values that lie together with this one, all of one size, and to the last of them; none
    /// where values are not of one size.
    pub fn multiple(&mut self) -> Result<Option<&'static [u8]>> {
        on!(self, walk => walk.multiple())
    }

    /// As `multiple`, of the values before those that lie together with this one.
    pub fn multiple_before(&mut self) -> Result<Option<&'static [u8]>> {
        on!(self, walk => walk.multiple_before())
    }
}

impl<P: Pages<'static>> Walk<P> {
    fn new(pages: P, tree: &Tree) -> Walk<P> {
        Walk {
            pages,
            records: Cursor::new(pages, tree.desc, tree.order.clone()),
            value_order: tree.values.clone(),
            duplicates: tree.desc.options.has_duplicates(),
            at: Ref::NONE,
            entry: None,
            values: Position::One(&[]),
        }
    }

    /// Takes the record under the inner cursor, at its first or last value.
    #[inline]
    fn take(&mut self, last: bool) -> Result<Option<RawPair>> {
        self.entry = None;
        let Some((at, entry)) = self.records.entry()? else { return Ok(None) };
        if !self.duplicates {
            let value = match entry.kind {
                ValueKind::Inline | ValueKind::Tree => entry.value,
                _ => lookup::value_of(&self.pages, at, &entry)?,
            };
            (self.at, self.entry, self.values) = (at, Some(entry), Position::One(value));
            return Ok(Some((entry.key, value)));
        }
        self.at = at;
        self.values = match values_of(&self.pages, at, &entry)? {
            Values::One(value) => Position::One(value),
            Values::Set(set) => Position::Set(set, 0),
            Values::Tree(desc) => {
                let cursor = Cursor::new(self.pages, desc, self.value_order.clone());
                Position::Tree(Box::new(cursor), desc)
            }
        };
        self.entry = Some(entry);
        self.edge_value(last)?;
        self.current()
    }

    #[inline]
    fn current(&mut self) -> Result<Option<RawPair>> {
        let Some(entry) = &self.entry else { return Ok(None) };
        let value = match &self.values {
            Position::One(value) => Some(*value),
            Position::Set(set, i) => Some(set.item(*i).map_err(self.at.damaged())?),
            Position::Tree(cursor, _) => cursor.key()?,
        };
        Ok(value.map(|value| (entry.key, value)))
    }

    fn first(&mut self) -> Result<Option<RawPair>> {
        self.records.first()?;
        self.take(false)
    }

    fn last(&mut self) -> Result<Option<RawPair>> {
        self.records.last()?;
        self.take(true)
    }

    /// To the first or last value of the record.
    fn edge_value(&mut self, last: bool) -> Result<()> {
        match &mut self.values {
            Position::One(_) => Ok(()),
            Position::Set(set, i) => {
                *i = if last { set.count().saturating_sub(1) } else { 0 };
                Ok(())
            }
            Position::Tree(cursor, _) if last => cursor.last(),
            Position::Tree(cursor, _) => cursor.first(),
        }
    }

    /// To a neighbouring value of the record; false, and no move, if there is none.
    fn step_value(&mut self, back: bool) -> Result<bool> {
        if self.entry.is_none() {
            return Ok(false);
        }
        match &mut self.values {
            Position::One(_) => Ok(false),
            Position::Set(set, i) => {
                let next = if back { i.checked_sub(1) } else { Some(*i + 1) };
                match next.filter(|next| *next < set.count()) {
                    Some(next) => *i = next,
                    None => return Ok(false),
                }
                Ok(true)
            }
            Position::Tree(cursor, _) => {
                if if back { cursor.prev()? } else { cursor.next()? } {
                    return Ok(true);
                }
                if back {
                    cursor.first()?
                } else {
                    cursor.last()?
                };
                Ok(false)
            }
        }
    }

    /// To a neighbouring key; no move if there is none.
    #[inline]
    fn step_key(&mut self, back: bool) -> Result<Option<RawPair>> {
        if self.entry.is_none() {
            return Ok(None);
        }
        if if back { self.records.prev()? } else { self.records.next()? } {
            return self.take(back);
        }
        // It stands nowhere then: back to the record, whose values were not left.
        if back {
            self.records.first()?
        } else {
            self.records.last()?
        };
        Ok(None)
    }

    #[inline]
    fn next(&mut self) -> Result<Option<RawPair>> {
        if self.duplicates && self.step_value(false)? {
            return self.current();
        }
        self.step_key(false)
    }

    #[inline]
    fn prev(&mut self) -> Result<Option<RawPair>> {
        if self.duplicates && self.step_value(true)? {
            return self.current();
        }
        self.step_key(true)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.records.seek(key)?;
        self.take(false)?;
        Ok(found)
    }

    fn seek_pair(&mut self, key: &[u8], value: &[u8], same_key: bool) -> Result<bool> {
        if !self.seek(key)? {
            if same_key {
                self.leave();
            }
            return Ok(false);
        }
        if !self.duplicates {
            return Ok(true);
        }
        let (found, inside) = self.seek_value(value)?;
        if !inside {
            if same_key {
                self.leave();
            } else if self.records.next()? {
                self.take(false)?;
            } else {
                self.leave();
            }
        }
        Ok(found)
    }

    /// To the first value of the record not less than `value`: whether it is there, and whether
    /// there is any.
    fn seek_value(&mut self, value: &[u8]) -> Result<(bool, bool)> {
        match &mut self.values {
            Position::One(own) => {
                let order = self.value_order.compare(value, own);
                Ok((order.is_eq(), order.is_le()))
            }
            Position::Set(set, i) => {
                let found = set.search(&self.value_order, value).map_err(self.at.damaged())?;
                let (Ok(to) | Err(to)) = found;
                if to < set.count() {
                    *i = to;
                }
                Ok((found.is_ok(), to < set.count()))
            }
            Position::Tree(cursor, desc) => {
                let mut path = Path::default();
                let order = self.value_order.clone();
                let found = descend_items(&self.pages, desc, &order, value, &mut path)?;
                **cursor = Cursor::resume(self.pages, *desc, order, path)?;
                let inside = match cursor.position() {
                    Some((_, leaf, i)) if i >= leaf.count() => cursor.next_leaf()?,
                    position => position.is_some(),
                };
                Ok((found, inside))
            }
        }
    }

    fn leave(&mut self) {
        self.records.leave();
        self.entry = None;
    }

    fn count(&self) -> u64 {
        match (&self.entry, &self.values) {
            (None, _) => 0,
            (_, Position::One(_)) => 1,
            (_, Position::Set(set, _)) => set.count() as u64,
            (_, Position::Tree(_, desc)) => desc.entries,
        }
    }

    fn multiple(&mut self) -> Result<Option<&'static [u8]>> {
        if self.entry.is_none() {
            return Ok(None);
        }
        match &mut self.values {
            Position::One(value) => Ok(Some(value)),
            Position::Set(set, i) => {
                *i = set.count().saturating_sub(1);
                Ok(set.packed().map(|(items, _)| items))
            }
            Position::Tree(cursor, _) => {
                let Some((_, Items::Packed(leaf), i)) = cursor.position() else { return Ok(None) };
                for _ in i + 1..leaf.count() {
                    cursor.next()?;
                }
                Ok(Some(leaf.items()))
            }
        }
    }

    fn multiple_before(&mut self) -> Result<Option<&'static [u8]>> {
        match &mut self.values {
            Position::Tree(cursor, _) if self.entry.is_some() => {
                if cursor.prev_leaf()? {
                    return self.multiple();
                }
                cursor.first()?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}
