//! Cursors for the C interface. A [`RawCursor`] borrows nothing: those of a write transaction lie in its
//! registry, those of a read transaction are their user's, who has them note their records before the
//! snapshot goes. To be moved one is looked at in its table ([`RawAt`]), which borrows the transaction. Moves
//! that find nothing leave a cursor where it was, unless they say otherwise.

use crate::dirty::View;
use crate::error::{Error, Result};
use crate::tree::cursor::{CursorState, Gap, InTable, Removed, Seek, Stand};
use crate::tree::{Snapshot, pairs, remove};
use crate::txn::catalogue::TableRef;
use crate::txn::cursor::{CursorId, Standing};
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;

use super::RawTable;

/// A key and a value.
pub type RawPair<'p> = (&'p [u8], &'p [u8]);

/// A position in a table, or nowhere.
#[derive(Clone)]
pub struct RawCursor {
    pub(in crate::txn) state: CursorState,
    note: RawNote,
}

/// A caller's function is asked only about what its caller hands in.
impl Default for RawCursor {
    fn default() -> RawCursor {
        RawCursor { state: CursorState::by_bytes(), note: RawNote::Nothing }
    }
}

/// What a cursor's user keeps of its last step, beside the place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RawNote {
    /// Nothing.
    #[default]
    Nothing,
    /// It is on a key with several values because the one that was sought is not there: on none of them.
    Missed,
    /// It was to leave the last key, but there is no other. Forgotten when the table changes.
    Ended,
}

/// Where a cursor is, as far as its user must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawStand {
    /// It was not placed yet.
    Nowhere,
    /// On a record, or before one where something was deleted.
    Placed,
    /// After the last record.
    End,
}

impl RawCursor {
    /// A cursor for the Rust API.
    pub(in crate::txn) fn of_rust() -> RawCursor {
        RawCursor { state: CursorState::default(), note: RawNote::Nothing }
    }

    /// A step forward within the leaf, if that is simple; of a cursor of a read transaction.
    #[inline(always)]
    pub fn quick_step<'t>(&mut self, txn: &'t ReadTxn) -> Option<RawPair<'t>> {
        if self.note != RawNote::Nothing || !self.state.is_of_snapshot() {
            return None;
        }
        self.state.step_in_leaf(&txn.snapshot())
    }

    /// To nowhere; the memory for the place is kept.
    pub fn leave(&mut self) {
        self.note = RawNote::Nothing;
        self.state.leave();
    }

    /// Keeps something of the last step.
    #[inline]
    pub fn set_note(&mut self, note: RawNote) {
        self.note = note;
    }

    /// Before a change: that there was no other key need not be so afterwards.
    pub(in crate::txn) fn forget_end(&mut self) {
        if self.note == RawNote::Ended {
            self.note = RawNote::Nothing;
        }
    }

    /// On a pair that was just stored; without the value of a table that keeps one under a key.
    pub fn place_on(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.state.place_on(key, value);
    }
}

/// A cursor in its table, ready to move.
pub struct RawAt<'c> {
    inner: Inner<'c>,
    note: &'c mut RawNote,
}

enum Inner<'c> {
    Read(InTable<'c, Snapshot<'c>>),
    Write(InTable<'c, View<'c>>),
}

macro_rules! on {
    ($self:ident, $c:ident => $body:expr) => {
        match &mut $self.inner {
            Inner::Read($c) => $body,
            Inner::Write($c) => $body,
        }
    };
}

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident = $call:ident($($arg:expr),*);)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&mut self) -> Result<Option<RawPair<'c>>> {
                on!(self, c => c.$call($($arg),*))
            }
        )*
    };
}

impl<'c> RawAt<'c> {
    /// What its user keeps of the last step.
    #[inline]
    pub fn note(&self) -> RawNote {
        *self.note
    }

    /// Keeps something of the last step.
    #[inline]
    pub fn set_note(&mut self, note: RawNote) {
        *self.note = note;
    }

    /// To nowhere; the memory for the place is kept.
    pub fn leave(&mut self) {
        *self.note = RawNote::Nothing;
        on!(self, c => c.leave());
    }

    /// Notes its record. Gives another cursor at its place.
    pub fn another(&mut self) -> Result<RawCursor> {
        let state = on!(self, c => c.noted())?;
        Ok(RawCursor { state, note: *self.note })
    }

    /// Where it is.
    #[inline]
    pub fn stand(&mut self) -> RawStand {
        match on!(self, c => c.stand()) {
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
        /// To the next record, or to the one before which something was deleted.
        step = next();
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
        on!(self, c => c.gap() != Gap::None)
    }

    /// The key under the cursor, also behind its values.
    pub fn key(&mut self) -> Result<Option<&'c [u8]>> {
        on!(self, c => c.key())
    }

    /// To the first record with a key not less than `key`, or after all; true if the key is there.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        on!(self, c => {
            let found = c.seek_back(key, None, false)?;
            if c.gap() != Gap::None {
                c.set_flags(Gap::None, false);
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
    ) -> Result<Option<RawPair<'c>>> {
        on!(self, c => {
            let found = c.seek_value_by(Seek::GreaterOrEqual, key, value)?;
            Ok(found.filter(|(_, own)| !exact || c.is_same_value(value, own)))
        })
    }

    /// After the last value of `key`, or where that would be.
    pub fn seek_behind(&mut self, key: &[u8]) -> Result<bool> {
        on!(self, c => c.seek_back(key, None, true))
    }

    /// The number of values of this key; 0 when there is none.
    pub fn count(&mut self) -> Result<u64> {
        on!(self, c => Ok(c.count()?.unwrap_or(0)))
    }

    /// Whether there is nothing under the cursor, or its last step forward found nothing.
    pub fn eof(&mut self) -> Result<bool> {
        on!(self, c => c.eof())
    }

    /// Whether it stands on the first record.
    pub fn on_first(&mut self) -> Result<bool> {
        on!(self, c => c.on_first(false))
    }

    /// Whether it stands on the last record.
    pub fn on_last(&mut self) -> Result<bool> {
        on!(self, c => c.on_last(false))
    }

    /// Whether it stands on the first value of its key.
    pub fn on_first_value(&mut self) -> Result<bool> {
        on!(self, c => c.on_first(true))
    }

    /// Whether it stands on the last value of its key.
    pub fn on_last_value(&mut self) -> Result<bool> {
        on!(self, c => c.on_last(true))
    }

    /// The values that lie together with this one, all of one size, and to the last of them.
    pub fn multiple(&mut self) -> Result<Option<&'c [u8]>> {
        on!(self, c => Ok(c.packed_here()?.map(|(bytes, _)| bytes)))
    }

    /// As `multiple`, of the values before those that lie together with this one.
    pub fn multiple_before(&mut self) -> Result<Option<&'c [u8]>> {
        on!(self, c => Ok(c.packed_before()?.map(|(bytes, _)| bytes)))
    }
}

#[doc(hidden)]
impl ReadTxn {
    /// A cursor in its table.
    #[inline]
    pub fn raw_at<'c>(
        &'c self,
        cursor: &'c mut RawCursor,
        table: &'c RawTable,
    ) -> Result<RawAt<'c>> {
        let RawCursor { state, note } = cursor;
        Ok(RawAt { inner: Inner::Read(state.at(self.snapshot(), table.tree())?), note })
    }

    /// Before the snapshot goes: a cursor notes its record. After an error it stands nowhere.
    pub fn raw_park_cursor(&self, cursor: &mut RawCursor, table: &RawTable) -> Result<()> {
        let noted = cursor.state.note(self.snapshot(), table.tree());
        cursor.state.lose_way();
        noted
    }
}

#[doc(hidden)]
impl WriteTxn {
    /// Opens a cursor of the registry, which stands nowhere yet.
    pub fn raw_open_cursor(&mut self, table: TableRef) -> CursorId {
        self.cursors.open(table, RawCursor::default())
    }

    /// A cursor of the registry.
    #[inline]
    pub fn raw_cursor(&mut self, id: CursorId) -> Result<&mut RawCursor> {
        self.cursors.cursor(id)
    }

    /// From now on it belongs to this table.
    pub fn raw_set_table(&mut self, id: CursorId, table: TableRef) -> Result<()> {
        self.cursors.set_table(id, table)
    }

    /// The cursors on a table note their records, as a change of it has them do.
    pub fn raw_park(&mut self, table: TableRef) -> Result<()> {
        self.cursors.note(&self.ws, &self.catalogue, table)
    }

    /// A cursor of the registry in its table.
    #[inline]
    pub fn raw_at(&mut self, id: CursorId, table: TableRef) -> Result<RawAt<'_>> {
        self.cursors.set_table(id, table)?;
        let RawCursor { state, note } = self.cursors.cursor(id)?;
        let inner = Inner::Write(state.at(self.ws.view(), self.catalogue.tree(table)?)?);
        Ok(RawAt { inner, note })
    }

    /// The same of a cursor that is not in the registry: for one look-up, before the next change.
    pub fn raw_look<'c>(&'c self, cursor: &'c mut RawCursor, table: TableRef) -> Result<RawAt<'c>> {
        let RawCursor { state, note } = cursor;
        Ok(RawAt { inner: Inner::Write(state.at(self.ws.view(), self.tree(table)?)?), note })
    }

    /// The cursors on a table that stand on a pair with these bytes, for a change that puts another value there.
    pub fn raw_standing_on(
        &mut self,
        table: TableRef,
        key: &[u8],
        value: &[u8],
    ) -> Result<Standing> {
        self.raw_park(table)?;
        Ok(self.cursors.on(table, |cursor| cursor.is_noted(key, Some(value))))
    }

    /// Puts cursors back where they were, on the value that is there now.
    pub fn raw_stand_again(&mut self, standing: Standing, value: &[u8]) {
        self.cursors.restore(standing, value);
    }

    /// A table is going to lose all its records: its cursors stand nowhere.
    pub fn raw_leave(&mut self, table: TableRef) {
        self.cursors.reset(table);
    }

    /// Removes the pair at a place, or with `all` the key with all its values. It is found by its place: no
    /// function of the caller's is asked. False where there is none. Cursors on it stand before what followed.
    pub fn raw_remove(&mut self, mut at: RawCursor, table: TableRef, all: bool) -> Result<bool> {
        at.state.note(self.ws.view(), self.tree(table)?)?;
        if table == TableRef::CATALOGUE {
            return Err(Error::incompatible("names of tables are not removed so"));
        }
        // Pages may be written out: the place is looked for behind that.
        self.change(table)?;
        let removed = {
            let tree = self.tree(table)?;
            let cursor = at.state.at(self.ws.view(), tree)?;
            let value = match cursor.pair()? {
                Some((_, value)) if tree.desc.options.has_duplicates() && !all => {
                    Some(value.to_vec())
                }
                None if !all => return Ok(false),
                _ => None,
            };
            let Some(key) = cursor.key()? else { return Ok(false) };
            let (key, next) = (key.to_vec(), cursor.successor(all)?);
            Removed { key, value, next, place: cursor.place() }
        };
        self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            let (keys, values) = removed.place.clone();
            match removed.value {
                None => remove::remove_at(ws, tree, keys.into_path()),
                Some(_) => pairs::remove_value_at(ws, tree, keys.into_path(), values),
            }
        })?;
        self.cursors.follow(table, self.catalogue.tree(table)?, &removed);
        Ok(true)
    }
}
