//! Choosing pages: where a commit, a value run or cleaning goes.
//!
//! Everything here takes pages from `free` or raises `end`, and undoes nothing: whether the request
//! can be met at all is settled before the first page is taken.

use super::free_map::{GROUP, Within};
use super::{Extent, Policy, Space, Split, append};

/// At most this share of the file is set aside for pages that are replaced often.
const HOT_SHARE: u64 = 8;
/// With more free pages than this share of the file `Policy::Recent` fills low addresses first.
const HOLES_SHARE: u64 = 16;

impl Space {
    /// Takes `pages` pages in few extents, in the order to be filled; `None` (and nothing taken)
    /// when `end` would have to pass `limit`.
    ///
    /// `Contiguous`: one run from the sweep; else the tail, while the file stays within `grow_to`;
    /// else the longest runs there are; else the tail beyond `grow_to`. `Recent`: what was freed
    /// last (unless there are many holes), then low addresses, then the tail. `Low`: low addresses, then the tail.
    pub(crate) fn allocate(
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
        let mut taken = Vec::with_capacity(pages.min(16) as usize);
        match policy {
            Policy::Contiguous => self.take_contiguous(pages, grow_to.min(limit), &mut taken),
            Policy::Recent => {
                self.take_recent(pages, &mut taken);
                taken.sort_unstable();
            }
            Policy::Low => self.take_lowest(pages, &mut taken),
        }
        merge(&mut taken);
        Some(taken)
    }

    /// Takes one run: the best fit among free runs, else the tail. Where most of the file is free and
    /// the best fit lies in the upper half, the first fit: it may be a hole at the end that just such
    /// a run has left, and one run would keep all the free pages below it from being cut. Elsewhere
    /// the first fit would break runs that later commits could have filled at once.
    pub(crate) fn allocate_run(&mut self, pages: u64, limit: u64) -> Option<Extent> {
        if pages == 0 {
            return Some(Extent { first: self.end, count: 0 });
        }
        if pages <= self.free_pages()
            && let Some(first) = self.fit(pages)
        {
            self.free.remove(first, pages);
            return Some(Extent { first, count: pages });
        }
        let tail = self.free_tail(pages);
        (pages - tail <= limit.saturating_sub(self.end)).then(|| self.take_tail(pages, tail))
    }

    /// Takes the lowest run of free pages that ends at page `end` or before.
    pub(crate) fn take_below(&mut self, pages: u64, end: u64) -> Option<u64> {
        // A damaged reference can name a large value of no bytes.
        if pages == 0 {
            return None;
        }
        let cold = self.free.find_run(pages, 0, Within::Cold);
        let hot = self.free.find_run(pages, 0, Within::Hot);
        let first = cold.into_iter().chain(hot).min()?;
        if first.saturating_add(pages) > end {
            return None;
        }
        self.free.remove(first, pages);
        Some(first)
    }

    /// Free pages before page `end`.
    pub(crate) fn free_below(&self, end: u64) -> u64 {
        self.free.bits().count(0, end)
    }

    fn fit(&mut self, pages: u64) -> Option<u64> {
        let mut first = self.free.best_fit(pages, Within::Cold);
        let middle = self.end / 2;
        if self.free_pages() > middle && first.is_some_and(|first| first > middle) {
            first = self.free.find_run(pages, 0, Within::Cold);
        }
        first.or_else(|| self.free.best_fit(pages, Within::Hot))
    }

    /// How many free pages end at `end`, counted up to `cap`; none if they were set aside.
    fn free_tail(&self, cap: u64) -> u64 {
        if self.end > 0 && self.free.is_hot(self.end - 1) {
            return 0;
        }
        self.free.bits().run_before(self.end, cap)
    }

    /// Takes `pages` pages of which the first `tail` are free below `end` and the rest are new.
    fn take_tail(&mut self, pages: u64, tail: u64) -> Extent {
        let first = self.end - tail;
        self.free.remove(first, tail);
        self.end = first + pages;
        Extent { first, count: pages }
    }

    /// Lists what was taken; what cannot be listed is lost to this map.
    fn note(&mut self, extent: Extent, taken: &mut Vec<Extent>) {
        self.lacks_memory |= !append(taken, extent);
    }

    fn take_at(&mut self, first: u64, count: u64, taken: &mut Vec<Extent>) {
        self.free.remove(first, count);
        self.note(Extent { first, count }, taken);
    }

    fn take_contiguous(&mut self, pages: u64, grow_to: u64, taken: &mut Vec<Extent>) {
        let mut left = pages;
        while left > 0 {
            if let Some(first) = self.free.find_run(left, self.cursor, Within::Cold) {
                self.take_at(first, left, taken);
                self.cursor = first + left;
                return;
            }
            let tail = self.free_tail(left);
            let grow = grow_to.saturating_sub(self.end);
            if left - tail <= grow {
                {
                    let tail = self.take_tail(left, tail);
                    self.note(tail, taken);
                }
                return;
            }
            match self.free.largest(Within::Cold) {
                Some(run) if run.count >= tail + grow => {
                    let count = run.count.min(left);
                    self.take_at(run.first, count, taken);
                    left -= count;
                }
                // All the tail that may be had is still the longest run.
                _ if tail + grow > 0 => {
                    {
                        let tail = self.take_tail(tail + grow, tail);
                        self.note(tail, taken);
                    }
                    left -= tail + grow;
                }
                _ => left -= self.take_last_resort(left, taken),
            }
        }
    }

    /// What is set aside, before the file grows beyond its allowance; then that, which `allocate`
    /// found to be within the limit.
    fn take_last_resort(&mut self, left: u64, taken: &mut Vec<Extent>) -> u64 {
        let Some(run) = self.free.largest(Within::Hot) else {
            {
                let tail = self.take_tail(left, 0);
                self.note(tail, taken);
            }
            return left;
        };
        let count = run.count.min(left);
        self.take_at(run.first, count, taken);
        count
    }

    /// Takes pages in two groups: `cold` ones, which will stay for long, and `hot` ones, which will
    /// be replaced soon (branches, roots, leaves whose last version was young). Each group is as few
    /// extents as possible. `grow_to` and `limit` are as in `allocate` under `Contiguous`.
    ///
    /// Hot pages cycle through a small part of the file of their own. There whole runs fall free
    /// together, while among cold pages each would leave a hole of one page that lasts. Setting a
    /// group aside at the tail raises `end` by up to two groups, within `grow_to`.
    pub(crate) fn allocate_split(
        &mut self,
        cold: u64,
        hot: u64,
        grow_to: u64,
        limit: u64,
    ) -> Option<Split> {
        let room = limit.saturating_sub(self.end).saturating_add(self.free_pages());
        if cold.checked_add(hot).is_none_or(|pages| pages > room) {
            return None;
        }
        let grow_to = grow_to.min(limit);
        let mut split = Split::default();
        self.take_hot(hot, grow_to, &mut split.hot);
        self.take_contiguous(cold, grow_to, &mut split.cold);
        merge(&mut split.hot);
        merge(&mut split.cold);
        Some(split)
    }

    fn take_hot(&mut self, hot: u64, grow_to: u64, taken: &mut Vec<Extent>) {
        // Bulk commits make runs of their own; they would only flood the place.
        if hot == 0 || hot > GROUP / 4 {
            return self.take_contiguous(hot, grow_to, taken);
        }
        let mut found = self.free.find_run(hot, self.hot_cursor, Within::Hot);
        if found.is_none() && self.set_aside(hot, grow_to) {
            found = self.free.find_run(hot, self.hot_cursor, Within::Hot);
        }
        if let Some(first) = found {
            self.take_at(first, hot, taken);
            self.hot_cursor = first + hot;
            return;
        }
        let mut left = hot;
        while left > 0
            && let Some(run) = self.free.largest(Within::Hot)
        {
            let count = run.count.min(left);
            self.take_at(run.first, count, taken);
            left -= count;
        }
        self.take_contiguous(left, grow_to, taken);
    }

    /// Sets one more group aside for hot pages: one that is nearly empty, else a new one at the
    /// tail, else the emptiest there is, whose pages die out with time.
    fn set_aside(&mut self, hot: u64, grow_to: u64) -> bool {
        if self.free.hot_pages() + GROUP > self.end / HOT_SHARE {
            return false;
        }
        if self.free.set_emptiest_aside(self.end, GROUP * 3 / 4) {
            return true;
        }
        let fresh = self.end.next_multiple_of(GROUP) + GROUP;
        if fresh <= grow_to {
            self.raise_end(fresh);
        }
        self.free.set_emptiest_aside(self.end, hot)
    }

    fn take_recent(&mut self, pages: u64, taken: &mut Vec<Extent>) {
        let mut left = pages;
        // Low addresses first, the upper ones fall free, and the tail can be had again.
        let many_holes = self.free_pages() > self.end / HOLES_SHARE;
        while left > 0
            && !many_holes
            && let Some(freed) = self.recent.pop()
        {
            left -= self.take_part(freed, left, taken);
        }
        self.take_lowest(left, taken);
    }

    /// Low addresses first, then the tail.
    fn take_lowest(&mut self, pages: u64, taken: &mut Vec<Extent>) {
        let mut left = pages;
        while left > 0
            && let Some(first) = self.free.lowest()
        {
            let count = self.free.bits().run_after(first, left);
            self.take_at(first, count, taken);
            left -= count;
        }
        if left > 0 {
            {
                let tail = self.take_tail(left, 0);
                self.note(tail, taken);
            }
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

    /// Windows of `pages` pages with few pages in use, the emptiest first: what cleaning has to move
    /// to make each one run. As many as have `room` free pages together, as far as no more than half of
    /// a window is in use. Looks at a bounded number of words, each time at others.
    pub(crate) fn windows(&mut self, pages: u64, room: u64) -> Vec<Extent> {
        const WORDS: u64 = 2048;
        let mut found: Vec<(u64, Extent)> = Vec::new();
        if pages == 0 || pages > self.end {
            return Vec::new();
        }
        let samples = (WORDS / pages.div_ceil(64)).clamp(1, 64).min(self.end / pages);
        for _ in 0..samples {
            if self.window_cursor + pages > self.end {
                self.window_cursor = 0;
            }
            let window = Extent { first: self.window_cursor, count: pages };
            let free = self.free.bits().count(window.first, pages);
            // What was set aside empties by itself.
            let hot = self.free.is_hot(window.first) || self.free.is_hot(window.end() - 1);
            if !hot && free < pages && free >= pages.div_ceil(2) {
                self.lacks_memory |= !append(&mut found, (free, window));
            }
            self.window_cursor += pages;
        }
        found.sort_unstable_by_key(|(free, window)| (std::cmp::Reverse(*free), window.first));
        let mut left = room;
        let chosen = found.into_iter().take_while(|(free, _)| {
            let more = left > 0;
            left = left.saturating_sub(*free);
            more
        });
        chosen.map(|(_, window)| window).collect()
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
