//! A table in the hands of the write transaction.

use std::ops::RangeBounds;

use crate::error::Result;
use crate::tree::Tree;
use crate::tree::range::Bounds;

use super::catalogue::TableRef;
use super::cursor::{Cursor, WriteCursor};
use super::options::TableOptions;
use super::raw::cursor::RawCursor;
use super::table::{
    Iter, TableStats, ValueIter, bounds_of, first_and_count, prefix_bounds, values_of_key,
};
use super::table_id::TableId;
use super::write::WriteTxn;
use crate::tree::cursor::CursorState;

/// A table as the write transaction sees and changes it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let mut table = txn.table_or_create("t")?;
/// table.put("a", "1")?;
/// assert!(!table.insert("a", "2")?);
/// assert_eq!(table.replace("a", "3")?.as_deref(), Some(&b"1"[..]));
/// assert!(table.delete("a")?);
/// txn.commit()?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct WriteTable<'t> {
    pub(super) txn: &'t mut WriteTxn,
    pub(super) table: TableRef,
}

impl WriteTable<'_> {
    /// Stores `value` under `key`, replacing what was there; in a table with duplicates adds it to
    /// what is there.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.txn.put(self.table, key.as_ref(), value.as_ref(), true).map(drop)
    }

    /// Stores `value` under `key` if the key is new; returns whether it did.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.txn.put(self.table, key.as_ref(), value.as_ref(), false)
    }

    /// Makes room for a value of `len` zero bytes under `key` and gives it for filling, without a
    /// copy in between.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut table = txn.table_or_create("t")?;
    /// // Filled where it will be stored.
    /// table.reserve("zeros and a one", 1000)?[999] = 1;
    /// assert_eq!(table.get("zeros and a one")?.map(|value| value[999]), Some(1));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn reserve(&mut self, key: impl AsRef<[u8]>, len: usize) -> Result<&mut [u8]> {
        self.txn.reserve(self.table, key.as_ref(), len)
    }

    /// The value under `key`, of several the first, as of now.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<&[u8]>> {
        self.txn.get(self.table, key.as_ref())
    }

    /// The value under `key`, of several the first, and how many there are, as of now.
    pub fn get_with_count(&self, key: impl AsRef<[u8]>) -> Result<Option<(&[u8], u64)>> {
        self.txn.check()?;
        first_and_count(&self.txn.ws.view(), self.tree(), key.as_ref())
    }

    /// Adds `value` to those under `key`, in a table with duplicates; returns whether it is new
    /// (`NODUPDATA`).
    pub fn insert_value(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.txn.put_value(self.table, key.as_ref(), value.as_ref())
    }

    /// Removes `value` from those under `key`; returns whether it was there. In a table without
    /// duplicates it removes the record if it has this value.
    pub fn delete_value(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.txn.delete_value(self.table, key.as_ref(), value.as_ref())
    }

    /// The values under `key` in order, as of now; at most one in a table without duplicates.
    pub fn get_all(&self, key: impl AsRef<[u8]>) -> Result<ValueIter<'_>> {
        self.txn.check()?;
        let tree = self.tree();
        values_of_key(self.txn.ws.view(), tree, key.as_ref()).map(ValueIter::writing)
    }

    /// The number of values under `key`.
    pub fn count(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.txn.count(self.table, key.as_ref())
    }

    /// Whether `value` is one of those under `key`.
    pub fn contains(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.txn.has_pair(self.table, key.as_ref(), value.as_ref())
    }

    /// Removes `key` with all its values; returns whether it was there.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.txn.delete(self.table, key.as_ref())
    }

    /// Removes all records inside `range`; gives their number. The cost follows the pages.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut log = txn.table_or_create("log")?;
    /// (0..100u32).try_for_each(|time| log.put(time.to_be_bytes(), "line"))?;
    /// assert_eq!(log.delete_range(..90u32.to_be_bytes())?, 90);
    /// assert_eq!(log.options().alignment(), 1);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Result<u64> {
        self.txn.delete_range(self.table, &bounds_of(range))
    }

    /// Removes all records.
    pub fn clear(&mut self) -> Result<()> {
        self.txn.clear(self.table)
    }

    /// All records in order, as of now; a key with many values comes with each of them.
    pub fn iter(&self) -> Iter<'_> {
        self.range::<&[u8]>(..)
    }

    /// The first record, as of now.
    pub fn first(&self) -> Result<Option<(&[u8], &[u8])>> {
        self.cursor()?.first()
    }

    /// The last record, as of now.
    pub fn last(&self) -> Result<Option<(&[u8], &[u8])>> {
        self.cursor()?.last()
    }

    /// The records with keys inside `range`, in order, as of now; `.rev()` goes backwards.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter<'_> {
        self.within(|_| Ok(bounds_of(range)))
    }

    /// The records whose keys start with `prefix`, as of now; see [`ReadTable::prefix`].
    ///
    /// [`ReadTable::prefix`]: super::ReadTable::prefix
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter<'_> {
        self.within(|tree| prefix_bounds(&tree.order, prefix.as_ref()))
    }

    /// An iterator that gives the error if the transaction has ended, or if there are no such bounds.
    fn within(&self, bounds: impl FnOnce(&Tree) -> Result<Bounds>) -> Iter<'_> {
        let tree = self.tree();
        let bounds = self.txn.check().and_then(|()| bounds(tree));
        Iter::writing(self.txn.ws.view(), tree, bounds)
    }

    /// A cursor that stands nowhere yet; the table cannot change while it lives.
    pub fn cursor(&self) -> Result<Cursor<'_>> {
        self.txn.check()?;
        let tree = self.tree();
        Ok(Cursor::writing(self.txn.ws.view(), tree, CursorState::default()))
    }

    /// A cursor through which the table can be changed; it stands nowhere yet. For several at once
    /// see [`WriteTxn::open_cursor`].
    pub fn cursor_mut(&mut self) -> Result<WriteCursor<'_>> {
        self.txn.check()?;
        let id = self.txn.cursors.open(self.table, RawCursor::of_rust());
        Ok(WriteCursor::new(self.txn, id, true))
    }

    /// The table's number in this transaction.
    pub fn id(&self) -> TableId {
        TableId::new(self.txn.cursors.txn(), self.table, self.tree())
    }

    /// The table's tree.
    pub(super) fn tree(&self) -> &Tree {
        match self.txn.tree(self.table) {
            Ok(tree) => tree,
            Err(_) => unreachable!("nobody drops a table while a handle borrows the transaction"),
        }
    }

    /// The table's options, with the comparators it was opened with.
    pub fn options(&self) -> TableOptions {
        TableOptions::of_tree(self.tree())
    }

    /// Number of records: each value of a key counts.
    pub fn len(&self) -> u64 {
        self.tree().desc.entries
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Figures of the table.
    pub fn stats(&self) -> TableStats {
        TableStats::of(&self.tree().desc)
    }
}
