//! The cursors of the write transaction. They live in it, so that many can stand in one table and
//! stay right while the table changes, through one of them or otherwise.
//!
//! Before a table changes, each cursor on it is parked ([`Slot`]). What is deleted under a cursor
//! leaves it before what followed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::tree::Tree;
use crate::tree::pair_cursor::{Mark, PairCursor};
use crate::txn::table_id::TableId;
use crate::txn::write::{OpenTable, WriteTxn};

use super::slot::Slot;
use super::write::WriteCursor;

/// A cursor of a write transaction, for use in that transaction only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CursorId {
    index: usize,
    serial: u64,
}

impl CursorId {
    pub(super) fn index(self) -> usize {
        self.index
    }
}

/// Numbers transactions and cursors of this process, so that none is taken for another.
static SERIAL: AtomicU64 = AtomicU64::new(1);

fn serial() -> u64 {
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

/// All cursors of a write transaction.
#[derive(Default)]
pub(in crate::txn) struct Cursors {
    /// Number of the transaction, in this process.
    pub(in crate::txn) txn: u64,
    pub(in crate::txn) slots: Vec<Option<Slot>>,
}

impl Cursors {
    pub(in crate::txn) fn new() -> Cursors {
        Cursors { txn: serial(), slots: Vec::new() }
    }

    pub(super) fn slot_mut(&mut self, index: usize) -> Result<&mut Slot> {
        self.slots.get_mut(index).and_then(Option::as_mut).ok_or(NO_CURSOR)
    }

    fn on_table(&mut self, table: usize) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().flatten().filter(move |slot| slot.table == table)
    }
}

const NO_CURSOR: Error = Error::Invalid("the cursor is closed or belongs to another transaction");

/// The tree of an open table.
pub(super) fn tree_of(tables: &[OpenTable], table: usize) -> Result<&Tree> {
    tables.get(table).filter(|t| !t.gone).map(|t| &t.tree).ok_or(Error::NoSuchTable)
}

impl WriteTxn {
    /// Opens a cursor that stands nowhere yet. Any number can stand in one table; they stay right
    /// while it changes. A cursor opened in a nested level is closed when the level is undone.
    pub fn open_cursor(&mut self, table: TableId) -> Result<CursorId> {
        let table = self.index_of(table)?;
        Ok(self.new_cursor(table))
    }

    pub(in crate::txn) fn new_cursor(&mut self, table: usize) -> CursorId {
        let serial = serial();
        let slots = &mut self.cursors.slots;
        let index = match slots.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                slots.push(None);
                slots.len() - 1
            }
        };
        slots[index] = Some(Slot::new(serial, table));
        CursorId { index, serial }
    }

    /// A cursor that was opened before.
    pub fn cursor(&mut self, id: CursorId) -> Result<WriteCursor<'_>> {
        self.check()?;
        let slot = self.cursors.slot_mut(id.index)?;
        if slot.serial != id.serial {
            return Err(NO_CURSOR);
        }
        Ok(WriteCursor::new(self, id, false))
    }

    /// Closes a cursor.
    pub fn close_cursor(&mut self, id: CursorId) {
        if let Some(slot) = self.cursors.slots.get_mut(id.index) {
            slot.take_if(|slot| slot.serial == id.serial);
        }
    }

    // ---- while tables change ----

    /// Parks the cursors on a table that is about to change.
    pub(in crate::txn) fn park_cursors(&mut self, table: usize) -> Result<()> {
        let pages = self.ws.view();
        let Some(open) = self.tables.get(table) else { return Ok(()) };
        for slot in self.cursors.on_table(table) {
            slot.park(pages, &open.tree)?;
        }
        Ok(())
    }

    /// Parks all cursors, before pages move.
    pub(in crate::txn) fn park_all_cursors(&mut self) -> Result<()> {
        for table in 0..self.tables.len() {
            self.park_cursors(table)?;
        }
        Ok(())
    }

    /// A pair, or a key with all its values, was deleted: cursors that stood on it stand before what
    /// followed, those of a table that has become empty nowhere.
    pub(in crate::txn) fn cursors_after_delete(
        &mut self,
        table: usize,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        if self.tree(table).desc.depth == 0 {
            self.reset_cursors(table);
            return Ok(());
        }
        let pages = self.ws.view();
        let Some(open) = self.tables.get(table) else { return Ok(()) };
        let mut place = None;
        for slot in self.cursors.on_table(table) {
            if !slot.stands_on(&open.tree, key, value) {
                continue;
            }
            if place.is_none() {
                let mut cursor = PairCursor::new(pages, &open.tree);
                cursor.seek_back(key, value, false)?;
                place = Some(cursor.detach());
            }
            let before_record = slot.position.mark == Mark::Key;
            slot.position = place.clone().unwrap_or_default();
            if before_record && slot.position.mark == Mark::Value {
                slot.position.mark = Mark::Key;
            }
            slot.parked = false;
        }
        Ok(())
    }

    /// The cursors that stand on a pair, parked.
    pub(in crate::txn) fn cursors_on(
        &mut self,
        table: usize,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Vec<(usize, Slot)>> {
        self.park_cursors(table)?;
        let tree = tree_of(&self.tables, table)?;
        let slots = self.cursors.slots.iter().enumerate();
        let on = |slot: &&Slot| slot.table == table && slot.stands_on(tree, key, value);
        Ok(slots.filter_map(|(i, slot)| Some((i, slot.as_ref().filter(on)?.clone()))).collect())
    }

    /// Puts a cursor back as it was.
    pub(in crate::txn) fn restore_cursor(&mut self, index: usize, slot: Slot) {
        if let Some(place) = self.cursors.slots.get_mut(index) {
            *place = Some(slot);
        }
    }

    /// A table lost all its records, or went itself: its cursors stand nowhere.
    pub(in crate::txn) fn reset_cursors(&mut self, table: usize) {
        self.cursors.on_table(table).for_each(Slot::forget);
    }

    /// A table has another index.
    pub(in crate::txn) fn move_cursors(&mut self, from: usize, to: usize) {
        self.cursors.on_table(from).for_each(|slot| slot.table = to);
    }

    /// Brings back the cursors as a nested level found them; those opened in it are closed.
    pub(in crate::txn) fn restore_cursors(&mut self, saved: Vec<Option<Slot>>) {
        let old = std::mem::replace(&mut self.cursors.slots, saved);
        for (i, slot) in self.cursors.slots.iter_mut().enumerate() {
            // Closed in the level.
            let now = old.get(i).and_then(Option::as_ref).map(|slot| slot.serial);
            slot.take_if(|slot| now != Some(slot.serial));
        }
    }

    /// Places a cursor on a pair that was just stored.
    pub(in crate::txn) fn place_cursor(
        &mut self,
        index: usize,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        self.cursors.slot_mut(index)?.place_on(key, value);
        Ok(())
    }

    /// The value under a parked cursor was replaced; what it remembers besides stays.
    pub(in crate::txn) fn replace_under_cursor(
        &mut self,
        index: usize,
        value: &[u8],
    ) -> Result<()> {
        self.cursors.slot_mut(index)?.replace_value(value);
        Ok(())
    }

    /// The key under a cursor and the value, if there is one; parks the cursor. None where it stands
    /// on no record.
    pub(super) fn under_cursor(&mut self, index: usize) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let pages = self.ws.view();
        let slot = self.cursors.slot_mut(index)?;
        let tree = tree_of(&self.tables, slot.table)?;
        if slot.parked {
            // Where its record may be gone the cursor stands on another.
            let cursor = slot.resume(pages, tree)?;
            slot.keep(cursor, &Ok(()));
        }
        slot.park(pages, tree)?;
        Ok(slot.noted_pair())
    }
}
