//! State of an object that any thread may use, one at a time: whoever comes second is refused, as with
//! a generator that is running.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::counter;
use crate::errors::raise;

/// A value for one user at a time.
pub(crate) struct Turn<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `take` lets one user in at a time, and orders them. What is inside may be used by any thread
// by the choice of those who put it there, see `new`.
unsafe impl<T> Send for Turn<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Turn<T> {}

impl<T> Turn<T> {
    /// # Safety
    /// Threads other than the one that made the value may use and drop it.
    pub(crate) unsafe fn new(value: T) -> Turn<T> {
        Turn { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value, until the guard is dropped.
    #[inline(always)]
    pub(crate) fn take(&self, what: &str) -> PyResult<Taken<'_, T>> {
        let busy = || raise("BusyError", format!("the {what} is in use by another thread"));
        self.try_take().ok_or_else(busy)
    }

    /// The same; none where another has it.
    #[inline(always)]
    pub(crate) fn try_take(&self) -> Option<Taken<'_, T>> {
        if counter::set(&self.taken) { None } else { Some(Taken(self)) }
    }
}

/// Lends the value out for a moment in which no other code can run: one that neither calls Python nor lets go of the
/// global lock. None where another has it. Without the global lock there is no such moment.
///
/// # Safety
/// The thread is attached, and `work` runs nothing of Python's.
#[inline(always)]
pub(crate) unsafe fn for_a_moment<T, R>(
    turn: &Turn<T>,
    work: impl FnOnce(&mut T) -> R,
) -> Option<R> {
    if cfg!(Py_GIL_DISABLED) || turn.taken.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the lock keeps other threads out, and the caller sees to this one.
    Some(work(unsafe { &mut *turn.value.get() }))
}

/// The right to use the value.
pub(crate) struct Taken<'t, T>(&'t Turn<T>);

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the only guard there is.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the only guard there is.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}
