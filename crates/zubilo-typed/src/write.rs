//! A table in the hands of the write transaction.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::codec::{Key, Prefix, Reserve, Value};
use crate::cursor::{Cursor, WriteCursor, both};
use crate::entry::Entry;
use crate::error::Result;
use crate::iter::{Records, decoded, encoded_prefix, encoded_range};
use crate::methods::{counting, figures, map_like, writing};

/// A table as the write transaction sees and changes it. What it gives lives until the next change.
///
/// ```
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const STOCK: Table<&str, u32> = Table::new("stock");
/// let mut txn = env.write()?;
/// let mut stock = STOCK.open_mut(&mut txn)?;
/// stock.put("nails", 500)?;
/// assert!(!stock.insert("nails", 1)?);
/// stock.retain(|_, count| count > 0)?;
/// assert_eq!(stock.pop_first()?, Some(("nails".to_string(), 500)));
/// assert!(!stock.delete("nails")?);
/// txn.commit()?;
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct WriteTable<'t, K, V> {
    pub(crate) inner: zubilo::WriteTable<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V> WriteTable<'t, K, V> {
    pub(crate) fn new(inner: zubilo::WriteTable<'t>) -> Self {
        WriteTable { inner, types: PhantomData }
    }
}

impl<'t, K: Key, V: Value> WriteTable<'t, K, V> {
    /// Stores `value` under `key`, replacing what was there.
    pub fn put(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<()> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.put(k, v))??)
    }

    /// Stores `value` under `key` if the key is new; returns whether it did.
    pub fn insert(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.insert(k, v))??)
    }

    /// The value under `key`, as of now.
    pub fn get(&self, key: K::Input<'_>) -> Result<Option<V::View<'_>>> {
        K::encoded(key, |key| self.inner.get(key))??.map(V::decode).transpose()
    }

    /// Removes `key`; returns whether it was there.
    pub fn delete(&mut self, key: K::Input<'_>) -> Result<bool> {
        Ok(K::encoded(key, |key| self.inner.delete(key))??)
    }

    /// Stores `value` under `key` and gives the value that was there.
    ///
    /// ```
    /// use zubilo_typed::Table;
    ///
    /// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
    /// const STOCK: Table<&str, u32> = Table::new("stock");
    /// let mut txn = env.write()?;
    /// let mut stock = STOCK.open_mut(&mut txn)?;
    /// assert_eq!(stock.replace("nails", 500)?, None);
    /// assert_eq!(stock.replace("nails", 600)?, Some(500));
    /// assert_eq!(stock.update("screws", 70)?, None);
    /// assert_eq!(stock.take("nails")?, Some(600));
    /// assert!(stock.is_empty());
    /// # Ok(())
    /// # }
    /// # let dir = tempfile::tempdir().unwrap();
    /// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
    /// ```
    pub fn replace(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<Option<V::Owned>> {
        let old = self.owned(key)?;
        self.put(key, value)?;
        Ok(old)
    }

    /// Stores `value` under `key` if the key is there already; gives the value that was there.
    pub fn update(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<Option<V::Owned>> {
        let old = self.owned(key)?;
        if old.is_some() {
            self.put(key, value)?;
        }
        Ok(old)
    }

    /// Removes `key` and gives the value that was there.
    pub fn take(&mut self, key: K::Input<'_>) -> Result<Option<V::Owned>> {
        let old = self.owned(key)?;
        if old.is_some() {
            self.delete(key)?;
        }
        Ok(old)
    }

    /// The value under `key`, by itself.
    fn owned(&self, key: K::Input<'_>) -> Result<Option<V::Owned>> {
        Ok(self.get(key)?.map(V::own))
    }

    /// Makes room for a value of `len` zeros under `key` and gives it for filling, without a copy in
    /// between: bytes, or with `Aligned<[T]>` numbers.
    ///
    #[cfg_attr(feature = "bytemuck", doc = "```")]
    #[cfg_attr(not(feature = "bytemuck"), doc = "```ignore")]
    /// use zubilo_typed::{Aligned, Table};
    ///
    /// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
    /// const VECTORS: Table<u32, Aligned<[f32]>> = Table::new("vectors");
    /// let mut txn = env.write()?;
    /// let mut vectors = VECTORS.open_mut(&mut txn)?;
    /// for (n, place) in vectors.reserve(7, 3)?.iter_mut().enumerate() {
    ///     *place = n as f32;
    /// }
    /// assert_eq!(vectors.get(7)?, Some(&[0.0, 1.0, 2.0][..]));
    /// # Ok(())
    /// # }
    /// # let dir = tempfile::tempdir().unwrap();
    /// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
    /// ```
    pub fn reserve(&mut self, key: K::Input<'_>, len: usize) -> Result<&mut V::Room>
    where
        V: Reserve,
    {
        let len = V::room_len(len)?;
        V::room(K::encoded(key, |key| self.inner.reserve(key, len))??)
    }

    /// The place of `key`, to look at it and to change it.
    ///
    /// ```
    /// use zubilo_typed::Table;
    ///
    /// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
    /// const WORDS: Table<&str, u32> = Table::new("words");
    /// let mut txn = env.write()?;
    /// let mut words = WORDS.open_mut(&mut txn)?;
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     words.entry(word)?.and_modify(|count| count + 1)?.or_insert(1)?;
    /// }
    /// assert_eq!(words.get("to")?, Some(2));
    /// assert_eq!(words.get("or")?, Some(1));
    /// # Ok(())
    /// # }
    /// # let dir = tempfile::tempdir().unwrap();
    /// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
    /// ```
    pub fn entry(&mut self, key: K::Input<'_>) -> Result<Entry<'_, 't, K, V>> {
        Ok(Entry::new(self, K::encoded(key, <[u8]>::to_vec)?))
    }

    map_like!('_);
    writing!();
    counting!('_);
    figures!();
}
