//! Nested levels of the write transaction: all changes since a savepoint can be undone.

use crate::error::{Error, Result};

use super::write::WriteTxn;

/// How many nesting levels are open, and whose they are. What is undone with a level each part of the
/// transaction keeps for itself.
#[derive(Default)]
pub(super) struct Levels {
    open: usize,
    /// Levels that belong to the caller of the closure that runs now; 0 outside of closures.
    floor: usize,
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
        let depth = txn.levels.open;
        let outside = std::mem::replace(&mut txn.levels.floor, depth);
        Ok(Scope { txn, depth, outside })
    }

    /// False if the closure has put another transaction in the place of its own. Nobody knows what became
    /// of that one, and this one's levels are not the closure's.
    fn is_ours(&mut self) -> bool {
        let ours = self.txn.levels.floor == self.depth;
        if !ours {
            self.txn.soundness.lose();
        }
        ours
    }

    /// Hands the level, and what the closure left open in it, to the level outside.
    fn keep(mut self) -> Result<()> {
        if !self.is_ours() || self.txn.soundness.is_broken() {
            // What broke it goes with the level.
            return Err(Error::TxnBroken);
        }
        while self.txn.levels.open >= self.depth {
            self.txn.fold_level();
        }
        Ok(())
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if self.is_ours() {
            while self.txn.levels.open >= self.depth {
                self.txn.undo_level();
            }
            self.txn.levels.floor = self.outside;
        }
    }
}

impl WriteTxn {
    /// Runs `change` in a nested level: if it gives an error (or panics), everything it did is
    /// undone, and the transaction goes on as before.
    ///
    /// Levels that `change` opens itself and leaves open end with it, in the same way. Levels that were
    /// open before are its caller's: it gets [`Error::NoNestedLevel`] if it tries to end them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// txn.table_or_create("t")?.put("key", "old")?;
    /// let undone = txn.nested(|txn| {
    ///     txn.table("t")?.put("key", "new")?;
    ///     txn.table("missing")?.put("key", "value")?;
    ///     Ok(())
    /// });
    /// assert!(matches!(undone, Err(zubilo::Error::NoSuchTable { .. })));
    /// assert_eq!(txn.table("t")?.get("key")?, Some(&b"old"[..]));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    ///
    /// The error is the store's; for others there is [`WriteTxn::try_nested`].
    pub fn nested<T>(&mut self, change: impl FnOnce(&mut WriteTxn) -> Result<T>) -> Result<T> {
        self.try_nested(change)
    }

    /// As [`WriteTxn::nested`], with any error that the store's can become; see [`Env::try_update`](crate::Env::try_update).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let parsed = txn.try_nested(|txn| -> Result<u32, Box<dyn std::error::Error>> {
    ///     txn.table_or_create("t")?.put("key", "undone with the error")?;
    ///     Ok("seven".parse()?)
    /// });
    /// assert!(parsed.is_err());
    /// assert!(txn.tables()?.is_empty());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn try_nested<T, E: From<Error>>(
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
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// txn.table_or_create("t")?.put("a", "1")?;
    /// txn.begin_nested()?;
    /// txn.table("t")?.put("b", "2")?;
    /// txn.abort_nested()?;
    /// txn.begin_nested()?;
    /// txn.table("t")?.put("c", "3")?;
    /// txn.commit_nested()?;
    /// assert_eq!(txn.table("t")?.len(), 2);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn begin_nested(&mut self) -> Result<()> {
        self.check()?;
        self.cursors.begin_level(&self.ws, &self.catalogue)?;
        self.ws.begin_level();
        self.catalogue.begin_level();
        self.space.begin_level();
        self.notes.begin_level();
        self.levels.open += 1;
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
        match self.levels.open > self.levels.floor {
            true => Ok(()),
            false => Err(Error::NoNestedLevel),
        }
    }

    /// Hands what all open levels did to the transaction itself; false if some are not the caller's.
    pub(super) fn end_levels(&mut self) -> bool {
        if self.levels.floor > 0 {
            return false;
        }
        while self.levels.open > 0 {
            self.fold_level();
        }
        true
    }

    /// Hands what the innermost level did to the level outside. One is open.
    fn fold_level(&mut self) {
        self.levels.open -= 1;
        self.cursors.fold_level();
        if !self.ws.commit_level() {
            self.soundness.lose();
        }
        self.catalogue.fold_level();
        self.space.fold_level();
        self.notes.fold_level();
    }

    /// Undoes what the innermost level did. One is open.
    fn undo_level(&mut self) {
        self.levels.open -= 1;
        let spilled = self.ws.abort_level();
        self.space.undo_level(spilled);
        self.notes.undo_level();
        let closed = self.catalogue.undo_level(&mut self.ws);
        self.cursors.undo_level();
        // The level's own pages are gone with what broke them; the outer ones were not touched.
        self.soundness.regain();
        // Last, as the tables hold comparators of the program, whose `Drop` may panic.
        drop(closed);
    }
}
