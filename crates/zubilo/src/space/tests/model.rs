//! Random histories of two processes against a model that knows every page's births and deaths.

use super::super::{Delta, Extent, PAGES_MAX, Policy, Retired, Space};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use support::Rng;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Page {
    Used { birth: u64 },
    Gone { birth: u64, death: u64 },
}

/// The truth, and two accounts that take turns at committing.
struct World {
    random: Rng,
    /// Pages in use at the beginning, and the bound on the file.
    start: u64,
    limit: u64,
    txn: u64,
    pages: BTreeMap<u64, Page>,
    pins: BTreeSet<u64>,
    spaces: [Space; 2],
    base: Option<(Vec<u8>, Extent)>,
    deltas: Vec<Delta>,
}

impl World {
    fn new(seed: u64, start: u64, limit: u64) -> World {
        World {
            random: Rng::new(seed),
            start,
            limit,
            txn: 1,
            pages: (0..start).map(|page| (page, Page::Used { birth: 0 })).collect(),
            pins: BTreeSet::from([1]),
            spaces: [Space::new(start), Space::new(start)],
            base: None,
            deltas: Vec::new(),
        }
    }

    fn pins(&self) -> Vec<u64> {
        self.pins.iter().copied().collect()
    }

    fn visible(&self, page: u64) -> bool {
        match self.pages.get(&page) {
            Some(Page::Used { .. }) => true,
            Some(&Page::Gone { birth, death }) => self.pins.range(birth..death).next().is_some(),
            None => false,
        }
    }

    /// Readers begin at the newest snapshot, end at any; the steady commit moves.
    fn move_pins(&mut self) {
        if self.random.below(3) == 0 {
            self.pins.insert(self.txn);
        }
        while !self.pins.is_empty() && self.random.below(3) == 0 {
            let at = self.random.below(self.pins.len() as u64) as usize;
            let pin = *self.pins.iter().nth(at).unwrap();
            self.pins.remove(&pin);
        }
        if self.random.below(2) == 0 {
            self.pins.insert(self.txn);
        }
    }

    fn allocate(&mut self, who: usize, birth: u64) -> Vec<Extent> {
        let pages = self.random.below(14);
        let policy = if self.random.below(2) == 0 { Policy::Contiguous } else { Policy::Recent };
        let grow_to = self.random.below(self.limit);
        let space = &mut self.spaces[who];
        let before = (space.end(), space.free_pages());
        let taken = match self.random.below(4) {
            0 if pages > 0 => space.allocate_run(pages, self.limit).map(|run| vec![run]),
            1 => {
                let hot = self.random.below(14);
                let split = space.allocate_split(pages, hot, grow_to, self.limit);
                split.map(|split| {
                    assert_eq!(split.cold.iter().map(|e| e.count).sum::<u64>(), pages);
                    assert_eq!(split.hot.iter().map(|e| e.count).sum::<u64>(), hot);
                    [split.cold, split.hot].concat()
                })
            }
            _ => space.allocate(pages, policy, grow_to, self.limit).inspect(|taken| {
                assert_eq!(taken.iter().map(|e| e.count).sum::<u64>(), pages);
            }),
        };
        let Some(taken) = taken else {
            let space = &self.spaces[who];
            assert_eq!(before, (space.end(), space.free_pages()), "nothing taken on refusal");
            return Vec::new();
        };
        for page in taken.iter().flat_map(|extent| extent.first..extent.end()) {
            assert!(page < self.limit && !self.visible(page), "page {page} is still seen");
            self.pages.insert(page, Page::Used { birth });
        }
        taken
    }

    /// Gives back some extents of an allocation; the rest stays.
    fn give_back(&mut self, who: usize, taken: &mut Vec<Extent>, all: bool) {
        let mut kept = Vec::new();
        for extent in std::mem::take(taken) {
            if all || self.random.below(8) == 0 {
                self.spaces[who].give_back(extent);
                self.pages.retain(|page, _| !holds(&extent, *page));
            } else {
                kept.push(extent);
            }
        }
        *taken = kept;
    }

    fn release(&mut self, txn: u64) -> Vec<Retired> {
        let mut released: Vec<Retired> = Vec::new();
        let want = self.random.below(14);
        let mut page = 3 + self.random.below(self.limit);
        for _ in 0..want {
            page = if self.random.below(3) == 0 {
                page + 1
            } else {
                3 + self.random.below(self.limit)
            };
            let Some(&Page::Used { birth }) = self.pages.get(&page) else { continue };
            if birth == txn || self.base.as_ref().is_some_and(|(_, e)| holds(e, page)) {
                continue;
            }
            self.pages.insert(page, Page::Gone { birth, death: txn });
            match released.last_mut() {
                Some(last) if last.end() == page && last.birth == birth => last.count += 1,
                _ => released.push(Retired { first: page, count: 1, birth, death: txn }),
            }
        }
        released
    }

    fn commit(&mut self) {
        let who = self.random.below(2) as usize;
        let txn = self.txn + 1;
        let pins = self.pins();
        self.spaces[who].set_pins(&pins);
        if self.random.below(6) == 0 {
            let keep = self.random.below(self.limit);
            self.spaces[who].trim_tail(keep);
        }
        let mut allocated = self.allocate(who, txn);
        let abort = self.random.below(6) == 0;
        self.give_back(who, &mut allocated, abort);
        if abort {
            return;
        }
        let mut released = self.release(txn);
        let blob =
            if self.random.below(8) == 0 { self.fold(who, txn, &mut released) } else { None };
        released.sort_unstable();
        let end = self.spaces[who].end();
        let delta = Delta { txn, allocated, released, end };
        self.txn = txn;
        self.deltas.push(roundtrip(&delta));
        // A reader may begin between publishing and retiring: the pins are read in between.
        if self.random.below(3) == 0 {
            self.pins.insert(txn);
        }
        let pins = self.pins();
        self.spaces[who].set_pins(&pins);
        self.spaces[who].retire(&delta.released);
        // The other process may hold on to pins that are gone since, never miss new ones.
        let other = &mut self.spaces[1 - who];
        let mut known = self.pins.clone();
        if self.random.below(2) == 0 {
            known.extend(other.pins.iter());
        }
        other.set_pins(&known.into_iter().collect::<Vec<_>>());
        other.follow(&[delta], blob.as_slice(), PAGES_MAX).expect("a sound delta");
    }

    /// Writes a new base in the course of commit `txn`; its pages appear in no delta.
    fn fold(&mut self, who: usize, txn: u64, released: &mut Vec<Retired>) -> Option<Extent> {
        let blob = self.spaces[who].allocate_run(2, self.limit)?;
        for page in blob.first..blob.end() {
            assert!(!self.visible(page));
            self.pages.insert(page, Page::Used { birth: txn });
        }
        if let Some((_, old)) = self.base.take() {
            let Some(&Page::Used { birth }) = self.pages.get(&old.first) else { unreachable!() };
            released.push(Retired { first: old.first, count: old.count, birth, death: txn });
            for page in old.first..old.end() {
                self.pages.insert(page, Page::Gone { birth, death: txn });
            }
        }
        let mut bytes = Vec::new();
        let bound = self.spaces[who].encoded_len_bound();
        self.spaces[who].encode(&mut bytes).expect("memory");
        assert!(bytes.len() <= bound, "{} > {bound}", bytes.len());
        self.base = Some((bytes, blob));
        self.deltas.clear();
        Some(blob)
    }

    fn reload(&self) -> Space {
        let base = self.base.as_ref().map(|(bytes, _)| bytes.as_slice());
        let used: Vec<Extent> = self.base.iter().map(|(_, extent)| *extent).collect();
        super::load(base, self.start, &self.deltas, &used, &self.pins(), self.limit).unwrap()
    }

    fn check(&mut self) {
        let pins = self.pins();
        let reloaded = self.reload();
        for who in 0..2 {
            self.spaces[who].set_pins(&pins);
            self.agrees(&self.spaces[who]);
        }
        self.agrees(&reloaded);
        let mut bytes = Vec::new();
        reloaded.encode(&mut bytes).expect("memory");
        let decoded = super::decode(&bytes, &pins, self.limit).unwrap();
        self.agrees(&decoded);
        let mut again = Vec::new();
        decoded.encode(&mut again).expect("memory");
        assert_eq!(bytes, again);
    }

    /// Ends may differ by free pages: trims and aborts are not published before a commit.
    fn agrees(&self, space: &Space) {
        let end = space.end();
        assert!((end..self.limit).all(|page| !self.visible(page)), "a page beyond the end is seen");
        let mut used = 0;
        for page in 0..end {
            let gone = matches!(self.pages.get(&page), Some(Page::Gone { .. }));
            let seen = self.visible(page);
            assert_eq!(space.is_free(page), !seen, "page {page} free");
            assert_eq!(space.is_retired(page), gone && seen, "page {page} retired");
            used += u64::from(seen && !gone);
        }
        assert_eq!(used + space.free_pages() + space.retired_pages(), end);
        let mut counted = 0;
        space.for_each_retired(&mut |entry, _| {
            counted += entry.count;
            for page in entry.first..entry.end() {
                let truth = Page::Gone { birth: entry.birth, death: entry.death };
                assert_eq!(self.pages.get(&page), Some(&truth), "page {page}");
            }
        });
        assert_eq!(counted, space.retired_pages());
    }
}

fn holds(extent: &Extent, page: u64) -> bool {
    extent.first <= page && page < extent.end()
}

fn roundtrip(delta: &Delta) -> Delta {
    let mut bytes = Vec::new();
    delta.encode(&mut bytes);
    let (decoded, used) = Delta::decode(&bytes).unwrap();
    assert_eq!((&decoded, used), (delta, bytes.len()));
    assert_eq!(used, delta.encoded_len());
    decoded
}

fn history(seed: u64, start: u64, limit: u64, commits: u64, check_every: u64) {
    let mut world = World::new(seed, start, limit);
    for _ in 0..commits {
        world.move_pins();
        world.commit();
        if world.random.below(check_every) == 0 {
            world.check();
        }
    }
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn two_processes_agree_with_the_model(seed in any::<u64>()) {
        history(seed, 3, 400, 120, 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn and_in_files_large_enough_to_set_pages_aside(seed in any::<u64>()) {
        history(seed, 5_000, 7_000, 400, 20);
    }
}
