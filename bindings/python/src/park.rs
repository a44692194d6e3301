//! Work without the interpreter, and calls of functions of the program's, by threads that the end of
//! the interpreter overtakes. Before Python 3.14 such a thread (a daemon, for the others are waited for) is
//! ended where it asks for the interpreter again: its stack is unwound, and what it held there, objects of Python
//! among it, would be dropped without the interpreter. So a thread that is unwound at the end stops here
//! for good, before anything is dropped; the process ends without it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::hold::thread;

/// The thread that ends the interpreter; 0 before the end.
static ENDING: AtomicU64 = AtomicU64::new(0);

/// Called at exit, before the interpreter begins to end.
#[pyfunction]
pub(crate) fn at_exit() {
    ENDING.store(thread(), Ordering::SeqCst);
}

/// Whether the interpreter ends, and in another thread than this.
fn is_overtaken() -> bool {
    let ending = ENDING.load(Ordering::SeqCst);
    ending != 0 && ending != thread()
}

fn park() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Parks the thread if it is unwound at the end. Nothing that needs the interpreter is further in.
struct Guard;

impl Guard {
    fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if is_overtaken() {
            park();
        }
    }
}

/// Runs `work` while other threads may run Python.
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let guard = Guard;
    let result = py.detach(work);
    guard.disarm();
    result
}

/// Runs `work` with the interpreter, in the middle of work without it.
pub(crate) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    if is_overtaken() {
        park();
    }
    let guard = Guard;
    let result = Python::attach(work);
    guard.disarm();
    result
}

// As PyO3 declares them, but for the unwinding, which a call of theirs would not let through to the guard.
unsafe extern "C-unwind" {
    fn PyObject_CallObject(
        function: *mut ffi::PyObject,
        arguments: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    fn PyIter_Next(iterator: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// Calls a function of the program's.
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'_, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let guard = Guard;
    // SAFETY: two live objects; a new reference comes back, or null and an exception.
    let given = unsafe { PyObject_CallObject(function.as_ptr(), arguments.as_ptr()) };
    guard.disarm();
    // SAFETY: as above.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), given) }
}

/// The next item of an iterator.
pub(crate) fn next<'py>(iterator: &Bound<'py, PyAny>) -> Option<PyResult<Bound<'py, PyAny>>> {
    let (guard, py) = (Guard, iterator.py());
    // SAFETY: a live iterator; a new reference comes back, or null, at the end or with an exception.
    let item = unsafe { PyIter_Next(iterator.as_ptr()) };
    guard.disarm();
    // SAFETY: as above.
    let item = unsafe { Bound::from_owned_ptr_or_opt(py, item) };
    item.map(Ok).or_else(|| PyErr::take(py).map(Err))
}
