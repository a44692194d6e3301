//! Many keys at once: look-ups in groups, without the interpreter.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use zubilo::ReadTable;

use crate::buffer::Room;
use crate::errors::{OrRaise, from_engine, raise};
use crate::hold::OnThisThread;
use crate::memory;
use crate::park;
use crate::table::{Source, Table, touch};
use crate::view::Value;

/// Keys of a call. The objects are held: the list that they came in may change meanwhile.
pub(crate) struct Keys<'py> {
    objects: Bound<'py, PyTuple>,
    /// Encodings of those that are not bytes, one after the other, and where each ends.
    encoded: Vec<u8>,
    ends: Vec<usize>,
}

impl<'py> Keys<'py> {
    pub(crate) fn new(table: &Table, keys: &Bound<'py, PyAny>) -> PyResult<Keys<'py>> {
        let py = keys.py();
        if keys.is_instance_of::<pyo3::types::PyString>() || keys.is_instance_of::<PyBytes>() {
            return Err(crate::codec::wrong_type("a list of keys", keys));
        }
        // SAFETY: a live object; a new tuple comes back, or null and an exception.
        let objects = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PySequence_Tuple(keys.as_ptr()))?
                .cast_into_unchecked::<PyTuple>()
        };
        let mut keys = Keys { objects, encoded: Vec::new(), ends: Vec::new() };
        let are_bytes = table.key.is_bytes()
            && keys.objects.iter_borrowed().all(|key| key.is_exact_instance_of::<PyBytes>());
        if !are_bytes {
            for key in keys.objects.iter_borrowed() {
                table.key.encode(&key, &mut keys.encoded)?;
                keys.ends.push(keys.encoded.len());
            }
        }
        Ok(keys)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The keys as bytes.
    pub(crate) fn slices(&self) -> Vec<&[u8]> {
        if self.ends.len() == self.len() && !self.ends.is_empty() {
            let mut start = 0;
            let slice = |&end: &usize| {
                let key = &self.encoded[start..end];
                start = end;
                key
            };
            return self.ends.iter().map(slice).collect();
        }
        let bytes_of = |key: pyo3::Borrowed<'_, 'py, PyAny>| {
            // SAFETY: `new` saw that all are bytes. The tuple holds them, and they do not change.
            unsafe {
                let start = ffi::PyBytes_AsString(key.as_ptr()).cast::<u8>();
                std::slice::from_raw_parts(start, ffi::PyBytes_Size(key.as_ptr()) as usize)
            }
        };
        self.objects.iter_borrowed().map(bytes_of).collect()
    }
}

/// `Table.get_many`.
pub(crate) fn get_many<'py>(
    py: Python<'py>,
    table: &Table,
    keys: &Bound<'py, PyAny>,
    default: Option<Bound<'py, PyAny>>,
    view: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = Keys::new(table, keys)?;
    let slices = keys.slices();
    let default = default.unwrap_or_else(|| py.None().into_bound(py));
    let Source::Read(source) = &table.source else {
        let found = table.look(|t| {
            slices
                .iter()
                .map(|key| t.get(key)?.map(memory::copy).transpose())
                .collect::<zubilo::Result<Vec<_>>>()
        })?;
        let object = |value: &Option<Vec<u8>>| match value {
            Some(value) => table.value_object(py, value),
            None => Ok(default.clone()),
        };
        let objects = found.iter().map(object).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, objects)?.into_any());
    };
    source.look(|reading| {
        let mut found: Vec<Option<&[u8]>> = memory::filled(None, slices.len())?;
        let work = OnThisThread((reading, &slices, &mut found));
        let result = park::detach(py, move || {
            let OnThisThread((reading, slices, found)) = work.whole();
            look_up(reading, slices, found)
        });
        result.or_raise()?;
        let object = |value: &Option<&[u8]>| match value {
            Some(value) if view => Value::view(py, &source.snap, value),
            Some(value) if table.plain => Ok(memory::object(py, value)?.into_any()),
            Some(value) => table.value_object(py, value),
            None => Ok(default.clone()),
        };
        list_of(py, &found, object)
    })
}

/// A list of what `object` makes of each.
fn list_of<'py, T>(
    py: Python<'py>,
    items: &[T],
    mut object: impl FnMut(&T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a new list, or null and an exception. Nobody else sees it before each of its places is
    // filled; a list that is dropped half-filled has nulls, which lists allow.
    unsafe {
        let list =
            Bound::from_owned_ptr_or_err(py, ffi::PyList_New(items.len() as ffi::Py_ssize_t))?;
        for (i, item) in items.iter().enumerate() {
            let object = object(item)?.into_ptr();
            if ffi::PyList_SetItem(list.as_ptr(), i as ffi::Py_ssize_t, object) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(list)
    }
}

fn look_up<'t>(
    table: &ReadTable<'t>,
    keys: &[&[u8]],
    found: &mut [Option<&'t [u8]>],
) -> zubilo::Result<()> {
    table.get_many_with(keys, |i, value| {
        if let Some(value) = value {
            touch(value);
        }
        if let Some(place) = found.get_mut(i) {
            *place = value;
        }
    })
}

/// `Table.get_many_into`.
pub(crate) fn get_many_into(
    py: Python<'_>,
    table: &Table,
    keys: &Bound<'_, PyAny>,
    array: &Bound<'_, PyAny>,
) -> PyResult<Vec<usize>> {
    let keys = Keys::new(table, keys)?;
    let slices = keys.slices();
    let room = Room::get(array, ffi::PyBUF_WRITABLE | ffi::PyBUF_C_CONTIGUOUS)?;
    let (rows, size) = room.rows();
    if rows != slices.len() {
        let text = format!("the array has {rows} rows for {} keys", slices.len());
        return Err(raise("InvalidError", text));
    }
    let mut missing = Vec::new();
    let mut misfit = None;
    let start = room.start();
    // Copies a value into its row.
    let mut place = |i: usize, value: Option<&[u8]>| match value {
        Some(value) if value.len() == size => {
            // SAFETY: row `i` of `rows`, each of `size` bytes, in a writable buffer that is held.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), start.add(i * size), size) }
        }
        Some(value) => misfit = misfit.or(Some((i, value.len()))),
        None => missing.push(i),
    };
    match &table.source {
        Source::Read(source) => source.look(|reading| {
            let work = OnThisThread((reading, &slices, &mut place));
            let result = park::detach(py, move || {
                let OnThisThread((reading, slices, place)) = work.whole();
                reading.get_many_with(slices, place)
            });
            result.map_err(from_engine)
        })?,
        Source::Write(_) => table.look(|t| {
            for (i, key) in slices.iter().enumerate() {
                place(i, t.get(key)?);
            }
            Ok(())
        })?,
    }
    if let Some((i, len)) = misfit {
        let text = format!("the value of key {i} has {len} bytes, a row of the array {size}");
        return Err(raise("InvalidError", text));
    }
    missing.sort_unstable();
    Ok(missing)
}
