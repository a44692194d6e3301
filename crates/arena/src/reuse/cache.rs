//! A write-back cache: pages written again while they are in it cost the device nothing; the one
//! written longest ago gives way.

use std::collections::HashMap;

const NONE: usize = usize::MAX;

struct Slot {
    page: u64,
    newer: usize,
    older: usize,
}

/// Pages in the order of their last write.
pub(super) struct Cache {
    capacity: usize,
    slots: Vec<Slot>,
    places: HashMap<u64, usize>,
    newest: usize,
    oldest: usize,
    evicted: u64,
}

impl Cache {
    pub(super) fn new(pages: u64) -> Cache {
        let capacity = usize::try_from(pages).unwrap_or(usize::MAX).max(1);
        let (slots, places) = (Vec::new(), HashMap::new());
        Cache { capacity, slots, places, newest: NONE, oldest: NONE, evicted: 0 }
    }

    pub(super) fn write(&mut self, page: u64) {
        let slot = match self.places.get(&page) {
            Some(&slot) => {
                self.unlink(slot);
                slot
            }
            None if self.slots.len() < self.capacity => {
                self.slots.push(Slot { page, newer: NONE, older: NONE });
                self.slots.len() - 1
            }
            None => {
                let slot = self.oldest;
                self.unlink(slot);
                self.places.remove(&self.slots[slot].page);
                self.slots[slot].page = page;
                self.evicted += 1;
                slot
            }
        };
        self.places.insert(page, slot);
        let before = std::mem::replace(&mut self.newest, slot);
        (self.slots[slot].older, self.slots[slot].newer) = (before, NONE);
        match before {
            NONE => self.oldest = slot,
            before => self.slots[before].newer = slot,
        }
    }

    fn unlink(&mut self, slot: usize) {
        let (newer, older) = (self.slots[slot].newer, self.slots[slot].older);
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older].newer = newer,
        }
    }

    /// Pages that the device writes: those that gave way, and in the end what is still in the cache.
    pub(super) fn written(&self) -> u64 {
        self.evicted + self.slots.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::keys::Chooser;

    #[test]
    fn pages_written_again_cost_nothing() {
        let mut cache = Cache::new(2);
        for page in [1, 2, 1, 2, 1] {
            cache.write(page);
        }
        assert_eq!(cache.written(), 2);
        cache.write(3);
        assert_eq!(cache.written(), 3, "page 2 gives way");
        cache.write(1);
        assert_eq!(cache.written(), 3);
        cache.write(2);
        assert_eq!(cache.written(), 4, "page 3 gives way");
    }

    #[test]
    fn it_does_what_a_list_does() {
        let seed = 77;
        let mut chooser = Chooser::new(seed);
        let (mut cache, mut list, mut evicted) = (Cache::new(50), VecDeque::new(), 0);
        for _ in 0..20_000 {
            let page = chooser.below(120);
            cache.write(page);
            list.retain(|p| *p != page);
            list.push_back(page);
            if list.len() > 50 {
                list.pop_front();
                evicted += 1;
            }
            assert_eq!(cache.written(), evicted + list.len() as u64, "seed {seed}");
        }
    }
}
