//! Methods of tables that Rust's maps have, under the names that they have there.

use crate::error::Result;
use crate::tree::lookup;

use super::read::ReadTable;
use super::view::ViewTable;
use super::write_table::WriteTable;

/// What tables that do not change have in common with maps; `$this` gives the pages and the tree.
macro_rules! map_like {
    ($life:lifetime, $this:ident => $parts:expr) => {
        /// Whether there is a value under `key`.
        pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
            let $this = self;
            let (pages, tree) = $parts;
            let found = lookup::get_entry(&pages, &tree.desc, &tree.order, key.as_ref())?;
            Ok(found.is_some())
        }

        /// The first record, as [`Self::first`].
        pub fn first_key_value(&self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            self.first()
        }

        /// The last record, as [`Self::last`].
        pub fn last_key_value(&self) -> Result<Option<(&$life [u8], &$life [u8])>> {
            self.last()
        }
    };
}

impl<'t> ReadTable<'t> {
    map_like!('t, this => (this.snapshot(), this.tree()));
}

impl<'t> ViewTable<'t> {
    map_like!('t, this => this.parts());
}

/// A record that was taken out: key and value.
type Taken = Option<(Vec<u8>, Vec<u8>)>;

/// As Rust's maps have them.
impl<'t> WriteTable<'t> {
    map_like!('_, this => {
        this.txn.check()?;
        (this.txn.ws.view(), this.txn.tree(this.table)?)
    });

    /// Removes the first record, and gives it; of a key with many values only the first one goes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut write = env.write()?;
    /// let mut queue = write.table_or_create("queue")?;
    /// queue.put(1u32.to_be_bytes(), "first job")?;
    /// queue.put(2u32.to_be_bytes(), "second job")?;
    /// let (_, job) = queue.pop_first()?.expect("two jobs");
    /// assert_eq!(job, b"first job");
    /// assert_eq!(queue.len(), 1);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn pop_first(&mut self) -> Result<Taken> {
        self.pop(false)
    }

    /// Removes the last record, and gives it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut queue = txn.table_or_create("queue")?;
    /// queue.put("a", "first")?;
    /// queue.put("b", "last")?;
    /// assert_eq!(queue.pop_last()?, Some((b"b".to_vec(), b"last".to_vec())));
    /// assert_eq!(queue.len(), 1);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn pop_last(&mut self) -> Result<Taken> {
        self.pop(true)
    }

    fn pop(&mut self, last: bool) -> Result<Taken> {
        let mut cursor = self.cursor_mut()?;
        let record = if last { cursor.last()? } else { cursor.first()? };
        let taken = record.map(|(key, value)| (key.to_vec(), value.to_vec()));
        if taken.is_some() {
            cursor.delete()?;
        }
        Ok(taken)
    }

    /// Removes all records that `keep` gives false for; gives their number. To remove a whole range
    /// [`WriteTable::delete_range`] is far cheaper.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut write = env.write()?;
    /// let mut table = write.table_or_create("t")?;
    /// (0..10u8).try_for_each(|n| table.put([n], [n % 3]))?;
    /// assert_eq!(table.retain(|_, value| value != [0])?, 4);
    /// assert!(!table.contains_key([3])? && table.contains_key([4])?);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let mut cursor = self.cursor_mut()?;
        let mut removed = 0;
        while let Some((key, value)) = cursor.next()? {
            if !keep(key, value) {
                removed += u64::from(cursor.delete()?);
            }
        }
        Ok(removed)
    }

    /// The place of `key`, to look at it and to change it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut write = env.write()?;
    /// let mut words = write.table_or_create("words")?;
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     words.entry(word).and_modify(|count| [count[0] + 1])?.or_insert([1])?;
    /// }
    /// assert_eq!(words.get("to")?, Some(&[2][..]));
    /// assert_eq!(words.get("or")?, Some(&[1][..]));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn entry<K: AsRef<[u8]>>(&mut self, key: K) -> Entry<'_, 't, K> {
        Entry { table: self, key }
    }
}

/// The place of a key in a table: see [`WriteTable::entry`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let mut table = txn.table_or_create("t")?;
/// assert_eq!(table.entry("key").or_insert("first")?, b"first");
/// assert_eq!(table.entry("key").or_insert("second")?, b"first");
/// assert_eq!(table.entry("key").remove()?.as_deref(), Some(&b"first"[..]));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "an entry changes nothing by itself"]
pub struct Entry<'e, 't, K> {
    table: &'e mut WriteTable<'t>,
    key: K,
}

impl<'e, K: AsRef<[u8]>> Entry<'e, '_, K> {
    /// The key.
    pub fn key(&self) -> &[u8] {
        self.key.as_ref()
    }

    /// The value, of several the first.
    pub fn get(&self) -> Result<Option<&[u8]>> {
        self.table.get(self.key())
    }

    /// Replaces the value that is there by what `change` makes of it.
    ///
    /// # Errors
    /// [`Error::ManyValues`](crate::Error::ManyValues) if the key has several values.
    pub fn and_modify<V: AsRef<[u8]>>(self, change: impl FnOnce(&[u8]) -> V) -> Result<Self> {
        if let Some(old) = self.table.get(self.key())? {
            let new = change(old);
            self.table.update(self.key.as_ref(), new)?;
        }
        Ok(self)
    }

    /// Stores `value` if there is none, and gives the one that is there then.
    pub fn or_insert(self, value: impl AsRef<[u8]>) -> Result<&'e [u8]> {
        self.or_insert_with(|| value)
    }

    /// Stores what `value` gives if there is none, and gives the one that is there then.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut cache = txn.table_or_create("cache")?;
    /// let dear = || "worked out".to_uppercase();
    /// assert_eq!(cache.entry("key").or_insert_with(dear)?, b"WORKED OUT");
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn or_insert_with<V: AsRef<[u8]>>(self, value: impl FnOnce() -> V) -> Result<&'e [u8]> {
        let Entry { table, key } = self;
        if !table.contains_key(key.as_ref())? {
            table.put(key.as_ref(), value())?;
        }
        Ok(table.get(key.as_ref())?.unwrap_or_default())
    }

    /// Stores `value`, and gives the one that was there.
    ///
    /// # Errors
    /// [`Error::ManyValues`](crate::Error::ManyValues) if the key has several values.
    pub fn insert(self, value: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.table.replace(self.key.as_ref(), value)
    }

    /// Removes the key, and gives the value that was there.
    ///
    /// # Errors
    /// [`Error::ManyValues`](crate::Error::ManyValues) if the key has several values.
    pub fn remove(self) -> Result<Option<Vec<u8>>> {
        self.table.take(self.key.as_ref())
    }
}
