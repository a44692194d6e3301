//! Following other processes, and rebuilding the space map: both apply deltas.
//!
//! A delta may take pages that are still retired here: the process that made it saw fewer pins. The
//! entries of such pages are out of date from then on, and the page may be retired again. While
//! deltas are applied the bit set `retired` alone is right; `purge` makes the buckets agree again,
//! keeping for each page the entry with the latest death.

use super::{Delta, Extent, Malformed, PAGES_MAX, Retired, Space};

impl Space {
    /// Takes over commits of other processes, oldest first; `used` are pages that no delta mentions
    /// (segments of the free-space log). Call `set_pins` first: then what those processes could take is free here
    /// as well, and the call costs no more than `retire`. Refuses what does not fit `max_end`, the
    /// file's number of pages, and is of no use after that.
    pub(crate) fn follow(
        &mut self,
        deltas: &[Delta],
        used: &[Extent],
        max_end: u64,
    ) -> Result<(), Malformed> {
        let mut last = None;
        let mut stale = false;
        for delta in deltas {
            if last.is_some_and(|txn| txn >= delta.txn) {
                return Err(Malformed("deltas out of order"));
            }
            last = Some(delta.txn);
            stale |= self.apply(delta, max_end)?;
        }
        for extent in used {
            if extent.first.checked_add(extent.count).is_none_or(|end| end > max_end) {
                return Err(Malformed("a segment of the free-space log leads outside the store"));
            }
            self.raise_end(extent.end());
            stale |= self.make_used(extent.first, extent.count);
        }
        if stale {
            self.purge();
        }
        if self.lacks_memory { Err(Malformed::NO_MEMORY) } else { Ok(()) }
    }

    /// Applies a delta, leaving outdated entries in the buckets; true if there are any.
    fn apply(&mut self, delta: &Delta, max_end: u64) -> Result<bool, Malformed> {
        let end = delta.end;
        if end > max_end.min(PAGES_MAX) {
            return Err(Malformed("end of space beyond the file"));
        }
        let taken = delta.allocated.iter().map(|extent| (extent.first, extent.count));
        let left = delta.released.iter().map(|entry| (entry.first, entry.count));
        for (first, count) in taken.chain(left) {
            if count == 0 || first.checked_add(count).is_none_or(|upto| upto > end) {
                return Err(Malformed("extent beyond the end of space"));
            }
        }
        if delta.released.iter().any(|entry| entry.death != delta.txn || entry.birth > entry.death)
        {
            return Err(Malformed("released at another time"));
        }
        let grown = end.saturating_sub(self.end);
        if !self.free.try_reserve(self.end + grown) || !self.retired.try_reserve(self.end + grown) {
            return Err(Malformed::NO_MEMORY);
        }
        let mut stale = false;
        if end < self.end {
            stale |= self.make_used(end, self.end - end);
            self.end = end;
        }
        // Pages below the new end that the delta does not take were given back before its commit.
        self.raise_end(end);
        for extent in &delta.allocated {
            stale |= self.make_used(extent.first, extent.count);
        }
        for entry in &delta.released {
            stale |= self.make_used(entry.first, entry.count);
            self.retire_one(*entry);
        }
        Ok(stale)
    }

    pub(super) fn raise_end(&mut self, end: u64) {
        if end > self.end {
            self.free.insert(self.end, end - self.end);
            self.end = end;
        }
    }

    /// Takes pages out of the free and the retired ones; true if entries are outdated by that.
    fn make_used(&mut self, first: u64, count: u64) -> bool {
        self.free.remove(first, count);
        self.retired.remove(first, count) > 0
    }

    /// Drops what is outdated from the buckets.
    pub(super) fn purge(&mut self) {
        let mut entries: Vec<(u64, Retired)> = Vec::new();
        for bucket in self.buckets.drain(..) {
            entries.extend(bucket.entries.iter().map(|entry| (bucket.pin, *entry)));
        }
        // A page that is retired now was retired last by the entry with the latest death. The bit is
        // cleared once that entry has claimed the page, and set again at the end.
        entries.sort_unstable_by_key(|(_, entry)| std::cmp::Reverse((entry.death, entry.first)));
        let mut kept: Vec<(u64, Retired)> = Vec::new();
        for (pin, entry) in entries {
            let known = kept.len();
            self.retired.for_each_run(entry.first, entry.end(), &mut |first, count| {
                kept.push((pin, Retired { first, count, ..entry }));
            });
            for (_, part) in &kept[known..] {
                self.retired.remove(part.first, part.count);
            }
        }
        for (pin, entry) in kept {
            self.retired.insert(entry.first, entry.count);
            self.push(pin, entry);
        }
    }
}
