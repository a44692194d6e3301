//! Cursors without a borrow, for the C interface: the moves of [`PairCursor`] and the parking of the
//! write transaction's own cursors, in an object that its user keeps.
//!
//! An attached [`RawCursor`] holds views of pages whose life the caller vouches for: it must be
//! parked, or left, before its transaction ends or changes the table. Moves that find nothing leave
//! it where it was, unless they say otherwise.

use crate::dirty::View;
use crate::error::{Error, Result};
use crate::page::{ValueKind, entry_at};
use crate::tree::pair_cursor::{Mark, PairCursor, Position, Seek, Stand, Successor};
use crate::tree::{Snapshot, pairs, remove};
use crate::txn::cursor::Slot;
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;

use super::{NAMES, RawTable};

/// A key and a value.
pub type RawPair<'p> = (&'p [u8], &'p [u8]);

/// A position in a table, or nowhere.
#[derive(Default)]
pub struct RawCursor {
    at: At,
    /// The place while it is not attached.
    slot: Slot,
    quick: Quick,
}

/// Steps within a leaf of a read transaction, without the cursor, which follows when it is used next.
#[derive(Default)]
struct Quick {
    page: &'static [u8],
    /// Places of the records to come.
    rest: std::slice::Iter<'static, [u8; 2]>,
    /// Steps that the cursor is behind.
    ahead: usize,
}

/// The place of a cursor that is not attached.
#[derive(Clone)]
pub struct RawPlace(Slot);

/// What [`RawCursor::remove`] has removed, and what followed.
pub struct RawRemoved {
    key: Vec<u8>,
    /// None where it was a key with all it had.
    value: Option<Vec<u8>>,
    next: Option<Successor>,
    near: Position,
}

#[derive(Default)]
enum At {
    #[default]
    Detached,
    Read(PairCursor<'static, Snapshot<'static>>),
    Write(PairCursor<'static, View<'static>>),
}

/// Where a cursor is, as far as its user must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawStand {
    /// It was not placed yet.
    Nowhere,
    /// On a record, or before one where something was deleted.
    Placed,
    /// Behind the last record.
    End,
}

macro_rules! on {
    ($self:ident, $c:ident, $otherwise:expr => $body:expr) => {{
        $self.settle();
        match &mut $self.at {
            At::Read($c) => $body,
            At::Write($c) => $body,
            At::Detached => $otherwise,
        }
    }};
}

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident = $call:ident($($arg:expr),*);)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&mut self) -> Result<Option<RawPair<'static>>> {
                on!(self, c, Ok(None) => c.$call($($arg),*))
            }
        )*
    };
}

impl RawCursor {
    /// Whether it has a view of pages; without one no move finds anything.
    #[inline]
    pub fn is_attached(&self) -> bool {
        !matches!(self.at, At::Detached)
    }

    /// A step forward within the leaf, if that is simple. Only in read transactions, whose pages do
    /// not change.
    #[inline(always)]
    pub fn quick_step(&mut self) -> Option<RawPair<'static>> {
        let quick = &mut self.quick;
        let offset = quick.rest.as_slice().first()?;
        let entry = entry_at(quick.page, usize::from(u16::from_le_bytes(*offset))).ok()?;
        if entry.kind != ValueKind::Inline {
            return None;
        }
        quick.rest.next();
        quick.ahead += 1;
        Some((entry.key, entry.value))
    }

    /// To the next record, or to the one before which something was deleted.
    pub fn step(&mut self) -> Result<Option<RawPair<'static>>> {
        let found = on!(self, c, Ok(None) => c.next());
        if let At::Read(cursor) = &self.at
            && let Some((page, rest)) = cursor.rest_of_leaf()
        {
            self.quick = Quick { page, rest: rest.iter(), ahead: 0 };
        }
        found
    }

    /// The cursor does the steps that were made without it.
    #[inline]
    fn settle(&mut self) {
        let ahead = std::mem::take(&mut self.quick).ahead;
        if ahead > 0
            && let At::Read(cursor) = &mut self.at
        {
            cursor.advance(ahead);
        }
    }

    /// To its place in a table of a read transaction.
    ///
    /// # Safety
    /// It, and the slices that it gives, are not used after the transaction has ended or been
    /// moved to another snapshot.
    pub unsafe fn attach_read(&mut self, txn: &ReadTxn, table: &RawTable) -> Result<()> {
        // SAFETY: the caller vouches for the life of the snapshot.
        let pages =
            unsafe { std::mem::transmute::<Snapshot<'_>, Snapshot<'static>>(txn.snapshot()) };
        self.at = At::Read(self.slot.near(pages, table.tree())?);
        Ok(())
    }

    /// To its place in a table of a write transaction.
    ///
    /// # Safety
    /// It, and the slices that it gives, are not used after the transaction has ended or changed
    /// anything.
    pub unsafe fn attach_write(&mut self, txn: &WriteTxn, table: usize) -> Result<()> {
        // SAFETY: the caller vouches that nothing is changed while the view is used.
        let pages = unsafe { std::mem::transmute::<View<'_>, View<'static>>(txn.ws.view()) };
        self.at = At::Write(self.slot.near(pages, txn.tree(table))?);
        Ok(())
    }

    /// Keeps the key and value it stands on, and gives up its view.
    pub fn park(&mut self) -> Result<()> {
        self.settle();
        match std::mem::take(&mut self.at) {
            At::Detached => Ok(()),
            At::Read(cursor) => self.slot.note_near(&cursor),
            At::Write(cursor) => self.slot.note_near(&cursor),
        }
    }

    /// To nowhere, without a view.
    pub fn leave(&mut self) {
        *self = RawCursor::default();
    }

    /// On a pair that was just stored; without the value of a table that keeps one under a key.
    pub fn place_on(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.quick = Quick::default();
        self.at = At::Detached;
        self.slot.place_on(key, value);
    }

    /// Where it is parked on a value another one is now.
    pub fn replace_value(&mut self, value: &[u8]) {
        self.slot.replace_value(value);
    }

    /// Whether it is parked on this pair, or without a value on this key.
    pub fn is_parked_on(
        &self,
        txn: &WriteTxn,
        table: usize,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> bool {
        !self.is_attached() && self.slot.stands_on(txn.tree(table), key, value)
    }

    /// Whether it is parked on a pair with these bytes, or without a value on this key.
    pub fn is_noted(&self, key: &[u8], value: Option<&[u8]>) -> bool {
        !self.is_attached() && self.slot.is_noted(key, value)
    }

    /// Removes the pair on which it is parked, or with `all` the key with all its values. It is found by
    /// its place: no function of the caller's is asked. None where it stands on no pair. The cursor
    /// stays on what is gone until [`RawCursor::follow`].
    pub fn remove(
        &mut self,
        txn: &mut WriteTxn,
        table: usize,
        all: bool,
    ) -> Result<Option<RawRemoved>> {
        self.park()?;
        if table == NAMES {
            return Err(Error::Incompatible("names of tables are not removed so"));
        }
        // Pages may be written out: the place is looked for behind that.
        txn.change(table)?;
        let (removed, near) = {
            let tree = txn.tree(table);
            let cursor = self.slot.clone().near(txn.ws.view(), tree)?;
            let value = match cursor.pair()? {
                Some((_, value)) if cursor.has_duplicates() && !all => Some(value.to_vec()),
                None if !all => return Ok(None),
                _ => None,
            };
            let Some(key) = cursor.key()? else { return Ok(None) };
            let (key, next) = (key.to_vec(), cursor.successor(all)?);
            let near = cursor.detach();
            (RawRemoved { key, value, next, near: near.clone() }, near)
        };
        let whole = removed.value.is_none();
        txn.guarded(|txn| {
            let (ws, tree) = txn.parts(table);
            let (mut path, place) = near.into_way();
            match whole {
                true => remove::remove_at(ws, tree, &mut path),
                false => pairs::remove_value_at(ws, tree, path, place),
            }
        })?;
        Ok(Some(removed))
    }

    /// Where it is parked on what was removed it stands before what followed.
    pub fn follow(&mut self, removed: &RawRemoved) {
        if self.is_noted(&removed.key, removed.value.as_deref()) {
            self.slot.place_before(removed.next.as_ref(), &removed.near);
        }
    }

    /// Its place, parked.
    pub fn place(&mut self) -> Result<RawPlace> {
        self.park()?;
        Ok(RawPlace(self.slot.clone()))
    }

    /// A cursor at a place of another.
    pub fn at(place: RawPlace) -> RawCursor {
        RawCursor { at: At::Detached, slot: place.0, quick: Quick::default() }
    }

    /// Back to a place of before.
    pub fn restore(&mut self, place: RawPlace) {
        *self = RawCursor::at(place);
    }

    /// Where it is, if it is attached.
    #[inline]
    pub fn stand(&mut self) -> RawStand {
        match on!(self, c, Stand::Unset => c.stand()) {
            Stand::Unset => RawStand::Nowhere,
            Stand::On => RawStand::Placed,
            Stand::End => RawStand::End,
        }
    }

    moves! {
        /// What is under the cursor; none when it stands nowhere, or behind the values of a key.
        current = current();
        /// The same; where something was deleted the next step forward stays as it is.
        under = pair();
        /// To the first record; nowhere in an empty table.
        first = first();
        /// To the last record; nowhere in an empty table.
        last = last();
        /// To the record before.
        step_back = prev();
        /// To the next value of this key.
        next_value = next_value();
        /// To the value before of this key.
        prev_value = prev_value();
        /// To the first value of the next key.
        next_key = next_key();
        /// To the last value of the key before.
        prev_key = prev_key();
        /// To the first value of this key.
        first_value = edge_value(false);
        /// To the last value of this key.
        last_value = edge_value(true);
    }

    /// Whether something was deleted where it stands, and no move has followed.
    pub fn is_before(&mut self) -> bool {
        on!(self, c, false => c.mark() != Mark::None)
    }

    /// The key under the cursor, also behind its values.
    pub fn key(&mut self) -> Result<Option<&'static [u8]>> {
        on!(self, c, Ok(None) => c.key())
    }

    /// To the first record with a key not less than `key`, or behind all; true if the key is there.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        on!(self, c, Ok(false) => {
            let found = c.seek_back(key, None, false)?;
            if c.mark() != Mark::None {
                c.set_flags(Mark::None, false);
            }
            Ok(found)
        })
    }

    /// To the first value of `key` not less than `value`, or else nowhere; with `exact` it gives
    /// only this value, but stands on a greater one if there is one.
    pub fn seek_pair(
        &mut self,
        key: &[u8],
        value: &[u8],
        exact: bool,
    ) -> Result<Option<RawPair<'static>>> {
        on!(self, c, Ok(None) => {
            let found = c.seek_value_by(Seek::GreaterOrEqual, key, value)?;
            Ok(found.filter(|(_, own)| !exact || c.is_same_value(value, own)))
        })
    }

    /// Behind the last value of `key`, or where that would be.
    pub fn seek_behind(&mut self, key: &[u8]) -> Result<bool> {
        on!(self, c, Ok(false) => c.seek_back(key, None, true))
    }

    /// The number of values of this key; 0 when there is none.
    pub fn count(&mut self) -> Result<u64> {
        on!(self, c, Ok(0) => Ok(c.count()?.unwrap_or(0)))
    }

    /// Whether there is nothing under the cursor, or its last step forward found nothing.
    pub fn eof(&mut self) -> Result<bool> {
        on!(self, c, Ok(true) => c.eof())
    }

    /// Whether it stands on the first record.
    pub fn on_first(&mut self) -> Result<bool> {
        on!(self, c, Ok(false) => c.on_first(false))
    }

    /// Whether it stands on the last record.
    pub fn on_last(&mut self) -> Result<bool> {
        on!(self, c, Ok(false) => c.on_last(false))
    }

    /// Whether it stands on the first value of its key.
    pub fn on_first_value(&mut self) -> Result<bool> {
        on!(self, c, Ok(false) => c.on_first(true))
    }

    /// Whether it stands on the last value of its key.
    pub fn on_last_value(&mut self) -> Result<bool> {
        on!(self, c, Ok(false) => c.on_last(true))
    }

    /// The values that lie together with this one, all of one size, and to the last of them.
    pub fn multiple(&mut self) -> Result<Option<&'static [u8]>> {
        on!(self, c, Ok(None) => Ok(c.packed_here()?.map(|(bytes, _)| bytes)))
    }

    /// As `multiple`, of the values before those that lie together with this one.
    pub fn multiple_before(&mut self) -> Result<Option<&'static [u8]>> {
        on!(self, c, Ok(None) => Ok(c.packed_before()?.map(|(bytes, _)| bytes)))
    }
}
