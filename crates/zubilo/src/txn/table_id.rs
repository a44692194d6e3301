//! Tables by number: what a write transaction has opened can be named again without its name.

use crate::error::{Error, Result};
use crate::tree::Tree;

use super::catalogue::TableRef;
use super::options::TableOptions;
use super::view::ViewTable;
use super::write::WriteTxn;
use super::write_table::WriteTable;

/// A table of a write transaction by its number, for use in that transaction only. It borrows nothing, so any
/// number of tables can be changed in turn, and it spares the look-up of the name:
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let users = txn.table_id_or_create("users")?;
/// let by_mail = txn.table_id_or_create("users by mail")?;
/// users.put(&mut txn, 7u32.to_be_bytes(), "ada@example.org")?;
/// by_mail.put(&mut txn, "ada@example.org", 7u32.to_be_bytes())?;
/// assert_eq!(users.get(&txn, 7u32.to_be_bytes())?, Some(&b"ada@example.org"[..]));
/// // All methods of a table: to read with `read`, to change with `write`.
/// assert_eq!(by_mail.read(&txn)?.prefix("ada").count(), 1);
/// by_mail.write(&mut txn)?.clear()?;
/// txn.commit()?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId {
    txn: u64,
    table: TableRef,
    identity: u32,
}

impl TableId {
    /// The table in the transaction with this number, whose id it must be.
    pub(super) fn table_in(self, txn: u64) -> Result<TableRef> {
        if self.txn == txn { Ok(self.table) } else { Err(Error::stale_table()) }
    }

    /// Whether a tree is that of the table.
    pub(super) fn is_of(self, tree: &Tree) -> bool {
        tree.desc.table == self.identity
    }

    /// The table with all that reads, as of now.
    pub fn read(self, txn: &WriteTxn) -> Result<ViewTable<'_>> {
        txn.view()?.at(self)
    }

    /// The table with all that reads and changes, as [`WriteTxn::at`].
    pub fn write(self, txn: &mut WriteTxn) -> Result<WriteTable<'_>> {
        txn.at(self)
    }

    /// As [`WriteTable::put`].
    pub fn put(
        self,
        txn: &mut WriteTxn,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write(txn)?.put(key, value)
    }

    /// As [`WriteTable::insert`].
    pub fn insert(
        self,
        txn: &mut WriteTxn,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.write(txn)?.insert(key, value)
    }

    /// As [`WriteTable::get`].
    pub fn get(self, txn: &WriteTxn, key: impl AsRef<[u8]>) -> Result<Option<&[u8]>> {
        txn.get(txn.table_of(self)?, key.as_ref())
    }

    /// As [`WriteTable::contains_key`].
    pub fn contains_key(self, txn: &WriteTxn, key: impl AsRef<[u8]>) -> Result<bool> {
        self.read(txn)?.contains_key(key)
    }

    /// As [`WriteTable::delete`].
    pub fn delete(self, txn: &mut WriteTxn, key: impl AsRef<[u8]>) -> Result<bool> {
        self.write(txn)?.delete(key)
    }

    /// As [`WriteTable::take`].
    pub fn take(self, txn: &mut WriteTxn, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.write(txn)?.take(key)
    }

    pub(super) fn new(txn: u64, table: TableRef, tree: &Tree) -> TableId {
        TableId { txn, table, identity: tree.desc.table }
    }
}

impl WriteTxn {
    /// The table `name`, to be named by its number from here on.
    pub fn table_id(&mut self, name: impl AsRef<[u8]>) -> Result<TableId> {
        Ok(self.table(name)?.id())
    }

    /// As [`WriteTxn::table_id`]; the table is created with default options if there is none.
    pub fn table_id_or_create(&mut self, name: impl AsRef<[u8]>) -> Result<TableId> {
        Ok(self.table_or_create(name)?.id())
    }

    /// As [`WriteTxn::table_id`]; the table is created with these options if there is none, else it must have
    /// been.
    pub fn table_id_or_create_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<TableId> {
        Ok(self.table_or_create_with(name, options)?.id())
    }

    /// As [`WriteTxn::table_id`], for a table that was created with these options.
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
    /// txn.table_or_create_with("tags", &tags)?.put("rust", "7")?;
    /// txn.table_or_create("articles")?.put("7", "A text")?;
    /// let (tags, articles) = (txn.table_id_with("tags", &tags)?, txn.table_id("articles")?);
    /// let article = tags.get(&txn, "rust")?.expect("it has the tag").to_vec();
    /// // The table itself, for what an identity has no method of.
    /// assert!(txn.at(articles)?.contains_key(&article)?);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn table_id_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<TableId> {
        Ok(self.table_with(name, options)?.id())
    }

    /// The table that an identity names.
    pub fn at(&mut self, id: TableId) -> Result<WriteTable<'_>> {
        let table = self.table_of(id)?;
        Ok(WriteTable { txn: self, table })
    }

    pub(super) fn table_of(&self, id: TableId) -> Result<TableRef> {
        self.check()?;
        let table = id.table_in(self.cursors.txn())?;
        if id.is_of(self.tree(table)?) { Ok(table) } else { Err(Error::stale_table()) }
    }
}
