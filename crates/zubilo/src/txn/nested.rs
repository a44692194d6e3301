//! Nested levels of the write transaction: all changes since a savepoint can be undone.

use crate::env::meta::StoredGeometry;
use crate::error::{Error, Result};
use crate::tree::TreeDesc;

use super::cursor::Slot;
use super::write::WriteTxn;

/// What must be put back when a level is undone. Tables are saved when the level first changes
/// them.
pub(super) struct Savepoint {
    main: Option<TreeDesc>,
    tables: Vec<SavedTable>,
    table_count: usize,
    next_table: u32,
    canary: [u64; 4],
    geometry: StoredGeometry,
    cursors: Vec<Option<Slot>>,
}

struct SavedTable {
    index: usize,
    desc: TreeDesc,
    gone: bool,
    saved_level: u32,
}

/// A level that a closure runs in. While it is there the levels outside belong to the closure's caller:
/// the closure can neither end them nor commit. Dropped, as when the closure unwinds, it undoes its level.
struct Scope<'t> {
    txn: &'t mut WriteTxn,
    /// Levels open while the closure has opened none itself.
    depth: usize,
    /// What the transaction's `floor` was outside.
    outside: usize,
}

impl<'t> Scope<'t> {
    fn begin(txn: &'t mut WriteTxn) -> Result<Scope<'t>> {
        txn.begin_nested()?;
        let depth = txn.savepoints.len();
        let outside = std::mem::replace(&mut txn.floor, depth);
        Ok(Scope { txn, depth, outside })
    }

    /// False if the closure has put another transaction in the place of its own. Nobody knows what became
    /// of that one, and this one's levels are not the closure's.
    fn is_ours(&mut self) -> bool {
        let ours = self.txn.floor == self.depth;
        self.txn.broken |= !ours;
        ours
    }

    /// Hands the level, and what the closure left open in it, to the level outside.
    fn keep(mut self) -> Result<()> {
        if !self.is_ours() || self.txn.broken {
            // What broke it goes with the level.
            return Err(Error::TxnBroken);
        }
        while self.txn.savepoints.len() >= self.depth {
            self.txn.fold_level();
        }
        Ok(())
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if self.is_ours() {
            while self.txn.savepoints.len() >= self.depth {
                self.txn.undo_level();
            }
            self.txn.floor = self.outside;
        }
    }
}

impl WriteTxn {
    /// Runs `change` in a nested level: if it gives an error (or panics), everything it did is
    /// undone, and the transaction goes on as before.
    ///
    /// Levels that `change` opens itself and leaves open end with it, in the same way. Levels that were
    /// open before are its caller's: it gets [`Error::NoNestedLevel`] if it tries to end them.
    pub fn nested<T, E: From<Error>>(
        &mut self,
        change: impl FnOnce(&mut WriteTxn) -> Result<T, E>,
    ) -> Result<T, E> {
        let scope = Scope::begin(self)?;
        let value = change(scope.txn)?;
        scope.keep()?;
        Ok(value)
    }

    /// Opens a nested level: what is done from here on can be undone by itself. Levels can be nested
    /// to any depth; [`WriteTxn::nested`] is safer where it fits.
    pub fn begin_nested(&mut self) -> Result<()> {
        self.check()?;
        self.ws.begin_level();
        self.savepoints.push(Savepoint {
            main: None,
            tables: Vec::new(),
            table_count: self.tables.len(),
            next_table: self.next_table,
            canary: self.canary,
            geometry: self.geometry,
            cursors: self.cursors.slots.clone(),
        });
        Ok(())
    }

    /// Ends the innermost level and hands what it did to the level outside.
    ///
    /// # Errors
    /// [`Error::NoNestedLevel`] if none is open, or only such as were open before the closure began that
    /// runs now; nothing happens then.
    pub fn commit_nested(&mut self) -> Result<()> {
        self.check_level()?;
        self.fold_level();
        Ok(())
    }

    /// Ends the innermost level and undoes what it did, also what broke it. Tables and cursors opened in
    /// it are closed.
    ///
    /// # Errors
    /// As [`WriteTxn::commit_nested`].
    pub fn abort_nested(&mut self) -> Result<()> {
        self.check_level()?;
        self.undo_level();
        Ok(())
    }

    /// Whether who calls may end the innermost level.
    fn check_level(&self) -> Result<()> {
        match self.savepoints.len() > self.floor {
            true => Ok(()),
            false => Err(Error::NoNestedLevel),
        }
    }

    /// Hands what the innermost level did to the level outside.
    pub(super) fn fold_level(&mut self) {
        let Some(inner) = self.savepoints.pop() else { return };
        if !self.ws.commit_level() {
            self.broken = true;
        }
        let level = self.savepoints.len() as u32;
        if let Some(outer) = self.savepoints.last_mut() {
            outer.main = outer.main.or(inner.main);
            for saved in inner.tables {
                // Saved by the outer level itself, or new in it: its own copy counts.
                if saved.saved_level < level && saved.index < outer.table_count {
                    outer.tables.push(saved);
                }
            }
        }
        for table in &mut self.tables {
            table.saved_level = table.saved_level.min(level);
        }
    }

    /// Undoes what the innermost level did.
    fn undo_level(&mut self) {
        let Some(inner) = self.savepoints.pop() else { return };
        let spilled = self.ws.abort_level();
        if let Some(state) = &mut self.state {
            spilled.into_iter().for_each(|extent| state.space.give_back(extent));
        }
        for opened in self.tables.iter().skip(inner.table_count) {
            self.names.remove(&opened.name);
        }
        for saved in inner.tables {
            if let Some(table) = self.tables.get_mut(saved.index) {
                if !saved.gone {
                    // A table opened after it was dropped may have had its name.
                    self.names.insert(table.name.clone(), saved.index);
                }
                table.tree.desc = saved.desc;
                table.gone = saved.gone;
                table.saved_level = saved.saved_level;
            }
        }
        if let Some(desc) = inner.main {
            self.main.desc = desc;
        }
        self.next_table = inner.next_table;
        self.canary = inner.canary;
        self.geometry = inner.geometry;
        self.restore_cursors(inner.cursors);
        // The level's own pages are gone with what broke them; the outer ones were not touched.
        self.broken = false;
        self.reset_fingers();
        // Last, as they hold comparators of the program, whose `Drop` may panic.
        self.tables.truncate(inner.table_count);
    }

    /// Forgets the trees' short cuts, after pages moved under them.
    pub(super) fn reset_fingers(&mut self) {
        self.main.finger.reset();
        self.tables.iter_mut().for_each(|t| t.tree.finger.reset());
    }

    pub(super) fn save_main(&mut self) {
        if let Some(savepoint) = self.savepoints.last_mut() {
            savepoint.main.get_or_insert(self.main.desc);
        }
    }

    pub(super) fn save_table(&mut self, index: usize) {
        let level = self.savepoints.len() as u32;
        let Some(table) = self.tables.get_mut(index) else { return };
        if let Some(savepoint) = self.savepoints.last_mut()
            && table.saved_level < level
        {
            savepoint.tables.push(SavedTable {
                index,
                desc: table.tree.desc,
                gone: table.gone,
                saved_level: table.saved_level,
            });
            table.saved_level = level;
        }
    }
}
