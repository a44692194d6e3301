//! Iterators over records and values, and ranges on their way into the engine.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::codec::{Key, Prefix, Value};
use crate::error::Result;

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

/// Iterator over records in the order of their keys, from both ends.
#[must_use = "iterators read nothing until they are advanced"]
pub struct Records<'t, K, V> {
    inner: zubilo::Iter<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V> Records<'t, K, V> {
    pub(crate) fn new(inner: zubilo::Iter<'t>) -> Self {
        Records { inner, types: PhantomData }
    }
}

impl<'t, K: Value, V: Value> Iterator for Records<'t, K, V> {
    type Item = Result<Views<'t, K, V>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let record = self.inner.next()?;
        Some(record.map_err(Into::into).and_then(decoded::<K, V>))
    }
}

impl<K: Value, V: Value> DoubleEndedIterator for Records<'_, K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let record = self.inner.next_back()?;
        Some(record.map_err(Into::into).and_then(decoded::<K, V>))
    }
}

impl<K: Value, V: Value> FusedIterator for Records<'_, K, V> {}

/// Iterator over the values of one key in their order, from both ends.
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
        self.inner.fmt(f)
    }
}

impl<V> fmt::Debug for Values<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
