//! Cursors over typed tables: a position moved by hand, in a table that stands still or through which
//! the table is changed.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use zubilo::{ParkedCursor, PutFlags, Seek};

use crate::codec::{Key, Value};
use crate::error::Result;
use crate::iter::decoded;

/// A position in a table that does not change meanwhile.
///
/// ```
/// use std::cmp::Ordering;
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const SQUARES: Table<u32, u32> = Table::new("squares");
/// env.try_update(|txn| {
///     let mut squares = SQUARES.open_mut(txn)?;
///     (0..100).try_for_each(|n| squares.put(n, n * n))
/// })?;
/// let read = env.read()?;
/// let squares = SQUARES.open(&read)?;
/// let mut cursor = squares.cursor();
/// assert_eq!(cursor.seek(10)?, Some((10, 100)));
/// assert_eq!(cursor.prev()?, Some((9, 81)));
/// let mut other = cursor.clone();
/// other.next()?;
/// assert_eq!(cursor.compare(&other)?, Some(Ordering::Less));
/// // To go on later, in another transaction.
/// let mut place = cursor.park()?;
/// other.park_into(&mut place)?;
/// drop(read);
/// let read = env.read()?;
/// assert_eq!(SQUARES.open(&read)?.resume(&place)?.next()?, Some((11, 121)));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct Cursor<'t, K, V> {
    inner: zubilo::Cursor<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

/// A position in a table of the write transaction, through which the table can be changed. What it
/// gives lives until the next call.
///
/// ```
/// use zubilo::PutFlags;
/// use zubilo_typed::Table;
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const STOCK: Table<&str, u32> = Table::new("stock");
/// let mut txn = env.write()?;
/// let mut stock = STOCK.open_mut(&mut txn)?;
/// let mut cursor = stock.cursor_mut()?;
/// assert!(cursor.put("nails", 500, PutFlags::NO_OVERWRITE)?);
/// cursor.put("screws", 70, PutFlags::APPEND)?;
/// cursor.put_current(80)?;
/// assert_eq!(cursor.prev()?, Some(("nails", 500)));
/// assert!(cursor.delete()?);
/// // It stands before the record that followed.
/// assert_eq!(cursor.next()?, Some(("screws", 80)));
/// assert!(cursor.delete_key()?);
/// let place = cursor.park()?;
/// drop(cursor);
/// stock.put("tacks", 3)?;
/// assert_eq!(stock.resume(&place)?.next()?, Some(("tacks", 3)));
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct WriteCursor<'t, K, V> {
    inner: zubilo::WriteCursor<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V> Cursor<'t, K, V> {
    pub(crate) fn new(inner: zubilo::Cursor<'t>) -> Self {
        Cursor { inner, types: PhantomData }
    }
}

impl<'t, K, V> WriteCursor<'t, K, V> {
    pub(crate) fn new(inner: zubilo::WriteCursor<'t>) -> Self {
        WriteCursor { inner, types: PhantomData }
    }
}

impl<K, V> Clone for Cursor<'_, K, V> {
    fn clone(&self) -> Self {
        Cursor { inner: self.inner.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Cursor<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<K, V> fmt::Debug for WriteCursor<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Moves without arguments.
macro_rules! steps {
    ($life:lifetime, $($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(&mut self) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            self.inner.$name()?.map(decoded::<K, V>).transpose()
        })*
    };
}

/// The moves of both kinds of cursors.
macro_rules! moves {
    ($life:lifetime) => {
        steps! { $life,
            /// To the first record.
            first;
            /// To the last record.
            last;
            /// To the next record, the first one when the cursor stands nowhere yet. At the end the
            /// cursor keeps its place.
            #[expect(clippy::should_implement_trait, reason = "a cursor also goes back")]
            next;
            /// To the record before, the last one when the cursor stands nowhere yet.
            prev;
            /// The record under the cursor; after a deletion the one that followed.
            current;
        }

        /// To the first record whose key is not less than `key`. If there is none the cursor stands
        /// after the last one.
        pub fn seek(
            &mut self,
            key: K::Input<'_>,
        ) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            K::encoded(key, |key| self.inner.seek(key))??.map(decoded::<K, V>).transpose()
        }

        /// To the record with this key, of several the first; nowhere when there is none.
        pub fn seek_exact(
            &mut self,
            key: K::Input<'_>,
        ) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            K::encoded(key, |key| self.inner.seek_exact(key))??.map(decoded::<K, V>).transpose()
        }

        /// To the nearest key that stands so to `key`: its first value where it is sought upwards or
        /// exactly, its last where downwards.
        pub fn seek_by(
            &mut self,
            seek: Seek,
            key: K::Input<'_>,
        ) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            K::encoded(key, |key| self.inner.seek_by(seek, key))??.map(decoded::<K, V>).transpose()
        }
    };
}

/// Moves among the values of a key.
macro_rules! moves_among_values {
    ($life:lifetime) => {
        steps! { $life,
            /// To the next value of the same key.
            next_value;
            /// To the value before of the same key.
            prev_value;
            /// To the first value of the next key.
            next_key;
            /// To the last value of the key before.
            prev_key;
            /// To the first value of the key under the cursor.
            first_value;
            /// To the last value of the key under the cursor.
            last_value;
        }

        /// To the record with this key and value; nowhere when there is none.
        pub fn seek_pair(
            &mut self,
            key: K::Input<'_>,
            value: V::Input<'_>,
        ) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            let found = both::<K, V, _>(key, value, |k, v| self.inner.seek_pair(k, v))??;
            found.map(decoded::<K, V>).transpose()
        }

        /// To the first value under `key` that is not less than `value`; nowhere when there is none.
        pub fn seek_value(
            &mut self,
            key: K::Input<'_>,
            value: V::Input<'_>,
        ) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            let found = both::<K, V, _>(key, value, |k, v| self.inner.seek_value(k, v))??;
            found.map(decoded::<K, V>).transpose()
        }

        /// To the nearest value under `key` that stands so to `value`; nowhere when there is none.
        pub fn seek_value_by(
            &mut self,
            seek: Seek,
            key: K::Input<'_>,
            value: V::Input<'_>,
        ) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            let found = both::<K, V, _>(key, value, |k, v| self.inner.seek_value_by(seek, k, v))??;
            found.map(decoded::<K, V>).transpose()
        }

        /// To the nearest record, in the order of keys and then values, that stands so to this one.
        pub fn seek_pair_by(
            &mut self,
            seek: Seek,
            key: K::Input<'_>,
            value: V::Input<'_>,
        ) -> Result<Option<(K::View<$life>, V::View<$life>)>> {
            let found = both::<K, V, _>(key, value, |k, v| self.inner.seek_pair_by(seek, k, v))??;
            found.map(decoded::<K, V>).transpose()
        }

        /// Number of values of the key under the cursor; none where there is none.
        pub fn count(&mut self) -> Result<Option<u64>> {
            Ok(self.inner.count()?)
        }
    };
}

/// Calls `with` with both encodings.
pub(crate) fn both<K: Value, V: Value, R>(
    key: K::Input<'_>,
    value: V::Input<'_>,
    with: impl FnOnce(&[u8], &[u8]) -> R,
) -> Result<R> {
    K::encoded(key, |key| V::encoded(value, |value| with(key, value)))?
}

impl<'t, K: Key, V: Value> Cursor<'t, K, V> {
    moves!('t);

    /// Where the cursor stands, to go on there in another transaction; see [`ParkedCursor`].
    pub fn park(&self) -> Result<ParkedCursor> {
        Ok(self.inner.park()?)
    }

    /// How the record under this cursor stands to that under another one of the same table; none
    /// when one of them stands on no record.
    pub fn compare(&self, other: &Cursor<'_, K, V>) -> Result<Option<Ordering>> {
        Ok(self.inner.compare(&other.inner)?)
    }

    /// As [`Cursor::park`], into a place that was used before, which spares its memory.
    pub fn park_into(&self, parked: &mut ParkedCursor) -> Result<()> {
        Ok(self.inner.park_into(parked)?)
    }
}

impl<'t, K: Key, V: Key> Cursor<'t, K, V> {
    moves_among_values!('t);
}

impl<K: Key, V: Value> WriteCursor<'_, K, V> {
    moves!('_);

    /// Where the cursor stands, to go on there in another transaction; see [`ParkedCursor`].
    pub fn park(&mut self) -> Result<ParkedCursor> {
        Ok(self.inner.park()?)
    }

    /// Stores a record and places the cursor on it; false if a flag forbids it.
    pub fn put(&mut self, key: K::Input<'_>, value: V::Input<'_>, flags: PutFlags) -> Result<bool> {
        Ok(both::<K, V, _>(key, value, |k, v| self.inner.put(k, v, flags))??)
    }

    /// Replaces the value under the cursor. In a multimap the new one goes where it belongs, and the
    /// cursor with it.
    pub fn put_current(&mut self, value: V::Input<'_>) -> Result<()> {
        Ok(V::encoded(value, |v| self.inner.put_current(v))??)
    }

    /// Deletes the record under the cursor, which then stands before the one that followed.
    pub fn delete(&mut self) -> Result<bool> {
        Ok(self.inner.delete()?)
    }

    /// Deletes the key under the cursor with all its values.
    pub fn delete_key(&mut self) -> Result<bool> {
        Ok(self.inner.delete_key()?)
    }
}

impl<K: Key, V: Key> WriteCursor<'_, K, V> {
    moves_among_values!('_);
}
