//! Stores that a forked child has opened again for the handles that it inherited
//! ([`Options::reopen_after_fork`](crate::Options::reopen_after_fork)).
//!
//! What the parent had locked at the moment of the fork is never waited for: neither its store nor its own heirs are
//! touched, and the table of heirs is a fresh one in each process. An heir lives until the last inherited handle
//! of its store is dropped in the child.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::platform::PerProcess;

use super::owner::Owner;
use super::{Env, open};

/// By the place of the inherited owner, which stays where it is as long as there is a handle.
type Heirs = Mutex<HashMap<usize, Env>>;

fn heirs() -> MutexGuard<'static, HashMap<usize, Env>> {
    static HEIRS: PerProcess<Heirs> = PerProcess::new();
    HEIRS.get().lock().unwrap_or_else(|e| e.into_inner())
}

fn key(owner: &Owner) -> usize {
    std::ptr::from_ref(owner).addr()
}

impl Env {
    /// The handle to work with in this process: this one, or in a forked child its heir.
    #[inline]
    pub(super) fn here(&self) -> Result<Cow<'_, Env>> {
        if !self.inner.options.reopen_after_fork || !self.inner.is_forked() {
            return Ok(Cow::Borrowed(self));
        }
        heir(self).map(Cow::Owned)
    }
}

#[cold]
fn heir(env: &Env) -> Result<Env> {
    let place = key(&env.owner);
    if let Some(heir) = heirs().get(&place) {
        return Ok(heir.clone());
    }
    let data = &env.inner.data;
    let options = env.inner.options.clone();
    if !options.lock_file {
        // Its opener has promised that no other process uses the store, and here is one.
        return Err(Error::Forked);
    }
    // Threads that come at the same moment get the same store: one process opens a file once.
    let heir = open::open(data.path(), options.create(false))?;
    if heir.inner.data.id() != data.id() {
        return Err(Error::Busy(
            "another file is where the store was when it was opened before the fork",
        ));
    }
    let is_lazy = env.inner.lazy_now.load(std::sync::atomic::Ordering::Relaxed);
    if is_lazy {
        heir.set_lazy(true)?;
    }
    Ok(heirs().entry(place).or_insert(heir).clone())
}

/// The last inherited handle goes.
pub(super) fn end(owner: &Owner) {
    // Dropped outside of the lock: its end may wait for the disk.
    let heir = heirs().remove(&key(owner));
    drop(heir);
}

/// Whether an heir of this store is open here; a handle that is the last one decides how it ends.
pub(super) fn of(owner: &Arc<Owner>) -> Option<Env> {
    heirs().get(&key(owner)).cloned()
}
