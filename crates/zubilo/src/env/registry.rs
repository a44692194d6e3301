//! The stores this process has open, by file. Opening a file twice would break both: the locks of
//! the kernel do not keep one process from itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, Weak};

use crate::platform::{FileId, fork_generation};

use super::EnvInner;
use super::flusher::Closer;

/// An open store, as long as any handle lives.
pub(super) type Known = (Weak<EnvInner>, Weak<Closer>);

/// The map of open stores; locked for the whole of an open, so that two threads that open one
/// file at once end with one store.
pub(super) fn lock() -> MutexGuard<'static, HashMap<(FileId, u32), Known>> {
    static OPEN: OnceLock<Mutex<HashMap<(FileId, u32), Known>>> = OnceLock::new();
    let open = OPEN.get_or_init(Mutex::default);
    let mut open = open.lock().unwrap_or_else(|e| e.into_inner());
    let generation = fork_generation();
    open.retain(|(_, g), (env, _)| *g == generation && env.strong_count() > 0);
    open
}
