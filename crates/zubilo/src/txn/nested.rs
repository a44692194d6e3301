//! Nested levels of the write transaction: all changes since a savepoint can be undone.

use crate::env::meta::StoredGeometry;
use crate::error::Result;
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

impl WriteTxn {
    /// Runs `change` in a nested level: if it gives an error (or panics), everything it did is
    /// undone, and the transaction goes on as before.
    pub fn nested<T, E: From<crate::Error>>(
        &mut self,
        change: impl FnOnce(&mut WriteTxn) -> Result<T, E>,
    ) -> Result<T, E> {
        /// Undoes the level when the closure unwinds.
        struct Undo<'t>(Option<&'t mut WriteTxn>);
        impl Drop for Undo<'_> {
            fn drop(&mut self) {
                if let Some(txn) = self.0.take() {
                    txn.abort_nested();
                }
            }
        }
        self.begin_nested()?;
        let depth = self.savepoints.len();
        let mut undo = Undo(Some(self));
        let Some(txn) = undo.0.as_deref_mut() else { unreachable!("set above") };
        let result = change(txn);
        while txn.savepoints.len() > depth {
            txn.abort_nested();
        }
        let committed = result.is_ok() && !txn.broken;
        let broken = result.is_ok() && txn.broken;
        let Some(txn) = undo.0.take() else { unreachable!("set above") };
        if committed {
            txn.commit_nested();
        } else {
            txn.abort_nested();
        }
        match result {
            Ok(_) if broken => Err(crate::Error::TxnBroken.into()),
            result => result,
        }
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

    /// Ends the innermost level and hands what it did to the level outside; nothing happens where
    /// there is none.
    pub fn commit_nested(&mut self) {
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

    /// Ends the innermost level and undoes what it did, also what broke it. Tables and cursors opened in
    /// it are closed. Nothing happens where there is no level.
    pub fn abort_nested(&mut self) {
        let Some(inner) = self.savepoints.pop() else { return };
        let spilled = self.ws.abort_level();
        if let Some(state) = &mut self.state {
            spilled.into_iter().for_each(|extent| state.space.give_back(extent));
        }
        for opened in self.tables.drain(inner.table_count..) {
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
