//! The pages of a copy-on-write tree: which of them a commit replaces, and where it puts them. A
//! page that a commit replaces is free for the commit after the next: until then it belongs to
//! the state to which a crash leads back.

use std::collections::VecDeque;

use crate::keys::Chooser;

/// Records of 16 and 100 bytes in a leaf of 4 KiB that is filled at random, children of a branch.
const LEAF: u64 = 22;
const BRANCH: u64 = 110;
/// Leaves that 2 inserts, 1 update and 1 delete change.
const CHANGES: u64 = 4;

/// Which of the free pages is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Oldest,
    Newest,
}

pub(super) struct Store {
    /// The place of each page, level by level, leaves first.
    levels: Vec<Vec<u32>>,
    /// In the order in which they became free.
    free: VecDeque<u32>,
    /// Replaced by the last commit.
    pending: Vec<u32>,
    order: Order,
    chooser: Chooser,
    end: u32,
}

impl Store {
    /// A store with so many records and so many free pages after them.
    pub(super) fn new(records: u64, free: u64, order: Order) -> Store {
        let (mut levels, mut count, mut end) = (Vec::new(), records.div_ceil(LEAF).max(1), 0u32);
        loop {
            let next = end + count as u32;
            levels.push((end..next).collect());
            end = next;
            if count == 1 {
                break;
            }
            count = count.div_ceil(BRANCH);
        }
        let last = end + free as u32;
        let (free, pending, chooser) = ((end..last).collect(), Vec::new(), Chooser::new(11));
        Store { levels, free, pending, order, chooser, end: last }
    }

    /// Replaces the pages of one commit, and says where each goes.
    pub(super) fn commit(&mut self, mut write: impl FnMut(u64)) {
        let leaves = self.levels[0].len() as u64;
        let mut changed: Vec<u64> = (0..CHANGES).map(|_| self.chooser.below(leaves)).collect();
        let mut replaced = Vec::new();
        for level in 0..self.levels.len() {
            changed.sort_unstable();
            changed.dedup();
            for &node in &changed {
                let place = self.take();
                replaced.push(std::mem::replace(&mut self.levels[level][node as usize], place));
                write(u64::from(place));
            }
            changed.iter_mut().for_each(|node| *node /= BRANCH);
        }
        self.free.extend(std::mem::replace(&mut self.pending, replaced));
    }

    fn take(&mut self) -> u32 {
        let free = match self.order {
            Order::Oldest => self.free.pop_front(),
            Order::Newest => self.free.pop_back(),
        };
        free.unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_page_is_in_one_place() {
        for order in [Order::Oldest, Order::Newest] {
            let mut store = Store::new(10_000, 50, order);
            assert_eq!(store.levels.iter().map(Vec::len).collect::<Vec<_>>(), [455, 5, 1]);
            for _ in 0..2000 {
                let before: BTreeSet<u32> = store.levels.iter().flatten().copied().collect();
                let pending: BTreeSet<u32> = store.pending.iter().copied().collect();
                store.commit(|page| {
                    assert!(!before.contains(&(page as u32)), "a page in use is overwritten");
                    assert!(!pending.contains(&(page as u32)), "the state before is overwritten");
                });
                let all: Vec<u32> = store.levels.iter().flatten().copied().collect();
                let places: BTreeSet<u32> =
                    all.iter().chain(&store.free).chain(&store.pending).copied().collect();
                assert_eq!(places.len() as u32, store.end, "{order:?}: a page is lost");
            }
            assert_eq!(store.end, 461 + 50, "{order:?}: there was room enough");
        }
    }
}
