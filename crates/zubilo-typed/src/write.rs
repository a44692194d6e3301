//! A table in the hands of the write transaction.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use zubilo::TableStats;

use crate::codec::{Key, Prefix, Value};
use crate::cursor::{Cursor, WriteCursor, both};
use crate::error::Result;
use crate::iter::{Records, encoded_prefix, encoded_range};

/// A table as the write transaction sees and changes it. What it gives lives until the next change.
pub struct WriteTable<'t, K, V> {
    inner: zubilo::WriteTable<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V> WriteTable<'t, K, V> {
    pub(crate) fn new(inner: zubilo::WriteTable<'t>) -> Self {
        WriteTable { inner, types: PhantomData }
    }
}

impl<K: Key, V: Value> WriteTable<'_, K, V> {
    /// Stores `value` under `key`, replacing what was there.
    pub fn put(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<()> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.put(k, v))??)
    }

    /// Stores `value` under `key` if the key is new; tells whether it did.
    pub fn insert(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.insert(k, v))??)
    }

    /// The value under `key`, as of now.
    pub fn get(&self, key: K::Input<'_>) -> Result<Option<V::View<'_>>> {
        K::encoded(key, |key| self.inner.get(key))??.map(V::decode).transpose()
    }

    /// Whether there is a record with this key.
    pub fn contains(&self, key: K::Input<'_>) -> Result<bool> {
        Ok(K::encoded(key, |key| self.inner.get(key).map(|value| value.is_some()))??)
    }

    /// Removes `key`; tells whether it was there.
    pub fn delete(&mut self, key: K::Input<'_>) -> Result<bool> {
        Ok(K::encoded(key, |key| self.inner.delete(key))??)
    }

    /// Removes all records inside `range`; gives their number.
    pub fn delete_range<'k>(&mut self, range: impl RangeBounds<K::Input<'k>>) -> Result<u64> {
        Ok(self.inner.delete_range(encoded_range::<K>(range)?)?)
    }

    /// Removes all records.
    pub fn clear(&mut self) -> Result<()> {
        Ok(self.inner.clear()?)
    }

    /// All records in the order of their keys, as of now.
    pub fn iter(&self) -> Result<Records<'_, K, V>> {
        Ok(Records::new(self.inner.iter()?))
    }

    /// The records with keys inside `range`, as of now.
    pub fn range<'k>(&self, range: impl RangeBounds<K::Input<'k>>) -> Result<Records<'_, K, V>> {
        Ok(Records::new(self.inner.range(encoded_range::<K>(range)?)?))
    }

    /// The records whose keys begin so, as of now; see [`Prefix`].
    pub fn prefix(&self, prefix: impl Prefix<K>) -> Result<Records<'_, K, V>> {
        Ok(Records::new(self.inner.prefix(encoded_prefix(prefix)?)?))
    }

    /// A cursor that stands nowhere yet; the table cannot change while it lives.
    pub fn cursor(&self) -> Result<Cursor<'_, K, V>> {
        Ok(Cursor::new(self.inner.cursor()?))
    }

    /// A cursor through which the table can be changed; it stands nowhere yet.
    pub fn cursor_mut(&mut self) -> Result<WriteCursor<'_, K, V>> {
        Ok(WriteCursor::new(self.inner.cursor_mut()?))
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.inner.len()
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Figures of the table.
    pub fn stats(&self) -> TableStats {
        self.inner.stats()
    }
}
