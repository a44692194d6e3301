//! Changing branches.
//!
//! A branch that must change its shape is written anew from the list of its separators and
//! children ([`Parts`]). What needs no other prefix is done in place where there is room: insertion,
//! replacement and removal. The prefix may so be shorter than it could be, never longer. Whatever
//! fits with some prefix fits when it is written anew, for that takes the cheapest.

use crate::num::{store_u16, store_u64};

use super::branch_read::{Branch, IN_HEAD, heap_need, slot_size};
use super::key::{common_len, head_after};
use super::slots::arrays_at;
use super::{Damage, FLAG_COUNTED, HEADER, Kind, header};

/// Most bytes that an entry with a separator of this length takes.
pub(crate) fn footprint(separator_len: usize, counted: bool) -> usize {
    slot_size(counted) + 2 + separator_len
}

fn overflow() -> Damage {
    Damage("separators do not fit where the header says they do")
}

/// A child: its reference, and the number of records under it where that is kept.
#[derive(Clone, Copy)]
pub(super) struct Child {
    reference: u64,
    records: u64,
}

impl Child {
    pub(super) fn new(reference: u64) -> Child {
        Child { reference, records: 0 }
    }

    fn of(branch: &Branch<'_>, i: usize) -> Result<Child, Damage> {
        Ok(Child { reference: branch.child(i)?, records: branch.records_or_0(i)? })
    }
}

/// Separators and children of a branch that is to be written.
#[derive(Default)]
pub(super) struct Parts {
    bytes: Vec<u8>,
    pub(super) entries: Vec<(std::ops::Range<usize>, Child)>,
}

impl Parts {
    pub(super) fn push(&mut self, separator: &[u8], child: Child) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(separator);
        self.entries.push((start..self.bytes.len(), child));
    }

    /// Adds entries [from, to) of a branch; `first` stands for the separator of the first.
    pub(super) fn extend(
        &mut self,
        branch: &Branch<'_>,
        from: usize,
        to: usize,
        first: Option<&[u8]>,
    ) -> Result<(), Damage> {
        let mut separator = Vec::new();
        for i in from..to {
            match first {
                Some(first) if i == from => self.push(first, Child::of(branch, i)?),
                _ => {
                    branch.separator(i, &mut separator)?;
                    self.push(&separator, Child::of(branch, i)?);
                }
            }
        }
        Ok(())
    }

    pub(super) fn separator(&self, i: usize) -> &[u8] {
        self.entries.get(i).and_then(|(r, _)| self.bytes.get(r.clone())).unwrap_or_default()
    }

    /// The prefix with which the entries take the least room, at most `max` bytes.
    ///
    /// A byte of prefix saves one or more in each separator that does not fit its head, and nothing
    /// once all do: so it is what all separators share, but no more than the longest needs.
    pub(super) fn prefix(&self, custom: bool, max: usize) -> &[u8] {
        let (first, last) = (self.separator(1), self.separator(self.entries.len().max(1) - 1));
        let shared = if custom || self.entries.len() < 2 { 0 } else { common_len(first, last) };
        let longest = self.entries.iter().skip(1).map(|(r, _)| r.len()).max().unwrap_or(0);
        let len = shared.min(max).min((longest + 1).saturating_sub(IN_HEAD));
        first.get(..len).unwrap_or_default()
    }

    /// Bytes after the header that the entries take with a prefix of this length.
    pub(super) fn size_with(&self, prefix_len: usize, custom: bool, counted: bool) -> usize {
        let count = self.entries.len();
        let heap = (1..count).map(|i| heap_need(self.separator(i).len(), prefix_len, custom));
        prefix_len + slot_size(counted) * count + heap.sum::<usize>()
    }

    /// Writes the entries into `page`, which keeps level, table and flags; false when they do not
    /// fit: the page is as it was.
    pub(super) fn write(&self, page: &mut [u8]) -> Result<bool, Damage> {
        let custom = header::is_custom(page);
        let count = self.entries.len();
        let capacity = page.len() - HEADER;
        let prefix = self.prefix(custom, page.len() / 16);
        if self.size_with(prefix.len(), custom, header::is_counted(page)) > capacity {
            return Ok(false);
        }
        let end = page.len() as u32;
        header::set_count(page, count as u16);
        header::set_prefix_len(page, prefix.len() as u16);
        header::set_heap(page, end);
        header::set_garbage(page, 0);
        let to = page.get_mut(HEADER..HEADER + prefix.len()).ok_or_else(overflow)?;
        to.copy_from_slice(prefix);
        for (i, (_, child)) in self.entries.iter().enumerate() {
            let separator = if i == 0 { None } else { Some(self.separator(i)) };
            write_entry(page, (i, count), separator, prefix.len(), *child)?;
        }
        Ok(true)
    }
}

fn heap_start(page: &[u8]) -> usize {
    (header::heap(page) as usize).min(page.len())
}

/// Fills slots and heap of entry `i` in arrays for `count` entries.
fn write_entry(
    page: &mut [u8],
    (i, count): (usize, usize),
    separator: Option<&[u8]>,
    prefix_len: usize,
    child: Child,
) -> Result<(), Damage> {
    let custom = header::is_custom(page);
    let (head, offset) = match separator {
        None => (0, 0),
        Some(separator) => {
            let rest = separator.get(prefix_len..).unwrap_or_default();
            let head = if custom { 0 } else { head_after(separator, prefix_len) };
            let in_heap = if custom {
                Some(rest)
            } else if rest.len() < IN_HEAD {
                None
            } else {
                rest.get(4..)
            };
            (head, in_heap.map_or(Ok(rest.len()), |bytes| push_heap(page, bytes))?)
        }
    };
    let heads = arrays_at(page);
    let head_at = heads + 4 * i;
    page.get_mut(head_at..head_at + 4).ok_or_else(overflow)?.copy_from_slice(&head.to_le_bytes());
    let stored = store_u16(page, heads + 4 * count + 2 * i, offset as u16)
        && store_u64(page, heads + 6 * count + 8 * i, child.reference)
        && (!header::is_counted(page)
            || store_u64(page, heads + 14 * count + 8 * i, child.records));
    if stored { Ok(()) } else { Err(overflow()) }
}

/// Puts bytes with their length into the heap; gives their place.
fn push_heap(page: &mut [u8], bytes: &[u8]) -> Result<usize, Damage> {
    let heap = heap_start(page);
    let at = heap.checked_sub(2 + bytes.len()).ok_or_else(overflow)?;
    let to = page.get_mut(at + 2..heap).ok_or_else(overflow)?;
    to.copy_from_slice(bytes);
    if !store_u16(page, at, bytes.len() as u16) {
        return Err(overflow());
    }
    header::set_heap(page, at as u32);
    Ok(at)
}

/// Makes `page` a branch without children.
pub(crate) fn init(page: &mut [u8], level: u8, table: u32, custom: bool, counted: bool) {
    header::init(page, Kind::Branch, level, table, custom);
    if counted {
        let flags = header::flags(page) | FLAG_COUNTED;
        header::set_flags(page, flags);
    }
}

/// Gives a branch without children its first.
pub(crate) fn set_first(page: &mut [u8], child: u64) -> Result<(), Damage> {
    header::set_count(page, 1);
    write_entry(page, (0, 1), None, 0, Child::new(child))
}

/// Inserts a child at `i` (at least 1) with its separator; false when there is no room.
pub(crate) fn insert(
    page: &mut [u8],
    i: usize,
    separator: &[u8],
    child: u64,
) -> Result<bool, Damage> {
    let branch = Branch::new(page)?;
    let count = branch.count();
    if i == 0 || i > count {
        return Err(Damage("a child inserted where none can be"));
    }
    let custom = header::is_custom(page);
    let prefix_len = branch.prefix().len();
    let shares = count > 1 && (custom || separator.starts_with(branch.prefix()));
    let arrays_end = HEADER + prefix_len + slot_size(branch.is_counted()) * (count + 1);
    if shares && arrays_end + heap_need(separator.len(), prefix_len, custom) <= heap_start(page) {
        open_slot(page, i, count)?;
        header::set_count(page, count as u16 + 1);
        write_entry(page, (i, count + 1), Some(separator), prefix_len, Child::new(child))?;
        return Ok(true);
    }
    let own = page.to_vec();
    let own = Branch::new(&own)?;
    let mut parts = Parts::default();
    parts.extend(&own, 0, i, None)?;
    parts.push(separator, Child::new(child));
    parts.extend(&own, i, count, None)?;
    parts.write(page)
}

/// Shifts the arrays apart for a new entry at `i`.
fn open_slot(page: &mut [u8], i: usize, count: usize) -> Result<(), Damage> {
    let heads = arrays_at(page);
    let (offsets, children) = (heads + 4 * count, heads + 6 * count);
    let (records, slot) = (children + 8 * count, slot_size(header::is_counted(page)));
    if arrays_end(page, count) + slot > page.len() || i > count {
        return Err(overflow());
    }
    if header::is_counted(page) {
        page.copy_within(records + 8 * i..records + 8 * count, records + 8 * i + slot);
        page.copy_within(records..records + 8 * i, records + 14);
    }
    page.copy_within(children + 8 * i..records, children + 8 * i + 14);
    page.copy_within(children..children + 8 * i, children + 6);
    page.copy_within(offsets + 2 * i..children, offsets + 2 * i + 6);
    page.copy_within(offsets..offsets + 2 * i, offsets + 4);
    page.copy_within(heads + 4 * i..offsets, heads + 4 * i + 4);
    Ok(())
}

/// Removes a child; the one after a removed first child becomes the first.
pub(crate) fn remove(page: &mut [u8], i: usize) -> Result<(), Damage> {
    remove_range(page, i, i + 1)
}

/// Removes children [from, to).
pub(crate) fn remove_range(page: &mut [u8], from: usize, to: usize) -> Result<(), Damage> {
    let branch = Branch::new(page)?;
    let count = branch.count();
    if from > to || to > count {
        return Err(Damage("removal past the last child"));
    }
    // The first child has no separator: the one that takes its place loses what it had.
    let dead = from..if from == 0 && from < to { (to + 1).min(count) } else { to };
    let spans = dead.map(|i| branch.heap_span(i)).collect::<Result<Vec<_>, Damage>>()?;
    close_slots(page, from, to, count)?;
    let count = count - (to - from);
    header::set_count(page, count as u16);
    for (at, size) in spans {
        discard(page, at, size);
    }
    if from == 0 && to > 0 && count > 0 {
        let first = arrays_at(page);
        let head = page.get_mut(first..first + 4).ok_or_else(overflow)?;
        head.fill(0);
        if !store_u16(page, first + 4 * count, 0) {
            return Err(overflow());
        }
    }
    Ok(())
}

/// Where the arrays for `count` entries end.
fn arrays_end(page: &[u8], count: usize) -> usize {
    arrays_at(page) + slot_size(header::is_counted(page)) * count
}

/// Closes the arrays over entries [from, to).
fn close_slots(page: &mut [u8], from: usize, to: usize, count: usize) -> Result<(), Damage> {
    let heads = arrays_at(page);
    let (offsets, children) = (heads + 4 * count, heads + 6 * count);
    let records = children + 8 * count;
    if arrays_end(page, count) > page.len() || from > to || to > count {
        return Err(overflow());
    }
    let left = count - (to - from);
    let (new_offsets, new_children) = (heads + 4 * left, heads + 6 * left);
    page.copy_within(heads + 4 * to..offsets, heads + 4 * from);
    page.copy_within(offsets..offsets + 2 * from, new_offsets);
    page.copy_within(offsets + 2 * to..children, new_offsets + 2 * from);
    page.copy_within(children..children + 8 * from, new_children);
    page.copy_within(children + 8 * to..records, new_children + 8 * from);
    if header::is_counted(page) {
        let new_records = heads + 14 * left;
        page.copy_within(records..records + 8 * from, new_records);
        page.copy_within(records + 8 * to..records + 8 * count, new_records + 8 * from);
    }
    Ok(())
}

/// Books heap bytes that nothing refers to any more.
fn discard(page: &mut [u8], at: usize, size: usize) {
    if size > 0 && at == header::heap(page) as usize {
        header::set_heap(page, (at + size) as u32);
    } else {
        let garbage = header::garbage(page).saturating_add(size as u32);
        header::set_garbage(page, garbage);
    }
}

/// Replaces the reference of a child.
pub(crate) fn set_child(page: &mut [u8], i: usize, child: u64) -> Result<(), Damage> {
    let count = usize::from(header::count(page));
    let at = arrays_at(page) + 6 * count + 8 * i;
    if i < count && store_u64(page, at, child) { Ok(()) } else { Err(overflow()) }
}

/// Sets the number of records under a child, in a branch that stores it.
pub(crate) fn set_records(page: &mut [u8], i: usize, records: u64) -> Result<(), Damage> {
    let count = usize::from(header::count(page));
    let at = arrays_at(page) + 14 * count + 8 * i;
    let stored = header::is_counted(page) && i < count && store_u64(page, at, records);
    if stored { Ok(()) } else { Err(overflow()) }
}

/// Replaces the separator of child `i` (at least 1); false when there is no room.
pub(crate) fn set_separator(page: &mut [u8], i: usize, separator: &[u8]) -> Result<bool, Damage> {
    let branch = Branch::new(page)?;
    let (count, prefix_len) = (branch.count(), branch.prefix().len());
    if i == 0 || i >= count {
        return Err(Damage("a separator set where none can be"));
    }
    let custom = header::is_custom(page);
    let shares = custom || separator.starts_with(branch.prefix());
    let need = heap_need(separator.len(), prefix_len, custom);
    if shares && arrays_end(page, count) + need <= heap_start(page) {
        let (child, (at, size)) = (Child::of(&branch, i)?, branch.heap_span(i)?);
        discard(page, at, size);
        return write_entry(page, (i, count), Some(separator), prefix_len, child).map(|()| true);
    }
    let own = page.to_vec();
    let own = Branch::new(&own)?;
    let mut parts = Parts::default();
    parts.extend(&own, 0, i, None)?;
    parts.push(separator, Child::of(&own, i)?);
    parts.extend(&own, i + 1, own.count(), None)?;
    parts.write(page)
}

/// Adds children [from, to) of another branch before those of `page` or after them; `between`
/// then separates the two. False when they do not fit: the page is as it was.
pub(super) fn take(
    page: &mut [u8],
    at_end: bool,
    other: &Branch<'_>,
    (from, to): (usize, usize),
    between: &[u8],
) -> Result<bool, Damage> {
    let own = page.to_vec();
    let own = (Branch::new(&own)?, 0, usize::from(header::count(page)));
    let other = (*other, from, to);
    let [first, second] = if at_end { [own, other] } else { [other, own] };
    let mut parts = Parts::default();
    parts.extend(&first.0, first.1, first.2, None)?;
    parts.extend(&second.0, second.1, second.2, Some(between))?;
    parts.write(page)
}

/// Removes children [from, to) from one end of a page, which have moved to its neighbour. The page is
/// written anew if that is a good part of them: those left may share a longer prefix.
pub(super) fn cut(page: &mut [u8], (from, to): (usize, usize)) -> Result<(), Damage> {
    let count = Branch::new(page)?.count();
    if 4 * to.saturating_sub(from) < count {
        return remove_range(page, from, to);
    }
    let own = page.to_vec();
    let (first, last) = if from == 0 { (to, count) } else { (0, from) };
    let mut parts = Parts::default();
    parts.extend(&Branch::new(&own)?, first, last, Some(&[]))?;
    if parts.write(page)? { Ok(()) } else { Err(overflow()) }
}

/// Where to split a full branch that is to take a separator of this length at `i`: as evenly as both
/// sides certainly fit. With `append` an insertion at the end takes just the last child along,
/// so that sorted loads fill pages.
///
/// There is such a place: with an insertion at an end the child there and the new one are a side of their own. Between
/// two others, were both the cut before the new one and that after it too much, the page would have held more than it can.
pub(crate) fn split_point(
    page: &[u8],
    i: usize,
    separator_len: usize,
    append: bool,
) -> Result<usize, Damage> {
    let branch = Branch::new(page)?;
    let count = branch.count();
    let size = footprint(separator_len, branch.is_counted());
    if count < 3 {
        return Err(Damage("a full branch with fewer than three children"));
    }
    if append && i == count {
        return Ok(count - 1);
    }
    // A separator before or after all others may share nothing with them, and then whatever moves
    // to its side is stored whole. One between two others has their prefix.
    let at_edge = i <= 1 || i >= count;
    let prefix = if at_edge { branch.prefix().len() } else { 0 };
    let growth = if prefix > 0 { prefix + 2 } else { 0 };
    let capacity = page.len() - HEADER;
    let total = branch.used() + size;
    let mut best = None;
    let mut left = 0;
    for at in 1..count {
        left += branch.entry_size(at - 1)?;
        let new_goes_left = i <= at;
        let here = left + if new_goes_left { size } else { 0 };
        let there = total.saturating_sub(here);
        // The first child of a page has no separator: that of the right one's goes to the parent.
        let up = branch.entry_size(at)?.saturating_sub(slot_size(branch.is_counted()));
        let whole = match new_goes_left {
            true => here + growth * (at - 1),
            false => there.saturating_sub(up) + growth * (count - at - 1),
        };
        let uneven = here.abs_diff(there);
        if whole <= capacity && best.is_none_or(|(least, _)| uneven < least) {
            best = Some((uneven, at));
        }
    }
    best.map(|(_, at)| at).ok_or(Damage("no split makes room for a separator"))
}
