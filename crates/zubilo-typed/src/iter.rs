//! Iterators over records and values, and ranges on their way into the engine.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::codec::{Key, Prefix, Value};
use crate::error::{Error, Result};

/// A range of encoded keys.
pub(crate) type Encoded = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Encodes the ends of a range.
pub(crate) fn encoded_range<'k, K: Key>(range: impl RangeBounds<K::Input<'k>>) -> Result<Encoded> {
    let end = |bound: Bound<&K::Input<'k>>| -> Result<Bound<Vec<u8>>> {
        let encoded = |input: &K::Input<'k>| K::encoded(*input, <[u8]>::to_vec);
        Ok(match bound {
            Bound::Included(input) => Bound::Included(encoded(input)?),
            Bound::Excluded(input) => Bound::Excluded(encoded(input)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    };
    Ok((end(range.start_bound())?, end(range.end_bound())?))
}

/// Encodes the beginning of keys.
pub(crate) fn encoded_prefix<K: Key>(prefix: impl Prefix<K>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    prefix.encode_prefix(&mut bytes)?;
    Ok(bytes)
}

type Views<'t, K, V> = (<K as Value>::View<'t>, <V as Value>::View<'t>);

/// A record as the engine gives it, decoded.
pub(crate) fn decoded<'t, K: Value, V: Value>(
    record: (&'t [u8], &'t [u8]),
) -> Result<Views<'t, K, V>> {
    Ok((K::decode(record.0)?, V::decode(record.1)?))
}

/// Iterator over records in the order of their keys, from both ends. Where the ends of the range have no
/// encoding, that error is all it gives.
///
/// ```
/// # use zubilo_typed::{Result, Table};
/// # fn f(env: &zubilo::Env) -> Result<()> {
/// const STOCK: Table<&str, u32> = Table::new("stock");
/// let mut txn = env.write()?;
/// let mut stock = STOCK.open_mut(&mut txn)?;
/// stock.put("nails", 500)?;
/// stock.put("screws", 70)?;
/// let mut pieces = 0;
/// for record in stock.iter() {
///     let (_, count) = record?;
///     pieces += count;
/// }
/// assert_eq!(pieces, 570);
/// let last = stock.range("o"..).next_back().transpose()?;
/// assert_eq!(last, Some(("screws", 70)));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[must_use = "iterators read nothing until they are advanced"]
pub struct Records<'t, K, V> {
    inner: Inner<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

#[expect(clippy::large_enum_variant, reason = "a range should not allocate")]
enum Inner<'t> {
    Records(zubilo::Iter<'t>),
    /// The range has no encoding: the error, until it is given.
    Failed(Option<Box<Error>>),
}

impl<'t, K, V> Records<'t, K, V> {
    pub(crate) fn new(inner: zubilo::Iter<'t>) -> Self {
        Records { inner: Inner::Records(inner), types: PhantomData }
    }

    /// What `open` makes of bounds or a prefix, if they have an encoding.
    pub(crate) fn of<B>(bounds: Result<B>, open: impl FnOnce(B) -> zubilo::Iter<'t>) -> Self {
        match bounds {
            Ok(bounds) => Records::new(open(bounds)),
            Err(error) => {
                Records { inner: Inner::Failed(Some(Box::new(error))), types: PhantomData }
            }
        }
    }
}

impl<'t, K: Value, V: Value> Iterator for Records<'t, K, V> {
    type Item = Result<Views<'t, K, V>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.inner {
            Inner::Records(inner) => {
                Some(inner.next()?.map_err(Into::into).and_then(decoded::<K, V>))
            }
            Inner::Failed(error) => error.take().map(|error| Err(*error)),
        }
    }
}

impl<K: Value, V: Value> DoubleEndedIterator for Records<'_, K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.inner {
            Inner::Records(inner) => {
                Some(inner.next_back()?.map_err(Into::into).and_then(decoded::<K, V>))
            }
            Inner::Failed(error) => error.take().map(|error| Err(*error)),
        }
    }
}

impl<K: Value, V: Value> FusedIterator for Records<'_, K, V> {}

/// Iterator over the values of one key in their order, from both ends.
///
/// ```
/// use zubilo_typed::{Multimap, Result};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const TAGS: Multimap<&str, u32> = Multimap::new("tags");
/// let mut txn = env.write()?;
/// let mut tags = TAGS.open_mut(&mut txn)?;
/// [30, 10, 20].iter().try_for_each(|article| tags.insert("rust", *article).map(drop))?;
/// let mut articles = tags.get("rust")?;
/// assert_eq!(articles.remaining(), 3);
/// assert_eq!(articles.next_back().transpose()?, Some(30));
/// assert_eq!(articles.collect::<Result<Vec<_>>>()?, [10, 20]);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[must_use = "iterators read nothing until they are advanced"]
pub struct Values<'t, V> {
    inner: zubilo::ValueIter<'t>,
    types: PhantomData<fn() -> V>,
}

impl<'t, V> Values<'t, V> {
    pub(crate) fn new(inner: zubilo::ValueIter<'t>) -> Self {
        Values { inner, types: PhantomData }
    }

    /// Number of values still to come.
    pub fn remaining(&self) -> u64 {
        self.inner.remaining()
    }
}

impl<'t, V: Value> Iterator for Values<'t, V> {
    type Item = Result<V::View<'t>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let value = self.inner.next()?;
        Some(value.map_err(Into::into).and_then(V::decode))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<V: Value> DoubleEndedIterator for Values<'_, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let value = self.inner.next_back()?;
        Some(value.map_err(Into::into).and_then(V::decode))
    }
}

impl<V: Value> FusedIterator for Values<'_, V> {}

impl<K, V> fmt::Debug for Records<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Inner::Records(inner) => inner.fmt(f),
            Inner::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
        }
    }
}

impl<V> fmt::Debug for Values<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
