//! A table in the hands of the write transaction.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::codec::{Key, Prefix, Value};
use crate::cursor::{Cursor, WriteCursor, both};
use crate::error::Result;
use crate::iter::{Records, encoded_prefix, encoded_range};
use crate::methods::{counting, figures, writing};

/// A table as the write transaction sees and changes it. What it gives lives until the next change.
pub struct WriteTable<'t, K, V> {
    pub(crate) inner: zubilo::WriteTable<'t>,
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

    /// Stores `value` under `key` if the key is new; returns whether it did.
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

    /// Removes `key`; returns whether it was there.
    pub fn delete(&mut self, key: K::Input<'_>) -> Result<bool> {
        Ok(K::encoded(key, |key| self.inner.delete(key))??)
    }

    writing!();
    counting!('_);
    figures!();
}
