//! A growable set of page numbers, one bit each.
//!
//! Owns nothing but the words. Invariants: `ones` is the number of set bits; everything past the
//! last word reads as zero, so the set costs memory only up to the highest page ever inserted.
//! Callers bound page numbers (`PAGES_MAX`), so `first + count` cannot overflow here.

/// Pages described by one word.
pub(super) const WORD: u64 = 64;

#[derive(Clone, Default)]
pub(super) struct BitSet {
    words: Vec<u64>,
    ones: u64,
}

/// The bits of word `word` that belong to the pages `first..end`.
fn mask(word: u64, first: u64, end: u64) -> u64 {
    let base = word * WORD;
    let low = first.max(base) - base;
    let high = end.min(base + WORD) - base;
    if low >= high {
        return 0;
    }
    (u64::MAX >> (WORD - (high - low))) << low
}

impl BitSet {
    pub(super) fn ones(&self) -> u64 {
        self.ones
    }

    /// One past the highest page that the words can describe.
    pub(super) fn span(&self) -> u64 {
        self.words.len() as u64 * WORD
    }

    pub(super) fn word(&self, index: u64) -> u64 {
        self.words.get(index as usize).copied().unwrap_or(0)
    }

    pub(super) fn get(&self, page: u64) -> bool {
        self.word(page / WORD) >> (page % WORD) & 1 == 1
    }

    /// Makes room for pages below `end`; false when memory does not suffice.
    pub(super) fn try_reserve(&mut self, end: u64) -> bool {
        let want = end.div_ceil(WORD) as usize;
        want <= self.words.len() || self.words.try_reserve(want - self.words.len()).is_ok()
    }

    /// Sets `first..first + count`; how many of them were clear before.
    pub(super) fn insert(&mut self, first: u64, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let end = first + count;
        let words = end.div_ceil(WORD);
        if words as usize > self.words.len() {
            self.words.resize(words as usize, 0);
        }
        // Small transactions set and clear single pages.
        if count == 1 {
            let (word, bit) = (&mut self.words[(first / WORD) as usize], 1 << (first % WORD));
            let fresh = u64::from(*word & bit == 0);
            *word |= bit;
            self.ones += fresh;
            return fresh;
        }
        let mut fresh = 0;
        for index in first / WORD..words {
            let bits = mask(index, first, end);
            let word = &mut self.words[index as usize];
            fresh += u64::from((bits & !*word).count_ones());
            *word |= bits;
        }
        self.ones += fresh;
        fresh
    }

    /// Clears `first..first + count`; how many of them were set before.
    pub(super) fn remove(&mut self, first: u64, count: u64) -> u64 {
        let end = (first + count).min(self.span());
        let mut gone = 0;
        if first < end {
            for index in first / WORD..end.div_ceil(WORD) {
                let bits = mask(index, first, end);
                let word = &mut self.words[index as usize];
                gone += u64::from((bits & *word).count_ones());
                *word &= !bits;
            }
        }
        self.ones -= gone;
        gone
    }

    /// Set bits among `first..first + count`.
    pub(super) fn count(&self, first: u64, count: u64) -> u64 {
        let end = (first + count).min(self.span());
        if first >= end {
            return 0;
        }
        if count == 1 {
            return u64::from(self.get(first));
        }
        (first / WORD..end.div_ceil(WORD))
            .map(|index| u64::from((self.word(index) & mask(index, first, end)).count_ones()))
            .sum()
    }

    /// The first set page in `from..limit`.
    pub(super) fn next_one(&self, from: u64, limit: u64) -> Option<u64> {
        let limit = limit.min(self.span());
        if from >= limit {
            return None;
        }
        let mut index = from / WORD;
        let mut word = self.word(index) & (u64::MAX << (from % WORD));
        while word == 0 {
            index += 1;
            if index * WORD >= limit {
                return None;
            }
            word = self.word(index);
        }
        let page = index * WORD + u64::from(word.trailing_zeros());
        (page < limit).then_some(page)
    }

    /// How many pages are set from `page` on, counted up to `cap`.
    pub(super) fn run_after(&self, page: u64, cap: u64) -> u64 {
        let mut at = page;
        while at - page < cap {
            let ones = u64::from((!(self.word(at / WORD) >> (at % WORD))).trailing_zeros());
            at += ones;
            // The shift pads with zeros, so a run that fills the rest of the word ends exactly there.
            if ones == 0 || !at.is_multiple_of(WORD) {
                break;
            }
        }
        (at - page).min(cap)
    }

    /// How many pages are set immediately before `page`, counted up to `cap`.
    pub(super) fn run_before(&self, page: u64, cap: u64) -> u64 {
        let mut at = page;
        while at > 0 && page - at < cap {
            let last = at - 1;
            let shifted = self.word(last / WORD) << (WORD - 1 - last % WORD);
            let ones = u64::from((!shifted).leading_zeros());
            at -= ones;
            if ones == 0 || !at.is_multiple_of(WORD) {
                break;
            }
        }
        (page - at).min(cap)
    }

    /// Calls `f(first, count)` for each maximal run of set pages in `from..limit`, ascending.
    pub(super) fn for_each_run(&self, from: u64, limit: u64, f: &mut dyn FnMut(u64, u64)) {
        let mut at = from;
        while let Some(first) = self.next_one(at, limit) {
            let count = self.run_after(first, limit - first);
            f(first, count);
            at = first + count;
        }
    }

    /// The number of maximal runs of set pages.
    pub(super) fn runs(&self) -> u64 {
        let mut carry = 0;
        let mut runs = 0;
        for &word in &self.words {
            runs += u64::from((word & !(word << 1 | carry)).count_ones());
            carry = word >> (WORD - 1);
        }
        runs
    }
}
