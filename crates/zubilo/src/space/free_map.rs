//! The free pages: a bit each, with a summary that finds runs without reading the map.
//!
//! Pages are summed up in groups of `GROUP` and blocks of `GROUPS_PER_BLOCK` groups. A group keeps
//! its number of free pages and `longest`, an upper bound on the longest run that *starts* in it
//! (counted up to `RUN_CAP`, wherever the run ends); a block keeps the maximum of those bounds.
//!
//! Invariants: the counts are exact; the bounds never lie below the truth. Freeing raises them
//! (the run around the freed pages is measured), taking leaves them too high, and the next search
//! that is misled makes the group exact. Each change can mislead one search, so a search costs a
//! few groups amortised, whatever the size of the file.

use super::Extent;
use super::bits::{BitSet, WORD};

/// Pages in a group.
pub(super) const GROUP: u64 = 512;
/// Groups in a block.
const GROUPS_PER_BLOCK: usize = 128;
/// Runs are listed by length up to here; longer ones are measured when one is asked for.
pub(super) const RUN_CAP: u64 = GROUP;

#[derive(Clone, Copy, Default)]
struct Group {
    free: u16,
    longest: u16,
    /// Set aside for pages that are replaced often.
    hot: bool,
}

/// Where a search may begin a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Cold,
    Hot,
    #[cfg(test)]
    All,
}

impl Within {
    fn admits(self, group: &Group) -> bool {
        match self {
            Within::Cold => !group.hot,
            Within::Hot => group.hot,
            #[cfg(test)]
            Within::All => true,
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct FreeMap {
    bits: BitSet,
    groups: Vec<Group>,
    blocks: Vec<u16>,
    /// No page below this one is free.
    low: u64,
    /// How many groups are set aside for pages that are replaced often.
    hot_groups: u64,
}

/// Positions in the low half of `pair` from which `count` bits are set (`1 <= count <= 64`).
fn run_starts(pair: u128, count: u64) -> u64 {
    let mut rest = pair;
    let mut have = 1;
    while have * 2 <= count {
        rest &= rest >> have;
        have *= 2;
    }
    (rest & rest >> (count - have)) as u64
}

impl FreeMap {
    pub(super) fn free_pages(&self) -> u64 {
        self.bits.ones()
    }

    pub(super) fn bits(&self) -> &BitSet {
        &self.bits
    }

    pub(super) fn try_reserve(&mut self, end: u64) -> bool {
        let groups = end.div_ceil(GROUP) as usize;
        self.bits.try_reserve(end)
            && (groups <= self.groups.len()
                || self.groups.try_reserve(groups - self.groups.len()).is_ok())
    }

    /// Marks pages free; how many were not free before.
    pub(super) fn insert(&mut self, first: u64, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let end = first + count;
        let groups = end.div_ceil(GROUP) as usize;
        if groups > self.groups.len() {
            self.groups.resize(groups, Group::default());
            self.blocks.resize(groups.div_ceil(GROUPS_PER_BLOCK), 0);
        }
        let mut fresh = 0;
        let mut at = first;
        while at < end {
            let upto = end.min((at / GROUP + 1) * GROUP);
            let added = self.bits.insert(at, upto - at);
            self.groups[(at / GROUP) as usize].free += added as u16;
            fresh += added;
            at = upto;
        }
        // When the run before reaches further than RUN_CAP, the group it starts in is saturated already.
        let before = self.bits.run_before(first, RUN_CAP);
        let after = self.bits.run_after(end, RUN_CAP);
        self.raise(first - before, before + count + after);
        if self.hot_groups > 0 {
            self.raise_borders(first, end + after);
        }
        self.low = self.low.min(first);
        fresh
    }

    /// Marks pages as not free; how many were free before.
    pub(super) fn remove(&mut self, first: u64, count: u64) -> u64 {
        let end = (first + count).min(self.bits.span());
        let mut gone = 0;
        let mut at = first;
        while at < end {
            let upto = end.min((at / GROUP + 1) * GROUP);
            let taken = self.bits.remove(at, upto - at);
            self.groups[(at / GROUP) as usize].free -= taken as u16;
            gone += taken;
            at = upto;
        }
        // What is left of a run behind the taken pages starts there now, maybe in another group.
        if gone > 0 && self.bits.get(end) {
            self.raise(end, self.bits.run_after(end, RUN_CAP));
        }
        gone
    }

    /// Where groups that are set aside meet others, a run counts as starting anew.
    fn is_border(&self, group: usize) -> bool {
        let hot = |group: usize| self.groups.get(group).is_some_and(|entry| entry.hot);
        group > 0 && hot(group) != hot(group - 1)
    }

    /// Raises the bounds at the borders that the free pages `first..end` touch or cross.
    fn raise_borders(&mut self, first: u64, end: u64) {
        let border = |map: &FreeMap, group: u64| map.is_border(group as usize);
        // A run from a border before `first` may have grown at its end.
        for group in (first / GROUP)..end.div_ceil(GROUP) {
            if border(self, group) {
                let start = group * GROUP;
                self.raise(start, self.bits.run_after(start, RUN_CAP));
            }
        }
    }

    fn raise(&mut self, start: u64, length: u64) {
        let group = (start / GROUP) as usize;
        let length = length.min(RUN_CAP) as u16;
        if let Some(entry) = self.groups.get_mut(group)
            && entry.longest < length
        {
            entry.longest = length;
            let block = &mut self.blocks[group / GROUPS_PER_BLOCK];
            *block = (*block).max(length);
        }
    }

    /// Replaces the bound of a group by the truth.
    fn lower(&mut self, group: usize, longest: u64) {
        self.groups[group].longest = longest.min(RUN_CAP) as u16;
        let block = group / GROUPS_PER_BLOCK;
        let first = block * GROUPS_PER_BLOCK;
        let last = (first + GROUPS_PER_BLOCK).min(self.groups.len());
        let most = self.groups[first..last].iter().map(|entry| entry.longest).max();
        self.blocks[block] = most.unwrap_or(0);
    }

    /// The words of a group that a search looks at, each with its successor above it; pages that
    /// continue a run of the group before are masked out, as are pages below `from`.
    fn pairs(&self, group: usize, from: u64) -> impl Iterator<Item = (u64, u128)> + '_ {
        let base = group as u64 * GROUP;
        let mut skip = from.max(base);
        if skip == base && base > 0 && self.bits.get(base - 1) && !self.is_border(group) {
            skip += self.bits.run_after(base, GROUP);
        }
        (skip / WORD..(base + GROUP) / WORD).map(move |index| {
            let mut low = self.bits.word(index);
            if index == skip / WORD {
                low &= u64::MAX << (skip % WORD);
            }
            (index * WORD, u128::from(low) | u128::from(self.bits.word(index + 1)) << WORD)
        })
    }

    /// The first run of at least `pages` pages that starts in the group at or after `from`.
    fn first_fit(&self, group: usize, pages: u64, from: u64) -> Option<u64> {
        for (base, pair) in self.pairs(group, from) {
            let mut starts = run_starts(pair, pages.min(WORD));
            while starts != 0 {
                let page = base + u64::from(starts.trailing_zeros());
                if pages <= WORD || self.bits.run_after(page, pages) == pages {
                    return Some(page);
                }
                // The run that starts here is too short; the one after the next gap may do.
                let rest = starts >> starts.trailing_zeros();
                let ones = (!rest).trailing_zeros() + starts.trailing_zeros();
                starts = starts.checked_shr(ones).and_then(|s| s.checked_shl(ones)).unwrap_or(0);
            }
        }
        None
    }

    /// The longest run that starts in the group, counted up to `RUN_CAP`.
    fn longest(&self, group: usize) -> Option<Extent> {
        let mut best: Option<Extent> = None;
        for (base, pair) in self.pairs(group, 0) {
            let mut starts = pair as u64;
            while starts != 0 {
                let have = best.map_or(0, |run| run.count);
                // Only runs that beat the best so far are worth measuring.
                let beats = run_starts(pair, (have + 1).min(WORD)) & starts;
                if beats == 0 {
                    break;
                }
                let shift = beats.trailing_zeros();
                let first = base + u64::from(shift);
                let count = self.bits.run_after(first, RUN_CAP);
                if count > have {
                    best = Some(Extent { first, count });
                }
                let past = u64::from(shift) + count;
                starts = if past >= WORD { 0 } else { beats >> past << past };
            }
        }
        best
    }

    /// The first run of at least `pages` pages at or after `from`, else before it.
    pub(super) fn find_run(&mut self, pages: u64, from: u64, within: Within) -> Option<u64> {
        let from = if from < self.bits.span() { from } else { 0 };
        let home = (from / GROUP) as usize;
        let groups = self.groups.len();
        self.find_in(home..groups, pages, from, within)
            .or_else(|| self.find_in(0..(home + 1).min(groups), pages, 0, within))
    }

    fn find_in(
        &mut self,
        groups: std::ops::Range<usize>,
        pages: u64,
        from: u64,
        within: Within,
    ) -> Option<u64> {
        let need = pages.min(RUN_CAP) as u16;
        let mut group = groups.start;
        while group < groups.end {
            if self.blocks[group / GROUPS_PER_BLOCK] < need {
                group = (group / GROUPS_PER_BLOCK + 1) * GROUPS_PER_BLOCK;
                continue;
            }
            let entry = &self.groups[group];
            if entry.longest >= need && within.admits(entry) {
                if let Some(page) = self.first_fit(group, pages, from) {
                    return Some(page);
                }
                let longest = self.longest(group).map_or(0, |run| run.count);
                self.lower(group, longest);
            }
            group += 1;
        }
        None
    }

    /// The longest run there is, counted up to `RUN_CAP`.
    pub(super) fn largest(&mut self, within: Within) -> Option<Extent> {
        let mut best: Option<Extent> = None;
        // The length to beat only rises, so each group is made exact at most once.
        for block in 0..self.blocks.len() {
            let first = block * GROUPS_PER_BLOCK;
            let last = (first + GROUPS_PER_BLOCK).min(self.groups.len());
            for group in first..last {
                let have = best.map_or(0, |run| run.count);
                if u64::from(self.blocks[block]) <= have {
                    break;
                }
                let entry = &self.groups[group];
                if u64::from(entry.longest) <= have || !within.admits(entry) {
                    continue;
                }
                let found = self.longest(group);
                let count = found.map_or(0, |run| run.count);
                self.lower(group, count);
                if count > have {
                    best = found;
                }
            }
        }
        best
    }

    /// A short run of at least `pages` pages: the best fit among a bounded number of groups.
    pub(super) fn best_fit(&mut self, pages: u64, within: Within) -> Option<u64> {
        const CANDIDATES: usize = 64;
        let mut best: Option<Extent> = None;
        let mut from = 0;
        for _ in 0..CANDIDATES {
            let groups = self.groups.len();
            let Some(first) = self.find_in((from / GROUP) as usize..groups, pages, from, within)
            else {
                break;
            };
            // A run much longer than that is as good as any other such run.
            let count = self.bits.run_after(first, pages + RUN_CAP);
            if best.is_none_or(|run| count < run.count) {
                best = Some(Extent { first, count });
            }
            if count == pages {
                break;
            }
            from = first + count;
        }
        best.map(|run| run.first)
    }

    /// The lowest free page at or above `from`.
    pub(super) fn next_free(&self, from: u64) -> Option<u64> {
        let mut at = from;
        while at < self.bits.span() {
            let group = (at / GROUP) as usize;
            let upto = (group as u64 + 1) * GROUP;
            if self.groups.get(group).is_some_and(|entry| entry.free > 0)
                && let Some(page) = self.bits.next_one(at, upto)
            {
                return Some(page);
            }
            at = upto;
        }
        None
    }

    /// The lowest free page.
    pub(super) fn lowest(&mut self) -> Option<u64> {
        let page = self.next_free(self.low);
        self.low = page.unwrap_or(self.bits.span());
        page
    }

    pub(super) fn is_hot(&self, page: u64) -> bool {
        self.groups.get((page / GROUP) as usize).is_some_and(|group| group.hot)
    }

    /// Pages in the groups that are set aside for pages replaced often.
    pub(super) fn hot_pages(&self) -> u64 {
        self.hot_groups * GROUP
    }

    /// Sets the emptiest of the groups that lie wholly below `end` aside for pages replaced often;
    /// false if none is at least `least` pages free.
    pub(super) fn set_emptiest_aside(&mut self, end: u64, least: u64) -> bool {
        let groups = (end / GROUP).min(self.groups.len() as u64) as usize;
        let cold = (0..groups).filter(|&group| !self.groups[group].hot);
        let Some(group) = cold.max_by_key(|&group| self.groups[group].free) else {
            return false;
        };
        if u64::from(self.groups[group].free) < least {
            return false;
        }
        self.groups[group].hot = true;
        self.hot_groups += 1;
        // Both ends of the group may have become borders, or have ceased to be.
        for start in [group as u64 * GROUP, (group as u64 + 1) * GROUP] {
            self.raise(start - self.bits.run_before(start, RUN_CAP), RUN_CAP);
            self.raise(start, self.bits.run_after(start, RUN_CAP));
        }
        true
    }
}
