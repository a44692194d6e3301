//! A table as a read transaction sees it.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::codec::{Key, Prefix, Value};
use crate::cursor::{Cursor, both};
use crate::error::Result;
use crate::iter::{Records, encoded_prefix, encoded_range};
use crate::methods::{counting, figures, map_like, reading};

/// A table as a read transaction sees it. What it gives lives as long as the transaction.
///
/// ```
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const STOCK: Table<&str, u32> = Table::new("stock");
/// env.try_update(|txn| STOCK.open_mut(txn)?.put("nails", 500))?;
/// let read = env.read()?;
/// let stock = STOCK.open(&read)?;
/// assert_eq!(stock.get("nails")?, Some(500));
/// assert_eq!(stock.get_many(&["screws", "nails"])?, [None, Some(500)]);
/// assert_eq!(stock.range("a"..="m").count(), 0);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
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

    map_like!('t);
    reading!();
    counting!('t);
    figures!();
}
