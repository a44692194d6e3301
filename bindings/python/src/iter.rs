//! Views of a table's records, and iterators over them.
//!
//! A snapshot's iterator goes through the tree chunk by chunk, without the interpreter, and makes objects
//! of a chunk one by one. A write transaction's may find the table changed between two records: it keeps
//! copies of a chunk, and what it has read ahead is thrown away when a change was made. It then goes on
//! after the last record it gave, so none comes twice, and none is missed that was there all the time.

use std::cmp::Ordering;
use std::ops::Bound as Edge;

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySet, PyTuple};
use pyo3::{ffi, intern};
use zubilo::{Iter, KeyOrder};

use crate::errors::{from_engine, raise};
use crate::hold::OnThisThread;
use crate::look::{Look, Pair, Span};
use crate::memory;
use crate::park;
use crate::snap::SnapTable;
use crate::step;
use crate::table::{Source, Table, Writing, mixin, touch};
use crate::turn::{self, Turn};
use crate::view::Value;

/// What of each record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Keys,
    Values,
    Items,
}

/// Records of a chunk: at first, and at most.
const CHUNK_FIRST: usize = 16;
const CHUNK_MAX: usize = 256;
/// Bytes of a chunk's values that are fetched ahead, at most.
const CHUNK_BYTES: usize = 256 << 10;
/// Values up to this size lie in the page of their record, which was read anyway.
const INLINE: usize = 1024;

/// Records of a table, as `items`, `keys` and `values` give them: can be iterated many times, backwards with
/// `reversed`, has a length; `in` looks up.
#[pyclass(frozen, module = "zubilo")]
pub(crate) struct Records {
    table: Py<Table>,
    span: Span,
    part: Part,
    reverse: bool,
    view: bool,
}

impl Records {
    pub(crate) fn new(
        table: Py<Table>,
        span: Span,
        part: Part,
        reverse: bool,
        view: bool,
    ) -> Records {
        Records { table, span, part, reverse, view }
    }

    pub(crate) fn iterator<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.iterator_to(py, self.reverse)
    }

    fn iterator_to<'py>(&self, py: Python<'py>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        let table = self.table.get();
        table.look(|_| Ok(()))?;
        match &table.source {
            Source::Read(_) => {
                let state = Snapshots {
                    records: None,
                    chunk: Vec::new(),
                    at: 0,
                    size: CHUNK_FIRST,
                    done: false,
                    failure: None,
                    spare: Spare::new(py),
                };
                // SAFETY: slices of the map, and an iterator over it: any thread may use them.
                let state = unsafe { Turn::new(state) };
                let (part, view, span) = (self.part, self.view, self.span.clone());
                let plain = table.plain && !view;
                let table = self.table.clone_ref(py);
                let iter = ReadIter { table, span, part, reverse, view, plain, state };
                step::object(Bound::new(py, iter)?)
            }
            Source::Write(_) => {
                let span = table.look(|t| Ok(as_range(&self.span, t.options().keys())))?;
                let span = span.ok_or_else(|| {
                    raise("InvalidError", "in a write transaction prefixes need keys in byte order")
                })?;
                let state = Copies {
                    chunk: Vec::new(),
                    at: 0,
                    changes: 0,
                    last: None,
                    begun: false,
                    done: false,
                };
                // SAFETY: copies, which any thread may use.
                let state = unsafe { Turn::new(state) };
                let (table, part) = (self.table.clone_ref(py), self.part);
                Ok(Bound::new(py, WriteIter { table, span, part, reverse, state })?.into_any())
            }
        }
    }
}

#[pymethods]
impl Records {
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.iterator(py)
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.iterator_to(py, !self.reverse)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.table.get().span_len(py, &self.span)? as usize)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.iterator(py)?.try_iter()?.next().transpose()?.is_some())
    }

    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let table = self.table.get();
        // Where there is one key in question, it alone has to be looked at.
        if self.span.is_all() && self.part == Part::Keys {
            let key = table.key_bytes(item)?;
            return table.look(|t| Ok(t.get(&key)?.is_some()));
        }
        if self.span.is_all() && self.part == Part::Items {
            let Ok((key, value)) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
                return Ok(false);
            };
            let (key, value) = (table.key_bytes(&key)?, table.value_bytes(&value)?);
            return table.look(|t| t.contains(&key, &value));
        }
        for other in self.iterator(py)?.try_iter()? {
            if other?.eq(item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keys and items compare as sets do; values are equal to themselves only, as those of a dict.
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        how: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let as_set = |view: &Bound<'py, PyAny>| py.get_type::<PySet>().call1((view,));
        let is_set = |object: &Bound<'py, PyAny>| {
            object.is_instance(&py.import(intern!(py, "collections.abc"))?.getattr("Set")?)
        };
        let others = other.cast::<Records>().ok();
        let comparable = match others {
            Some(records) => records.get().part != Part::Values,
            None => is_set(other)?,
        };
        if slf.get().part == Part::Values || !comparable {
            return Ok(py.NotImplemented().into_bound(py));
        }
        let other = if others.is_some() { as_set(other)? } else { other.clone() };
        as_set(slf.as_any())?.rich_compare(other, how)
    }

    fn __and__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        mixin(slf.as_any(), "Set", "__and__", other)
    }

    fn __or__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        mixin(slf.as_any(), "Set", "__or__", other)
    }

    fn __sub__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        mixin(slf.as_any(), "Set", "__sub__", other)
    }

    fn __xor__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        mixin(slf.as_any(), "Set", "__xor__", other)
    }

    /// What the operations of sets make: a plain set.
    #[staticmethod]
    fn _from_iterable<'py>(items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        items.py().get_type::<PySet>().call1((items,))
    }

    fn __repr__(&self) -> String {
        let part = match self.part {
            Part::Keys => "keys",
            Part::Values => "values",
            Part::Items => "items",
        };
        format!("<{part} of {}>", self.table.get().shown())
    }
}

/// The same records as a range of keys; none for prefixes in orders other than that of bytes.
pub(crate) fn as_range(span: &Span, order: KeyOrder) -> Option<Span> {
    let Span::Prefix(prefix) = span else { return Some(span.clone()) };
    if order != KeyOrder::Bytes {
        return None;
    }
    let mut end = prefix.clone();
    while end.pop_if(|last| *last == u8::MAX).is_some() {}
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Edge::Excluded(end)
        }
        None => Edge::Unbounded,
    };
    Some(Span::Range(Edge::Included(prefix.clone()), end))
}

/// Where an iterator of a snapshot is. The slices are looked at while the snapshot is pinned.
struct Snapshots {
    records: Option<Iter<'static>>,
    chunk: Vec<Pair<'static>>,
    at: usize,
    size: usize,
    done: bool,
    /// To be raised after the chunk.
    failure: Option<zubilo::Error>,
    /// The pair that was given last, where it may be used again.
    spare: Spare,
}

/// A pair to be filled again.
enum Spare {
    /// Without the global lock another thread may be about to take a reference. From Python 3.14 on a tuple
    /// keeps its hash, which would then be that of the pair before.
    Never,
    None,
    Tuple(Py<PyTuple>),
}

impl Spare {
    fn new(py: Python<'_>) -> Spare {
        if cfg!(Py_GIL_DISABLED) || py.version_info() >= (3, 14) {
            Spare::Never
        } else {
            Spare::None
        }
    }
}

/// The pair of two byte strings, in the tuple of the record before where nobody has kept that: loops
/// take it apart at once. `zip` of Python's does the same.
#[inline(always)]
fn pair_of<'py>(
    key: Bound<'py, PyBytes>,
    value: Bound<'py, PyBytes>,
    spare: &mut Spare,
) -> PyResult<Bound<'py, PyAny>> {
    let py = key.py();
    if let Spare::Tuple(tuple) = spare
        // SAFETY: a live object.
        && unsafe { ffi::Py_REFCNT(tuple.as_ptr()) } == 1
    {
        // SAFETY: a tuple of two, of which this is the only reference; its places take the new
        // references over. Those that were there are bytes, whose end runs no code of others.
        unsafe {
            ffi::PyTuple_SetItem(tuple.as_ptr(), 0, key.into_ptr());
            ffi::PyTuple_SetItem(tuple.as_ptr(), 1, value.into_ptr());
        }
        return Ok(tuple.bind(py).clone().into_any());
    }
    let tuple = PyTuple::new(py, [key, value])?;
    if !matches!(spare, Spare::Never)
        && let Spare::Tuple(old) = std::mem::replace(spare, Spare::Tuple(tuple.clone().unbind()))
    {
        // Given back here: `at_hand` is no call that PyO3 knows of, which would put it off.
        drop(old.into_bound(py));
    }
    Ok(tuple.into_any())
}

/// An iterator over records of a snapshot.
#[pyclass(frozen, module = "zubilo._zubilo")]
pub(crate) struct ReadIter {
    table: Py<Table>,
    span: Span,
    part: Part,
    reverse: bool,
    view: bool,
    /// Keys and values are copied as they are.
    plain: bool,
    state: Turn<Snapshots>,
}

impl ReadIter {
    /// The next record, if it is at hand and can be copied as it is: a new reference, or null with an exception
    /// set. None where `__next__` has to see to it.
    #[inline(always)]
    pub(crate) fn at_hand(&self, py: Python<'_>) -> Option<*mut ffi::PyObject> {
        let Source::Read(source) = &self.table.get().source else { return None };
        if !self.plain {
            return None;
        }
        if self.part != Part::Items {
            let next = |state: &mut Snapshots| {
                let &(key, value) = state.chunk.get(state.at)?;
                if !source.snap.is_live() {
                    return None;
                }
                state.at += 1;
                Some(memory::raw(py, if self.part == Part::Keys { key } else { value }))
            };
            // SAFETY: making `bytes` runs no code of others and keeps the lock: the interpreter collects
            // garbage at objects that can refer to others only.
            if let Some(given) = unsafe { turn::for_a_moment(&self.state, next) } {
                return given;
            }
        }
        let mut state = self.state.try_take()?;
        let &record = state.chunk.get(state.at)?;
        let _pin = source.snap.try_pin()?;
        state.at += 1;
        let object = self.plain_object(py, &mut state.spare, record);
        Some(object.map_or_else(
            |error| {
                error.restore(py);
                std::ptr::null_mut()
            },
            Bound::into_ptr,
        ))
    }

    #[inline(always)]
    fn plain_object<'py>(
        &self,
        py: Python<'py>,
        spare: &mut Spare,
        (key, value): Pair<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.part {
            Part::Keys => Ok(memory::object(py, key)?.into_any()),
            Part::Values => Ok(memory::object(py, value)?.into_any()),
            Part::Items => pair_of(memory::object(py, key)?, memory::object(py, value)?, spare),
        }
    }

    #[inline(always)]
    fn object<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        spare: &mut Spare,
        record: Pair<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.plain {
            return self.plain_object(py, spare, record);
        }
        self.typed_object(py, table, record)
    }

    #[inline(never)]
    fn typed_object<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        (key, value): Pair<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = || match (self.view, table.snap()) {
            (true, Some(snap)) => Value::view(py, snap, value),
            _ => table.value_object(py, value),
        };
        match self.part {
            Part::Keys => table.key_object(py, key),
            Part::Values => value(),
            Part::Items => Ok(PyTuple::new(py, [table.key_object(py, key)?, value()?])?.into_any()),
        }
    }

    /// Reads the next chunk, which may be empty.
    #[inline(never)]
    fn fill(&self, py: Python<'_>, table: &SnapTable, state: &mut Snapshots) -> PyResult<()> {
        let _pin = table.snap.pin()?;
        state.at = 0;
        state.chunk.clear();
        if state.records.is_none() {
            let records = Look::records(table.unpinned(), &self.span);
            // SAFETY: only the lifetime changes: it is used under a pin of its snapshot.
            state.records =
                Some(unsafe { std::mem::transmute::<Iter<'_>, Iter<'static>>(records) });
        }
        let limit = state.size;
        state.size = (limit * 2).min(CHUNK_MAX);
        let (reverse, with_values) = (self.reverse, self.part != Part::Keys && !self.view);
        let work = OnThisThread(state);
        park::detach(py, move || {
            let OnThisThread(Snapshots { records, chunk, done, failure, .. }) = work.whole();
            let Some(records) = records else { return };
            // On the stack, with room for all: a push then is a store.
            let mut filled = std::mem::take(chunk);
            filled.reserve(limit);
            let mut bytes = 0;
            while filled.len() < limit && bytes < CHUNK_BYTES {
                let record = if reverse { records.next_back() } else { records.next() };
                match record {
                    Some(Ok((key, value))) => {
                        if with_values && value.len() > INLINE {
                            touch(value);
                            bytes += value.len();
                        }
                        filled.push((key, value));
                    }
                    Some(Err(error)) => {
                        *failure = Some(error);
                        break;
                    }
                    None => {
                        *done = true;
                        break;
                    }
                }
            }
            *chunk = filled;
        });
        Ok(())
    }
}

#[pymethods]
impl ReadIter {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.state.take("iterator")?;
        let table = self.table.get();
        let Source::Read(source) = &table.source else {
            return Err(crate::errors::internal("an iterator of a snapshot without one"));
        };
        loop {
            if let Some(&record) = state.chunk.get(state.at) {
                let _pin = source.snap.pin()?;
                state.at += 1;
                return self.object(py, table, &mut state.spare, record).map(Some);
            }
            if let Some(failure) = state.failure.take() {
                state.done = true;
                return Err(from_engine(failure));
            }
            if state.done {
                return Ok(None);
            }
            self.fill(py, source, &mut state)?;
        }
    }
}

/// Where an iterator of a write transaction is.
struct Copies {
    chunk: Vec<(Vec<u8>, Vec<u8>)>,
    at: usize,
    /// The state of the transaction that the chunk is of.
    changes: u64,
    /// The record given last.
    last: Option<(Vec<u8>, Vec<u8>)>,
    begun: bool,
    done: bool,
}

/// An iterator over records of a write transaction.
#[pyclass(frozen, module = "zubilo._zubilo")]
pub(crate) struct WriteIter {
    table: Py<Table>,
    span: Span,
    part: Part,
    reverse: bool,
    state: Turn<Copies>,
}

impl WriteIter {
    /// Reads the records after the last one that was given.
    fn fill(&self, table: &Table, state: &mut Copies) -> PyResult<()> {
        let (chunk, is_all) = table.look(|t| {
            let span = match (&state.last, &self.span) {
                (Some((key, _)), Span::Range(start, end)) => {
                    match (self.reverse, t.options().has_duplicates()) {
                        (false, false) => Span::Range(Edge::Excluded(key.clone()), end.clone()),
                        (false, true) => Span::Range(Edge::Included(key.clone()), end.clone()),
                        (true, false) => Span::Range(start.clone(), Edge::Excluded(key.clone())),
                        (true, true) => Span::Range(start.clone(), Edge::Included(key.clone())),
                    }
                }
                (_, span) => span.clone(),
            };
            let order = t.options().values();
            let mut records = t.records(&span);
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            loop {
                let record = if self.reverse { records.next_back() } else { records.next() };
                let Some((key, value)) = record.transpose()? else { return Ok((chunk, true)) };
                if let Some((last, given)) = &state.last
                    && last == key
                {
                    let compared = compare(order, value, given);
                    let is_given = if self.reverse { compared.is_ge() } else { compared.is_le() };
                    if is_given {
                        continue;
                    }
                }
                bytes += key.len() + value.len();
                chunk.push(memory::copy_pair((key, value))?);
                if chunk.len() >= CHUNK_MAX / 2 || bytes >= CHUNK_BYTES {
                    return Ok((chunk, false));
                }
            }
        })?;
        (state.chunk, state.at, state.done) = (chunk, 0, is_all);
        Ok(())
    }
}

/// The order of two values of a key.
fn compare(order: KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    match order {
        KeyOrder::Bytes => a.cmp(b),
        // Little-endian numbers of one size compare from their last byte, as the reversed do.
        _ => a.iter().rev().cmp(b.iter().rev()),
    }
}

#[pymethods]
impl WriteIter {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.state.take("iterator")?;
        let table = self.table.get();
        let Source::Write(Writing { hold, .. }) = &table.source else {
            return Err(crate::errors::internal("an iterator of a write transaction without one"));
        };
        // An end that was told stays one.
        if state.begun && state.done && state.at == state.chunk.len() {
            return Ok(None);
        }
        let changes = hold.enter(|_| Ok(hold.changes()))?;
        if !state.begun || changes != state.changes || state.at == state.chunk.len() {
            (state.begun, state.changes) = (true, changes);
            self.fill(table, &mut state)?;
        }
        let at = state.at;
        let Some((key, value)) = state.chunk.get_mut(at).map(std::mem::take) else {
            state.done = true;
            return Ok(None);
        };
        state.at += 1;
        let object = match self.part {
            Part::Keys => table.key_object(py, &key),
            Part::Values => table.value_object(py, &value),
            Part::Items => {
                let pair = [table.key_object(py, &key)?, table.value_object(py, &value)?];
                PyTuple::new(py, pair).map(Bound::into_any)
            }
        };
        state.last = Some((key, value));
        object.map(Some)
    }
}
