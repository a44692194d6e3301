//! Cursors without a transaction: what a cursor takes along from one transaction to another.

use std::fmt;

use crate::error::{Error, Result};
use crate::tree::cursor::{CursorState, InTable, Stand};
use crate::tree::{Pages, Tree};
use crate::txn::catalogue::TableRef;
use crate::txn::raw::cursor::RawCursor;
use crate::txn::read::ReadTable;
use crate::txn::table_id::TableId;
use crate::txn::write::WriteTxn;
use crate::txn::write_table::WriteTable;

use super::Cursor;
use super::registry::CursorId;
use super::write::WriteCursor;

/// Where a cursor stood, as a key and a value: it borrows nothing, pins nothing, and can be kept,
/// sent and resumed any number of times, in read and in write transactions (`cursor_renew`,
/// `cursor_unbind` and `cursor_bind`, which forget the place).
///
/// In the other transaction the cursor stands on the same record. If that is gone it stands before
/// the one that follows, as after a deletion: [`Cursor::next`] leads there, [`Cursor::prev`] to the
/// one before. So a walk through a table, resumed after each pause, passes no record twice and
/// misses none that was there all the time.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let env = zubilo::Options::new().open(dir.path().join("store")).unwrap();
/// use zubilo::{Env, ParkedCursor, Result};
///
/// /// Hands over the next records, at most `many`; nothing is pinned between two calls.
/// fn page(env: &Env, place: &mut ParkedCursor, many: usize) -> Result<Vec<Vec<u8>>> {
///     let read = env.read()?;
///     let table = read.table("names")?;
///     let mut cursor = table.resume(place)?;
///     let mut names = Vec::new();
///     while names.len() < many
///         && let Some((name, _)) = cursor.next()?
///     {
///         names.push(name.to_vec());
///     }
///     cursor.park_into(place)?;
///     Ok(names)
/// }
///
/// # fn f(env: &Env) -> Result<()> {
/// let mut write = env.write()?;
/// let mut names = write.table_or_create("names")?;
/// for name in ["Ada", "Bo", "Cy", "Di"] {
///     names.put(name, "")?;
/// }
/// write.commit()?;
///
/// let mut place = ParkedCursor::new();
/// assert_eq!(page(env, &mut place, 2)?, [b"Ada", &b"Bo"[..]]);
/// let mut write = env.write()?;
/// write.table("names")?.delete("Bo")?;
/// write.commit()?;
/// assert_eq!(page(env, &mut place, 2)?, [b"Cy", b"Di"]);
/// # Ok(())
/// # }
/// # f(&env).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct ParkedCursor {
    /// The table's number, where the cursor stands somewhere.
    table: u32,
    state: CursorState,
}

const OTHER_TABLE: Error = Error::Invalid("the cursor was parked in another table");

impl ParkedCursor {
    /// Of a cursor that stands nowhere yet: it can be resumed in any table.
    pub fn new() -> ParkedCursor {
        ParkedCursor::default()
    }

    /// Forgets the place, but keeps the memory for the next one.
    pub fn reset(&mut self) {
        self.state.leave();
    }

    /// The key on which the cursor stood; none where it stood nowhere, or after the last record.
    pub fn key(&self) -> Option<&[u8]> {
        self.state.noted_key()
    }

    fn check(&self, tree: &Tree) -> Result<()> {
        if self.state.stand() != Stand::Unset && self.table != tree.desc.table {
            return Err(OTHER_TABLE);
        }
        Ok(())
    }

    /// The place in the table as pages show it now.
    fn found<'p, P: Pages<'p>>(&self, pages: P, tree: &Tree) -> Result<CursorState> {
        self.check(tree)?;
        let mut state = self.state.clone();
        state.at(pages, tree)?;
        Ok(state)
    }

    /// Of a cursor in its table.
    pub(super) fn of<'p, P: Pages<'p>>(cursor: &InTable<'_, P>) -> Result<ParkedCursor> {
        let mut parked = ParkedCursor::new();
        parked.table = cursor.table();
        cursor.note_in(&mut parked.state)?;
        Ok(parked)
    }

    pub(super) fn note<'p, P: Pages<'p>>(
        &mut self,
        state: &CursorState,
        pages: P,
        tree: &Tree,
    ) -> Result<()> {
        self.table = tree.desc.table;
        self.state.note_of(state, pages, tree)
    }
}

impl fmt::Debug for ParkedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedCursor").field("key", &self.key()).finish_non_exhaustive()
    }
}

impl Cursor<'_> {
    /// Where the cursor stands, to go on there in another transaction.
    pub fn park(&self) -> Result<ParkedCursor> {
        let mut parked = ParkedCursor::new();
        self.park_into(&mut parked)?;
        Ok(parked)
    }
}

impl<'t> ReadTable<'t> {
    /// A cursor at the place where another stood, in this or another transaction.
    pub fn resume(&self, parked: &ParkedCursor) -> Result<Cursor<'t>> {
        let state = parked.found(self.snapshot(), self.tree())?;
        Ok(Cursor::reading(self.snapshot(), self.tree(), state))
    }
}

impl WriteTable<'_> {
    /// A cursor at the place where another stood, in this or another transaction; the table cannot
    /// change while it lives.
    pub fn resume(&self, parked: &ParkedCursor) -> Result<Cursor<'_>> {
        self.txn.check()?;
        let state = parked.found(self.txn.ws.view(), self.tree())?;
        Ok(Cursor::writing(self.txn.ws.view(), self.tree(), state))
    }

    /// The same, to change the table through it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut table = txn.table_or_create("t")?;
    /// (0..10u8).try_for_each(|n| table.put([n], "value"))?;
    /// let mut cursor = table.cursor_mut()?;
    /// cursor.seek([4])?;
    /// let place = cursor.park()?;
    /// drop(cursor);
    /// table.put("another", "change")?;
    /// assert!(table.resume_mut(&place)?.delete()?);
    /// assert!(!table.contains_key([4])?);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn resume_mut(&mut self, parked: &ParkedCursor) -> Result<WriteCursor<'_>> {
        self.txn.check()?;
        let id = self.txn.resume_in(self.table, parked)?;
        Ok(WriteCursor::new(self.txn, id, true))
    }
}

impl WriteTxn {
    /// As [`WriteTxn::open_cursor`], at the place where another cursor stood in this or another
    /// transaction.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let table = txn.table_id_or_create("t")?;
    /// for n in 0..10u8 {
    ///     table.put(&mut txn, [n], "value")?;
    /// }
    /// let cursor = txn.open_cursor(table)?;
    /// txn.cursor(cursor)?.seek([4])?;
    /// let mut place = txn.cursor(cursor)?.park()?;
    /// txn.close_cursor(cursor);
    /// let cursor = txn.resume_cursor(table, &place)?;
    /// assert_eq!(txn.cursor(cursor)?.next()?.map(|record| record.0), Some(&[5][..]));
    /// // The memory of a place can be used again.
    /// place.reset();
    /// assert_eq!(place.key(), None);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn resume_cursor(&mut self, table: TableId, parked: &ParkedCursor) -> Result<CursorId> {
        let table = self.table_of(table)?;
        self.resume_in(table, parked)
    }

    fn resume_in(&mut self, table: TableRef, parked: &ParkedCursor) -> Result<CursorId> {
        parked.check(self.tree(table)?)?;
        let id = self.cursors.open(table, RawCursor::of_rust());
        *self.cursors.place(id)?.1 = parked.state.clone();
        Ok(id)
    }
}
