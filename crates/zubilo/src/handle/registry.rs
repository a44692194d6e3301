//! The stores this process has open, by file. Opening a file twice would break both: the locks of
//! the kernel do not keep one process from itself.
//!
//! Each file has a place of its own, locked for the whole of an open, so that two threads that open one
//! file at once end with one store; the map of the places is locked for moments only, so that an open
//! which waits for another process delays no other store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::env::EnvInner;
use crate::platform::{FileId, PerProcess};

use super::owner::Owner;

/// An open store, as long as any handle lives.
pub(super) type Known = (Weak<EnvInner>, Weak<Owner>);

/// Where the store of one file is found, if it is open.
#[derive(Clone, Default)]
pub(super) struct Place(Arc<Mutex<Option<Known>>>);

impl Place {
    /// Waits for an open of the same file.
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Nobody looks at it, and its store is closed.
    fn is_left(&self) -> bool {
        // Others get at it by the map only, which the caller has locked.
        Arc::strong_count(&self.0) == 1
            && self.lock().as_ref().is_none_or(|(env, _)| env.strong_count() == 0)
    }
}

/// The place of a file in this process; a forked child begins anew.
pub(super) fn place(id: FileId) -> Place {
    static PLACES: PerProcess<Mutex<HashMap<FileId, Place>>> = PerProcess::new();
    let mut places = PLACES.get().lock().unwrap_or_else(|e| e.into_inner());
    places.retain(|_, place| !place.is_left());
    places.entry(id).or_default().clone()
}
