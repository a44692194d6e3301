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
///
/// ```
/// use zubilo_typed::{Multimap, Result};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const TAGS: Multimap<&str, u32> = Multimap::new("tags");
/// env.try_update(|txn| TAGS.open_mut(txn)?.insert("rust", 7))?;
/// let read = env.read()?;
/// let tags = TAGS.open(&read)?;
/// assert_eq!((tags.count("rust")?, tags.first_of("rust")?), (1, Some(7)));
/// assert_eq!(tags.iter().collect::<Result<Vec<_>>>()?, [("rust", 7)]);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct ReadMultimap<'t, K, V> {
    pub(crate) inner: zubilo::ReadTable<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table with many values under a key, in the hands of the write transaction. What it gives lives
/// until the next change.
///
/// ```
/// use zubilo_typed::Multimap;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const TAGS: Multimap<&str, u32> = Multimap::new("tags");
/// let mut txn = env.write()?;
/// let mut tags = TAGS.open_mut(&mut txn)?;
/// assert!(tags.insert("rust", 7)?);
/// // Each value is there once.
/// assert!(!tags.insert("rust", 7)?);
/// tags.insert("rust", 8)?;
/// assert!(tags.delete("rust", 7)?);
/// assert!(tags.delete_all("rust")?);
/// assert!(tags.is_empty());
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
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
