//! Bytes that programs hand over: keys and values as slices, and room to be filled. Immutable `bytes`
//! are used where they lie, everything else that has a buffer is copied, for others may change it.

use std::ops::Deref;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::codec::wrong_type;
use crate::errors::OrRaise;
use crate::memory;

/// Bytes of an object, which lives at least as long.
pub(crate) enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The bytes of `bytes`, `bytearray`, `memoryview`, or whatever else offers a contiguous buffer.
#[inline(always)]
pub(crate) fn bytes_like<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Bytes<'a>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Bytes::Borrowed(bytes.as_bytes())),
        Err(_) => copy_of(object).map(Bytes::Owned),
    }
}

#[cold]
fn copy_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if object.is_instance_of::<PyString>() {
        return Err(wrong_type(
            "bytes (encode it, or open the table with key=str or value=str)",
            object,
        ));
    }
    let Ok(buffer) = Room::get(object, ffi::PyBUF_SIMPLE) else {
        return Err(wrong_type("bytes, or what has a contiguous buffer,", object));
    };
    // SAFETY: the buffer is held; nobody else runs meanwhile but threads of a build without GIL,
    // where a program that changes a buffer while it stores it gets a mixture.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.start(), buffer.len()) };
    memory::copy(bytes).or_raise()
}

/// A buffer that an object lends.
pub(crate) struct Room(ffi::Py_buffer);

// SAFETY: the exporter keeps the memory where it is until the buffer is released, by whatever thread
// that is attached to the interpreter.
unsafe impl Send for Room {}
// SAFETY: as above; what is written through it is the user's care.
unsafe impl Sync for Room {}

impl Room {
    pub(crate) fn get(object: &Bound<'_, PyAny>, flags: i32) -> PyResult<Room> {
        let mut buffer = ffi::Py_buffer::new();
        // SAFETY: a live object and a buffer to be filled in; released when the room is dropped.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut buffer, flags) } != 0 {
            return Err(PyErr::take(object.py())
                .unwrap_or_else(|| PyBufferError::new_err("the object has no buffer")));
        }
        Ok(Room(buffer))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len as usize
    }

    /// The first byte; never null, so that it can begin a slice.
    pub(crate) fn start(&self) -> *mut u8 {
        if self.0.buf.is_null() {
            std::ptr::NonNull::dangling().as_ptr()
        } else {
            self.0.buf.cast()
        }
    }

    /// Length of the first dimension, and bytes of each item of it.
    pub(crate) fn rows(&self) -> (usize, usize) {
        if self.0.ndim < 1 || self.0.shape.is_null() {
            return (self.len(), 1);
        }
        // SAFETY: the buffer was asked for with its shape, which has `ndim` numbers, at least one.
        let rows = unsafe { *self.0.shape } as usize;
        (rows, self.len().checked_div(rows).unwrap_or(0))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: filled in by `get`, released once; rooms are dropped by attached threads only.
        unsafe { ffi::PyBuffer_Release(&mut self.0) };
    }
}
