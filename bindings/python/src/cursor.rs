//! The class `Cursor`. On a snapshot it is the engine's cursor; in a write transaction, where the table
//! may change between two moves, a place that is taken up again for each of them.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zubilo::ParkedCursor;

use crate::errors::{OrRaise, internal, raise};
use crate::look::Pair;
use crate::memory;
use crate::table::{Source, Table};
use crate::turn::Turn;

/// Where a cursor stands.
#[expect(
    clippy::large_enum_variant,
    reason = "lies in its object; a box would be one more for each cursor"
)]
enum Place {
    New,
    Snapshot(zubilo::Cursor<'static>),
    Parked(ParkedCursor),
}

/// A position in a table, moved by hand.
///
/// Each move gives the key and value it comes to, or None where there is none; the cursor then stays.
#[pyclass(frozen, module = "zubilo")]
pub(crate) struct Cursor {
    table: Py<Table>,
    place: Turn<Place>,
}

type Moved<'t> = zubilo::Result<Option<Pair<'t>>>;

impl Cursor {
    pub(crate) fn new(table: Py<Table>) -> Cursor {
        // SAFETY: a place in the map, or a copy of a key: any thread may use it.
        Cursor { table, place: unsafe { Turn::new(Place::New) } }
    }

    /// Moves the cursor and gives what it comes to.
    fn go<'py>(
        &self,
        py: Python<'py>,
        step: impl for<'c, 't> FnOnce(&'c mut zubilo::Cursor<'t>) -> Moved<'t>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let table = self.table.get();
        let mut place = self.place.take("cursor")?;
        match &table.source {
            Source::Read(source) => {
                let _pin = source.snap.pin()?;
                if let Place::New = *place {
                    // Its lifetime is that of the table's, a lie already: it is used under a pin.
                    *place = Place::Snapshot(source.unpinned().cursor());
                }
                let Place::Snapshot(cursor) = &mut *place else {
                    return Err(internal("a cursor of a snapshot elsewhere"));
                };
                let Some((key, value)) = step(cursor).or_raise()? else { return Ok(None) };
                PyTuple::new(py, [table.key_object(py, key)?, table.value_object(py, value)?])
                    .map(Some)
            }
            Source::Write(writing) => {
                if let Place::New = *place {
                    *place = Place::Parked(ParkedCursor::new());
                }
                let Place::Parked(parked) = &mut *place else {
                    return Err(internal("a cursor of a write transaction elsewhere"));
                };
                let found = writing.hold.enter(|txn| {
                    let id = writing.id(txn, &table.name).or_raise()?;
                    let at = txn.at(id).or_raise()?;
                    let mut cursor = at.resume(parked).or_raise()?;
                    let found = step(&mut cursor).or_raise()?;
                    let found = found.map(memory::copy_pair).transpose().or_raise()?;
                    cursor.park_into(parked).or_raise()?;
                    Ok(found)
                })?;
                let Some((key, value)) = found else { return Ok(None) };
                PyTuple::new(py, [table.key_object(py, &key)?, table.value_object(py, &value)?])
                    .map(Some)
            }
        }
    }
}

/// What moves give.
type Pairs<'py> = PyResult<Option<Bound<'py, PyTuple>>>;

#[pymethods]
impl Cursor {
    /// To the first record.
    fn first<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.first())
    }

    /// To the last record.
    fn last<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.last())
    }

    /// To the next record; from nowhere to the first one.
    fn next<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.next())
    }

    /// To the record before; from nowhere to the last one.
    fn prev<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.prev())
    }

    /// To the first value of the next key.
    fn next_key<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.next_key())
    }

    /// To the last value of the key before.
    fn prev_key<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.prev_key())
    }

    /// To the next value of the same key.
    fn next_value<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.next_value())
    }

    /// To the value before of the same key.
    fn prev_value<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.prev_value())
    }

    /// To the first record whose key is not less than `key`.
    fn seek<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Pairs<'py> {
        let key = self.table.get().key_bytes(key)?;
        self.go(py, |c| c.seek(&*key))
    }

    /// To the first value under `key`.
    fn seek_exact<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Pairs<'py> {
        let key = self.table.get().key_bytes(key)?;
        self.go(py, |c| c.seek_exact(&*key))
    }

    /// To the first value under `key` that is not less than `value`.
    fn seek_value<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> Pairs<'py> {
        let table = self.table.get();
        let (key, value) = (table.key_bytes(key)?, table.value_bytes(value)?);
        self.go(py, |c| c.seek_value(&*key, &*value))
    }

    /// The record under the cursor; after a deletion the one that followed.
    fn current<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.go(py, |c| c.current())
    }

    /// Removes the record under the cursor, in a write transaction, and returns whether there was one. The
    /// next step forward leads to the record that followed.
    fn delete(&self, py: Python<'_>) -> PyResult<bool> {
        let table = self.table.get();
        let Source::Write(writing) = &table.source else {
            return Err(raise("ReadOnlyError", "the cursor is of a read transaction"));
        };
        let _ = py;
        let mut place = self.place.take("cursor")?;
        let Place::Parked(parked) = &mut *place else { return Ok(false) };
        writing.hold.change(|txn| {
            let id = writing.id(txn, &table.name).or_raise()?;
            let mut at = txn.at(id).or_raise()?;
            let current = {
                let mut cursor = at.resume(parked).or_raise()?;
                cursor.current().or_raise()?.map(memory::copy_pair).transpose().or_raise()?
            };
            let Some((key, value)) = current else { return Ok(false) };
            at.delete_value(&key, &value).or_raise()
        })
    }

    /// The cursor goes forward through the records that follow.
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        self.next(py)
    }
}
