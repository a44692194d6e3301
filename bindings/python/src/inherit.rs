//! Values in the map that a forked child inherits. The parent keeps their snapshot, and may end it at any
//! time; then pages are written anew, and the file may become shorter, which would end a child that
//! looks at them. So around a fork the parent holds the snapshots until the child has released its
//! memoryviews and has put copies of its own in the place of the pages under what it could not release:
//! arrays, and slices of views.
//!
//! Python calls the three hooks, and only for forks that it makes itself. A thread that forks is
//! attached to the interpreter all the way.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use pyo3::prelude::*;

use crate::park;
use crate::snap::{OwnedPin, Snap};

/// A live value.
struct Entry {
    start: usize,
    len: usize,
    snap: Weak<Snap>,
}

/// The live values by number, and numbers to be used again.
#[derive(Default)]
struct Values {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
}

static VALUES: Mutex<Values> = Mutex::new(Values { entries: Vec::new(), free: Vec::new() });

/// What the parent keeps from before the fork until the child is done.
struct Prepared {
    values: Vec<(usize, usize)>,
    snaps: Vec<Arc<Snap>>,
    pins: Vec<OwnedPin>,
    /// A pipe, of which the child closes its end when it is done, or the system when it dies.
    read: i32,
    write: i32,
}

static PREPARED: Mutex<Vec<Prepared>> = Mutex::new(Vec::new());

/// How long the parent waits for the child, in milliseconds.
const PATIENCE: i32 = 10_000;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|e| e.into_inner())
}

/// Notes a value; gives its number.
pub(crate) fn note(bytes: &[u8], snap: &Arc<Snap>) -> usize {
    let entry =
        Entry { start: bytes.as_ptr() as usize, len: bytes.len(), snap: Arc::downgrade(snap) };
    let mut values = lock(&VALUES);
    if let Some(number) = values.free.pop() {
        values.entries[number] = Some(entry);
        return number;
    }
    values.entries.push(Some(entry));
    values.entries.len() - 1
}

/// Forgets a value.
pub(crate) fn forget(number: usize) {
    let mut values = lock(&VALUES);
    if let Some(entry) = values.entries.get_mut(number) {
        *entry = None;
        values.free.push(number);
    }
}

/// In the parent, before a fork.
#[pyfunction]
pub(crate) fn before_fork() {
    let (mut values, mut snaps): (Vec<_>, Vec<Arc<Snap>>) = (Vec::new(), Vec::new());
    for entry in lock(&VALUES).entries.iter().flatten() {
        let Some(snap) = entry.snap.upgrade() else { continue };
        values.push((entry.start, entry.len));
        if !snaps.iter().any(|other| Arc::ptr_eq(other, &snap)) {
            snaps.push(snap);
        }
    }
    let pins = snaps.iter().filter_map(Snap::pin_again).collect();
    let mut ends = [-1; 2];
    if !values.is_empty() {
        // SAFETY: room for two descriptors. Without any the parent does not wait.
        unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    }
    let [read, write] = ends;
    lock(&PREPARED).push(Prepared { values, snaps, pins, read, write });
}

fn close(descriptor: i32) {
    if descriptor >= 0 {
        // SAFETY: a descriptor of `before_fork`, closed once in each process.
        unsafe { libc::close(descriptor) };
    }
}

/// In the parent, after a fork, also one that failed.
#[pyfunction]
pub(crate) fn after_fork_in_parent(py: Python<'_>) {
    let Some(prepared) = lock(&PREPARED).pop() else { return };
    close(prepared.write);
    let read = prepared.read;
    if read >= 0 {
        park::detach(py, || {
            let mut poll = libc::pollfd { fd: read, events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor that is open.
            unsafe { libc::poll(&mut poll, 1, PATIENCE) };
        });
    }
    close(read);
    drop(prepared.pins);
}

/// In the child, after a fork.
#[pyfunction]
pub(crate) fn after_fork_in_child(py: Python<'_>) {
    let Some(prepared) = lock(&PREPARED).pop() else { return };
    close(prepared.read);
    for snap in &prepared.snaps {
        snap.close_in_child(py);
    }
    // Those that are left were not released with their memoryviews.
    let left: Vec<(usize, usize)> =
        lock(&VALUES).entries.iter().flatten().map(|entry| (entry.start, entry.len)).collect();
    for value in left.into_iter().filter(|value| prepared.values.contains(value)) {
        keep(value.0, value.1);
    }
    close(prepared.write);
    drop(prepared.pins);
}

/// Puts copies of the pages under a value in their place, in this process.
fn keep(start: usize, len: usize) {
    const PAGE: usize = 4096;
    if len == 0 {
        return;
    }
    let first = start / PAGE * PAGE;
    let size = (start + len).div_ceil(PAGE) * PAGE - first;
    // SAFETY: the pages hold bytes of a value, so they are mapped and readable, and the parent keeps the
    // snapshot meanwhile. The copy takes their place in one step, with the same content, read-only
    // as they were. What the map held there is the parent's: in this process nobody looks at it but
    // through values, and it is never undone, because inherited handles are not dropped.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let copy = libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        if copy == libc::MAP_FAILED {
            // Without memory the child goes on with the parent's pages.
            return;
        }
        std::ptr::copy_nonoverlapping(first as *const u8, copy.cast::<u8>(), size);
        libc::mprotect(copy, size, libc::PROT_READ);
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(copy, size, size, how, first as *mut libc::c_void);
    }
}
