//! Environments without a lock file (`MDB_NOLOCK`). Their processes take turns by means of their own, of
//! which the library knows nothing. So each call that begins to read or to write looks whether others have
//! committed, unless somebody writes in this process: then nobody else does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use zubilo::Env;

use crate::env::Opened;
use crate::errors::Result;

/// Shared by the handles on a store.
#[derive(Default)]
pub(crate) struct Turn {
    /// Held while others' commits are taken over, and while readers begin.
    gate: Mutex<()>,
    /// Transactions that write, or wait for that.
    writers: AtomicU32,
}

impl Turn {
    /// That of a store, which this process may have open already.
    pub(crate) fn of(store: &Env) -> Arc<Turn> {
        static KNOWN: Mutex<Vec<(i32, Weak<Turn>)>> = Mutex::new(Vec::new());
        store.raw_take_turns();
        // All handles on a store share its descriptor.
        let Some(number) = store.descriptor() else { return Arc::default() };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, turn)| turn.strong_count() > 0);
        let found = known.iter().find(|(other, _)| *other == number);
        if let Some(turn) = found.and_then(|(_, turn)| turn.upgrade()) {
            return turn;
        }
        let turn = Arc::default();
        known.push((number, Arc::downgrade(&turn)));
        turn
    }

    fn take(&self, store: &Env) -> Result<MutexGuard<'_, ()>> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if self.writers.load(Ordering::SeqCst) == 0 {
            // SAFETY: the gate is held by all that begin here, and nobody writes in this process.
            unsafe { store.raw_adopt() }?;
        }
        Ok(gate)
    }
}

/// Does something that looks at the newest commit, or begins to.
pub(crate) fn look<T>(opened: &Opened, begin: impl FnOnce() -> zubilo::Result<T>) -> Result<T> {
    let _gate = opened.turn.as_ref().map(|turn| turn.take(&opened.store)).transpose()?;
    Ok(begin()?)
}

/// Begins to write; `write_ended` follows, unless it fails.
pub(super) fn write<T>(opened: &Opened, begin: impl FnOnce() -> zubilo::Result<T>) -> Result<T> {
    if let Some(turn) = &opened.turn {
        // Readers are not kept waiting while another writer is waited for.
        let _gate = turn.take(&opened.store)?;
        turn.writers.fetch_add(1, Ordering::SeqCst);
    }
    match begin() {
        Ok(begun) => {
            opened.writing.fetch_add(1, Ordering::SeqCst);
            Ok(begun)
        }
        Err(error) => {
            leave(opened);
            Err(error.into())
        }
    }
}

/// Does something that begins and ends a write by itself.
pub(crate) fn during<T>(opened: &Opened, write: impl FnOnce() -> T) -> Result<T> {
    if opened.turn.is_none() {
        return Ok(write());
    }
    self::write(opened, || Ok(()))?;
    let done = write();
    write_ended(opened);
    Ok(done)
}

/// A transaction writes that somebody else has begun.
pub(super) fn write_begun(opened: &Opened) {
    if let Some(turn) = &opened.turn {
        turn.writers.fetch_add(1, Ordering::SeqCst);
    }
    opened.writing.fetch_add(1, Ordering::SeqCst);
}

fn leave(opened: &Opened) {
    if let Some(turn) = &opened.turn {
        turn.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A transaction that wrote has ended.
pub(super) fn write_ended(opened: &Opened) {
    opened.writing.fetch_sub(1, Ordering::SeqCst);
    leave(opened);
}

/// Whether a transaction of this handle's writes.
pub(crate) fn writes_here(opened: &Opened) -> bool {
    opened.writing.load(Ordering::SeqCst) > 0
}
