//! A table as a read transaction sees it.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use zubilo::TableStats;

use crate::codec::{Key, Prefix, Value};
use crate::cursor::Cursor;
use crate::error::Result;
use crate::iter::{Records, encoded_prefix, encoded_range};

/// A table as a read transaction sees it. What it gives lives as long as the transaction.
pub struct ReadTable<'t, K, V> {
    pub(crate) inner: zubilo::ReadTable<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V> ReadTable<'t, K, V> {
    pub(crate) fn new(inner: zubilo::ReadTable<'t>) -> Self {
        ReadTable { inner, types: PhantomData }
    }
}

impl<'t, K: Key, V: Value> ReadTable<'t, K, V> {
    /// The value under `key`.
    #[inline]
    pub fn get(&self, key: K::Input<'_>) -> Result<Option<V::View<'t>>> {
        K::encoded(key, |key| self.inner.get(key))??.map(V::decode).transpose()
    }

    /// The values under many keys, in their order. Several times faster a key than
    /// [`ReadTable::get`] when the table is larger than the CPU's caches.
    pub fn get_many(&self, keys: &[K::Input<'_>]) -> Result<Vec<Option<V::View<'t>>>> {
        let encode = |key: &K::Input<'_>| K::encoded(*key, <[u8]>::to_vec);
        let keys = keys.iter().map(encode).collect::<Result<Vec<_>>>()?;
        let values = self.inner.get_many(&keys)?;
        values.into_iter().map(|value| value.map(V::decode).transpose()).collect()
    }

    /// Whether there is a record with this key.
    pub fn contains(&self, key: K::Input<'_>) -> Result<bool> {
        Ok(K::encoded(key, |key| self.inner.get(key))??.is_some())
    }

    /// All records in the order of their keys.
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

    /// The first record.
    pub fn first(&self) -> Result<Option<(K::View<'t>, V::View<'t>)>> {
        self.iter().next().transpose()
    }

    /// The last record.
    pub fn last(&self) -> Result<Option<(K::View<'t>, V::View<'t>)>> {
        self.iter().next_back().transpose()
    }

    /// A cursor that stands nowhere yet.
    pub fn cursor(&self) -> Cursor<'t, K, V> {
        Cursor::new(self.inner.cursor())
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
