//! A read transaction that can be closed at any time by any thread. [`Snap`] owns the engine's
//! transaction; whoever looks into the map holds a [`Pin`] or an [`OwnedPin`] for as long as it does.
//! Closing marks the snapshot; the last pin ends the transaction.
//!
//! Invariants: pins are taken and given back by threads that are attached to the interpreter (see
//! `counter`); `txn` is alive until `torn` is set; `torn` is set once, by whoever finds the snapshot
//! closed without pins; a pin taken after the mark is given back unused.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use zubilo::{ReadTable, ReadTxn};

use crate::errors::{closed, forked};
use crate::hold::thread;
use crate::{counter, fork};

const CLOSED: usize = 1 << (usize::BITS - 1);

/// A read transaction and who is inside it.
pub(crate) struct Snap {
    /// Number of pins, and the mark `CLOSED`.
    state: AtomicUsize,
    torn: AtomicBool,
    generation: u32,
    txn: UnsafeCell<ManuallyDrop<ReadTxn>>,
    views: Mutex<Views>,
}

/// Weak references to the memoryviews that were handed out, each with its thread, and how many there may be before those that
/// are gone are looked for.
#[derive(Default)]
struct Views {
    list: Vec<(u64, Py<PyAny>)>,
    limit: usize,
}

// SAFETY: the transaction is `Send` and `Sync`; it is taken out once, when nobody is inside.
unsafe impl Send for Snap {}
// SAFETY: as above.
unsafe impl Sync for Snap {}

impl Snap {
    pub(crate) fn new(txn: ReadTxn) -> Snap {
        Snap {
            state: AtomicUsize::new(0),
            torn: AtomicBool::new(false),
            generation: fork::generation(),
            txn: UnsafeCell::new(ManuallyDrop::new(txn)),
            views: Mutex::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Keeps the transaction alive while the pin lives.
    #[inline(always)]
    pub(crate) fn pin(&self) -> PyResult<Pin<'_>> {
        self.enter()?;
        Ok(Pin(self))
    }

    /// Whether the transaction has neither ended nor been inherited. Under the global lock it stays so until other
    /// code runs.
    #[inline(always)]
    pub(crate) fn is_live(&self) -> bool {
        self.generation == fork::generation() && !self.is_closed()
    }

    /// As `pin`; none where the transaction has ended.
    #[inline(always)]
    pub(crate) fn try_pin(&self) -> Option<Pin<'_>> {
        if self.generation != fork::generation() {
            return None;
        }
        if counter::add(&self.state, 1) & CLOSED != 0 {
            self.leave();
            return None;
        }
        Some(Pin(self))
    }

    /// The same, for what outlives a call.
    pub(crate) fn pin_owned(self: &Arc<Snap>) -> PyResult<OwnedPin> {
        self.enter()?;
        Ok(OwnedPin(Arc::clone(self)))
    }

    /// One more pin of a snapshot that has some, also where it is closed: for the time of a fork.
    pub(crate) fn pin_again(self: &Arc<Snap>) -> Option<OwnedPin> {
        if counter::add(&self.state, 1) & !CLOSED == 0 {
            self.leave();
            return None;
        }
        Some(OwnedPin(Arc::clone(self)))
    }

    #[inline(always)]
    fn enter(&self) -> PyResult<()> {
        // In a forked child nothing keeps the snapshot: the parent may end it at any time.
        if self.generation != fork::generation() {
            return Err(forked());
        }
        if counter::add(&self.state, 1) & CLOSED != 0 {
            self.leave();
            return Err(closed("transaction"));
        }
        Ok(())
    }

    #[inline(always)]
    fn leave(&self) {
        if counter::sub(&self.state, 1) == CLOSED | 1 {
            self.tear();
        }
    }

    #[cold]
    fn tear(&self) {
        std::sync::atomic::fence(Ordering::Acquire);
        if !self.torn.swap(true, Ordering::AcqRel) {
            // SAFETY: the snapshot is closed and nobody is inside; `torn` was not set, so this is
            // the only time it is taken. Those who enter from now on see the mark and leave.
            drop(unsafe { ManuallyDrop::take(&mut *self.txn.get()) });
        }
    }

    /// Ends the transaction, or marks it so that the last pin does. Memoryviews are released: what
    /// uses one afterwards gets an exception. Those from which others were derived (slices, arrays)
    /// cannot be; they keep the snapshot.
    ///
    /// Without the global lock those of other threads stay good and keep the snapshot too: such a thread may
    /// be reading, and the interpreter does not keep `release` and reads of a memoryview apart.
    pub(crate) fn close(&self, py: Python<'_>) {
        self.close_with(py, if cfg!(Py_GIL_DISABLED) { Some(thread()) } else { None });
    }

    /// The same in a forked child, where there is no other thread.
    pub(crate) fn close_in_child(&self, py: Python<'_>) {
        self.close_with(py, None);
    }

    /// Releases the memoryviews of that thread, or of all.
    fn close_with(&self, py: Python<'_>, of: Option<u64>) {
        if self.mark_closed() {
            return;
        }
        let views = std::mem::take(&mut self.views().list);
        let is_due = |owner: u64| of.is_none_or(|of| of == owner);
        for (_, view) in views.into_iter().filter(|(owner, _)| is_due(*owner)) {
            if let Ok(view) = view.bind(py).call0()
                && !view.is_none()
                && let Err(error) = view.call_method0(intern!(py, "release"))
                && !error.is_instance_of::<PyBufferError>(py)
            {
                error.write_unraisable(py, Some(&view));
            }
        }
        self.end_if_unused();
    }

    /// Sets the mark and returns whether it was set. The thread is attached: see `counter`.
    fn mark_closed(&self) -> bool {
        self.state.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED != 0
    }

    /// After the mark was set: the end, if nobody is inside.
    fn end_if_unused(&self) {
        if self.state.load(Ordering::Acquire) == CLOSED {
            self.tear();
        }
    }

    /// Notes a memoryview, to be released when the transaction ends.
    pub(crate) fn note_view(&self, py: Python<'_>, view: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: the view is a live object; a new reference comes back, or null and an exception.
        let weak = unsafe {
            Bound::from_owned_ptr_or_err(
                py,
                ffi::PyWeakref_NewRef(view.as_ptr(), std::ptr::null_mut()),
            )
        }?;
        let is_full = {
            let views = self.views();
            views.list.len() >= views.limit
        };
        if is_full {
            self.forget_dead_views(py);
        }
        self.views().list.push((thread(), weak.unbind()));
        // Closed meanwhile, by another thread: then nobody will release it.
        if self.is_closed() {
            let _ = view.call_method0(intern!(py, "release"));
            return Err(closed("transaction"));
        }
        Ok(())
    }

    #[cold]
    fn forget_dead_views(&self, py: Python<'_>) {
        // Asking a reference runs no code of others, but dropping a view could: not under the lock.
        let list = std::mem::take(&mut self.views().list);
        let mut live = Vec::new();
        for (owner, weak) in list {
            if weak.bind(py).call0().is_ok_and(|view| !view.is_none()) {
                live.push((owner, weak));
            }
        }
        let mut views = self.views();
        live.append(&mut views.list);
        views.limit = (live.len() * 2).max(64);
        views.list = live;
    }

    fn views(&self) -> MutexGuard<'_, Views> {
        self.views.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Drop for Snap {
    fn drop(&mut self) {
        // Nobody refers to it, so nobody is inside.
        if !*self.torn.get_mut() {
            // SAFETY: not taken before, and never again.
            drop(unsafe { ManuallyDrop::take(self.txn.get_mut()) });
        }
    }
}

/// The right to look into a snapshot.
pub(crate) struct Pin<'s>(&'s Snap);

impl std::ops::Deref for Pin<'_> {
    type Target = ReadTxn;

    #[inline(always)]
    fn deref(&self) -> &ReadTxn {
        // SAFETY: it is not taken out while this pin lives.
        unsafe { &*self.0.txn.get() }
    }
}

impl Drop for Pin<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The same, with a share of the snapshot.
pub(crate) struct OwnedPin(pub(crate) Arc<Snap>);

impl Drop for OwnedPin {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A table of a snapshot. Its lifetime is a lie: it is looked at while the snapshot is pinned only.
pub(crate) struct SnapTable {
    pub(crate) snap: Arc<Snap>,
    table: ReadTable<'static>,
}

// SAFETY: pointers into the map, which all threads may read, and the table's description.
unsafe impl Send for SnapTable {}
// SAFETY: as above; no method of the table changes it.
unsafe impl Sync for SnapTable {}

impl SnapTable {
    pub(crate) fn open(
        snap: &Arc<Snap>,
        open: impl FnOnce(&ReadTxn) -> PyResult<ReadTable<'_>>,
    ) -> PyResult<SnapTable> {
        let pin = snap.pin()?;
        let table = open(&pin)?;
        // SAFETY: only the lifetime changes. `look` hands the table out under a pin, shortened to it,
        // and what it holds needs the map for nothing when it is dropped.
        let table = unsafe { std::mem::transmute::<ReadTable<'_>, ReadTable<'static>>(table) };
        Ok(SnapTable { snap: Arc::clone(snap), table })
    }

    /// The table, while the transaction is alive.
    #[inline(always)]
    pub(crate) fn look<R>(&self, f: impl FnOnce(&ReadTable<'_>) -> PyResult<R>) -> PyResult<R> {
        let _pin = self.snap.pin()?;
        f(&self.table)
    }

    /// The table as it is stored here; the caller holds a pin for as long as it uses what it finds.
    pub(crate) fn unpinned(&self) -> &ReadTable<'static> {
        &self.table
    }
}
