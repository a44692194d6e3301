//! Tables with many values under a key, in both kinds of transactions.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::codec::{Key, Prefix};
use crate::cursor::{Cursor, WriteCursor, both};
use crate::error::Result;
use crate::iter::{Records, Values, decoded, encoded_prefix, encoded_range};
use crate::methods::{counting, figures, map_like, of_a_key, reading, writing};

/// A table with many values under a key, as a read transaction sees it. What it gives lives as long
/// as the transaction.
pub struct ReadMultimap<'t, K, V> {
    pub(crate) inner: zubilo::ReadTable<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table with many values under a key, in the hands of the write transaction. What it gives lives
/// until the next change.
pub struct WriteMultimap<'t, K, V> {
    pub(crate) inner: zubilo::WriteTable<'t>,
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

impl<'t, K: Key, V: Key> ReadMultimap<'t, K, V> {
    of_a_key!('t);
    map_like!('t);
    reading!();
    counting!('t);
    figures!();
}

impl<K: Key, V: Key> WriteMultimap<'_, K, V> {
    /// Adds `value` to those under `key`; returns whether it is new.
    pub fn insert(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.insert_value(k, v))??)
    }

    /// Removes `value` from those under `key`; returns whether it was there.
    pub fn delete(&mut self, key: K::Input<'_>, value: V::Input<'_>) -> Result<bool> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.delete_value(k, v))??)
    }

    /// Removes `key` with all its values; returns whether it was there.
    pub fn delete_all(&mut self, key: K::Input<'_>) -> Result<bool> {
        Ok(K::encoded(key, |key| self.inner.delete(key))??)
    }

    of_a_key!('_);
    map_like!('_);
    writing!();
    counting!('_);
    figures!();
}
