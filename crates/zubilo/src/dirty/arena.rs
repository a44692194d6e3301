//! The arena of dirty pages: page-sized, page-aligned buffers in numbered slots, kept from
//! transaction to transaction.
//!
//! Invariants: a slot is free (level 0) or owned by one nesting level (1 is the transaction
//! itself); a page of a level is referred to only by pages of the same level, so a level's pages
//! can be changed, dropped or written without asking anybody else.

use crate::error::{Error, Result};

/// A page-aligned unit of memory; the smallest page size.
#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Block([u8; 4096]);

/// Nesting level that owns a slot; 0 is nobody.
pub(crate) type Level = u32;

struct Slot {
    blocks: Box<[Block]>,
    level: Level,
    /// The page is likely to be replaced again soon.
    hot: bool,
}

/// All dirty pages of a transaction.
pub(crate) struct Arena {
    slots: Vec<Slot>,
    /// Slots below this were handed out since the last reset; those behind are free. So a small
    /// transaction costs nothing for the memory that a large one before it has left.
    used: usize,
    /// Free slots below `used`.
    free: Vec<u32>,
    page_size: usize,
    live: usize,
}

impl Arena {
    pub(crate) fn new(page_size: usize) -> Arena {
        Arena { slots: Vec::new(), used: 0, free: Vec::new(), page_size, live: 0 }
    }

    /// Pages in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Takes a free slot for `level`. Its bytes are those of some earlier page of this store.
    pub(crate) fn alloc(&mut self, level: Level) -> Result<u32> {
        self.live += 1;
        if let Some(slot) = self.free.pop() {
            if let Some(s) = self.slots.get_mut(slot as usize) {
                s.level = level;
                s.hot = false;
            }
            return Ok(slot);
        }
        let slot = u32::try_from(self.used)
            .map_err(|_| Error::Invalid("a transaction holds at most 2^32 dirty pages"))?;
        match self.slots.get_mut(self.used) {
            Some(kept) => (kept.level, kept.hot) = (level, false),
            None => {
                let blocks = vec![Block([0; 4096]); self.page_size / 4096].into_boxed_slice();
                self.slots.push(Slot { blocks, level, hot: false });
            }
        }
        self.used += 1;
        Ok(slot)
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

    /// Gives all slots back and keeps the memory of at most `keep` of them.
    pub(crate) fn reset(&mut self, keep: usize) {
        self.slots.truncate(keep);
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

    /// The bytes of a slot in use.
    #[inline]
    pub(crate) fn page(&self, slot: u32) -> Option<&[u8]> {
        let slot = self.slots.get(slot as usize).filter(|s| s.level != 0)?;
        Some(bytes(&slot.blocks))
    }

    /// The bytes of a slot in use, to change.
    #[inline]
    pub(crate) fn page_mut(&mut self, slot: u32) -> Option<&mut [u8]> {
        let slot = self.slots.get_mut(slot as usize).filter(|s| s.level != 0)?;
        Some(bytes_mut(&mut slot.blocks))
    }

    /// Two different slots, to change.
    pub(crate) fn pair_mut(&mut self, a: u32, b: u32) -> Option<(&mut [u8], &mut [u8])> {
        let [a, b] = self.slots.get_disjoint_mut([a as usize, b as usize]).ok()?;
        if a.level == 0 || b.level == 0 {
            return None;
        }
        Some((bytes_mut(&mut a.blocks), bytes_mut(&mut b.blocks)))
    }
}

fn bytes(blocks: &[Block]) -> &[u8] {
    // SAFETY: a Block is 4096 bytes without padding, a slice of them is contiguous.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
}

fn bytes_mut(blocks: &mut [Block]) -> &mut [u8] {
    // SAFETY: as in `bytes`, and the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), size_of_val(blocks)) }
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
}
