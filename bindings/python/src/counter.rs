//! Numbers that attached threads change. Where the interpreter has a global lock they are changed under
//! it, so that no atomic step is needed, which would cost a look-up a tenth of its time. A build for an
//! interpreter without that lock takes atomic steps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Adds to a number and gives what it was. The thread is attached to the interpreter.
#[inline(always)]
pub(crate) fn add(number: &AtomicUsize, more: usize) -> usize {
    if cfg!(Py_GIL_DISABLED) {
        number.fetch_add(more, Ordering::Acquire)
    } else {
        let was = number.load(Ordering::Relaxed);
        number.store(was.wrapping_add(more), Ordering::Relaxed);
        was
    }
}

/// Subtracts from a number and gives what it was. The thread is attached to the interpreter.
#[inline(always)]
pub(crate) fn sub(number: &AtomicUsize, less: usize) -> usize {
    if cfg!(Py_GIL_DISABLED) {
        number.fetch_sub(less, Ordering::Release)
    } else {
        let was = number.load(Ordering::Relaxed);
        number.store(was.wrapping_sub(less), Ordering::Relaxed);
        was
    }
}

/// Sets a mark and returns whether it was set. The thread is attached to the interpreter.
#[inline(always)]
pub(crate) fn set(mark: &AtomicBool) -> bool {
    if cfg!(Py_GIL_DISABLED) {
        mark.swap(true, Ordering::Acquire)
    } else {
        let was = mark.load(Ordering::Relaxed);
        mark.store(true, Ordering::Relaxed);
        was
    }
}
