//! Write transactions in the hands of Python: used by the thread that began them only, ended once,
//! never entered twice. The engine's transaction cannot leave its thread, because the lock is the
//! thread's; objects of Python can. So each thread keeps its transactions in a list, and a [`Hold`] lets
//! nobody else in.
//!
//! Invariants: `txn` is touched by the owner's thread alone; while a `WriteTxn` is lent out `busy` is
//! set and no code of Python's runs; a lent transaction (`Txn::Lent`) is taken back before the borrow
//! that it came from ends.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;
use zubilo::WriteTxn;

use crate::errors::{closed, forked, raise};
use crate::fork;
use crate::park;

/// A write transaction, or what is left of one.
enum Txn {
    Own(Box<WriteTxn>),
    /// That of a group commit, for the time of one closure.
    Lent(*mut WriteTxn),
    Ended,
}

/// A write transaction and its thread.
pub(crate) struct Hold {
    thread: u64,
    generation: u32,
    /// Which open store: the address of what all its handles share.
    store: usize,
    /// Its object was dropped by another thread: the owner ends it when it comes by.
    is_abandoned: AtomicBool,
    /// It has ended: for threads that may look at nothing else.
    has_ended: AtomicBool,
    busy: Cell<bool>,
    /// Steps with each change, so that iterators know when what they have read ahead is old.
    changes: Cell<u64>,
    /// Nested levels that are open.
    levels: Cell<u64>,
    /// Steps when a nested level is undone: tables must then be looked up again.
    undone: Cell<u64>,
    txn: UnsafeCell<Txn>,
}

// SAFETY: other threads than the owner's touch `thread`, `generation` and the two atomics only, see
// `enter`; the last share may be dropped anywhere, and then holds no transaction of its own: the list of
// the owner's thread keeps a share until that has ended.
unsafe impl Send for Hold {}
// SAFETY: as above.
unsafe impl Sync for Hold {}

/// A number for the calling thread that no other thread ever gets.
pub(crate) fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static ID: Cell<u64> = const { Cell::new(0) };
    }
    ID.with(|id| {
        if id.get() == 0 {
            id.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        id.get()
    })
}

/// The transactions that the thread has begun and not ended. When the thread ends they are aborted.
struct Held(RefCell<Vec<Arc<Hold>>>);

impl Drop for Held {
    fn drop(&mut self) {
        for hold in self.0.take() {
            hold.end();
        }
    }
}

/// The address of the path that all handles of an open store share: no two stores have the same.
fn address(env: &zubilo::Env) -> usize {
    env.path().as_os_str().as_encoded_bytes().as_ptr() as usize
}

thread_local! {
    static HELD: Held = const { Held(RefCell::new(Vec::new())) };
}

impl Hold {
    /// Keeps a transaction of this thread.
    pub(crate) fn own(env: &zubilo::Env, txn: WriteTxn) -> Arc<Hold> {
        let hold = Arc::new(Hold::new(address(env), Txn::Own(Box::new(txn))));
        // Where the thread is about to end nobody keeps the list any more: then the object does.
        let _ = HELD.try_with(|held| held.0.borrow_mut().push(Arc::clone(&hold)));
        hold
    }

    /// Lends out a transaction until [`Hold::end`].
    pub(crate) fn lent(txn: &mut WriteTxn) -> Arc<Hold> {
        Arc::new(Hold::new(0, Txn::Lent(txn)))
    }

    /// Whether this thread is in a write transaction of that store.
    pub(crate) fn has_one_of(env: &zubilo::Env) -> bool {
        let is_one = |hold: &Arc<Hold>| {
            hold.store == address(env) && hold.generation == fork::generation() && !hold.has_ended()
        };
        HELD.try_with(|held| held.0.borrow().iter().any(is_one)).unwrap_or(false)
    }

    fn new(store: usize, txn: Txn) -> Hold {
        Hold {
            thread: thread(),
            generation: fork::generation(),
            store,
            is_abandoned: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            busy: Cell::new(false),
            changes: Cell::new(0),
            levels: Cell::new(0),
            undone: Cell::new(0),
            txn: UnsafeCell::new(txn),
        }
    }

    pub(crate) fn is_own_thread(&self) -> bool {
        self.thread == thread()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Changes so far. For the owner's thread, which `enter` lets in.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.get()
    }

    pub(crate) fn levels(&self) -> &Cell<u64> {
        &self.levels
    }

    pub(crate) fn undone(&self) -> &Cell<u64> {
        &self.undone
    }

    /// Lends out the transaction. `change` runs no code of Python's.
    #[inline]
    pub(crate) fn enter<R>(
        &self,
        change: impl FnOnce(&mut WriteTxn) -> PyResult<R>,
    ) -> PyResult<R> {
        if !self.is_own_thread() {
            let text = "a write transaction belongs to the thread that began it; use Env.update, or begin \
                        one in this thread";
            return Err(raise("ThreadError", text));
        }
        if self.generation != fork::generation() {
            return Err(forked());
        }
        if self.busy.replace(true) {
            return Err(raise(
                "BusyError",
                "the write transaction is in use by a call further out",
            ));
        }
        let _free = Free(&self.busy);
        // SAFETY: this is the owner's thread, and `busy` was not set: nobody else has a reference.
        let txn = match unsafe { &mut *self.txn.get() } {
            Txn::Own(txn) => &mut **txn,
            // SAFETY: lent by a frame of this thread that is still there: it ends the hold before
            // it goes on.
            Txn::Lent(txn) => unsafe { &mut **txn },
            Txn::Ended => return Err(closed("transaction")),
        };
        change(txn)
    }

    /// The same, for changes.
    #[inline]
    pub(crate) fn change<R>(
        &self,
        change: impl FnOnce(&mut WriteTxn) -> PyResult<R>,
    ) -> PyResult<R> {
        self.enter(|txn| {
            self.changes.set(self.changes.get() + 1);
            change(txn)
        })
    }

    /// As [`Hold::change`], without the interpreter: other threads run meanwhile.
    pub(crate) fn change_detached<R: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut WriteTxn) -> zubilo::Result<R>,
    ) -> PyResult<R> {
        self.change(|txn| {
            let work = OnThisThread((txn, change));
            let result = park::detach(py, move || {
                let OnThisThread((txn, change)) = work.whole();
                change(txn)
            });
            result.map_err(crate::errors::from_engine)
        })
    }

    /// Takes the transaction out, to be committed.
    pub(crate) fn take(&self) -> PyResult<Box<WriteTxn>> {
        self.enter(|_| Ok(()))?;
        // SAFETY: `enter` let this thread in, and nobody is inside.
        let txn = unsafe { &mut *self.txn.get() };
        match std::mem::replace(txn, Txn::Ended) {
            Txn::Own(txn) => {
                self.forget();
                Ok(txn)
            }
            lent => {
                *txn = lent;
                let text = "the transaction of a group commit ends with its function";
                Err(raise("InvalidError", text))
            }
        }
    }

    /// Aborts what has not ended. In other threads than the owner's it asks that one to.
    pub(crate) fn end(&self) {
        if !self.is_own_thread() {
            self.is_abandoned.store(true, Ordering::Release);
            return;
        }
        if self.busy.get() {
            self.is_abandoned.store(true, Ordering::Release);
            return;
        }
        // SAFETY: the owner's thread, and nobody is inside.
        let txn = std::mem::replace(unsafe { &mut *self.txn.get() }, Txn::Ended);
        self.forget();
        match txn {
            // The parent's: its memory is copied into the child, but its end is the parent's.
            Txn::Own(txn) if self.generation != fork::generation() => std::mem::forget(txn),
            Txn::Own(txn) => drop(txn),
            Txn::Lent(_) | Txn::Ended => {}
        }
    }

    /// Takes it off the thread's list.
    fn forget(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        let _ = HELD.try_with(|held| {
            if let Ok(mut held) = held.0.try_borrow_mut() {
                held.retain(|other| !std::ptr::eq(&**other, self));
            }
        });
    }

    /// Ends the transactions of this thread whose objects other threads have dropped.
    pub(crate) fn end_abandoned() {
        let abandoned: Vec<Arc<Hold>> = HELD
            .try_with(|held| {
                let held = held.0.borrow();
                let is_abandoned = |hold: &&Arc<Hold>| hold.is_abandoned.load(Ordering::Acquire);
                held.iter().filter(is_abandoned).cloned().collect()
            })
            .unwrap_or_default();
        abandoned.iter().for_each(|hold| hold.end());
    }
}

/// Marks a transaction as free again.
struct Free<'h>(&'h Cell<bool>);

impl Drop for Free<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// What stays on its thread although the interpreter is released: the closure runs at once, here.
pub(crate) struct OnThisThread<T>(pub(crate) T);

// SAFETY: `Python::detach` runs its closure on the calling thread; it asks for `Send` only to keep
// references to objects of Python out, of which there are none in here.
unsafe impl<T> Send for OnThisThread<T> {}

impl<T> OnThisThread<T> {
    /// As a whole: else a closure would take the field, which is not `Send`.
    pub(crate) fn whole(self) -> OnThisThread<T> {
        self
    }
}
