//! Choosing pages: where a commit, a value run or cleaning goes.
//!
//! Everything here takes pages from `free` or raises `end`, and undoes nothing: whether the request
//! can be met at all is settled before the first page is taken.

use super::{Extent, Policy, Space};

impl Space {
    /// Takes `pages` pages in few extents, in the order to be filled; `None` (and nothing taken)
    /// when `end` would have to pass `limit`.
    ///
    /// `Contiguous`: one run from the sweep; else the tail, while the file stays within `grow_to`;
    /// else the longest runs there are; else the tail beyond `grow_to`. `Recent`: what was freed
    /// last, then low addresses, then the tail.
    pub fn allocate(
        &mut self,
        pages: u64,
        policy: Policy,
        grow_to: u64,
        limit: u64,
    ) -> Option<Vec<Extent>> {
        let room = limit.saturating_sub(self.end).saturating_add(self.free_pages());
        if pages > room {
            return None;
        }
        let mut taken = Vec::new();
        match policy {
            Policy::Contiguous => self.take_contiguous(pages, grow_to.min(limit), &mut taken),
            Policy::Recent => {
                self.take_recent(pages, &mut taken);
                taken.sort_unstable();
            }
        }
        merge(&mut taken);
        Some(taken)
    }

    /// Takes one run: the best fit among free runs, else the tail.
    pub fn allocate_run(&mut self, pages: u64, limit: u64) -> Option<Extent> {
        if pages == 0 {
            return Some(Extent { first: self.end, count: 0 });
        }
        if pages <= self.free_pages()
            && let Some(first) = self.free.best_fit(pages)
        {
            self.free.remove(first, pages);
            return Some(Extent { first, count: pages });
        }
        let tail = self.free_tail(pages);
        (pages - tail <= limit.saturating_sub(self.end)).then(|| self.take_tail(pages, tail))
    }

    /// How many free pages end at `end`, counted up to `cap`.
    fn free_tail(&self, cap: u64) -> u64 {
        self.free.bits().run_before(self.end, cap)
    }

    /// Takes `pages` pages of which the first `tail` are free below `end` and the rest are new.
    fn take_tail(&mut self, pages: u64, tail: u64) -> Extent {
        let first = self.end - tail;
        self.free.remove(first, tail);
        self.end = first + pages;
        Extent { first, count: pages }
    }

    fn take_at(&mut self, first: u64, count: u64, taken: &mut Vec<Extent>) {
        self.free.remove(first, count);
        taken.push(Extent { first, count });
    }

    fn take_contiguous(&mut self, pages: u64, grow_to: u64, taken: &mut Vec<Extent>) {
        let mut left = pages;
        while left > 0 {
            if left <= self.free_pages()
                && let Some(first) = self.free.find_run(left, self.cursor)
            {
                self.take_at(first, left, taken);
                self.cursor = first + left;
                return;
            }
            let tail = self.free_tail(left);
            let grow = grow_to.saturating_sub(self.end);
            if left - tail <= grow {
                taken.push(self.take_tail(left, tail));
                return;
            }
            match self.free.largest() {
                Some(run) if run.count >= tail + grow => {
                    let count = run.count.min(left);
                    self.take_at(run.first, count, taken);
                    left -= count;
                }
                // All the tail that may be had is still the longest run.
                _ if tail + grow > 0 => {
                    taken.push(self.take_tail(tail + grow, tail));
                    left -= tail + grow;
                }
                // Nothing is free: beyond `grow_to`, which `allocate` found to be within the limit.
                _ => {
                    taken.push(self.take_tail(left, 0));
                    return;
                }
            }
        }
    }

    fn take_recent(&mut self, pages: u64, taken: &mut Vec<Extent>) {
        let mut left = pages;
        while left > 0
            && let Some(freed) = self.recent.pop()
        {
            left -= self.take_part(freed, left, taken);
        }
        while left > 0
            && let Some(first) = self.free.lowest()
        {
            let count = self.free.bits().run_after(first, left);
            self.take_at(first, count, taken);
            left -= count;
        }
        if left > 0 {
            taken.push(self.take_tail(left, 0));
        }
    }

    /// Takes up to `left` pages of a remembered extent, as far as they are free still; what is not
    /// needed is remembered again.
    fn take_part(&mut self, freed: Extent, left: u64, taken: &mut Vec<Extent>) -> u64 {
        let end = freed.end().min(self.end);
        let mut got = 0;
        let mut at = freed.first;
        while got < left
            && let Some(first) = self.free.bits().next_one(at, end)
        {
            let count = self.free.bits().run_after(first, (left - got).min(end - first));
            self.take_at(first, count, taken);
            got += count;
            at = first + count;
        }
        if got == left && at < end {
            self.recent.push(Extent { first: at, count: end - at });
        }
        got
    }

    /// A window of `pages` pages near the sweep cursor with few pages in use, and how many those
    /// are: what cleaning has to move to make the window one run. Samples a bounded number of words.
    pub fn window(&self, pages: u64) -> Option<(Extent, u64)> {
        const WORDS: u64 = 2048;
        if pages == 0 || pages > self.end {
            return None;
        }
        let samples = (WORDS / pages.div_ceil(64)).clamp(1, 64);
        let mut best: Option<(Extent, u64)> = None;
        let mut first = self.cursor;
        for _ in 0..samples {
            if first + pages > self.end {
                first = 0;
            }
            let used = pages - self.free.bits().count(first, pages);
            if best.is_none_or(|(_, least)| used < least) {
                best = Some((Extent { first, count: pages }, used));
            }
            first += pages;
        }
        best
    }
}

/// Joins neighbours in the list that are neighbours on disk.
fn merge(taken: &mut Vec<Extent>) {
    taken.dedup_by(|next, kept| {
        let adjacent = kept.end() == next.first;
        if adjacent {
            kept.count += next.count;
        }
        adjacent
    });
}
