//! Small sets of duplicates: the values of one key inside its record, sorted.
//!
//! `size: u16 | items` when all values have the size named, which is not 0; else
//! `0: u16 | count: u16 | ends: u16 x count | items`, where an end is the length of all items up to
//! and with its own. Invariants: at least two items, strictly ascending in the order of the values.

use crate::num::{load_u16, store_u16};

use super::{Damage, Order};

/// Bytes before the items of one size, and before the ends of others.
const FIXED_HEAD: usize = 2;
const VARIABLE_HEAD: usize = 4;

const BROKEN: Damage = Damage("a set of duplicates does not fit its record");
const NO_SUCH_VALUE: Damage = Damage("an index behind the last duplicate");

/// A small set, the extent of its arrays checked.
#[derive(Clone, Copy)]
pub(crate) struct Set<'p> {
    /// Size of all items; 0 when they differ.
    size: usize,
    count: usize,
    ends: &'p [u8],
    items: &'p [u8],
}

impl<'p> Set<'p> {
    #[inline]
    pub(crate) fn new(value: &'p [u8]) -> Result<Set<'p>, Damage> {
        let size = usize::from(load_u16(value, 0).ok_or(BROKEN)?);
        if let Some(count) = (value.len() - FIXED_HEAD).checked_div(size) {
            let items = value.get(FIXED_HEAD..).ok_or(BROKEN)?;
            if count < 2 || count * size != items.len() {
                return Err(BROKEN);
            }
            return Ok(Set { size, count, ends: &[], items });
        }
        let count = usize::from(load_u16(value, 2).ok_or(BROKEN)?);
        let rest = value.get(VARIABLE_HEAD..).ok_or(BROKEN)?;
        let (ends, items) = rest.split_at_checked(2 * count).ok_or(BROKEN)?;
        if count < 2 {
            return Err(BROKEN);
        }
        Ok(Set { size, count, ends, items })
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn end(&self, i: usize) -> Result<usize, Damage> {
        load_u16(self.ends, 2 * i).map(usize::from).ok_or(NO_SUCH_VALUE)
    }

    #[inline]
    fn span(&self, i: usize) -> Result<(usize, usize), Damage> {
        if self.size > 0 {
            return Ok((i * self.size, (i + 1) * self.size));
        }
        let start = if i == 0 { 0 } else { self.end(i - 1)? };
        Ok((start, self.end(i)?))
    }

    /// Value `i`.
    #[inline]
    pub(crate) fn item(&self, i: usize) -> Result<&'p [u8], Damage> {
        let (start, end) = self.span(i)?;
        self.items.get(start..end).ok_or(NO_SUCH_VALUE)
    }

    /// All values one behind the other, and their size, if they have one.
    pub(crate) fn packed(&self) -> Option<(&'p [u8], usize)> {
        (self.size > 0).then_some((self.items, self.size))
    }

    /// Index of a value, or where it would be inserted.
    pub(crate) fn search(
        &self,
        order: &Order,
        value: &[u8],
    ) -> Result<Result<usize, usize>, Damage> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match order.compare(value, self.item(middle)?) {
                std::cmp::Ordering::Equal => return Ok(Ok(middle)),
                std::cmp::Ordering::Less => high = middle,
                std::cmp::Ordering::Greater => low = middle + 1,
            }
        }
        Ok(Err(low))
    }

    /// Bytes that the set takes.
    fn len(&self) -> usize {
        match self.size {
            0 => VARIABLE_HEAD + self.ends.len() + self.items.len(),
            _ => FIXED_HEAD + self.items.len(),
        }
    }

    /// Bytes that the set will take with one more value of this length.
    pub(crate) fn len_with(&self, item: usize) -> usize {
        self.len() + item + if self.size == 0 { 2 } else { 0 }
    }

    /// Checks that the items fill the record and ascend.
    pub(crate) fn check(&self, order: &Order) -> Result<(), Damage> {
        if self.size == 0 && self.end(self.count - 1)? != self.items.len() {
            return Err(BROKEN);
        }
        for i in 1..self.count {
            if !order.compare(self.item(i - 1)?, self.item(i)?).is_lt() {
                return Err(Damage("duplicates are not in order"));
            }
        }
        Ok(())
    }
}

/// Bytes of a set of `count` values that have `bytes` together; `size` is that of all, or 0.
pub(crate) fn len_of(size: usize, count: usize, bytes: usize) -> usize {
    if size > 0 { FIXED_HEAD + bytes } else { VARIABLE_HEAD + 2 * count + bytes }
}

/// Appends a set of sorted values to `out`.
pub(crate) fn build<'v>(size: usize, values: impl Iterator<Item = &'v [u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(&(size as u16).to_le_bytes());
    if size > 0 {
        values.for_each(|v| out.extend_from_slice(v));
        return;
    }
    let (mut ends, mut items) = (Vec::new(), Vec::new());
    let mut count = 0u16;
    for value in values {
        items.extend_from_slice(value);
        ends.extend_from_slice(&(items.len() as u16).to_le_bytes());
        count += 1;
    }
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&ends);
    out.extend_from_slice(&items);
}

/// Inserts a value at `i` into the set that the first `old_len` bytes of `bytes` are; `bytes` has
/// the new length already.
pub(crate) fn insert(
    bytes: &mut [u8],
    old_len: usize,
    i: usize,
    item: &[u8],
) -> Result<(), Damage> {
    let set = Set::new(bytes.get(..old_len).ok_or(BROKEN)?)?;
    let (size, count) = (set.size, set.count);
    if i > count || bytes.len() != set.len_with(item.len()) || (size > 0 && item.len() != size) {
        return Err(BROKEN);
    }
    let start = if i == count { set.items.len() } else { set.span(i)?.0 };
    if start > set.items.len() {
        return Err(BROKEN);
    }
    if size > 0 {
        let at = FIXED_HEAD + start;
        bytes.copy_within(at..old_len, at + size);
        bytes.get_mut(at..at + size).ok_or(BROKEN)?.copy_from_slice(item);
        return Ok(());
    }
    let items = VARIABLE_HEAD + 2 * count;
    let at = items + start;
    // Behind the new end, and behind the new item.
    bytes.copy_within(at..old_len, at + 2 + item.len());
    let end_at = VARIABLE_HEAD + 2 * i;
    bytes.copy_within(end_at..at, end_at + 2);
    bytes.get_mut(at + 2..at + 2 + item.len()).ok_or(BROKEN)?.copy_from_slice(item);
    shift_ends(bytes, i + 1..count + 1, item.len() as u16)?;
    let stored = store_u16(bytes, end_at, (start + item.len()) as u16)
        && store_u16(bytes, 2, count as u16 + 1);
    if stored { Ok(()) } else { Err(BROKEN) }
}

/// Takes value `i` out; the set is then in the first bytes, whose number is given.
pub(crate) fn remove(bytes: &mut [u8], i: usize) -> Result<usize, Damage> {
    let set = Set::new(bytes)?;
    let (size, count, len) = (set.size, set.count, set.len());
    if i >= count || count < 3 {
        return Err(BROKEN);
    }
    let (start, end) = set.span(i)?;
    if end < start || end > set.items.len() {
        return Err(BROKEN);
    }
    if size > 0 {
        bytes.copy_within(FIXED_HEAD + end..len, FIXED_HEAD + start);
        return Ok(len - size);
    }
    let items = VARIABLE_HEAD + 2 * count;
    let end_at = VARIABLE_HEAD + 2 * i;
    shift_ends(bytes, i + 1..count, ((end - start) as u16).wrapping_neg())?;
    bytes.copy_within(end_at + 2..items + start, end_at);
    bytes.copy_within(items + end..len, items + start - 2);
    if store_u16(bytes, 2, count as u16 - 1) { Ok(len - 2 - (end - start)) } else { Err(BROKEN) }
}

/// Adds to the ends in a range of indexes.
fn shift_ends(bytes: &mut [u8], range: std::ops::Range<usize>, by: u16) -> Result<(), Damage> {
    let ends = bytes.get_mut(VARIABLE_HEAD + 2 * range.start..VARIABLE_HEAD + 2 * range.end);
    for end in ends.ok_or(BROKEN)?.as_chunks_mut::<2>().0 {
        *end = u16::from_le_bytes(*end).wrapping_add(by).to_le_bytes();
    }
    Ok(())
}
