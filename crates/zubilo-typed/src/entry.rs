//! The place of a key in a table of the write transaction: what Rust's maps call an entry.

use std::fmt;

use crate::codec::{Key, Value};
use crate::error::Result;
use crate::write::WriteTable;

/// The place of a key in a table: see [`WriteTable::entry`].
///
/// ```
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const NAMES: Table<u32, String> = Table::new("names");
/// let mut txn = env.write()?;
/// let mut names = NAMES.open_mut(&mut txn)?;
/// assert_eq!(names.entry(7)?.or_insert_with(|| format!("number {}", 7))?, "number 7");
/// names.entry(7)?.and_modify(|name| name + "!")?;
/// let place = names.entry(7)?;
/// assert_eq!((place.key()?, place.get()?), (7, Some("number 7!".to_string())));
/// assert_eq!(place.remove()?, Some("number 7!".to_string()));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[must_use = "an entry changes nothing by itself"]
pub struct Entry<'e, 't, K, V> {
    table: &'e mut WriteTable<'t, K, V>,
    /// Encoded.
    key: Vec<u8>,
}

impl<'e, 't, K, V> Entry<'e, 't, K, V> {
    pub(crate) fn new(table: &'e mut WriteTable<'t, K, V>, key: Vec<u8>) -> Self {
        Entry { table, key }
    }
}

impl<'e, K: Key, V: Value> Entry<'e, '_, K, V> {
    /// The key.
    pub fn key(&self) -> Result<K::View<'_>> {
        K::decode(&self.key)
    }

    /// The value.
    pub fn get(&self) -> Result<Option<V::View<'_>>> {
        self.table.inner.get(&self.key)?.map(V::decode).transpose()
    }

    /// Replaces the value that is there by what `change` makes of it.
    pub fn and_modify(mut self, change: impl FnOnce(V::View<'_>) -> V::Owned) -> Result<Self> {
        let new = self.get()?.map(change);
        if let Some(new) = new {
            self.store(V::input(&new))?;
        }
        Ok(self)
    }

    fn store(&mut self, value: V::Input<'_>) -> Result<()> {
        Ok(V::encoded(value, |value| self.table.inner.put(&self.key, value))??)
    }

    /// Stores `value` if there is none, and gives the one that is there then.
    pub fn or_insert(mut self, value: V::Input<'_>) -> Result<V::View<'e>> {
        if self.is_vacant()? {
            self.store(value)?;
        }
        self.stored()
    }

    /// Stores what `value` gives if there is none, and gives the one that is there then.
    pub fn or_insert_with(mut self, value: impl FnOnce() -> V::Owned) -> Result<V::View<'e>> {
        if self.is_vacant()? {
            self.store(V::input(&value()))?;
        }
        self.stored()
    }

    fn is_vacant(&self) -> Result<bool> {
        Ok(!self.table.inner.contains_key(&self.key)?)
    }

    fn stored(self) -> Result<V::View<'e>> {
        let Entry { table, key } = self;
        V::decode(table.inner.get(key)?.unwrap_or_default())
    }

    /// Stores `value`, and gives the one that was there.
    pub fn insert(mut self, value: V::Input<'_>) -> Result<Option<V::Owned>> {
        let old = self.get()?.map(V::own);
        self.store(value)?;
        Ok(old)
    }

    /// Removes the key, and gives the value that was there.
    pub fn remove(self) -> Result<Option<V::Owned>> {
        let old = self.get()?.map(V::own);
        if old.is_some() {
            self.table.inner.delete(&self.key)?;
        }
        Ok(old)
    }
}

impl<K: Key, V: Value> fmt::Debug for Entry<'_, '_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("key", &self.key).finish_non_exhaustive()
    }
}
