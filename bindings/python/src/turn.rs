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
        if counter::set(&self.taken) {
            return Err(raise("BusyError", format!("the {what} is in use by another thread")));
        }
        Ok(Taken(self))
    }
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
