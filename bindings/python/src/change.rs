//! The methods of `WriteTable`: changes.

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use zubilo::WriteTable as EngineTable;

use crate::buffer::bytes_like;
use crate::errors::{OrRaise, internal};
use crate::look::Span;
use crate::memory;
use crate::park;
use crate::table::{Source, Table, WriteTable, Writing};

/// Pairs that `put_many` takes from Python before it stores them.
const BATCH: usize = 16 << 10;
/// The same in bytes of copies.
const BATCH_BYTES: usize = 16 << 20;

fn writing(table: &Table) -> PyResult<&Writing> {
    match &table.source {
        Source::Write(writing) => Ok(writing),
        Source::Read(_) => Err(internal("a table of a snapshot, to be changed")),
    }
}

/// Changes the table. `f` runs no code of Python's.
fn change<R>(
    table: &Table,
    f: impl FnOnce(&mut EngineTable<'_>) -> zubilo::Result<R>,
) -> PyResult<R> {
    let writing = writing(table)?;
    writing.hold.change(|txn| {
        let id = writing.id(txn, &table.name).or_raise()?;
        f(&mut txn.at(id).or_raise()?).or_raise()
    })
}

/// The same, while other threads run.
fn change_detached<R: Send>(
    py: Python<'_>,
    table: &Table,
    f: impl FnOnce(&mut EngineTable<'_>) -> zubilo::Result<R>,
) -> PyResult<R> {
    let writing = writing(table)?;
    writing.hold.change_detached(py, |txn| {
        let id = writing.id(txn, &table.name)?;
        f(&mut txn.at(id)?)
    })
}

/// Pairs taken from Python: bytes that are held, or copies.
#[derive(Default)]
struct Batch {
    held: Vec<Py<PyBytes>>,
    copies: Vec<u8>,
    pairs: Vec<(Place, Place)>,
}

/// Where bytes of a pair are.
#[derive(Clone, Copy)]
enum Place {
    Held(*const u8, usize),
    Copied(usize, usize),
}

impl Batch {
    fn add(
        &mut self,
        table: &Table,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let key = self.place(table, key, true)?;
        let value = self.place(table, value, false)?;
        self.pairs.push((key, value));
        Ok(())
    }

    fn place(&mut self, table: &Table, object: &Bound<'_, PyAny>, is_key: bool) -> PyResult<Place> {
        let kind = if is_key { &table.key } else { &table.value };
        if kind.is_bytes() {
            if let Ok(bytes) = object.cast_exact::<PyBytes>() {
                let slice = bytes.as_bytes();
                let place = Place::Held(slice.as_ptr(), slice.len());
                self.held.push(bytes.clone().unbind());
                return Ok(place);
            }
            let start = self.copies.len();
            memory::append(&mut self.copies, &bytes_like(object)?)?;
            return Ok(Place::Copied(start, self.copies.len()));
        }
        let start = self.copies.len();
        kind.encode(object, &mut self.copies)?;
        Ok(Place::Copied(start, self.copies.len()))
    }

    fn bytes(&self, place: Place) -> &[u8] {
        match place {
            // SAFETY: bytes of an object in `held`, which do not change.
            Place::Held(start, len) => unsafe { std::slice::from_raw_parts(start, len) },
            Place::Copied(start, end) => &self.copies[start..end],
        }
    }

    /// Stores the pairs and forgets them.
    fn store(&mut self, py: Python<'_>, table: &Table, sorted: bool) -> PyResult<()> {
        py.check_signals()?;
        let mut pairs = std::mem::take(&mut self.pairs);
        let this = &*self;
        change_detached(py, table, |t| {
            if !sorted {
                // Neighbours go to the same pages. Of equal keys the last one counts, as it was given.
                pairs.sort_by(|a, b| this.bytes(a.0).cmp(this.bytes(b.0)));
            }
            for (key, value) in &pairs {
                t.put(this.bytes(*key), this.bytes(*value))?;
            }
            Ok(())
        })?;
        pairs.clear();
        self.pairs = pairs;
        self.held.clear();
        self.copies.clear();
        Ok(())
    }
}

/// Stores pairs that an iterable gives.
fn put_many(table: &Table, pairs: &Bound<'_, PyAny>, sorted: bool) -> PyResult<u64> {
    let py = pairs.py();
    let mut batch = Batch::default();
    let mut count = 0;
    let iterator = pairs.try_iter()?.into_any();
    while let Some(pair) = park::next(&iterator) {
        let pair = pair?;
        match pair.cast_exact::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => {
                batch.add(table, &pair.get_item(0)?, &pair.get_item(1)?)?;
            }
            _ => {
                let Ok((key, value)) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
                else {
                    return Err(PyTypeError::new_err("pairs of a key and a value are due"));
                };
                batch.add(table, &key, &value)?;
            }
        }
        count += 1;
        if batch.pairs.len() >= BATCH || batch.copies.len() >= BATCH_BYTES {
            batch.store(py, table, sorted)?;
        }
    }
    batch.store(py, table, sorted)?;
    Ok(count)
}

fn missing(key: &Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err((key.clone().unbind(),))
}

impl Table {
    /// The value under a key is taken out; none if there is none.
    fn take<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let old = change(self, |t| t.take(key))?;
        old.map(|old| self.value.decode(py, &old)).transpose()
    }

    pub(crate) fn shown(&self) -> String {
        format!("table {:?}", String::from_utf8_lossy(&self.name))
    }
}

#[pymethods]
impl WriteTable {
    fn __setitem__(
        slf: PyRef<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let table = slf.as_super();
        let (key, value) = (table.key_bytes(key)?, table.value_bytes(value)?);
        change(table, |t| t.put(&*key, &*value))
    }

    fn __delitem__(slf: PyRef<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let table = slf.as_super();
        let bytes = table.key_bytes(key)?;
        if change(table, |t| t.delete(&*bytes))? { Ok(()) } else { Err(missing(key)) }
    }

    /// Stores `value` under `key`, as `t[key] = value` does: in the place of the one that was there, or, in a
    /// table of many values, beside those.
    fn put(slf: PyRef<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        WriteTable::__setitem__(slf, key, value)
    }

    /// Stores `value` under `key` if there is none yet, and returns whether it did.
    fn insert(
        slf: PyRef<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let table = slf.as_super();
        let (key, value) = (table.key_bytes(key)?, table.value_bytes(value)?);
        change(table, |t| t.insert(&*key, &*value))
    }

    /// Adds `value` to those under `key`, in a table of many values, and returns whether it is new.
    fn add(
        slf: PyRef<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let table = slf.as_super();
        let (key, value) = (table.key_bytes(key)?, table.value_bytes(value)?);
        change(table, |t| t.insert_value(&*key, &*value))
    }

    /// Removes `key` with all its values, and returns whether it was there.
    fn delete(slf: PyRef<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let table = slf.as_super();
        let key = table.key_bytes(key)?;
        change(table, |t| t.delete(&*key))
    }

    /// Removes one `value` of those under `key`, and returns whether it was there.
    fn remove(
        slf: PyRef<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let table = slf.as_super();
        let (key, value) = (table.key_bytes(key)?, table.value_bytes(value)?);
        change(table, |t| t.delete_value(&*key, &*value))
    }

    /// Removes `key` and gives its value; without the key `default`, or `KeyError` if none is given.
    #[pyo3(signature = (key, /, *default))]
    fn pop<'py>(
        slf: PyRef<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            return Err(PyTypeError::new_err("pop takes a key and at most one default"));
        }
        let py = key.py();
        let table = slf.as_super();
        let bytes = table.key_bytes(key)?;
        match table.take(py, &bytes)? {
            Some(value) => Ok(value),
            None => default.get_item(0).map_err(|_| missing(key)),
        }
    }

    /// Removes the last record and gives its key and value; `KeyError` in an empty table.
    fn popitem<'py>(slf: PyRef<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, table) = (slf.py(), slf.as_super());
        let last = change(table, |t| {
            let last = t.last()?.map(memory::copy_pair).transpose()?;
            if let Some((key, value)) = &last {
                t.delete_value(key, value)?;
            }
            Ok(last)
        })?;
        let Some((key, value)) = last else {
            return Err(PyKeyError::new_err("popitem(): the table is empty"));
        };
        PyTuple::new(py, [table.key_object(py, &key)?, table.value.decode(py, &value)?])
    }

    /// The value under `key`; if there is none `default` is stored and given.
    fn setdefault<'py>(
        slf: PyRef<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, table) = (slf.py(), slf.as_super());
        let (key, value) = (table.key_bytes(key)?, table.value_bytes(default)?);
        let there = change(table, |t| {
            let there = t.get(&*key)?.map(memory::copy).transpose()?;
            if there.is_none() {
                t.put(&*key, &*value)?;
            }
            Ok(there)
        })?;
        match there {
            Some(value) => table.value.decode(py, &value),
            None => Ok(default.clone()),
        }
    }

    /// Stores all pairs of a mapping, or of an iterable of pairs, and those of the keyword arguments.
    #[pyo3(signature = (other=None, /, **more))]
    fn update(
        slf: PyRef<'_, Self>,
        other: Option<&Bound<'_, PyAny>>,
        more: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let table = slf.as_super();
        if let Some(other) = other {
            match other.getattr_opt(intern!(other.py(), "keys"))? {
                Some(_) if other.hasattr(intern!(other.py(), "items"))? => {
                    put_many(table, &other.call_method0(intern!(other.py(), "items"))?, false)?
                }
                _ => put_many(table, other, false)?,
            };
        }
        if let Some(more) = more {
            put_many(table, &more.call_method0(intern!(more.py(), "items"))?, false)?;
        }
        Ok(())
    }

    /// Stores the pairs of an iterable, in batches without the interpreter, and gives their number. Each batch
    /// is sorted first; with `sorted=True` the pairs are stored as they come, which is fastest where they come
    /// in order. An error leaves what was stored before it in the transaction.
    #[pyo3(signature = (pairs, *, sorted=false))]
    fn put_many(slf: PyRef<'_, Self>, pairs: &Bound<'_, PyAny>, sorted: bool) -> PyResult<u64> {
        put_many(slf.as_super(), pairs, sorted)
    }

    /// Removes the records with keys from `start` on and before `stop`, or those whose keys begin with
    /// `prefix`, and gives their number. The cost follows the pages. To remove all, use `clear`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn delete_range(
        slf: PyRef<'_, Self>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let (py, table) = (slf.py(), slf.as_super());
        if start.is_none() && stop.is_none() && prefix.is_none() {
            return Err(PyTypeError::new_err(
                "name start, stop or prefix; clear() removes everything",
            ));
        }
        let span = table.ordered_span(start, stop, prefix)?;
        change_detached(py, table, |t| match &span {
            Span::Range(start, end) => t.delete_range::<Vec<u8>>((start.clone(), end.clone())),
            Span::Prefix(_) => Err(zubilo::Error::Invalid("prefixes need keys in byte order")),
        })
    }

    /// Removes all records.
    fn clear(slf: PyRef<'_, Self>) -> PyResult<()> {
        change_detached(slf.py(), slf.as_super(), |t| t.clear())
    }

    /// Takes `count` numbers that the table has not given before, and gives the first of them. They are
    /// taken with the commit.
    #[pyo3(signature = (count=1))]
    fn next_sequence(slf: PyRef<'_, Self>, count: u64) -> PyResult<u64> {
        change(slf.as_super(), |t| t.next_sequence(count))
    }
}
