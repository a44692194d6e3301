//! Atomics and locks, from `std` or, under `--cfg loom`, from the model checker. All code that
//! shares memory between threads or processes takes them from here.

#[cfg(all(not(loom), feature = "planted"))]
pub(crate) use crate::planted::AtomicU64;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(all(not(loom), not(feature = "planted")))]
pub(crate) use std::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// A full fence that directly follows a SeqCst read-modify-write of the same thread.
///
/// On x86-64 every read-modify-write is a locked instruction and therefore a full fence already:
/// a second one (`mfence`) would cost as much as the rest of beginning a read transaction. Other
/// processors, and the model checker, get the real fence.
#[inline(always)]
pub(crate) fn fence_after_rmw() {
    if cfg!(all(target_arch = "x86_64", not(loom))) {
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}
