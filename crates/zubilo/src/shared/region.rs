//! The memory of a region, as a slice of atomic words: a mapped lock file, or heap memory of this
//! process alone. The only `unsafe` of the module is here: the view itself.
//!
//! Under the model checker atomics are no plain words, so that there the slice is separate memory
//! and only heap regions exist.

use std::cell::UnsafeCell;
use std::ptr::NonNull;

use super::layout::{LINE, Sizes};
use crate::platform::SharedMap;
use crate::sync::AtomicU64;

/// A cache line of heap memory, to have the alignment that a map has.
#[repr(C, align(64))]
struct Line(UnsafeCell<[u64; LINE]>);

// SAFETY: the content is reached only through atomics (see `Region::words`).
unsafe impl Sync for Line {}

enum Memory {
    Heap(#[expect(dead_code, reason = "owned, reached through `base`")] Box<[Line]>),
    #[cfg_attr(loom, allow(dead_code))]
    Mapped(#[expect(dead_code, reason = "owned, reached through `base`")] SharedMap),
}

/// The words of a region.
pub(super) struct Region {
    #[cfg_attr(loom, allow(dead_code))]
    base: NonNull<u8>,
    len: usize,
    /// Owns what `base` points to.
    #[expect(dead_code, reason = "owned, reached through `base`")]
    memory: Memory,
    #[cfg(loom)]
    modelled: Box<[AtomicU64]>,
}

// SAFETY: `base` points into `memory`, which does not move with the value and is Send itself; it
// is only accessed through atomics.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed heap memory.
    pub(super) fn heap(sizes: Sizes) -> Region {
        let lines = sizes.bytes() / size_of::<Line>();
        let memory: Box<[Line]> = (0..lines).map(|_| Line(UnsafeCell::new([0; LINE]))).collect();
        let base = NonNull::from(&memory[0]).cast();
        // The pointer must be good for the whole slice, not only for its first element.
        let base = NonNull::new(memory.as_ptr().cast_mut().cast()).unwrap_or(base);
        Region::new(base, sizes, Memory::Heap(memory))
    }

    /// A map of at least the region's size.
    pub(super) fn mapped(map: SharedMap, sizes: Sizes) -> Region {
        Region::new(map.base(), sizes, Memory::Mapped(map))
    }

    fn new(base: NonNull<u8>, sizes: Sizes, memory: Memory) -> Region {
        Region {
            base,
            len: sizes.slots_end(),
            memory,
            #[cfg(loom)]
            modelled: (0..sizes.slots_end()).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// All words.
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        #[cfg(loom)]
        return &self.modelled;
        #[cfg(not(loom))]
        // SAFETY: `base` is valid for `len` words and aligned to a cache line for as long as
        // `self.memory` lives; any bytes are valid words. Other processes write the memory too,
        // through the same atomics; what a hostile one writes is only ever used as a number that
        // is checked where it is used as an index.
        unsafe {
            std::slice::from_raw_parts(self.base.cast::<AtomicU64>().as_ptr(), self.len)
        }
    }
}
