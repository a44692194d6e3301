//! Tables and iterators that own a share of their read transaction: they borrow nothing, so they can be kept,
//! sent to other threads and held across an `await`. What they give is owned, too; `as_table` reads in place.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use zubilo::ReadTxn;

use crate::codec::{Key, Prefix, Value};
use crate::error::{Error, Result};
use crate::iter::{decoded, encoded_prefix, encoded_range};
use crate::multimap::ReadMultimap;
use crate::read::ReadTable;

/// A table with a share of its read transaction: see [`Table::open_owned`](crate::Table::open_owned).
///
/// ```
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const STOCK: Table<&str, u32> = Table::new("stock");
/// env.try_update(|txn| STOCK.open_mut(txn)?.put("nails", 500))?;
///
/// let stock = STOCK.open_owned(&env.read()?.into_shared())?;
/// let counted = std::thread::spawn(move || {
///     stock.iter().map(|record| Ok(record?.1)).sum::<zubilo_typed::Result<u32>>()
/// });
/// assert_eq!(counted.join().unwrap()?, 500);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct OwnedTable<K, V> {
    inner: zubilo::OwnedTable,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table with many values under a key, with a share of its read transaction: see
/// [`Multimap::open_owned`](crate::Multimap::open_owned).
///
/// ```
/// use zubilo_typed::Multimap;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const TAGS: Multimap<&str, u32> = Multimap::new("tags");
/// env.try_update(|txn| TAGS.open_mut(txn)?.insert("rust", 7))?;
///
/// let tags = TAGS.open_owned(&env.read()?.into_shared())?;
/// assert_eq!(tags.get("rust")?, [7]);
/// assert_eq!(tags.as_table().count("rust")?, 1);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct OwnedMultimap<K, V> {
    inner: zubilo::OwnedTable,
    types: PhantomData<fn() -> (K, V)>,
}

macro_rules! owned {
    ($name:ident, $value:ident, $read:ident) => {
        impl<K, V> $name<K, V> {
            pub(crate) fn new(inner: zubilo::OwnedTable) -> Self {
                $name { inner, types: PhantomData }
            }

            /// The snapshot the table belongs to.
            pub fn txn(&self) -> &Arc<ReadTxn> {
                self.inner.txn()
            }

            /// The table with all its methods, borrowed; it reads in place.
            pub fn as_table(&self) -> $read<'_, K, V> {
                $read::new(self.inner.as_table())
            }

            /// Number of records: each value of a key counts.
            pub fn len(&self) -> u64 {
                self.inner.len()
            }

            /// True without records.
            pub fn is_empty(&self) -> bool {
                self.inner.is_empty()
            }
        }

        impl<K: Key, V: $value> $name<K, V> {
            /// All records in the order of their keys; a key comes with each of its values.
            pub fn iter(&self) -> OwnedRecords<K, V> {
                OwnedRecords::of(Ok(self.inner.iter()))
            }

            /// The records with keys inside `range`; `.rev()` goes backwards.
            pub fn range<'k>(&self, range: impl RangeBounds<K::Input<'k>>) -> OwnedRecords<K, V> {
                OwnedRecords::of(encoded_range::<K>(range).map(|range| self.inner.range(range)))
            }

            /// The records whose keys begin so; see [`Prefix`].
            pub fn prefix(&self, prefix: impl Prefix<K>) -> OwnedRecords<K, V> {
                OwnedRecords::of(encoded_prefix(prefix).map(|prefix| self.inner.prefix(prefix)))
            }

            /// Whether there is a record with this key.
            pub fn contains_key(&self, key: K::Input<'_>) -> Result<bool> {
                self.as_table().contains_key(key)
            }
        }

        impl<K, V> Clone for $name<K, V> {
            fn clone(&self) -> Self {
                $name::new(self.inner.clone())
            }
        }

        impl<K, V> fmt::Debug for $name<K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
}

owned!(OwnedTable, Value, ReadTable);
owned!(OwnedMultimap, Key, ReadMultimap);

impl<K: Key, V: Value> OwnedTable<K, V> {
    /// The value under `key`.
    pub fn get(&self, key: K::Input<'_>) -> Result<Option<V::Owned>> {
        Ok(self.as_table().get(key)?.map(V::own))
    }
}

impl<K: Key, V: Key> OwnedMultimap<K, V> {
    /// The values under `key`, in their order.
    pub fn get(&self, key: K::Input<'_>) -> Result<Vec<V::Owned>> {
        self.as_table().get(key)?.map(|value| value.map(V::own)).collect()
    }
}

/// Iterator over records that keeps its snapshot alive, from both ends; the records are owned.
///
/// ```
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const STOCK: Table<&str, u32> = Table::new("stock");
/// env.try_update(|txn| STOCK.open_mut(txn)?.put("nails", 500))?;
///
/// let mut records = STOCK.open_owned(&env.read()?.into_shared())?.range("n"..);
/// assert_eq!(records.next().transpose()?, Some(("nails".to_string(), 500)));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[must_use = "iterators read nothing until they are advanced"]
pub struct OwnedRecords<K, V> {
    inner: Option<zubilo::OwnedIter>,
    failure: Option<Error>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Value, V: Value> OwnedRecords<K, V> {
    fn of(records: Result<zubilo::OwnedIter>) -> Self {
        let (inner, failure) = match records {
            Ok(inner) => (Some(inner), None),
            Err(error) => (None, Some(error)),
        };
        OwnedRecords { inner, failure, types: PhantomData }
    }

    fn own(record: zubilo::Result<zubilo::OwnedRecord>) -> Result<(K::Owned, V::Owned)> {
        let record = record?;
        let (key, value) = decoded::<K, V>((record.key(), record.value()))?;
        Ok((K::own(key), V::own(value)))
    }
}

impl<K: Value, V: Value> Iterator for OwnedRecords<K, V> {
    type Item = Result<(K::Owned, V::Owned)>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.inner {
            Some(inner) => inner.next().map(Self::own),
            None => self.failure.take().map(Err),
        }
    }
}

impl<K: Value, V: Value> DoubleEndedIterator for OwnedRecords<K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.inner {
            Some(inner) => inner.next_back().map(Self::own),
            None => self.failure.take().map(Err),
        }
    }
}

impl<K: Value, V: Value> FusedIterator for OwnedRecords<K, V> {}

impl<K, V> fmt::Debug for OwnedRecords<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedRecords").finish_non_exhaustive()
    }
}
