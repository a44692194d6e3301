//! The table of handles: what Java holds instead of addresses.
//!
//! A handle is a number: the place in the table and the generation of what stood there. Any number is
//! safe to pass: one that was never given, or whose object has ended, is refused. An object ends when it
//! has been closed *and* the last call that uses it has returned, so a close in one thread never pulls
//! memory away under a call in another. Places are reused with the next generation; their memory is
//! never given back, so looking at a stale handle is looking at valid memory.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::Failure;
use crate::objects::Object;

/// Places in a chunk; chunks are made as they are needed.
const CHUNK: usize = 256;
/// Most chunks, so at most a million handles at a time.
const CHUNKS: usize = 4096;

/// In a slot's word: the generation above, then this bit, then the number of calls that use the object.
const CLOSING: u64 = 1 << 31;
const USERS: u64 = CLOSING - 1;
const GENERATION_SHIFT: u32 = 32;

struct Slot {
    /// An even generation is a free place, an odd one holds an object.
    word: AtomicU64,
    object: UnsafeCell<Option<Box<Object>>>,
}

// SAFETY: `object` is written only by the thread that makes a place, or by the last one that leaves a closed
// one; while the word says that it is in use it is only read, and objects are `Sync`.
unsafe impl Sync for Slot {}

const _: () = shared::<Object>();
const fn shared<T: Send + Sync>() {}

static TABLE: [AtomicPtr<Slot>; CHUNKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];
static FREE: Mutex<Free> = Mutex::new(Free { places: Vec::new(), made: 0 });

struct Free {
    places: Vec<u32>,
    /// Places that were ever made.
    made: usize,
}

fn slot(place: usize) -> Option<&'static Slot> {
    let chunk = TABLE.get(place / CHUNK)?.load(Ordering::Acquire);
    // SAFETY: a chunk that is there has `CHUNK` places and is never freed.
    (!chunk.is_null()).then(|| unsafe { &*chunk.add(place % CHUNK) })
}

/// Puts an object into the table and gives its handle, a positive number.
pub(crate) fn insert(object: Object) -> Result<i64, Failure> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = match free.places.pop() {
        Some(place) => place as usize,
        None => {
            let place = free.made;
            let chunk = TABLE.get(place / CHUNK).ok_or(Failure::TooMany)?;
            if place.is_multiple_of(CHUNK) {
                let slots = (0..CHUNK)
                    .map(|_| Slot { word: AtomicU64::new(0), object: UnsafeCell::new(None) });
                let slots: Box<[Slot]> = slots.collect();
                chunk.store(Box::leak(slots).as_mut_ptr(), Ordering::Release);
            }
            free.made += 1;
            place
        }
    };
    drop(free);
    let slot = slot(place).ok_or(Failure::TooMany)?;
    // SAFETY: the place is free and was handed to this thread alone; nobody gets past its even generation.
    unsafe { *slot.object.get() = Some(Box::new(object)) };
    let generation = (slot.word.load(Ordering::Relaxed) >> GENERATION_SHIFT) + 1;
    slot.word.store(generation << GENERATION_SHIFT, Ordering::Release);
    // 31 bits of the generation fit a positive number; it takes two billion uses of one place to come round.
    Ok(((generation & 0x7fff_ffff) << 32 | place as u64) as i64)
}

/// An object in use: it does not end before this is dropped.
pub(crate) struct Guard {
    slot: &'static Slot,
    place: u32,
}

/// The object of a handle.
#[inline]
pub(crate) fn enter(handle: i64) -> Result<Guard, Failure> {
    let place = handle as u64 as u32;
    let slot = slot(place as usize).ok_or(Failure::Closed)?;
    let mut word = slot.word.load(Ordering::Relaxed);
    loop {
        let generation = word >> GENERATION_SHIFT;
        let same = (generation & 0x7fff_ffff) == handle as u64 >> 32;
        if !same || generation.is_multiple_of(2) || word & CLOSING != 0 {
            return Err(Failure::Closed);
        }
        // So many calls at a time there are not.
        if word & USERS == USERS {
            return Err(Failure::TooMany);
        }
        let entered =
            slot.word.compare_exchange_weak(word, word + 1, Ordering::Acquire, Ordering::Relaxed);
        match entered {
            Ok(_) => return Ok(Guard { slot, place }),
            Err(now) => word = now,
        }
    }
}

impl Guard {
    /// Lets nobody in any more; the object ends with its last guard. False if it was closed before.
    pub(crate) fn close(&self) -> bool {
        self.slot.word.fetch_or(CLOSING, Ordering::Relaxed) & CLOSING == 0
    }
}

impl Deref for Guard {
    type Target = Object;

    #[inline]
    fn deref(&self) -> &Object {
        // SAFETY: the word counts this guard, so the object is there and nobody writes it.
        match unsafe { &*self.slot.object.get() } {
            Some(object) => object,
            None => unreachable!("a place in use has an object"),
        }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        let before = self.slot.word.fetch_sub(1, Ordering::AcqRel);
        if before & (CLOSING | USERS) == CLOSING | 1 {
            self.end(before);
        }
    }
}

impl Guard {
    #[cold]
    fn end(&self, word: u64) {
        // SAFETY: closed, and this was the last user: no one else reads it, and none can come in.
        let object = unsafe { (*self.slot.object.get()).take() };
        let generation = (word >> GENERATION_SHIFT) + 1;
        self.slot.word.store((generation & 0xffff_ffff) << GENERATION_SHIFT, Ordering::Release);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).places.push(self.place);
        drop(object);
    }
}
