//! Free space: births, deaths and who can still see.
//!
//! A page written by transaction `birth` and replaced by transaction `death` is seen by exactly the
//! snapshots `s` with `birth <= s < death`. It may be overwritten as soon as none of those is
//! *pinned*: by a live reader, by the last steady commit, or by a flush that is about to make a
//! commit steady.
//!
//! This module owns the *space map*, which knows of every page below `end` whether it is used, retired
//! (replaced, but still seen), or free, and the *free-space log*, from which the map is loaded. It knows
//! no file, lock or clock. `docs/free-space.md` has the whole story with figures; read in the order
//! `mod`, `alloc`, `log`, `replay`, `codec`, `free_map`, `bits`.
//!
//! Invariants:
//! 1. No page is both free and retired; neither kind lies at or above `end`.
//! 2. The bit set `retired` and the entries in the buckets describe the same pages, each once.
//! 3. A bucket belongs to a pin of the current set, and its pin sees every entry in it.
//!
//! What makes it cheap: *new pins only ever appear at the newest snapshot*, which sees no page that
//! is retired already. So an entry without a pin is free for ever, and an entry with pins need only
//! be looked at when the one it waits for is gone. The greatest pin that sees it is chosen, for in
//! the common case that is the steady commit, the next to move.
//!
//! The caller's part: read the pins after `death` is published and before `retire`, and pin a
//! snapshot while it is still the newest if it is to become steady later.

mod alloc;
mod bits;
mod codec;
mod free_map;
pub(crate) mod log;
mod replay;
#[cfg(test)]
mod tests;

use bits::BitSet;
use free_map::FreeMap;

/// No file has more pages than this; greater numbers in persisted bytes are damage.
pub(crate) const PAGES_MAX: u64 = 1 << 48;

/// Adjacent pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    /// The first page.
    pub(crate) first: u64,
    /// How many pages.
    pub(crate) count: u64,
}

impl Extent {
    /// One past the last page.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

/// Adjacent pages that were written by one transaction and replaced by a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Retired {
    /// The first page.
    pub(crate) first: u64,
    /// How many pages.
    pub(crate) count: u64,
    /// The transaction that wrote the pages.
    pub(crate) birth: u64,
    /// The transaction that replaced them.
    pub(crate) death: u64,
}

impl Retired {
    /// One past the last page.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

/// What one commit did to the space map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    /// The transaction.
    pub(crate) txn: u64,
    /// The pages it took, in the order they were filled.
    pub(crate) allocated: Vec<Extent>,
    /// The pages it replaced; `death` is `txn` in each.
    pub(crate) released: Vec<Retired>,
    /// The first page never used, after the commit.
    pub(crate) end: u64,
}

/// Which free pages a commit prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Few long runs: a flush follows.
    Contiguous,
    /// The most recently freed pages: they are warm, and rewrites coalesce before they reach the disk.
    Recent,
    /// The lowest: the file is to become shorter.
    Low,
}

/// What `Space::allocate_split` took, each list in the order to be filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    /// For pages that will stay for long.
    pub(crate) cold: Vec<Extent>,
    /// For pages that will be replaced soon.
    pub(crate) hot: Vec<Extent>,
}

/// Persisted bytes that no commit can have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl Malformed {
    /// Nothing is wrong with the bytes: there is no memory to read them into.
    pub(crate) const NO_MEMORY: Malformed = Malformed("there is no memory to read it");
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// The retired entries that wait for one pin.
#[derive(Clone)]
struct Bucket {
    pin: u64,
    entries: Vec<Retired>,
}

/// The space map: the state of all pages of a store.
#[derive(Clone, Default)]
pub(crate) struct Space {
    end: u64,
    free: FreeMap,
    retired: BitSet,
    /// Sorted; the snapshots that someone may still read.
    pins: Vec<u64>,
    /// Sorted by pin; never empty ones.
    buckets: Vec<Bucket>,
    /// Pages in the order they became free, for `Policy::Recent`; checked against `free` when used.
    recent: Vec<Extent>,
    /// Where the sweep of `Policy::Contiguous` goes on.
    cursor: u64,
    /// The same among the pages set aside for what is replaced often.
    hot_cursor: u64,
    /// Where the search for windows to clean goes on.
    window_cursor: u64,
    /// A vector to reuse: commits make and drop a bucket each.
    spare: Vec<Retired>,
    /// There was no memory for an entry: pages that are missing here must not be written down as such.
    lacks_memory: bool,
}

/// How many freed extents `Policy::Recent` remembers at most.
const RECENT_MAX: usize = 8192;

/// Appends; false if there is no memory for it.
#[inline]
fn append<T>(list: &mut Vec<T>, item: T) -> bool {
    let room = list.try_reserve(1).is_ok();
    if room {
        list.push(item);
    }
    room
}

impl Space {
    /// Pages `0..end` are used, nothing is free.
    pub(crate) fn new(end: u64) -> Space {
        Space { end: end.min(PAGES_MAX), ..Space::default() }
    }

    /// Whether something is missing for want of memory. The map is of no use then.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.lacks_memory
    }

    pub(crate) fn lack_memory(&mut self) {
        self.lacks_memory = true;
    }

    /// The first page never used.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Pages that may be taken at once.
    pub(crate) fn free_pages(&self) -> u64 {
        self.free.free_pages()
    }

    /// Pages that a pinned snapshot still sees.
    pub(crate) fn retired_pages(&self) -> u64 {
        self.retired.ones()
    }

    /// Pages that would come free if the snapshot `pin` were pinned no longer.
    pub(crate) fn held_by(&self, pin: u64) -> u64 {
        let below = &self.pins[..self.pins.partition_point(|&other| other < pin)];
        let bucket = self.buckets.binary_search_by_key(&pin, |bucket| bucket.pin);
        let entries = bucket.map_or(&[][..], |at| &self.buckets[at].entries);
        let freed = entries.iter().filter(|entry| greatest_pin(below, entry).is_none());
        freed.map(|entry| entry.count).sum()
    }

    /// Whether the page may be taken.
    pub(crate) fn is_free(&self, page: u64) -> bool {
        self.free.bits().get(page)
    }

    /// Whether the page was replaced but is still seen.
    #[cfg(test)]
    pub(crate) fn is_retired(&self, page: u64) -> bool {
        self.retired.get(page)
    }

    /// Whether all of these pages are in use.
    pub(crate) fn is_used(&self, first: u64, count: u64) -> bool {
        first.checked_add(count).is_some_and(|end| end <= self.end)
            && self.free.bits().count(first, count) == 0
            && self.retired.count(first, count) == 0
    }

    /// Every maximal run of free pages, ascending.
    pub(crate) fn for_each_free(&self, f: &mut dyn FnMut(Extent)) {
        self.free.bits().for_each_run(0, self.end, &mut |first, count| f(Extent { first, count }));
    }

    /// Every retired entry and the newest pinned snapshot that sees it, in no particular order.
    pub(crate) fn for_each_retired(&self, f: &mut dyn FnMut(&Retired, u64)) {
        for bucket in &self.buckets {
            bucket.entries.iter().for_each(|entry| f(entry, bucket.pin));
        }
    }

    /// Replaces the pinned snapshots (ascending). What waited for a pin that is gone becomes free or
    /// waits for another one.
    pub(crate) fn set_pins(&mut self, pins: &[u64]) {
        if self.pins == pins {
            return;
        }
        self.pins.clear();
        self.pins.extend_from_slice(pins);
        self.pins.sort_unstable();
        // Entries only move to a lower pin, so buckets may be settled from the top down.
        let mut index = self.buckets.len();
        while index > 0 {
            index -= 1;
            if self.pins.binary_search(&self.buckets[index].pin).is_ok() {
                continue;
            }
            let mut entries = self.buckets.remove(index).entries;
            for entry in &entries {
                match greatest_pin(&self.pins, entry) {
                    Some(pin) => index += usize::from(self.push(pin, *entry)),
                    None => {
                        self.retired.remove(entry.first, entry.count);
                        self.unpinned(entry.first, entry.count);
                    }
                }
            }
            entries.clear();
            self.recycle(entries);
        }
    }

    /// Takes over what a published commit replaced. Uses the pins of the last `set_pins`.
    pub(crate) fn retire(&mut self, released: &[Retired]) {
        for entry in released {
            self.retire_one(*entry);
        }
    }

    fn retire_one(&mut self, entry: Retired) {
        debug_assert!(entry.end() <= self.end, "retired beyond the end");
        debug_assert!(self.free.bits().count(entry.first, entry.count) == 0, "retired while free");
        match greatest_pin(&self.pins, &entry) {
            Some(pin) => {
                self.retired.insert(entry.first, entry.count);
                self.push(pin, entry);
            }
            None => self.unpinned(entry.first, entry.count),
        }
    }

    /// Puts an entry into the bucket of `pin`; true if the bucket had to be made.
    fn push(&mut self, pin: u64, entry: Retired) -> bool {
        // Nearly always the last bucket: a commit's entries are seen by the snapshot before it.
        if let Some(bucket) = self.buckets.last_mut()
            && bucket.pin == pin
        {
            self.lacks_memory |= !append(&mut bucket.entries, entry);
            return false;
        }
        match self.buckets.binary_search_by_key(&pin, |bucket| bucket.pin) {
            Ok(at) => {
                self.lacks_memory |= !append(&mut self.buckets[at].entries, entry);
                false
            }
            Err(at) => {
                let mut entries = std::mem::take(&mut self.spare);
                entries.push(entry);
                self.buckets.insert(at, Bucket { pin, entries });
                true
            }
        }
    }

    fn recycle(&mut self, entries: Vec<Retired>) {
        // A bucket that once held a bulk load's pages is not worth keeping.
        if entries.capacity() > self.spare.capacity() && entries.capacity() <= RECENT_MAX {
            self.spare = entries;
        }
    }

    /// Pages that nobody sees any more become free.
    fn unpinned(&mut self, first: u64, count: u64) {
        self.free.insert(first, count);
        if self.recent.len() >= RECENT_MAX {
            self.recent.drain(..RECENT_MAX / 2);
        }
        // No more than a hint.
        append(&mut self.recent, Extent { first, count });
    }

    /// Undoes an allocation: the pages are free at once; at the tail they lower the end again.
    pub(crate) fn give_back(&mut self, e: Extent) {
        debug_assert!(e.end() <= self.end, "given back beyond the end");
        if e.count > 0 && e.end() == self.end {
            self.end = e.first;
        } else if e.end() < self.end {
            self.unpinned(e.first, e.count);
        }
    }

    /// If free pages reach the end, lowers it, but not below `keep`; the new end.
    pub(crate) fn trim_tail(&mut self, keep: u64) -> u64 {
        let tail = self.free.bits().run_before(self.end, self.end);
        let end = (self.end - tail).max(keep).min(self.end);
        self.free.remove(end, self.end - end);
        self.end = end;
        end
    }
}

/// The greatest pinned snapshot that sees the entry.
fn greatest_pin(pins: &[u64], entry: &Retired) -> Option<u64> {
    let before = pins.partition_point(|&pin| pin < entry.death);
    let pin = *pins.get(before.checked_sub(1)?)?;
    (pin >= entry.birth).then_some(pin)
}
