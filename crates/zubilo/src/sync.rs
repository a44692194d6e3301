//! Atomics and locks, from `std` or, under `--cfg loom`, from the model checker. All code that
//! shares memory between threads or processes takes them from here.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
