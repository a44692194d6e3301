//! The cursors of the write transaction, those of the Rust API and those of the C interface. They live in
//! it, so that one table can have many and stay right while the table changes, through one of them or
//! otherwise.
//!
//! Before a table changes, each cursor on it notes its record; when it is next used it finds it again. What
//! is deleted under a cursor leaves it before what followed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::dirty::Workspace;
use crate::error::{Error, Result};
use crate::planted::{Bug, has};
use crate::tree::Tree;
use crate::tree::cursor::{CursorState, Removed, Stand};
use crate::txn::catalogue::{Catalogue, TableRef};
use crate::txn::raw::cursor::RawCursor;
use crate::txn::table_id::TableId;
use crate::txn::write::WriteTxn;

use super::write::WriteCursor;

/// A cursor of a write transaction, for use in that transaction only.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let table = txn.table_id_or_create("t")?;
/// table.put(&mut txn, "a", "1")?;
/// table.put(&mut txn, "b", "2")?;
/// // Two positions in one table that changes.
/// let (low, high) = (txn.open_cursor(table)?, txn.open_cursor(table)?);
/// txn.cursor(low)?.first()?;
/// txn.cursor(high)?.last()?;
/// txn.cursor(low)?.delete()?;
/// assert_eq!(txn.cursor(high)?.current()?, Some((&b"b"[..], &b"2"[..])));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CursorId {
    index: usize,
    serial: u64,
}

/// Numbers transactions and cursors of this process, so that none is taken for another.
static SERIAL: AtomicU64 = AtomicU64::new(1);

fn serial() -> u64 {
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

const NO_CURSOR: Error = Error::Invalid("the cursor is closed or belongs to another transaction");

/// A cursor in the registry.
#[derive(Clone)]
struct Entry {
    serial: u64,
    table: TableRef,
    cursor: RawCursor,
}

/// All cursors of a write transaction.
pub(in crate::txn) struct Cursors {
    /// Number of the transaction, in this process.
    txn: u64,
    entries: Vec<Option<Entry>>,
    /// What each nesting level found.
    levels: Vec<Vec<Option<Entry>>>,
}

/// Cursors that stood on a pair whose value is about to be replaced.
pub struct Standing(Vec<(CursorId, CursorState)>);

impl Cursors {
    pub(in crate::txn) fn new() -> Cursors {
        Cursors { txn: serial(), entries: Vec::new(), levels: Vec::new() }
    }

    /// The transaction's number.
    pub(in crate::txn) fn txn(&self) -> u64 {
        self.txn
    }

    /// Opens a cursor without a place.
    pub(in crate::txn) fn open(&mut self, table: TableRef, cursor: RawCursor) -> CursorId {
        let serial = serial();
        let index = match self.entries.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.entries.push(None);
                self.entries.len() - 1
            }
        };
        self.entries[index] = Some(Entry { serial, table, cursor });
        CursorId { index, serial }
    }

    fn close(&mut self, id: CursorId) {
        if let Some(entry) = self.entries.get_mut(id.index) {
            entry.take_if(|entry| entry.serial == id.serial);
        }
    }

    fn entry(&mut self, id: CursorId) -> Result<&mut Entry> {
        let entry = self.entries.get_mut(id.index).and_then(Option::as_mut);
        entry.filter(|entry| entry.serial == id.serial).ok_or(NO_CURSOR)
    }

    /// A cursor.
    #[inline]
    pub(in crate::txn) fn cursor(&mut self, id: CursorId) -> Result<&mut RawCursor> {
        self.entry(id).map(|entry| &mut entry.cursor)
    }

    /// A cursor's table, and its place.
    pub(super) fn place(&mut self, id: CursorId) -> Result<(TableRef, &mut CursorState)> {
        let entry = self.entry(id)?;
        Ok((entry.table, &mut entry.cursor.state))
    }

    /// The table behind a cursor's handle may be another one since it was opened.
    pub(in crate::txn) fn set_table(&mut self, id: CursorId, table: TableRef) -> Result<()> {
        let entry = self.entry(id)?;
        if entry.table != table {
            entry.table = table;
            entry.cursor.state.lose_way();
        }
        Ok(())
    }

    fn on_table(&mut self, table: TableRef) -> impl Iterator<Item = &mut RawCursor> {
        let on = self.entries.iter_mut().flatten().filter(move |entry| entry.table == table);
        on.map(|entry| &mut entry.cursor)
    }

    // ---- while tables change ----

    /// The cursors on a table that is about to change note their records.
    #[inline(always)]
    pub(in crate::txn) fn note(
        &mut self,
        ws: &Workspace,
        catalogue: &Catalogue,
        table: TableRef,
    ) -> Result<()> {
        if self.entries.is_empty() || has(Bug::CursorsNotNoted) {
            return Ok(());
        }
        self.note_some(ws, catalogue, table)
    }

    fn note_some(&mut self, ws: &Workspace, catalogue: &Catalogue, table: TableRef) -> Result<()> {
        self.on_table(table).try_for_each(|cursor| {
            cursor.forget_end();
            match cursor.state.stand() {
                Stand::On => cursor.state.note(ws.view(), catalogue.tree(table)?),
                _ => Ok(()),
            }
        })
    }

    /// All cursors note their records, before pages move.
    pub(in crate::txn) fn note_all(&mut self, ws: &Workspace, catalogue: &Catalogue) -> Result<()> {
        (0..self.entries.len()).try_for_each(|i| match &self.entries[i] {
            Some(entry) => self.note(ws, catalogue, entry.table),
            None => Ok(()),
        })
    }

    /// A pair, or a key with all its values, was deleted: cursors that stood on it stand before what
    /// followed, those of a table that has become empty nowhere.
    pub(in crate::txn) fn after_delete(
        &mut self,
        ws: &Workspace,
        catalogue: &Catalogue,
        table: TableRef,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let tree = catalogue.tree(table)?;
        if tree.desc.depth == 0 {
            self.reset(table);
            return Ok(());
        }
        let mut found = None;
        for cursor in self.on_table(table) {
            if !cursor.state.stands_on(tree, key, value) {
                continue;
            }
            let place = match &mut found {
                Some(place) => place,
                none => {
                    let mut place = CursorState::default();
                    place.at(ws.view(), tree)?.seek_back(key, value, false)?;
                    none.insert(place)
                }
            };
            cursor.state.stand_as(place);
        }
        Ok(())
    }

    /// The same where no function of the caller's may be asked: records are known by the bytes that were noted.
    pub(in crate::txn) fn follow(&mut self, table: TableRef, tree: &Tree, removed: &Removed) {
        if tree.desc.depth == 0 {
            return self.reset(table);
        }
        self.on_table(table).for_each(|cursor| cursor.state.follow(removed));
    }

    /// The cursors on a table that stand on a pair; they must have noted it.
    pub(in crate::txn) fn on(
        &mut self,
        table: TableRef,
        stands: impl Fn(&CursorState) -> bool,
    ) -> Standing {
        let entries = self.entries.iter().enumerate();
        let on = entries.filter_map(|(index, entry)| {
            let entry = entry.as_ref()?;
            let state = &entry.cursor.state;
            let id = CursorId { index, serial: entry.serial };
            (entry.table == table && stands(state)).then(|| (id, state.clone()))
        });
        Standing(on.collect())
    }

    /// Puts cursors back as they were, on the value that is there now.
    pub(in crate::txn) fn restore(&mut self, standing: Standing, value: &[u8]) {
        for (id, mut state) in standing.0 {
            state.replace_value(value);
            if let Ok(cursor) = self.cursor(id) {
                cursor.state = state;
            }
        }
    }

    /// A table lost all its records, or went itself: its cursors stand nowhere.
    pub(in crate::txn) fn reset(&mut self, table: TableRef) {
        self.on_table(table).for_each(RawCursor::leave);
    }

    /// A table has another reference.
    pub(in crate::txn) fn move_to(&mut self, from: TableRef, to: TableRef) {
        let entries = self.entries.iter_mut().flatten();
        entries.filter(|entry| entry.table == from).for_each(|entry| entry.table = to);
    }

    // ---- nesting ----

    /// Opens a nesting level. When it is undone the trees have other versions: the cursors note their records.
    pub(in crate::txn) fn begin_level(
        &mut self,
        ws: &Workspace,
        catalogue: &Catalogue,
    ) -> Result<()> {
        self.note_all(ws, catalogue)?;
        self.levels.push(self.entries.clone());
        Ok(())
    }

    /// Hands what the innermost level did to the level outside.
    pub(in crate::txn) fn fold_level(&mut self) {
        self.levels.pop();
    }

    /// Brings back the cursors as the innermost level found them; those opened in it are closed.
    pub(in crate::txn) fn undo_level(&mut self) {
        let Some(saved) = self.levels.pop() else { return };
        if has(Bug::CursorsNotRestored) {
            return;
        }
        let old = std::mem::replace(&mut self.entries, saved);
        for (i, entry) in self.entries.iter_mut().enumerate() {
            // Closed in the level.
            let now = old.get(i).and_then(Option::as_ref).map(|entry| entry.serial);
            entry.take_if(|entry| now != Some(entry.serial));
        }
    }
}

impl WriteTxn {
    /// Opens a cursor without a place. One table can have any number; they stay right
    /// while it changes. A cursor opened in a nested level is closed when the level is undone.
    pub fn open_cursor(&mut self, table: TableId) -> Result<CursorId> {
        let table = self.table_of(table)?;
        Ok(self.cursors.open(table, RawCursor::of_rust()))
    }

    /// A cursor that was opened before.
    pub fn cursor(&mut self, id: CursorId) -> Result<WriteCursor<'_>> {
        self.check()?;
        self.cursors.cursor(id)?;
        Ok(WriteCursor::new(self, id, false))
    }

    /// Closes a cursor.
    pub fn close_cursor(&mut self, id: CursorId) {
        self.cursors.close(id);
    }

    /// The key under a cursor and the value, if there is one; the cursor notes them. None where it stands
    /// on no record.
    pub(super) fn under_cursor(&mut self, id: CursorId) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let pages = self.ws.view();
        let (table, state) = self.cursors.place(id)?;
        let tree = self.catalogue.tree(table)?;
        // Where its record may be gone the cursor stands on another.
        state.at(pages, tree)?;
        state.note(pages, tree)?;
        Ok(state.noted_pair())
    }
}
