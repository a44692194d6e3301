//! Copies of bytes whose length others decide: where there is no memory for one there is an exception.
//! Rust's own containers would end the process.

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::look::Pair;

fn lack() -> zubilo::Error {
    let source = std::io::ErrorKind::OutOfMemory.into();
    zubilo::Error::Io { op: "copy a value", path: None, source }
}

/// A copy of bytes.
pub(crate) fn copy(bytes: &[u8]) -> zubilo::Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| lack())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Copies of key and value.
pub(crate) fn copy_pair((key, value): Pair<'_>) -> zubilo::Result<(Vec<u8>, Vec<u8>)> {
    Ok((copy(key)?, copy(value)?))
}

/// Appends bytes.
pub(crate) fn append(into: &mut Vec<u8>, bytes: &[u8]) -> PyResult<()> {
    let room = into.try_reserve(bytes.len());
    room.map_err(|_| PyMemoryError::new_err("no memory for a copy of the value"))?;
    into.extend_from_slice(bytes);
    Ok(())
}

/// A list of `len` places.
pub(crate) fn filled<T: Clone>(value: T, len: usize) -> PyResult<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len)
        .map_err(|_| PyMemoryError::new_err("no memory for so many keys"))?;
    list.resize(len, value);
    Ok(list)
}

/// The bytes as an object.
#[inline(always)]
pub(crate) fn object<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: a new `bytes`, or null and an exception.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, raw(py, bytes))?.cast_into_unchecked()) }
}

/// The same as a new reference, or null with an exception set.
#[inline(always)]
pub(crate) fn raw(_py: Python<'_>, bytes: &[u8]) -> *mut ffi::PyObject {
    // SAFETY: start and length of a slice, in an attached thread.
    unsafe { ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t) }
}
