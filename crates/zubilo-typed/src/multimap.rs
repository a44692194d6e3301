//! Tables with many values under a key, in both kinds of transactions.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use zubilo::TableStats;

use crate::codec::{Key, Prefix};
use crate::cursor::{Cursor, WriteCursor, both};
use crate::error::Result;
use crate::iter::{Records, Values, encoded_prefix, encoded_range};

/// A table with many values under a key, as a read transaction sees it. What it gives lives as long
/// as the transaction.
pub struct ReadMultimap<'t, K, V> {
    inner: zubilo::ReadTable<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table with many values under a key, in the hands of the write transaction. What it gives lives
/// until the next change.
pub struct WriteMultimap<'t, K, V> {
    inner: zubilo::WriteTable<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V> ReadMultimap<'t, K, V> {
    pub(crate) fn new(inner: zubilo::ReadTable<'t>) -> Self {
        ReadMultimap { inner, types: PhantomData }
    }
}

impl<'t, K, V> WriteMultimap<'t, K, V> {
    pub(crate) fn new(inner: zubilo::WriteTable<'t>) -> Self {
        WriteMultimap { inner, types: PhantomData }
    }
}

/// What both have in common.
macro_rules! figures {
    () => {
        /// The number of values under `key`; it costs no more than finding the key.
        pub fn count(&self, key: K::Input<'_>) -> Result<u64> {
            Ok(K::encoded(key, |key| self.inner.count(key))??)
        }

        /// Whether `value` is one of those under `key`.
        pub fn contains(&self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
            Ok(both::<K, V, _>(key, value, |k, v| self.inner.contains(k, v))??)
        }

        /// Number of records: each value of a key counts.
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
    };
}

impl<'t, K: Key, V: Key> ReadMultimap<'t, K, V> {
    /// The values under `key` in their order.
    pub fn get(&self, key: K::Input<'_>) -> Result<Values<'t, V>> {
        Ok(Values::new(K::encoded(key, |key| self.inner.get_all(key))??))
    }

    /// The first value under `key`.
    pub fn first_of(&self, key: K::Input<'_>) -> Result<Option<V::View<'t>>> {
        K::encoded(key, |key| self.inner.get(key))??.map(V::decode).transpose()
    }

    /// All records: each key comes with each of its values.
    pub fn iter(&self) -> Records<'t, K, V> {
        Records::new(self.inner.iter())
    }

    /// The records with keys inside `range`; `.rev()` goes backwards.
    pub fn range<'k>(&self, range: impl RangeBounds<K::Input<'k>>) -> Result<Records<'t, K, V>> {
        Ok(Records::new(self.inner.range(encoded_range::<K>(range)?)))
    }

    /// The records whose keys begin so; see [`Prefix`].
    pub fn prefix(&self, prefix: impl Prefix<K>) -> Result<Records<'t, K, V>> {
        Ok(Records::new(self.inner.prefix(encoded_prefix(prefix)?)))
    }

    /// A cursor that stands nowhere yet.
    pub fn cursor(&self) -> Cursor<'t, K, V> {
        Cursor::new(self.inner.cursor())
    }

    figures!();
}

impl<K: Key, V: Key> WriteMultimap<'_, K, V> {
    /// Adds `value` to those under `key`; tells whether it is new.
    pub fn insert(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.insert_value(k, v))??)
    }

    /// Removes `value` from those under `key`; tells whether it was there.
    pub fn delete(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.delete_value(k, v))??)
    }

    /// Removes `key` with all its values; tells whether it was there.
    pub fn delete_all(&mut self, key: K::Input<'_>) -> Result<bool> {
        Ok(K::encoded(key, |key| self.inner.delete(key))??)
    }

    /// Removes the keys inside `range` with all their values; gives the number of records.
    pub fn delete_range<'k>(&mut self, range: impl RangeBounds<K::Input<'k>>) -> Result<u64> {
        Ok(self.inner.delete_range(encoded_range::<K>(range)?)?)
    }

    /// Removes all records.
    pub fn clear(&mut self) -> Result<()> {
        Ok(self.inner.clear()?)
    }

    /// The values under `key` in their order, as of now.
    pub fn get(&self, key: K::Input<'_>) -> Result<Values<'_, V>> {
        Ok(Values::new(K::encoded(key, |key| self.inner.get_all(key))??))
    }

    /// All records: each key comes with each of its values, as of now.
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

    figures!();
}
