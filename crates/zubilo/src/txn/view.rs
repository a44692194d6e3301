//! What an open write transaction sees, changes that are not committed yet included, for many threads at
//! once. The borrow keeps the transaction from changing meanwhile.

use std::ops::RangeBounds;

use crate::dirty::{View, Workspace};
use crate::error::{Error, Result};
use crate::tree::cursor::CursorState;
use crate::tree::{Tree, batch, lookup};

use super::catalogue::Catalogue;
use super::cursor::Cursor;
use super::options::TableOptions;
use super::read::table_names;
use super::table::{
    Iter, TableStats, ValueIter, bounds_of, count_of_key, first_and_count, has_pair, prefix_bounds,
    values_of_key,
};
use super::table_id::TableId;
use super::write::WriteTxn;

/// An open write transaction to be read by several threads: see [`WriteTxn::view`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// txn.table_or_create("t")?.put("key", "not committed yet")?;
/// let view = txn.view()?;
/// std::thread::scope(|scope| {
///     let look = || view.table("t").and_then(|table| Ok(table.get("key")?.map(<[u8]>::len)));
///     let threads = [scope.spawn(look), scope.spawn(look)];
///     threads.map(|thread| assert_eq!(thread.join().unwrap().unwrap(), Some(17)));
/// });
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct WriteView<'t> {
    ws: &'t Workspace,
    catalogue: &'t Catalogue,
    /// The transaction's number in this process.
    txn: u64,
}

impl WriteTxn {
    /// The transaction as it is now, with what it has changed, to be read by any number of threads. It goes
    /// on when they have ended.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let env = zubilo::Options::new().open(path)?;
    /// let mut write = env.write()?;
    /// let mut table = write.table_or_create("t")?;
    /// for n in 0..1000u32 {
    ///     table.put(n.to_be_bytes(), "value")?;
    /// }
    /// let table = write.view()?.table("t")?;
    /// let parts = table.split::<&[u8]>(.., 4)?;
    /// let records: usize = std::thread::scope(|scope| {
    ///     let scan = |part| scope.spawn(|| table.range(part).count());
    ///     let threads: Vec<_> = parts.into_iter().map(scan).collect();
    ///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    /// });
    /// assert_eq!(records, 1000);
    /// write.commit()?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn view(&self) -> Result<WriteView<'_>> {
        self.check()?;
        let (ws, catalogue) = self.seen();
        Ok(WriteView { ws, catalogue, txn: self.cursors.txn() })
    }
}

impl<'t> WriteView<'t> {
    /// The table `name`.
    pub fn table(&self, name: impl AsRef<[u8]>) -> Result<ViewTable<'t>> {
        let tree = self.catalogue.tree_to_read(self.ws, name.as_ref(), None)?;
        Ok(ViewTable { pages: self.ws.view(), tree })
    }

    /// The table `name`, which must have been created with the same options; with the comparators that they
    /// hold.
    pub fn table_with(
        &self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<ViewTable<'t>> {
        let tree = self.catalogue.tree_to_read(self.ws, name.as_ref(), Some(options))?;
        Ok(ViewTable { pages: self.ws.view(), tree })
    }

    /// The table that an identity names.
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let tags = TableOptions::new().duplicates();
    /// let mut txn = env.write()?;
    /// let id = txn.table_id_or_create_with("tags", &tags)?;
    /// id.put(&mut txn, "rust", "7")?;
    /// let view = txn.view()?;
    /// assert_eq!(view.at(id)?.len(), view.table_with("tags", &tags)?.len());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn at(&self, id: TableId) -> Result<ViewTable<'t>> {
        let tree = self.catalogue.tree(id.table_in(self.txn)?)?;
        match id.is_of(tree) {
            true => Ok(ViewTable { pages: self.ws.view(), tree: tree.to_read() }),
            false => Err(Error::stale_table()),
        }
    }

    /// The names of all tables, in order.
    pub fn tables(&self) -> Result<Vec<Vec<u8>>> {
        table_names(&self.ws.view(), &self.catalogue.main().desc)
    }
}

/// A table as an open write transaction has it, to be read by several threads.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// txn.table_or_create("t")?.put("key", "value")?;
/// let view = txn.view()?;
/// // Two tables at once, or one twice: they only read.
/// let (one, other) = (view.table("t")?, view.table("t")?);
/// assert_eq!(one.get("key")?, other.first()?.map(|record| record.1));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct ViewTable<'t> {
    pages: View<'t>,
    tree: Tree,
}

impl<'t> ViewTable<'t> {
    /// The value under `key`, of several the first.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<&'t [u8]>> {
        lookup::get(&self.pages, &self.tree.desc, &self.tree.order, key.as_ref())
    }

    /// The value under `key`, of several the first, and how many there are.
    pub fn get_with_count(&self, key: impl AsRef<[u8]>) -> Result<Option<(&'t [u8], u64)>> {
        first_and_count(&self.pages, &self.tree, key.as_ref())
    }

    /// The values under many keys, in their order; see [`ReadTable::get_many`](super::ReadTable::get_many).
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<&'t [u8]>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let mut values = vec![None; keys.len()];
        let (desc, order) = (&self.tree.desc, &self.tree.order);
        batch::get_many(&self.pages, desc, order, &keys, |i, value| {
            if let Some(place) = values.get_mut(i) {
                *place = value;
            }
        })?;
        Ok(values)
    }

    /// All records in order; a key with many values comes with each of them.
    pub fn iter(&self) -> Iter<'t> {
        self.range::<&[u8]>(..)
    }

    /// The records with keys inside `range`, in order; `.rev()` goes backwards.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter<'t> {
        Iter::writing(self.pages, &self.tree, Ok(bounds_of(range)))
    }

    /// The records whose keys start with `prefix`; see [`ReadTable::prefix`](super::ReadTable::prefix).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter<'t> {
        let bounds = prefix_bounds(&self.tree.order, prefix.as_ref());
        Iter::writing(self.pages, &self.tree, bounds)
    }

    /// The first record.
    pub fn first(&self) -> Result<Option<(&'t [u8], &'t [u8])>> {
        self.cursor().first()
    }

    /// The last record.
    pub fn last(&self) -> Result<Option<(&'t [u8], &'t [u8])>> {
        self.cursor().last()
    }

    /// The values under `key`, in order; at most one in a table without duplicates.
    pub fn get_all(&self, key: impl AsRef<[u8]>) -> Result<ValueIter<'t>> {
        values_of_key(self.pages, &self.tree, key.as_ref()).map(ValueIter::writing)
    }

    /// The number of values under `key`.
    pub fn count(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        count_of_key(&self.pages, &self.tree, key.as_ref())
    }

    /// Whether `value` is one of those under `key`.
    pub fn contains(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        has_pair(&self.pages, &self.tree, key.as_ref(), value.as_ref())
    }

    /// A cursor that stands nowhere yet.
    pub fn cursor(&self) -> Cursor<'t> {
        Cursor::writing(self.pages, &self.tree, CursorState::default())
    }

    /// The table's options, with the comparators it was opened with.
    pub fn options(&self) -> TableOptions {
        TableOptions::of_tree(&self.tree)
    }

    /// Number of records: each value of a key counts.
    pub fn len(&self) -> u64 {
        self.tree.desc.entries
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Figures of the table.
    pub fn stats(&self) -> TableStats {
        TableStats::of(&self.tree.desc)
    }

    pub(super) fn parts(&self) -> (View<'t>, &Tree) {
        (self.pages, &self.tree)
    }
}
