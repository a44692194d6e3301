//! The arena of dirty pages: page-sized, page-aligned buffers in numbered slots, kept from
//! transaction to transaction.
//!
//! The buffers are cut from chunks of memory: a small one that all small transactions live on, then
//! chunks of one large page each, since a big transaction touches its pages in random order.
//!
//! Invariants: a slot is free (level 0) or owned by one nesting level (1 is the transaction
//! itself); a page of a level is referred to only by pages of the same level, so a level's pages
//! can be changed, dropped or written without asking anybody else. No two slots share a byte, and
//! every slot lies inside a chunk that the arena holds.

use std::ptr::NonNull;

use crate::error::{Error, Result};
use crate::platform::{LARGE_PAGE, Memory};

use super::recent::Recent;

/// Size of the first chunk; those after it are one large page.
const FIRST_CHUNK: usize = 256 << 10;

/// Nesting level that owns a slot; 0 is nobody.
pub(crate) type Level = u32;

struct Slot {
    page: NonNull<u8>,
    level: Level,
    /// The page is likely to be replaced again soon.
    hot: bool,
}

/// All dirty pages of a transaction.
pub(crate) struct Arena {
    chunks: Vec<Memory>,
    /// The pages of all chunks, in order.
    slots: Vec<Slot>,
    /// Slots below this were handed out since the last reset; those after are free. So a small
    /// transaction costs nothing for the memory that a large one before it has left.
    used: usize,
    /// Free slots below `used`.
    free: Vec<u32>,
    page_size: usize,
    live: usize,
    /// Pages of the file that were written from here a moment ago.
    pub(super) recent: Recent,
}

// SAFETY: the pointers of the slots lead into the chunks, which belong to this value and move with
// it; they are followed only under a borrow of it.
unsafe impl Send for Arena {}
// SAFETY: as above; a shared borrow only reads.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) fn new(page_size: usize) -> Arena {
        Arena {
            chunks: Vec::new(),
            slots: Vec::new(),
            used: 0,
            free: Vec::new(),
            page_size,
            live: 0,
            recent: Recent::default(),
        }
    }

    /// Pages in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Takes a free slot for `level`. Its bytes are those of some earlier page of this store.
    pub(crate) fn alloc(&mut self, level: Level) -> Result<u32> {
        if let Some(slot) = self.free.pop() {
            if let Some(s) = self.slots.get_mut(slot as usize) {
                (s.level, s.hot) = (level, false);
            }
            self.live += 1;
            return Ok(slot);
        }
        let slot = u32::try_from(self.used)
            .map_err(|_| Error::Invalid("a transaction holds at most 2^32 dirty pages"))?;
        if self.used == self.slots.len() {
            self.grow()?;
        }
        if let Some(s) = self.slots.get_mut(self.used) {
            (s.level, s.hot) = (level, false);
        }
        self.used += 1;
        self.live += 1;
        Ok(slot)
    }

    /// Gets one chunk more and cuts it into slots.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let len = if self.chunks.is_empty() { FIRST_CHUNK } else { LARGE_PAGE };
        let chunk = Memory::new(len).map_err(Error::io("get memory for changed pages"))?;
        let pages = chunk.len() / self.page_size;
        let base = chunk.base();
        let lists = self.slots.try_reserve(pages).and_then(|()| {
            // Giving a slot back cannot fail.
            let all = self.slots.len() + pages;
            self.free.try_reserve(all.saturating_sub(self.free.len()))
        });
        lists.map_err(|_| Error::no_memory("get memory for changed pages"))?;
        self.slots.extend((0..pages).map(|page| {
            // SAFETY: `pages` whole pages fit the chunk.
            let page = unsafe { base.add(page * self.page_size) };
            Slot { page, level: 0, hot: false }
        }));
        self.chunks.push(chunk);
        Ok(())
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, slot: u32) {
        if let Some(s) = self.slots.get_mut(slot as usize)
            && s.level != 0
        {
            s.level = 0;
            self.live -= 1;
            self.free.push(slot);
        }
    }

    /// Gives all slots back and keeps the chunks whose pages are among the first `keep`, or the
    /// first chunk.
    pub(crate) fn reset(&mut self, keep: usize) {
        let kept_bytes = keep.saturating_mul(self.page_size).max(FIRST_CHUNK);
        let chunks = 1 + (kept_bytes - FIRST_CHUNK) / LARGE_PAGE;
        if chunks < self.chunks.len() {
            let bytes = FIRST_CHUNK + (chunks - 1) * LARGE_PAGE;
            self.slots.truncate(bytes / self.page_size);
            self.chunks.truncate(chunks);
        }
        self.free.clear();
        self.live = 0;
        self.slots.iter_mut().take(self.used).for_each(|slot| slot.level = 0);
        self.used = 0;
    }

    /// Owner of a slot.
    #[inline]
    pub(crate) fn level(&self, slot: u32) -> Level {
        self.slots.get(slot as usize).map_or(0, |s| s.level)
    }

    /// Marks a page that is likely to be replaced again soon: it is written beside its like.
    pub(crate) fn set_hot(&mut self, slot: u32) {
        if let Some(s) = self.slots.get_mut(slot as usize) {
            s.hot = true;
        }
    }

    /// Whether the page in a slot is hot.
    pub(crate) fn is_hot(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|s| s.hot)
    }

    /// Hot pages in use.
    pub(crate) fn hot(&self) -> usize {
        self.slots.iter().take(self.used).filter(|s| s.level != 0 && s.hot).count()
    }

    /// Hands a slot over to another level.
    pub(crate) fn set_level(&mut self, slot: u32, level: Level) {
        if let Some(s) = self.slots.get_mut(slot as usize)
            && s.level != 0
        {
            s.level = level;
        }
    }

    /// Where the bytes of a slot in use are.
    #[inline]
    fn at(&self, slot: u32) -> Option<NonNull<u8>> {
        self.slots.get(slot as usize).filter(|s| s.level != 0).map(|s| s.page)
    }

    /// The bytes of a slot in use.
    #[inline]
    pub(crate) fn page(&self, slot: u32) -> Option<&[u8]> {
        let page = self.at(slot)?;
        // SAFETY: a whole initialised page inside a chunk, which lives as long as this borrow; a
        // change of it needs an exclusive borrow.
        Some(unsafe { std::slice::from_raw_parts(page.as_ptr(), self.page_size) })
    }

    /// The bytes of a slot in use, to change.
    #[inline]
    pub(crate) fn page_mut(&mut self, slot: u32) -> Option<&mut [u8]> {
        let page = self.at(slot)?;
        // SAFETY: as in `page`, and the borrow is exclusive.
        Some(unsafe { std::slice::from_raw_parts_mut(page.as_ptr(), self.page_size) })
    }

    /// Two different slots, to change.
    pub(crate) fn pair_mut(&mut self, a: u32, b: u32) -> Option<(&mut [u8], &mut [u8])> {
        if a == b {
            return None;
        }
        let (a, b) = (self.at(a)?, self.at(b)?);
        // SAFETY: as in `page_mut`; different slots share no byte.
        unsafe {
            let a = std::slice::from_raw_parts_mut(a.as_ptr(), self.page_size);
            let b = std::slice::from_raw_parts_mut(b.as_ptr(), self.page_size);
            Some((a, b))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_recycled_and_owned() {
        let mut arena = Arena::new(8192);
        let a = arena.alloc(1).unwrap();
        let b = arena.alloc(2).unwrap();
        assert_eq!(arena.page(a).unwrap().as_ptr() as usize % 4096, 0);
        assert_eq!(arena.page(a).unwrap().len(), 8192);
        assert_eq!((arena.level(a), arena.level(b), arena.live()), (1, 2, 2));
        assert!(arena.pair_mut(a, b).is_some());
        assert!(arena.pair_mut(a, a).is_none());
        arena.release(a);
        arena.release(a);
        assert_eq!(arena.live(), 1);
        assert!(arena.page(a).is_none());
        assert_eq!(arena.alloc(1).unwrap(), a);
        arena.reset(1);
        assert_eq!(arena.live(), 0);
        assert!(arena.page(b).is_none());
    }

    #[test]
    fn many_slots_share_nothing_and_their_memory_is_given_back() {
        for page_size in [4096, 65536] {
            let mut arena = Arena::new(page_size);
            let many = (5 << 20) / page_size;
            let slots: Vec<u32> = (0..many).map(|_| arena.alloc(1).unwrap()).collect();
            for &slot in &slots {
                arena.page_mut(slot).unwrap().fill(slot as u8 | 1);
            }
            for &slot in &slots {
                assert!(arena.page(slot).unwrap().iter().all(|b| *b == slot as u8 | 1));
            }
            assert_eq!(arena.chunks.len(), 4);
            let aligned = |c: &Memory| (c.base().as_ptr() as usize).is_multiple_of(LARGE_PAGE);
            assert!(arena.chunks[1..].iter().all(aligned));
            arena.reset((3 << 20) / page_size);
            assert_eq!((arena.chunks.len(), arena.live()), (2, 0));
            assert_eq!(arena.slots.len(), (FIRST_CHUNK + LARGE_PAGE) / page_size);
            assert_eq!(arena.alloc(1).unwrap(), 0);
            arena.reset(0);
            assert_eq!(arena.chunks.len(), 1);
            assert_eq!(arena.alloc(1).unwrap(), 0);
        }
    }
}
