//! Values in the map, lent to Python without a copy. A [`Value`] is what a memoryview or an array lies
//! over; it holds a pin, so the snapshot stays for as long as anything looks at the bytes.

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::inherit;
use crate::snap::{OwnedPin, Snap};

/// Bytes of a snapshot, read-only.
#[pyclass(frozen, module = "zubilo._zubilo")]
pub(crate) struct Value {
    start: *const u8,
    len: usize,
    /// Its number among those that a forked child would inherit.
    number: usize,
    _pin: OwnedPin,
}

// SAFETY: the bytes do not change while the pin lives, and any thread may read them.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Value {
    /// Over bytes of the snapshot, which the caller has pinned.
    pub(crate) fn new<'py>(
        py: Python<'py>,
        snap: &Arc<Snap>,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, Value>> {
        let pin = snap.pin_owned()?;
        let number = inherit::note(bytes, snap);
        Bound::new(py, Value { start: bytes.as_ptr(), len: bytes.len(), number, _pin: pin })
    }

    /// A memoryview of bytes of the snapshot, released when the transaction ends.
    pub(crate) fn view<'py>(
        py: Python<'py>,
        snap: &Arc<Snap>,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = Value::new(py, snap, bytes)?;
        let view = PyMemoryView::from(&value)?.into_any();
        snap.note_view(py, &view)?;
        Ok(view)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        inherit::forget(self.number);
    }
}

#[pymethods]
impl Value {
    /// # Safety
    /// To be called by the interpreter, with a buffer to be filled in.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let value = slf.get();
        // SAFETY: the interpreter gives a buffer to be filled in; the object is kept by the buffer,
        // and the bytes by the object. They are marked as read-only.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                value.start.cast_mut().cast(),
                value.len as ffi::Py_ssize_t,
                1,
                flags,
            )
        };
        if filled == 0 {
            return Ok(());
        }
        Err(PyErr::take(slf.py()).unwrap_or_else(|| PyBufferError::new_err("values are read-only")))
    }

    fn __len__(&self) -> usize {
        self.len
    }
}
