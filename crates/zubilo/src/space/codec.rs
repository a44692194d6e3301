//! The persisted forms: deltas (of one commit each) and bases (the whole space map).
//!
//! Both are sequences of LEB128 numbers; pages are written as gaps, transactions as ages. Decoders
//! bound every sum and reserve no memory that the bytes present could not fill.

use super::{Delta, Extent, Malformed, PAGES_MAX, Retired, Space};

/// Reads varints off the front of a slice.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) =
                self.rest.split_first().ok_or(Malformed("the free-space log is cut short"))?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("number too long"))
    }

    /// A number of items that take at least `least` bytes each.
    fn items(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count > self.rest.len() / least {
            return Err(Malformed("more entries than bytes"));
        }
        Ok(count)
    }
}

/// The sum, if it is a page number or count that can exist.
fn pages(a: u64, b: u64) -> Result<u64, Malformed> {
    a.checked_add(b).filter(|&sum| sum <= PAGES_MAX).ok_or(Malformed("page number too large"))
}

fn varint_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

impl Delta {
    /// Appends the delta; released entries are written in page order.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.numbers(&mut |value| put(out, value));
    }

    /// The exact length of `encode`.
    pub(super) fn encoded_len(&self) -> usize {
        let mut length = 0;
        self.numbers(&mut |value| length += varint_len(value));
        length
    }

    fn numbers(&self, f: &mut dyn FnMut(u64)) {
        f(self.txn);
        f(self.end);
        f(self.allocated.len() as u64);
        let mut at = 0u64;
        for extent in &self.allocated {
            f(zigzag(extent.first.wrapping_sub(at) as i64));
            f(extent.count);
            at = extent.end();
        }
        f(self.released.len() as u64);
        if self.released.is_sorted_by_key(|entry| entry.first) {
            self.released_numbers(&self.released, f);
        } else {
            let mut sorted = self.released.clone();
            sorted.sort_unstable();
            self.released_numbers(&sorted, f);
        }
    }

    fn released_numbers(&self, sorted: &[Retired], f: &mut dyn FnMut(u64)) {
        let mut at = 0u64;
        for entry in sorted {
            // Most entries are single pages: one bit instead of a byte for the length.
            let single = entry.count == 1;
            f(entry.first.wrapping_sub(at) << 1 | u64::from(!single));
            if !single {
                f(entry.count);
            }
            f(self.txn.wrapping_sub(entry.birth));
            at = entry.end();
        }
    }

    /// Reads a delta off the front of `bytes`; also the number of bytes it took.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Delta, usize), Malformed> {
        let mut reader = Reader::new(bytes);
        let txn = reader.number()?;
        let end = pages(reader.number()?, 0)?;
        let count = reader.items(2)?;
        let mut allocated = room(count)?;
        let mut at = 0u64;
        for _ in 0..count {
            let first = at.wrapping_add_signed(unzigzag(reader.number()?));
            let extent = Extent { first, count: reader.number()? };
            at = pages(extent.first, extent.count)?;
            if extent.count == 0 || at > end {
                return Err(Malformed("allocated extent out of range"));
            }
            allocated.push(extent);
        }
        if overlapping(&allocated)? {
            return Err(Malformed("allocated extents overlap"));
        }
        let count = reader.items(2)?;
        let mut released = room(count)?;
        let mut at = 0u64;
        for _ in 0..count {
            let head = reader.number()?;
            let first = pages(at, head >> 1)?;
            let count = if head & 1 == 1 { reader.number()? } else { 1 };
            at = pages(first, count)?;
            let birth = txn.checked_sub(reader.number()?).ok_or(Malformed("birth before time"))?;
            if count == 0 || at > end {
                return Err(Malformed("released extent out of range"));
            }
            released.push(Retired { first, count, birth, death: txn });
        }
        Ok((Delta { txn, allocated, released, end }, bytes.len() - reader.rest.len()))
    }
}

/// A list with room for so many.
pub(super) fn room<T>(items: usize) -> Result<Vec<T>, Malformed> {
    let mut list = Vec::new();
    list.try_reserve_exact(items).map_err(|_| Malformed::NO_MEMORY)?;
    Ok(list)
}

fn overlapping(extents: &[Extent]) -> Result<bool, Malformed> {
    let mut sorted = room(extents.len())?;
    sorted.extend_from_slice(extents);
    sorted.sort_unstable();
    Ok(sorted.windows(2).any(|pair| pair[0].end() > pair[1].first))
}

impl Space {
    /// Appends the whole map: end, free extents, retired entries in page order. Equal maps give equal
    /// bytes.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let entries = self.sorted_retired()?;
        put(out, self.end);
        put(out, self.free.bits().runs());
        let mut at = 0;
        self.for_each_free(&mut |run| {
            put(out, run.first - at);
            put(out, run.count);
            at = run.end();
        });
        let newest = entries.iter().map(|entry| entry.death).max().unwrap_or(0);
        put(out, newest);
        put(out, entries.len() as u64);
        let mut at = 0;
        for entry in &entries {
            put(out, entry.first - at);
            put(out, entry.count);
            put(out, newest - entry.death);
            put(out, entry.death.wrapping_sub(entry.birth));
            at = entry.end();
        }
        Ok(())
    }

    /// The retired entries by page, neighbours of the same lifetime joined.
    fn sorted_retired(&self) -> Result<Vec<Retired>, Malformed> {
        let mut count = 0;
        self.for_each_retired(&mut |_, _| count += 1);
        let mut entries = room(count)?;
        self.for_each_retired(&mut |entry, _| entries.push(*entry));
        entries.sort_unstable();
        entries.dedup_by(|next, kept| {
            let joins =
                kept.end() == next.first && (kept.birth, kept.death) == (next.birth, next.death);
            if joins {
                kept.count += next.count;
            }
            joins
        });
        Ok(entries)
    }

    /// An upper bound of the length of `encode`: reads the words of the map, not its runs.
    pub(crate) fn encoded_len_bound(&self) -> usize {
        let runs = self.free.bits().runs();
        let mut newest = 0;
        let mut oldest = u64::MAX;
        let mut entries = 0;
        self.for_each_retired(&mut |entry, _| {
            newest = entry.death.max(newest);
            oldest = entry.birth.min(entry.death).min(oldest);
            entries += 1;
        });
        let age = varint_len(newest.saturating_sub(oldest));
        varint_len(self.end)
            + varint_len(runs)
            + numbers_bound(runs, self.end)
            + numbers_bound(runs, self.free_pages())
            + varint_len(newest)
            + varint_len(entries)
            + numbers_bound(entries, self.end)
            + numbers_bound(entries, self.retired_pages())
            + entries as usize * 2 * age
    }

    /// Reads a map back; no page lies at or beyond `max_end`.
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        pins: &[u64],
        max_end: u64,
    ) -> Result<Space, Malformed> {
        let end = reader.number()?;
        if end > max_end.min(PAGES_MAX) {
            return Err(Malformed("end of space beyond the file"));
        }
        let mut space = Space::new(end);
        space.set_pins(pins);
        if !space.free.try_reserve(end) || !space.retired.try_reserve(end) {
            return Err(Malformed::NO_MEMORY);
        }
        let mut at = 0;
        for index in 0..reader.items(2)? {
            let run = gap_and_count(reader, at, index > 0, end)?;
            space.free.insert(run.first, run.count);
            at = run.end();
        }
        let newest = reader.number()?;
        let mut at = 0;
        for _ in 0..reader.items(4)? {
            let run = gap_and_count(reader, at, false, end)?;
            at = run.end();
            let death = newest.checked_sub(reader.number()?);
            let death = death.ok_or(Malformed("death before time"))?;
            let birth = death.checked_sub(reader.number()?);
            let birth = birth.ok_or(Malformed("birth before time"))?;
            if space.free.bits().count(run.first, run.count) > 0 {
                return Err(Malformed("page both free and retired"));
            }
            space.retire_one(Retired { first: run.first, count: run.count, birth, death });
        }
        Ok(space)
    }
}

fn gap_and_count(
    reader: &mut Reader<'_>,
    at: u64,
    apart: bool,
    end: u64,
) -> Result<Extent, Malformed> {
    let gap = reader.number()?;
    let first = pages(at, gap)?;
    let count = reader.number()?;
    if count == 0 || apart && gap == 0 || pages(first, count)? > end {
        return Err(Malformed("extent out of range"));
    }
    Ok(Extent { first, count })
}

/// An upper bound of the bytes that `count` varints take whose sum is at most `sum`: no more than
/// `sum / 2^7k` of them can need a byte beyond the k-th.
fn numbers_bound(count: u64, sum: u64) -> usize {
    (1..10).map(|byte| count.min(sum.checked_shr(7 * byte).unwrap_or(0))).sum::<u64>() as usize
        + count as usize
}
