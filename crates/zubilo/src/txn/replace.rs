//! Replacing and taking values where it matters what was there: the old value is handed back, and
//! where a key has many values a change must say which one it means.

use crate::error::{Error, Result};

use super::catalogue::TableRef;
use super::write::WriteTxn;
use super::write_table::WriteTable;

/// A value that was there before.
type Old = Option<Vec<u8>>;

impl WriteTxn {
    /// The only value of a key; an error if there are several.
    fn only_value(&self, table: TableRef, key: &[u8]) -> Result<Old> {
        let values = self.count(table, key)?;
        if values > 1 {
            return Err(Error::ManyValues { values });
        }
        let Some(value) = self.get(table, key)? else { return Ok(None) };
        let lack = || Error::no_memory("hand back a value");
        let mut old = crate::dirty::with_room(value.len()).ok_or_else(lack)?;
        old.extend_from_slice(value);
        Ok(Some(old))
    }

    /// Puts `new` in the place of the only value of a key that is there.
    fn replace_only(&mut self, table: TableRef, key: &[u8], old: &[u8], new: &[u8]) -> Result<()> {
        if self.tree(table)?.desc.options.has_duplicates() {
            self.swap_value(table, key, old, new)
        } else {
            self.put(table, key, new, true).map(drop)
        }
    }

    /// Puts `new` in the place of `old`, which is one of many values of a key. Cursors on it follow.
    pub(super) fn swap_value(
        &mut self,
        table: TableRef,
        key: &[u8],
        old: &[u8],
        new: &[u8],
    ) -> Result<()> {
        self.check_record(table, key, new)?;
        if old == new {
            return Ok(());
        }
        self.cursors.note(&self.ws, &self.catalogue, table)?;
        let tree = self.catalogue.tree(table)?;
        let standing = self.cursors.on(table, |cursor| cursor.stands_on(tree, key, Some(old)));
        let same = self.tree(table)?.values.compare(new, old).is_eq();
        if same {
            // The same for the caller's order, but other bytes.
            self.delete_value(table, key, old)?;
            self.put_value(table, key, new)?;
        } else {
            // The new one first: the table must not become empty, which would displace cursors.
            self.put_value(table, key, new)?;
            self.delete_value(table, key, old)?;
        }
        self.cursors.restore(standing, new);
        Ok(())
    }
}

impl WriteTable<'_> {
    /// Stores `value` under `key` and gives the value that was there.
    ///
    /// # Errors
    /// [`Error::ManyValues`] if the key has several values: see [`WriteTable::replace_value`].
    pub fn replace(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Old> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let old = self.txn.only_value(self.table, key)?;
        match &old {
            Some(old) => self.txn.replace_only(self.table, key, old, value)?,
            None => drop(self.txn.put(self.table, key, value, true)?),
        }
        Ok(old)
    }

    /// Stores `value` under `key` if the key is there already, in the place of its only value; gives
    /// the value that was there.
    ///
    /// # Errors
    /// [`Error::ManyValues`] if the key has several values: see [`WriteTable::replace_value`].
    pub fn update(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Old> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let old = self.txn.only_value(self.table, key)?;
        if let Some(old) = &old {
            self.txn.replace_only(self.table, key, old, value)?;
        }
        Ok(old)
    }

    /// Puts `new` in the place of `old`, one of the values under `key`; false if the key does not
    /// have it. If `new` is there already, `old` merely goes. In a table without duplicates the
    /// record is replaced if it has the value `old`. Cursors on the old value are on the new one
    /// then.
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut tags = txn.table_or_create_with("tags", &TableOptions::new().duplicates())?;
    /// assert!(tags.insert_value("rust", "7")?);
    /// assert!(!tags.insert_value("rust", "7")?);
    /// assert!(tags.replace_value("rust", "7", "8")?);
    /// assert!(!tags.delete_value("rust", "7")?);
    /// assert!(tags.delete_value("rust", "8")?);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn replace_value(
        &mut self,
        key: impl AsRef<[u8]>,
        old: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let (key, old, new) = (key.as_ref(), old.as_ref(), new.as_ref());
        if !self.txn.has_pair(self.table, key, old)? {
            return Ok(false);
        }
        self.txn.replace_only(self.table, key, old, new)?;
        Ok(true)
    }

    /// Removes `key` and gives the value that was there.
    ///
    /// # Errors
    /// [`Error::ManyValues`] if the key has several values: see [`WriteTable::delete_value`] and
    /// [`WriteTable::delete`].
    pub fn take(&mut self, key: impl AsRef<[u8]>) -> Result<Old> {
        let key = key.as_ref();
        let old = self.txn.only_value(self.table, key)?;
        if old.is_some() {
            self.txn.delete(self.table, key)?;
        }
        Ok(old)
    }
}
