//! Which reader slots a handle owns, and which of them each thread used last. Memory of this
//! process only: a hint that is wrong costs time, never safety, because a slot is only taken by
//! an exchange of its word from idle. What must hold is that a hint names a slot that its handle
//! owns, and handles keep their slots until they are dropped.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Handles that a thread remembers a slot for, by the low bits of their id.
const HINTS: usize = 4;

#[derive(Clone, Copy)]
struct Hint {
    handle: u64,
    slot: u32,
    thread: u32,
}

thread_local! {
    static LAST: [Cell<Hint>; HINTS] =
        const { [const { Cell::new(Hint { handle: 0, slot: 0, thread: 0 }) }; HINTS] };
}

/// The slot that the calling thread used last with this handle, and the thread's number.
#[inline]
pub(super) fn hint(handle: u64) -> Option<(u32, u32)> {
    let hint = LAST.with(|last| last[handle as usize % HINTS].get());
    (hint.handle == handle).then_some((hint.slot, hint.thread))
}

pub(super) fn set_hint(handle: u64, slot: u32, thread: u32) {
    LAST.with(|last| last[handle as usize % HINTS].set(Hint { handle, slot, thread }));
}

/// Remembers a slot just set idle, in a thread that has begun a read before.
#[inline]
pub(super) fn update_hint(handle: u64, slot: u32) {
    LAST.with(|last| {
        let place = &last[handle as usize % HINTS];
        let hint = place.get();
        if hint.handle == handle && hint.slot != slot {
            place.set(Hint { slot, ..hint });
        }
    });
}

/// The slots that a handle owns, in the order in which it got them; never fewer.
pub(super) struct OwnSlots {
    /// Slot number plus one; zero: being added.
    slots: Box<[AtomicU32]>,
    len: AtomicU32,
    /// Found out when first needed: an open need not know.
    few: OnceLock<u32>,
}

impl OwnSlots {
    pub(super) fn new(max: u32) -> OwnSlots {
        OwnSlots {
            slots: (0..max).map(|_| AtomicU32::new(0)).collect(),
            len: AtomicU32::new(0),
            few: OnceLock::new(),
        }
    }

    /// Whether another slot is better than sharing one between threads.
    pub(super) fn is_few(&self) -> bool {
        let few = self.few.get_or_init(|| {
            let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
            (2 * threads.min(1 << 16) as u32).min(self.slots.len() as u32 / 4)
        });
        self.len.load(Ordering::Relaxed) < *few
    }

    pub(super) fn add(&self, slot: u32) {
        // Each slot of the table is added once, so the places suffice.
        let place = self.len.fetch_add(1, Ordering::AcqRel) as usize;
        self.slots[place].store(slot + 1, Ordering::Release);
    }

    /// All slots; different `start` begin at different places.
    pub(super) fn iter(&self, start: u32) -> impl Iterator<Item = u32> {
        let len = (self.len.load(Ordering::Acquire) as usize).min(self.slots.len());
        let start = if len == 0 { 0 } else { start as usize % len };
        let (end, begin) = self.slots[..len].split_at(start);
        begin.iter().chain(end).filter_map(|slot| slot.load(Ordering::Acquire).checked_sub(1))
    }
}
