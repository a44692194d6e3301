//! The classes `Table` and `WriteTable`: reading, and in `change.rs` changing. A table of either kind of
//! transaction is read through the same methods; only single reads from snapshots, the hot path, have code
//! of their own.

use std::cell::Cell;
use std::ops::Bound as Edge;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySlice, PyTuple};
use zubilo::{TableId, WriteTxn as EngineTxn};

use crate::buffer::{Bytes, bytes_like};
use crate::codec::{ArrayKind, Kind};
use crate::cursor::Cursor;
use crate::errors::{OrRaise, raise};
use crate::hold::{Hold, OnThisThread};
use crate::iter::{Part, Records, as_range};
use crate::look::{Look, Span};
use crate::memory;
use crate::park;
use crate::snap::{Snap, SnapTable};
use crate::txn::WriteTxn;
use crate::types::Schema;
use crate::view::Value;

/// Where a table's records are.
#[expect(
    clippy::large_enum_variant,
    reason = "snapshots are the hot ones, and lie in their object"
)]
pub(crate) enum Source {
    Read(SnapTable),
    Write(Writing),
}

/// A table of a write transaction.
pub(crate) struct Writing {
    /// Kept, so that a transaction that only a table refers to is not aborted.
    _txn: Py<WriteTxn>,
    pub(crate) hold: Arc<Hold>,
    /// Valid as long as no nested level was undone since. Of the owner's thread.
    id: Cell<(TableId, u64)>,
}

// SAFETY: the cell is read and written inside `Hold::enter` only, which lets in the owner's thread.
unsafe impl Send for Writing {}
// SAFETY: as above.
unsafe impl Sync for Writing {}

impl Source {
    pub(crate) fn write(txn: Py<WriteTxn>, hold: &Arc<Hold>, id: TableId) -> Source {
        let id = Cell::new((id, hold.undone().get()));
        Source::Write(Writing { _txn: txn, hold: Arc::clone(hold), id })
    }
}

impl Writing {
    /// The table's number in the transaction, inside of which the caller is.
    pub(crate) fn id(&self, txn: &mut EngineTxn, name: &[u8]) -> zubilo::Result<TableId> {
        let (id, undone) = self.id.get();
        let now = self.hold.undone().get();
        if undone == now {
            return Ok(id);
        }
        let id = txn.table_id(name)?;
        self.id.set((id, now));
        Ok(id)
    }
}

/// A table, as a mapping in the order of its keys.
///
/// `t[key]`, `key in t`, `len(t)`, `t.get(key)`, `t.items()`, `t.keys()` and `t.values()` are those of a dict;
/// iteration follows the order of the keys. `t[b"a":b"m"]` are the items in a range of keys.
#[pyclass(frozen, subclass, weakref, module = "zubilo")]
pub(crate) struct Table {
    pub(crate) source: Source,
    pub(crate) name: Vec<u8>,
    pub(crate) key: Kind,
    pub(crate) value: Kind,
    /// Keys and values are bytes.
    pub(crate) plain: bool,
    release_gil: bool,
}

/// Those bytes, as an object; see `Table::value_of`.
type Found<'py> = PyResult<Option<Bound<'py, PyAny>>>;

impl Table {
    pub(crate) fn new(source: Source, name: Vec<u8>, schema: Schema, release_gil: bool) -> Table {
        let Schema { key, value } = schema;
        let plain = key.is_bytes() && value.is_bytes();
        Table { source, name, key, value, plain, release_gil }
    }

    /// The table, in either kind of transaction. `f` runs no code of Python's.
    pub(crate) fn look<R>(&self, f: impl FnOnce(&dyn Look) -> zubilo::Result<R>) -> PyResult<R> {
        match &self.source {
            Source::Read(table) => table.look(|table| f(table).or_raise()),
            Source::Write(writing) => writing.hold.enter(|txn| {
                let id = writing.id(txn, &self.name).or_raise()?;
                f(&txn.at(id).or_raise()?).or_raise()
            }),
        }
    }

    /// The same, while other threads run.
    fn look_detached<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&dyn Look) -> zubilo::Result<R>,
    ) -> PyResult<R> {
        self.look(|look| {
            let work = OnThisThread((look, f));
            park::detach(py, move || {
                let OnThisThread((look, f)) = work.whole();
                f(look)
            })
        })
    }

    /// The snapshot, where the table is of one.
    pub(crate) fn snap(&self) -> Option<&Arc<Snap>> {
        match &self.source {
            Source::Read(table) => Some(&table.snap),
            Source::Write(_) => None,
        }
    }

    fn snapshot(&self, what: &str) -> PyResult<&SnapTable> {
        match &self.source {
            Source::Read(table) => Ok(table),
            Source::Write(_) => {
                let text =
                    format!("{what} is for read transactions: in a write transaction pages change");
                Err(raise("InvalidError", text))
            }
        }
    }

    pub(crate) fn key_bytes<'a>(&self, key: &'a Bound<'_, PyAny>) -> PyResult<Bytes<'a>> {
        encoded(&self.key, key)
    }

    pub(crate) fn value_bytes<'a>(&self, value: &'a Bound<'_, PyAny>) -> PyResult<Bytes<'a>> {
        encoded(&self.value, value)
    }

    pub(crate) fn key_object<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        self.key.decode(py, key)
    }

    /// A value as an object. Arrays of a snapshot, which is pinned, lie over the map.
    pub(crate) fn value_object<'py>(
        &self,
        py: Python<'py>,
        value: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        match (&self.value, self.snap()) {
            (Kind::Array(array), Some(snap)) => {
                array.over(Value::new(py, snap, value)?.as_any(), value.len())
            }
            (kind, _) => kind.decode(py, value),
        }
    }

    /// The value under a key.
    #[inline(always)]
    fn value_of<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Found<'py> {
        if let Source::Read(table) = &self.source
            && self.plain
            && !self.release_gil
            && let Ok(key) = key.cast_exact::<PyBytes>()
        {
            return table.look(|table| {
                let value = table.get(key.as_bytes()).or_raise()?;
                match value {
                    Some(value) => Ok(Some(memory::object(py, value)?.into_any())),
                    None => Ok(None),
                }
            });
        }
        self.value_of_any(py, key)
    }

    #[inline(never)]
    fn value_of_any<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Found<'py> {
        let key = self.key_bytes(key)?;
        match &self.source {
            Source::Read(table) if self.release_gil => table.look(|table| {
                let work = OnThisThread((table, &*key));
                let value = park::detach(py, move || {
                    let OnThisThread((table, key)) = work.whole();
                    table.get(key).inspect(|value| value.iter().for_each(|value| touch(value)))
                });
                value.or_raise()?.map(|value| self.value_object(py, value)).transpose()
            }),
            Source::Read(table) => table.look(|table| {
                table.get(&*key).or_raise()?.map(|value| self.value_object(py, value)).transpose()
            }),
            Source::Write(_) => {
                let value = self.look(|t| t.get(&key)?.map(memory::copy).transpose())?;
                value.map(|value| self.value_object(py, &value)).transpose()
            }
        }
    }

    fn pair<'py>(
        &self,
        py: Python<'py>,
        find: impl FnOnce(&dyn Look) -> zubilo::Result<Option<(Vec<u8>, Vec<u8>)>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((key, value)) = self.look(find)? else { return Ok(None) };
        // A copy: no array over the map.
        let pair = [self.key_object(py, &key)?, self.value.decode(py, &value)?];
        PyTuple::new(py, pair).map(Some)
    }

    /// The records between two keys, or with a prefix.
    fn span(
        &self,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Span> {
        if let Some(prefix) = prefix {
            if start.is_some() || stop.is_some() {
                return Err(PyTypeError::new_err("a prefix, or start and stop: not both"));
            }
            let mut bytes = Vec::new();
            self.key.encode_prefix(prefix, &mut bytes)?;
            return Ok(Span::Prefix(bytes));
        }
        let edge = |key: &Bound<'_, PyAny>| self.key_bytes(key).map(|key| key.to_vec());
        let start = start.map(edge).transpose()?.map_or(Edge::Unbounded, Edge::Included);
        let stop = stop.map(edge).transpose()?.map_or(Edge::Unbounded, Edge::Excluded);
        Ok(Span::Range(start, stop))
    }

    /// The same as a range, where the keys are in byte order.
    pub(crate) fn ordered_span(
        &self,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Span> {
        let span = self.span(start, stop, prefix)?;
        let order = self.look(|t| Ok(t.options().keys()))?;
        Ok(as_range(&span, order).unwrap_or(span))
    }

    pub(crate) fn span_len(&self, py: Python<'_>, span: &Span) -> PyResult<u64> {
        // Those that need no walk are not worth releasing the interpreter.
        if span.is_all() {
            return self.look(|t| Ok(t.len()));
        }
        let mut progress = crate::progress::Progress::new(None);
        let count =
            self.look_detached(py, |t| t.span_len(span, &mut |n| progress.step(n, u64::MAX)));
        match progress.into_exception() {
            Some(exception) => Err(exception),
            None => count,
        }
    }
}

/// The encoding of an object; of `bytes` those themselves.
#[inline(always)]
pub(crate) fn encoded<'a>(kind: &Kind, object: &'a Bound<'_, PyAny>) -> PyResult<Bytes<'a>> {
    if kind.is_bytes() {
        return bytes_like(object);
    }
    let mut bytes = Vec::new();
    kind.encode(object, &mut bytes)?;
    Ok(Bytes::Owned(bytes))
}

/// Reads a byte of each page, so that those that are not in memory are fetched now.
pub(crate) fn touch(bytes: &[u8]) {
    for byte in bytes.iter().step_by(4096).chain(bytes.last()) {
        std::hint::black_box(*byte);
    }
}

/// A records view of a table; the arguments are those of `items`.
macro_rules! records {
    ($slf:ident, $part:expr, $start:expr, $stop:expr, $prefix:expr, $reverse:expr, $view:expr) => {{
        let table = $slf.get();
        table.look(|_| Ok(()))?;
        let span = table.span($start.as_ref(), $stop.as_ref(), $prefix.as_ref())?;
        if $view {
            table.snapshot("view=True")?;
        }
        Ok(Records::new($slf.unbind(), span, $part, $reverse, $view))
    }};
}

#[pymethods]
impl Table {
    /// The value under `key`; `default` if there is none. Of many values under a key the first.
    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.value_of(py, key)?.or(default))
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let found = match key.cast_exact::<PySlice>() {
            Err(_) => slf.get().value_of(py, key)?,
            Ok(slice) => return slice_of(slf, slice),
        };
        found.ok_or_else(|| PyKeyError::new_err((key.clone().unbind(),)))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self.key_bytes(key)?;
        self.look(|t| Ok(t.get(&key)?.is_some()))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.look(|t| Ok(t.len() as usize))
    }

    fn __bool__(&self) -> PyResult<bool> {
        self.look(|t| Ok(t.len() > 0))
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = slf.py();
        Records::new(slf.unbind(), Span::ALL, Part::Keys, false, false).iterator(py)
    }

    fn __reversed__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = slf.py();
        Records::new(slf.unbind(), Span::ALL, Part::Keys, true, false).iterator(py)
    }

    fn __eq__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if slf.is(other) {
            return Ok(pyo3::types::PyBool::new(slf.py(), true).to_owned().into_any());
        }
        mixin(slf.as_any(), "Mapping", "__eq__", other)
    }

    /// Keys and values, in order, as a view that can be iterated many times: from `start` on and before
    /// `stop`, or those whose keys begin with `prefix`; backwards with `reverse=True`. With `view=True`
    /// values are memoryviews of the map.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, view=false))]
    fn items(
        slf: Bound<'_, Self>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        prefix: Option<Bound<'_, PyAny>>,
        reverse: bool,
        view: bool,
    ) -> PyResult<Records> {
        records!(slf, Part::Items, start, stop, prefix, reverse, view)
    }

    /// The keys, in order, as a view; the arguments are those of `items`. Of many values under a key each
    /// gives the key once more.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn keys(
        slf: Bound<'_, Self>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        prefix: Option<Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Records> {
        records!(slf, Part::Keys, start, stop, prefix, reverse, false)
    }

    /// The values, in the order of their keys, as a view; the arguments are those of `items`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, view=false))]
    fn values(
        slf: Bound<'_, Self>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        prefix: Option<Bound<'_, PyAny>>,
        reverse: bool,
        view: bool,
    ) -> PyResult<Records> {
        records!(slf, Part::Values, start, stop, prefix, reverse, view)
    }

    /// The first key and its value; None in an empty table.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.pair(py, |t| t.first()?.map(memory::copy_pair).transpose())
    }

    /// The last key and its value; None in an empty table.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.pair(py, |t| t.last()?.map(memory::copy_pair).transpose())
    }

    /// Record number `index` in the order of the keys, counted from 0, from the end if it is negative: key
    /// and value, for the price of one look-up. Only in counted tables.
    fn at<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyTuple>> {
        let found = self.pair(py, |t| {
            let n = if index < 0 { (t.len() as i64).saturating_add(index) } else { index };
            let Ok(n) = u64::try_from(n) else { return Ok(None) };
            t.nth(n)?.map(memory::copy_pair).transpose()
        })?;
        found.ok_or_else(|| PyIndexError::new_err("the table has fewer records"))
    }

    /// The number of records before `key`, which need not be there. Only in counted tables.
    fn rank(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let key = self.key_bytes(key)?;
        self.look(|t| t.rank(&key))
    }

    /// All values under `key`, in order, as a list; empty if there is none.
    fn get_all<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let key = self.key_bytes(key)?;
        let values = self.look(|t| {
            t.get_all(&key)?.map(|value| memory::copy(value?)).collect::<zubilo::Result<Vec<_>>>()
        })?;
        values.iter().map(|value| self.value.decode(py, value)).collect()
    }

    /// The number of values under `key`.
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let key = self.key_bytes(key)?;
        self.look(|t| t.count(&key))
    }

    /// Whether `value` is one of those under `key`.
    fn has(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (key, value) = (self.key_bytes(key)?, self.value_bytes(value)?);
        self.look(|t| t.contains(&key, &value))
    }

    /// The bytes of the value under `key` as a memoryview of the map, without a copy.
    ///
    /// When the transaction ends the view is released: using it then raises `ValueError`. What was derived
    /// from it, a slice or an array, cannot be released; it keeps the snapshot until it is gone.
    fn view<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let table = self.snapshot("view")?;
        let bytes = self.key_bytes(key)?;
        let found = table.look(|t| {
            let value = t.get(&*bytes).or_raise()?;
            value.map(|value| Value::view(py, &table.snap, value)).transpose()
        })?;
        found.ok_or_else(|| PyKeyError::new_err((key.clone().unbind(),)))
    }

    /// The value under `key` as a NumPy array over the map: read-only, without a copy. `dtype` and `shape`
    /// say how to read the bytes; a table with values of `zubilo.array` knows. The array stays good after the
    /// end of the transaction, and keeps the snapshot until it is gone.
    #[pyo3(signature = (key, dtype=None, shape=None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = self.snapshot("array")?;
        let named = dtype.or(shape).map(|_| {
            let helper = py.import(intern!(py, "zubilo._types"))?;
            let default = "u1".into_pyobject(py)?.into_any();
            let spec =
                helper.call_method1(intern!(py, "array"), (dtype.unwrap_or(&default), shape))?;
            ArrayKind::from_spec(&spec)
        });
        let named = named.transpose()?;
        let Some(kind) = named.as_ref().or(self.value.array()) else {
            return Err(PyTypeError::new_err(
                "say of which dtype the array is: the table does not know",
            ));
        };
        let bytes = self.key_bytes(key)?;
        let found = table.look(|t| {
            let value = t.get(&*bytes).or_raise()?;
            let over =
                |value: &[u8]| kind.over(Value::new(py, &table.snap, value)?.as_any(), value.len());
            value.map(over).transpose()
        })?;
        found.ok_or_else(|| PyKeyError::new_err((key.clone().unbind(),)))
    }

    /// The values under many keys, as a list in their order, `default` where there is none. Several times
    /// faster than one `get` after the other; other threads run meanwhile. With `view=True` the values are
    /// memoryviews of the map.
    #[pyo3(signature = (keys, default=None, *, view=false))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        view: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        if view {
            self.snapshot("view=True")?;
        }
        crate::many::get_many(py, self, keys, default, view)
    }

    /// Copies the values under many keys into the rows of `array`: a writable, C-contiguous buffer such as a
    /// NumPy array, with as many rows as there are keys, each of the size of a value. Gives the positions of
    /// the keys that are not there, whose rows stay as they were. Other threads run meanwhile.
    fn get_many_into(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<usize>> {
        crate::many::get_many_into(py, self, keys, array)
    }

    /// A cursor, to be moved by hand. It stands nowhere yet.
    fn cursor(slf: Bound<'_, Self>) -> PyResult<Cursor> {
        slf.get().look(|_| Ok(()))?;
        Ok(Cursor::new(slf.unbind()))
    }

    /// Figures of the table: a dict with its records, levels and pages.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.look(|t| Ok(t.stats()))?;
        let dict = PyDict::new(py);
        let figures = [
            ("entries", stats.entries),
            ("depth", u64::from(stats.depth)),
            ("leaf_pages", stats.leaf_pages),
            ("branch_pages", stats.branch_pages),
            ("run_pages", stats.run_pages),
            ("value_pages", stats.value_pages),
            ("modified", stats.modified.0),
        ];
        for (name, figure) in figures {
            dict.set_item(name, figure)?;
        }
        Ok(dict)
    }

    /// The table's name, as bytes.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.name)
    }

    /// The types of keys and values, as the store notes them.
    #[getter]
    fn types(&self) -> (String, String) {
        (self.key.tag(), self.value.tag())
    }

    /// The options of the table, as the arguments of `WriteTxn.table` that make such a one.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.look(|t| Ok(t.options()))?;
        let dict = PyDict::new(py);
        dict.set_item("duplicates", options.has_duplicates())?;
        dict.set_item("fixed_values", options.has_fixed_values())?;
        dict.set_item("counted", options.is_counted())?;
        dict.set_item("integer_keys", options.keys() == zubilo::KeyOrder::Integer)?;
        dict.set_item("align", options.alignment())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let name = String::from_utf8_lossy(&self.name);
        let (key, value) = self.types();
        match self.look(|t| Ok(t.len())) {
            Ok(len) => format!("<zubilo table {name:?} of {len} records, {key} to {value}>"),
            Err(_) => format!("<zubilo table {name:?}, closed or of another thread>"),
        }
    }
}

/// `t[start:stop]`, or backwards `t[start:stop:-1]`.
fn slice_of<'py>(
    table: &Bound<'py, Table>,
    slice: &Bound<'py, PySlice>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = table.py();
    let part = |name| -> PyResult<Option<Bound<'py, PyAny>>> {
        let part: Bound<'py, PyAny> = slice.getattr(name)?;
        Ok((!part.is_none()).then_some(part))
    };
    let reverse = match part(intern!(py, "step"))?.map(|step| step.extract::<i64>()).transpose()? {
        None | Some(1) => false,
        Some(-1) => true,
        Some(_) => return Err(raise("InvalidError", "the step of a slice of keys is 1 or -1")),
    };
    let (start, stop) = (part(intern!(py, "start"))?, part(intern!(py, "stop"))?);
    let span = table.get().span(start.as_ref(), stop.as_ref(), None)?;
    let records = Records::new(table.clone().unbind(), span, Part::Items, reverse, false);
    Ok(Bound::new(py, records)?.into_any())
}

/// A method that an abstract class of `collections.abc` has for all its kind.
pub(crate) fn mixin<'py>(
    slf: &Bound<'py, PyAny>,
    class: &str,
    method: &str,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let abc = slf.py().import(intern!(slf.py(), "collections.abc"))?;
    abc.getattr(class)?.getattr(method)?.call1((slf, other))
}

/// A table of a write transaction: a `Table` that can be changed.
#[pyclass(frozen, extends = Table, module = "zubilo")]
pub(crate) struct WriteTable;

impl WriteTable {
    pub(crate) fn new(py: Python<'_>, table: Table) -> PyResult<Py<WriteTable>> {
        Py::new(py, PyClassInitializer::from(table).add_subclass(WriteTable))
    }
}
