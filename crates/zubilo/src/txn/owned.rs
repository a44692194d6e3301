//! Tables, records and iterators that own a share of their read transaction: they borrow nothing, so they can
//! be kept, sent to other threads and held across an `await`.

use std::mem::transmute;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::error::Result;
use crate::tree::Tree;

use super::handle::TableHandle;
use super::options::TableOptions;
use super::read::{OwnedValue, ReadTable, ReadTxn};
use super::table::Iter;

/// A table with a share of its read transaction: see [`ReadTxn::owned_table`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// struct Session {
///     table: zubilo::OwnedTable,
/// }
/// let session = Session { table: env.read()?.into_shared().owned_table("t")? };
/// assert_eq!(session.table.get("key")?.as_deref(), Some(&b"value"[..]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct OwnedTable {
    txn: Arc<ReadTxn>,
    tree: Tree,
}

impl ReadTxn {
    /// The table `name`, together with a share of the transaction.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// # env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let table = env.read()?.into_shared().owned_table("t")?;
    /// let thread = std::thread::spawn(move || {
    ///     table.iter().map(|record| record.map(|r| r.value().len())).sum::<zubilo::Result<usize>>()
    /// });
    /// assert_eq!(thread.join().unwrap()?, 5);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn owned_table(self: &Arc<Self>, name: impl AsRef<[u8]>) -> Result<OwnedTable> {
        let tree = self.table(name)?.tree().to_read();
        Ok(OwnedTable { txn: Arc::clone(self), tree })
    }

    /// The same for a table that was created with these options, with the comparators that they hold.
    pub fn owned_table_with(
        self: &Arc<Self>,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<OwnedTable> {
        let tree = self.table_with(name, options)?.tree().to_read();
        Ok(OwnedTable { txn: Arc::clone(self), tree })
    }

    /// The same for the table of a handle.
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let tags = TableOptions::new().duplicates();
    /// env.update(|txn| txn.table_or_create_with("tags", &tags)?.put("rust", "7"))?;
    /// let read = env.read()?.into_shared();
    /// let handle = read.handle_with("tags", &tags)?;
    /// assert_eq!((handle.name(), handle.options().has_duplicates()), (&b"tags"[..], true));
    /// assert_eq!(read.open_owned(&handle)?.len(), read.owned_table_with("tags", &tags)?.len());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn open_owned(self: &Arc<Self>, handle: &TableHandle) -> Result<OwnedTable> {
        let tree = self.open(handle)?.tree().to_read();
        Ok(OwnedTable { txn: Arc::clone(self), tree })
    }
}

impl OwnedTable {
    /// The snapshot the table belongs to.
    pub fn txn(&self) -> &Arc<ReadTxn> {
        &self.txn
    }

    /// The table with all its methods, borrowed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let owned = env.read()?.into_shared().owned_table("t")?;
    /// // Slices of the map instead of owned values.
    /// assert_eq!(owned.as_table().get("key")?, Some(&b"value"[..]));
    /// // Whatever comes from one snapshot keeps the same one.
    /// let record = owned.iter().next().transpose()?.expect("a record");
    /// let value = owned.get("key")?.expect("a value");
    /// assert_eq!((record.txn().id(), value.txn().id()), (owned.txn().id(), owned.txn().id()));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn as_table(&self) -> ReadTable<'_> {
        ReadTable::new(self.txn.snapshot(), self.tree.to_read())
    }

    /// The value under `key`, of several the first.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<OwnedValue>> {
        let value = self.as_table().get(key)?;
        Ok(value.map(|value| OwnedValue::new(&self.txn, value)))
    }

    /// All records in order.
    pub fn iter(&self) -> OwnedIter {
        self.range::<&[u8]>(..)
    }

    /// The records with keys inside `range`, in order; `.rev()` goes backwards.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> OwnedIter {
        OwnedIter::new(&self.txn, self.as_table().range(range))
    }

    /// The records whose keys start with `prefix`; see [`ReadTable::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> OwnedIter {
        OwnedIter::new(&self.txn, self.as_table().prefix(prefix))
    }

    /// Number of records: each value of a key counts.
    pub fn len(&self) -> u64 {
        self.tree.desc.entries
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Clone for OwnedTable {
    fn clone(&self) -> OwnedTable {
        OwnedTable { txn: Arc::clone(&self.txn), tree: self.tree.to_read() }
    }
}

/// Iterator over records that keep their snapshot alive.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let mut records = env.read()?.into_shared().owned_table("t")?.iter();
/// assert_eq!(records.next().transpose()?.expect("a record").key(), b"key");
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "iterators read nothing until they are advanced"]
pub struct OwnedIter {
    /// Borrows from `txn`; dropped first.
    inner: Iter<'static>,
    txn: Arc<ReadTxn>,
}

impl OwnedIter {
    fn new(txn: &Arc<ReadTxn>, inner: Iter<'_>) -> OwnedIter {
        // SAFETY: only the lifetime is changed. What the iterator refers to belongs to the transaction, or to
        // the store that it holds, and stays where it is: both are behind an `Arc`, of which this value has
        // a share, nobody has them exclusively while it does, and no slice leaves but in an `OwnedRecord`.
        let inner = unsafe { transmute::<Iter<'_>, Iter<'static>>(inner) };
        OwnedIter { inner, txn: Arc::clone(txn) }
    }

    fn own(&self, (key, value): (&[u8], &[u8])) -> OwnedRecord {
        let key = OwnedValue::new(&self.txn, key);
        let value = (value.as_ptr(), value.len());
        OwnedRecord { key, value }
    }
}

impl Iterator for OwnedIter {
    type Item = Result<OwnedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.inner.next()?;
        Some(record.map(|record| self.own(record)))
    }
}

impl DoubleEndedIterator for OwnedIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        let record = self.inner.next_back()?;
        Some(record.map(|record| self.own(record)))
    }
}

impl std::iter::FusedIterator for OwnedIter {}

/// A record that keeps its snapshot alive.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let table = env.read()?.into_shared().owned_table("t")?;
/// let records: Vec<zubilo::OwnedRecord> = table.iter().collect::<zubilo::Result<_>>()?;
/// assert_eq!((records[0].key(), records[0].value()), (&b"key"[..], &b"value"[..]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Debug)]
pub struct OwnedRecord {
    key: OwnedValue,
    value: (*const u8, usize),
}

// SAFETY: the bytes are immutable while the snapshot lives, which the key owns a share of.
unsafe impl Send for OwnedRecord {}
// SAFETY: as above.
unsafe impl Sync for OwnedRecord {}

impl OwnedRecord {
    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        let (start, len) = self.value;
        // SAFETY: start and len come from a slice of the snapshot that the key keeps alive.
        unsafe { std::slice::from_raw_parts(start, len) }
    }

    /// The snapshot the record belongs to.
    pub fn txn(&self) -> &Arc<ReadTxn> {
        self.key.txn()
    }
}
