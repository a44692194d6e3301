//! The cursors of the write transaction. They live in it, so that many can stand in one table and
//! stay right while the table changes, through one of them or otherwise.
//!
//! Before a table changes, each cursor on it is *parked*: it keeps the key and value it stands on
//! instead of its way there, and seeks again when it is next asked. What is deleted under a cursor
//! leaves it before what followed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::dirty::View;
use crate::error::{Error, Result};
use crate::tree::pair_cursor::{Mark, PairCursor, Position, Stand};
use crate::tree::{Pages, Tree};

use super::options::TableOptions;
use super::write::{OpenTable, WriteTxn};
use super::write_cursor::WriteCursor;
use super::write_table::WriteTable;

/// A table that a write transaction has opened, for use in that transaction only; spares the look-up
/// of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId {
    txn: u64,
    table: usize,
    identity: u32,
}

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

/// A cursor.
#[derive(Clone, Default)]
pub(super) struct Slot {
    serial: u64,
    /// Index of its table.
    pub(super) table: usize,
    position: Position,
    /// The position is told by key and value instead of by its way.
    parked: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Of a parked cursor: on this value, behind the key's values, or just on the key.
    at: At,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Key,
    Value,
    Behind,
}

impl Slot {
    /// The cursor at its place.
    pub(super) fn resume<'w, P: Pages<'w>>(
        &mut self,
        pages: P,
        tree: &Tree,
    ) -> Result<PairCursor<'w, P>> {
        let position = std::mem::take(&mut self.position);
        if !std::mem::take(&mut self.parked) {
            return PairCursor::resume(pages, tree, position);
        }
        self.sought(pages, tree, &position)
    }

    /// A cursor that has sought the key and value that are noted.
    fn sought<'w, P: Pages<'w>>(
        &self,
        pages: P,
        tree: &Tree,
        position: &Position,
    ) -> Result<PairCursor<'w, P>> {
        let mut cursor = PairCursor::new(pages, tree);
        let value = (self.at == At::Value).then_some(&self.value[..]);
        let found = cursor.seek_back(&self.key, value, self.at == At::Behind)?;
        // Before a record it stays, whatever becomes of the record's values.
        if found || (position.mark == Mark::Key && cursor.mark() == Mark::Value) {
            cursor.set_flags(position.mark, position.eof);
        }
        Ok(cursor)
    }

    /// The cursor at the place that `note` has kept, as often as wanted.
    pub(super) fn again<'w, P: Pages<'w>>(
        &self,
        pages: P,
        tree: &Tree,
    ) -> Result<PairCursor<'w, P>> {
        if self.parked {
            return self.sought(pages, tree, &self.position);
        }
        PairCursor::resume(pages, tree, self.position.clone())
    }

    /// Stands nowhere; the memory for keys and values is kept.
    pub(super) fn forget(&mut self) {
        self.position = Position::default();
        self.parked = false;
    }

    /// Whether it stands on a record, or behind the last one.
    pub(super) fn is_placed(&self) -> bool {
        self.position.stand != Stand::Unset
    }

    /// The key that is noted.
    pub(super) fn noted_key(&self) -> Option<&[u8]> {
        self.parked.then_some(&self.key[..])
    }

    /// Stands where another does that `note` has kept.
    pub(super) fn place_as(&mut self, other: &Slot) {
        let (serial, table) = (self.serial, self.table);
        *self = Slot { serial, table, ..other.clone() };
    }

    /// Keeps the place of a cursor that was resumed; after an error it stands nowhere.
    pub(super) fn keep<'w, T>(&mut self, cursor: PairCursor<'w, View<'w>>, result: &Result<T>) {
        self.position = if result.is_ok() { cursor.detach() } else { Position::default() };
        self.parked = false;
    }

    /// Replaces the way by key and value.
    fn park(&mut self, pages: View<'_>, tree: &Tree) -> Result<()> {
        if self.parked || self.position.stand != Stand::On {
            return Ok(());
        }
        let cursor = self.resume(pages, tree)?;
        self.note(&cursor)
    }

    /// Keeps the key and value that a cursor stands on.
    pub(super) fn note<'w, P: Pages<'w>>(&mut self, cursor: &PairCursor<'w, P>) -> Result<()> {
        self.forget();
        if cursor.stand() != Stand::On {
            self.position = cursor.off_records();
            return Ok(());
        }
        let Some(key) = cursor.key()? else { return Ok(()) };
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.at = match cursor.pair()? {
            None => At::Behind,
            Some((_, value)) if cursor.has_duplicates() => {
                self.value.extend_from_slice(value);
                At::Value
            }
            Some(_) => At::Key,
        };
        self.position = Position::parked(cursor.mark(), cursor.is_past());
        self.parked = true;
        Ok(())
    }

    /// Stands on a pair that was just stored.
    pub(super) fn place_on(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value.unwrap_or_default());
        self.at = if value.is_some() { At::Value } else { At::Key };
        self.position = Position::parked(Mark::None, false);
        self.parked = true;
    }

    /// Where it is parked on a value another one is now.
    pub(super) fn replace_value(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value);
    }

    /// Whether the parked cursor stands on this pair, or without a value on this key.
    pub(super) fn stands_on(&self, tree: &Tree, key: &[u8], value: Option<&[u8]>) -> bool {
        self.parked
            && tree.order.compare(&self.key, key).is_eq()
            && match value.filter(|_| tree.desc.options.has_duplicates()) {
                Some(value) => {
                    self.at == At::Value && tree.values.compare(&self.value, value).is_eq()
                }
                None => true,
            }
    }
}

/// All cursors of a write transaction.
#[derive(Default)]
pub(super) struct Cursors {
    /// Number of the transaction, in this process.
    txn: u64,
    pub(super) slots: Vec<Option<Slot>>,
}

impl Cursors {
    pub(super) fn new() -> Cursors {
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
    /// The table `name`, to be named by its number from here on.
    pub fn table_id(&mut self, name: impl AsRef<[u8]>) -> Result<TableId> {
        Ok(self.table(name)?.id())
    }

    /// As [`WriteTxn::table_id`], for a table that was created with these options.
    pub fn table_id_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<TableId> {
        Ok(self.table_with(name, options)?.id())
    }

    pub(super) fn id_of(&self, table: usize) -> TableId {
        let identity = self.tree(table).desc.table;
        TableId { txn: self.cursors.txn, table, identity }
    }

    /// The table that an identity names.
    pub fn at(&mut self, id: TableId) -> Result<WriteTable<'_>> {
        let index = self.index_of(id)?;
        Ok(WriteTable { txn: self, index })
    }

    pub(super) fn index_of(&self, id: TableId) -> Result<usize> {
        self.check()?;
        let known = self.tables.get(id.table).is_some_and(|t| {
            !t.gone && t.tree.desc.table == id.identity && id.txn == self.cursors.txn
        });
        if known { Ok(id.table) } else { Err(Error::NoSuchTable) }
    }

    /// Opens a cursor that stands nowhere yet. Any number can stand in one table; they stay right
    /// while it changes. A cursor opened in a nested level is closed when the level is undone.
    pub fn open_cursor(&mut self, table: TableId) -> Result<CursorId> {
        let table = self.index_of(table)?;
        Ok(self.new_cursor(table))
    }

    pub(super) fn new_cursor(&mut self, table: usize) -> CursorId {
        let slot = Slot { serial: serial(), table, ..Slot::default() };
        let serial = slot.serial;
        let slots = &mut self.cursors.slots;
        let index = match slots.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                slots.push(None);
                slots.len() - 1
            }
        };
        slots[index] = Some(slot);
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
    pub(super) fn park_cursors(&mut self, table: usize) -> Result<()> {
        let pages = self.ws.view();
        let Some(open) = self.tables.get(table) else { return Ok(()) };
        for slot in self.cursors.on_table(table) {
            slot.park(pages, &open.tree)?;
        }
        Ok(())
    }

    /// Parks all cursors, before pages move.
    pub(super) fn park_all_cursors(&mut self) -> Result<()> {
        for table in 0..self.tables.len() {
            self.park_cursors(table)?;
        }
        Ok(())
    }

    /// A pair, or a key with all its values, was deleted: cursors that stood on it stand before what
    /// followed, those of a table that has become empty nowhere.
    pub(super) fn cursors_after_delete(
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
    pub(super) fn cursors_on(
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
    pub(super) fn restore_cursor(&mut self, index: usize, slot: Slot) {
        if let Some(place) = self.cursors.slots.get_mut(index) {
            *place = Some(slot);
        }
    }

    /// A table lost all its records, or went itself: its cursors stand nowhere.
    pub(super) fn reset_cursors(&mut self, table: usize) {
        self.cursors.on_table(table).for_each(Slot::forget);
    }

    /// A table has another index.
    pub(super) fn move_cursors(&mut self, from: usize, to: usize) {
        self.cursors.on_table(from).for_each(|slot| slot.table = to);
    }

    /// Brings back the cursors as a nested level found them; those opened in it are closed.
    pub(super) fn restore_cursors(&mut self, saved: Vec<Option<Slot>>) {
        let old = std::mem::replace(&mut self.cursors.slots, saved);
        for (i, slot) in self.cursors.slots.iter_mut().enumerate() {
            // Closed in the level.
            let now = old.get(i).and_then(Option::as_ref).map(|slot| slot.serial);
            slot.take_if(|slot| now != Some(slot.serial));
        }
    }

    /// Places a cursor on a pair that was just stored.
    pub(super) fn place_cursor(
        &mut self,
        index: usize,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        self.cursors.slot_mut(index)?.place_on(key, value);
        Ok(())
    }

    /// The value under a parked cursor was replaced; what it remembers besides stays.
    pub(super) fn replace_under_cursor(&mut self, index: usize, value: &[u8]) -> Result<()> {
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
        let on = slot.parked && slot.at != At::Behind;
        Ok(on.then(|| (slot.key.clone(), slot.value.clone())))
    }
}
