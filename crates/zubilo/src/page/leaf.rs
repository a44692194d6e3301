//! Changing leaves.
//!
//! The prefix of a leaf is exact when a key is inserted: it shrinks when a key does not share it,
//! and is derived anew whenever the page is packed. The heap is compacted when a gap is too small
//! but the page as a whole has room.
//!
//! What fits is decided by footprints alone: the sum of the entries' footprints is at most the page
//! without its header, and what keeps to this can be stored, for the prefix takes what is left, if
//! need be nothing. Heads after half a prefix distinguish little, though: an insertion shortens the prefix
//! for want of room only where the record is large ([`may_squeeze`]).

use crate::num::store_u16;

use super::key::{NormBuf, Order, SearchKey, common_len, head_after, same};
use super::leaf_read::{KEY_LEN_MAX, Leaf, RECORD_HEAD, ValueKind, key_field, record_at};
use super::row::Rules;
use super::slots::arrays_at;
use super::{Damage, HEADER, header};

/// Bytes of an entry's slots.
const SLOT: usize = 6;

/// Longest prefix kept, as a share of the page.
fn prefix_cap(page_size: usize) -> usize {
    page_size / 16
}

/// Bytes that an entry takes with its slots and padding, wherever it lies.
///
/// Header and key on one side of the aligned position and the value on the other are each rounded
/// up, so the cost does not depend on the neighbours: a page can be packed in any order of records
/// into the room that any other order took.
pub(crate) fn footprint(key_len: usize, value_len: usize, align: usize) -> usize {
    // `align` is a power of two, which the compiler does not know: it would divide.
    let up = |len: usize| (len + align - 1) & !(align - 1);
    SLOT + up(RECORD_HEAD + key_len) + up(value_len)
}

/// Footprints of all entries.
pub(crate) fn used(leaf: &Leaf<'_>, align: usize) -> Result<usize, Damage> {
    footprints(leaf, 0, leaf.count(), align)
}

/// Footprints of a leaf's entries.
fn footprints(leaf: &Leaf<'_>, from: usize, to: usize, align: usize) -> Result<usize, Damage> {
    // The page knows the sum of all, if nothing is rounded up.
    if align == 1 && from == 0 && to == leaf.count() {
        return Ok(leaf.used_without_prefix());
    }
    (from..to).try_fold(0, |sum, i| Ok(sum + entry_footprint(leaf, i, align)?))
}

pub(crate) fn entry_footprint(leaf: &Leaf<'_>, i: usize, align: usize) -> Result<usize, Damage> {
    let (key_len, value_len) = leaf.lengths(i)?;
    Ok(footprint(key_len, value_len, align))
}

/// Whether a record of this footprint may take the prefix's room.
///
/// A smaller one never needs it after a split: all records are then at most 1.25 C of a page's room
/// C and none is more than 0.5 C, so the most even cut leaves each side C / 8, more than a prefix.
fn may_squeeze(page: &[u8], size: usize) -> bool {
    4 * size >= page.len() - HEADER
}

fn overflow() -> Damage {
    Damage("records do not fit where the header says they do")
}

/// A value that an entry is to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewValue<'v> {
    pub(crate) kind: ValueKind,
    /// Bytes in the leaf.
    pub(crate) len: usize,
    /// What they are; empty where the caller fills them later.
    bytes: &'v [u8],
}

impl<'v> NewValue<'v> {
    /// A value that is known.
    #[inline]
    pub(crate) fn of(kind: ValueKind, bytes: &'v [u8]) -> NewValue<'v> {
        NewValue { kind, len: bytes.len(), bytes }
    }

    /// Room for a value, which the caller fills.
    #[inline]
    pub(crate) fn room(kind: ValueKind, len: usize) -> NewValue<'v> {
        NewValue { kind, len, bytes: &[] }
    }

    #[inline]
    fn store(&self, to: &mut [u8]) {
        if let Some(to) = to.get_mut(..self.bytes.len()) {
            to.copy_from_slice(self.bytes);
        }
    }
}

/// Inserts an entry at `i`; false when the page has no room.
pub(crate) fn insert(
    page: &mut [u8],
    i: usize,
    rules: &Rules<'_>,
    key: &[u8],
    value: NewValue<'_>,
) -> Result<bool, Damage> {
    let (order, align, len) = (rules.order, rules.align, value.len);
    let mut buf = NormBuf::default();
    let norm = SearchKey::new(order, key, &mut buf).norm();
    let leaf = Leaf::new(page)?;
    let count = leaf.count();
    if i > count {
        return Err(Damage("insertion past the last entry"));
    }
    if key.len() > KEY_LEN_MAX || len > usize::from(u16::MAX) {
        return Ok(false);
    }
    let prefix = leaf.prefix();
    let shares = count > 0 && norm.get(..prefix.len()).is_some_and(|start| same(start, prefix));
    let lens = (key.len(), len);
    let fits = if shares { place(page, prefix.len(), count, lens, align) } else { None };
    if fits.is_none() && !make_room(page, order, norm, lens, align)? {
        return Ok(false);
    }
    let prefix_len = usize::from(header::prefix_len(page));
    let anew = || place(page, prefix_len, count, lens, align);
    let start = fits.or_else(anew).ok_or_else(overflow)?;
    open_slots(page, i, 1, count)?;
    write_record(page, start, key, value)?;
    set_slot(page, i, count + 1, head_unless_custom(order, norm, prefix_len), start)?;
    header::set_count(page, count as u16 + 1);
    Ok(true)
}

/// As `insert`, where [`super::row::Row`] says that there is room: if need be without a prefix.
pub(crate) fn insert_surely(
    page: &mut [u8],
    i: usize,
    rules: &Rules<'_>,
    key: &[u8],
    value: NewValue<'_>,
) -> Result<(), Damage> {
    if insert(page, i, rules, key, value)? {
        return Ok(());
    }
    rebuild_to(page, rules.order, rules.align, 0)?;
    if insert(page, i, rules, key, value)? { Ok(()) } else { Err(overflow()) }
}

/// Fits prefix and heap to a record of these lengths (key, value); false when the page has no room for it.
#[inline(never)]
fn make_room(
    page: &mut [u8],
    order: &Order,
    norm: &[u8],
    (key_len, len): (usize, usize),
    align: usize,
) -> Result<bool, Damage> {
    let leaf = Leaf::new(page)?;
    let (count, prefix_len) = (leaf.count(), leaf.prefix().len());
    let size = footprint(key_len, len, align);
    let shared = match count {
        0 => first_prefix(page.len(), norm, size, order),
        _ => common_len(leaf.prefix(), norm),
    };
    if shared == prefix_len && place(page, prefix_len, count, (key_len, len), align).is_some() {
        return Ok(true);
    }
    let used = used(&leaf, align)?;
    let Some(room) = (page.len() - HEADER).checked_sub(used + size) else { return Ok(false) };
    if count == 0 {
        start_with_prefix(page, norm, shared.min(room))?;
    } else if room < shared && !may_squeeze(page, size) {
        return Ok(false);
    } else {
        rebuild_to(page, order, align, shared.min(room))?;
    }
    Ok(true)
}

#[inline]
fn head_unless_custom(order: &Order, norm: &[u8], prefix_len: usize) -> u32 {
    if order.is_custom() { 0 } else { head_after(norm, prefix_len) }
}

/// The prefix that a first key gives an empty page: all of it, so that sorted loads end with heads
/// that distinguish.
fn first_prefix(page_size: usize, norm: &[u8], need: usize, order: &Order) -> usize {
    if order.is_custom() {
        return 0;
    }
    norm.len().min(prefix_cap(page_size)).min((page_size - HEADER).saturating_sub(need))
}

fn start_with_prefix(page: &mut [u8], norm: &[u8], len: usize) -> Result<(), Damage> {
    let end = page.len() as u32;
    header::set_heap(page, end);
    header::set_garbage(page, 0);
    header::set_prefix_len(page, len as u16);
    let to = page.get_mut(HEADER..HEADER + len).ok_or_else(overflow)?;
    to.copy_from_slice(norm.get(..len).ok_or_else(overflow)?);
    Ok(())
}

/// Where a record of these lengths (key, value) would start in the gap between arrays and heap, if it
/// fits there.
#[inline(always)]
pub(super) fn place(
    page: &[u8],
    prefix_len: usize,
    count: usize,
    (key_len, len): (usize, usize),
    align: usize,
) -> Option<usize> {
    let start = below(heap_start(page), key_len, len, align)?;
    // The next record's block ends at a multiple of `align`: its padding is this record's share.
    (start & !(align - 1) >= HEADER + prefix_len + SLOT * (count + 1)).then_some(start)
}

/// Where a record starts that is put below `heap`.
#[inline(always)]
fn below(heap: usize, key_len: usize, len: usize, align: usize) -> Option<usize> {
    let value = (heap & !(align - 1)).checked_sub(len)? & !(align - 1);
    value.checked_sub(key_len + RECORD_HEAD)
}

/// Shifts the arrays apart for `n` new entries at `i`.
#[inline(always)]
fn open_slots(page: &mut [u8], i: usize, n: usize, count: usize) -> Result<(), Damage> {
    let heads = arrays_at(page);
    let offsets = heads + 4 * count;
    if offsets + 2 * count + SLOT * n > page.len() || i > count {
        return Err(overflow());
    }
    if i < count {
        page.copy_within(offsets + 2 * i..offsets + 2 * count, offsets + 2 * i + SLOT * n);
    }
    page.copy_within(offsets..offsets + 2 * i, offsets + 4 * n);
    if i < count {
        page.copy_within(heads + 4 * i..heads + 4 * count, heads + 4 * i + 4 * n);
    }
    Ok(())
}

/// Closes the arrays over entries [from, to).
fn close_slots(page: &mut [u8], from: usize, to: usize, count: usize) -> Result<(), Damage> {
    let heads = arrays_at(page);
    let offsets = heads + 4 * count;
    let gone = to - from;
    if offsets + 2 * count > page.len() || to > count {
        return Err(overflow());
    }
    page.copy_within(heads + 4 * to..heads + 4 * count, heads + 4 * from);
    let new_offsets = heads + 4 * (count - gone);
    page.copy_within(offsets..offsets + 2 * from, new_offsets);
    page.copy_within(offsets + 2 * to..offsets + 2 * count, new_offsets + 2 * from);
    Ok(())
}

/// Fills the slots of entry `i` in arrays for `count` entries.
#[inline]
fn set_slot(
    page: &mut [u8],
    i: usize,
    count: usize,
    head: u32,
    offset: usize,
) -> Result<(), Damage> {
    let heads = arrays_at(page);
    let at = heads + 4 * i;
    let to = page.get_mut(at..at + 4).ok_or_else(overflow)?;
    to.copy_from_slice(&head.to_le_bytes());
    if store_u16(page, heads + 4 * count + 2 * i, offset as u16) { Ok(()) } else { Err(overflow()) }
}

/// Writes a record at `start`, and books the heap.
#[inline]
fn write_record(
    page: &mut [u8],
    start: usize,
    key: &[u8],
    value: NewValue<'_>,
) -> Result<(), Damage> {
    let fields = store_u16(page, start, key_field(key.len(), value.kind))
        && store_u16(page, start + 2, value.len as u16);
    let value_at = start + RECORD_HEAD + key.len();
    match page.get_mut(start + RECORD_HEAD..value_at + value.len) {
        Some(to) if fields => {
            let (to_key, to_value) = to.split_at_mut_checked(key.len()).ok_or_else(overflow)?;
            to_key.copy_from_slice(key);
            value.store(to_value);
        }
        _ => return Err(overflow()),
    }
    book(page, start, value_at + value.len);
    Ok(())
}

/// Books the heap's growth by a record at [start, end); padding after it is garbage.
#[inline]
fn book(page: &mut [u8], start: usize, end: usize) {
    let heap = (header::heap(page) as usize).min(page.len());
    let padding = heap.saturating_sub(end);
    header::set_heap(page, start as u32);
    if padding > 0 {
        let garbage = header::garbage(page).saturating_add(padding as u32);
        header::set_garbage(page, garbage);
    }
}

/// Removes an entry.
pub(crate) fn remove(page: &mut [u8], i: usize) -> Result<(), Damage> {
    remove_range(page, i, i + 1)
}

/// Removes entries [from, to).
pub(crate) fn remove_range(page: &mut [u8], from: usize, to: usize) -> Result<(), Damage> {
    let leaf = Leaf::new(page)?;
    let count = leaf.count();
    if from > to || to > count {
        return Err(Damage("removal past the last entry"));
    }
    let mut heap = header::heap(page) as usize;
    let mut garbage = header::garbage(page) as usize;
    for i in from..to {
        let entry = leaf.entry(i)?;
        let size = RECORD_HEAD + entry.key.len() + entry.value.len();
        if leaf.offset(i)? == heap {
            heap += size;
        } else {
            garbage += size;
        }
    }
    close_slots(page, from, to, count)?;
    header::set_count(page, (count - (to - from)) as u16);
    if to - from == count {
        return start_with_prefix(page, &[], 0);
    }
    header::set_heap(page, heap as u32);
    header::set_garbage(page, garbage as u32);
    Ok(())
}

/// Gives an entry another value; false when the page has no room, and the entry is as it was.
pub(crate) fn set_value(
    page: &mut [u8],
    i: usize,
    rules: &Rules<'_>,
    value: NewValue<'_>,
) -> Result<bool, Damage> {
    let (align, len) = (rules.align, value.len);
    let leaf = Leaf::new(page)?;
    let entry = leaf.entry(i)?;
    if entry.value.len() == len {
        let (at, key_len) = (leaf.offset(i)?, entry.key.len());
        if !store_u16(page, at, key_field(key_len, value.kind)) {
            return Err(overflow());
        }
        value.store(value_mut(page, i)?);
        return Ok(true);
    }
    let key_len = entry.key.len();
    let used = used(&leaf, align)?;
    let (old, new) = (footprint(key_len, entry.value.len(), align), footprint(key_len, len, align));
    let keep = if may_squeeze(page, new) { 0 } else { leaf.prefix().len() };
    if used + new + keep > page.len() - HEADER + old || len > usize::from(u16::MAX) {
        return Ok(false);
    }
    let key = entry.key.to_vec();
    remove(page, i)?;
    if insert(page, i, rules, &key, value)? { Ok(true) } else { Err(overflow()) }
}

/// Gives the value of an entry, in a leaf without alignment, another length: it keeps what it has of
/// its bytes, new ones at its end are left to the caller. `None` when the page has no room.
///
/// The records below move by the difference, so that a value can grow often without making garbage.
pub(crate) fn resize_value<'p>(
    page: &'p mut [u8],
    i: usize,
    order: &Order,
    len: usize,
) -> Result<Option<&'p mut [u8]>, Damage> {
    let leaf = Leaf::new(page)?;
    let (count, old) = (leaf.count(), leaf.value_range(i)?.len());
    if len > usize::from(u16::MAX) {
        return Ok(None);
    }
    let arrays_end = arrays_at(page) + SLOT * count;
    let gap = heap_start(page).saturating_sub(arrays_end);
    let more = len.saturating_sub(old);
    if more > gap {
        if more > gap + header::garbage(page) as usize {
            return Ok(None);
        }
        // With the prefix it has at most, so that what was garbage suffices.
        let prefix_len = usize::from(header::prefix_len(page));
        rebuild_to(page, order, 1, prefix_len)?;
    }
    let leaf = Leaf::new(page)?;
    let (record, value) = (leaf.offset(i)?, leaf.value_range(i)?);
    let heap = heap_start(page);
    if record < heap || value.end > page.len() {
        return Err(overflow());
    }
    if len >= old {
        let by = len - old;
        page.copy_within(heap..value.end, heap.checked_sub(by).ok_or_else(overflow)?);
    } else {
        let kept = value.start + len;
        page.copy_within(heap..kept, heap + (old - len));
    }
    let by = (old as u16).wrapping_sub(len as u16);
    let offsets = arrays_at(page) + 4 * count;
    let offsets = page.get_mut(offsets..offsets + 2 * count).ok_or_else(overflow)?;
    for offset in offsets.as_chunks_mut::<2>().0 {
        let at = u16::from_le_bytes(*offset);
        if usize::from(at) <= record {
            *offset = at.wrapping_add(by).to_le_bytes();
        }
    }
    header::set_heap(page, (heap + old - len) as u32);
    if !store_u16(page, record + old - len + 2, len as u16) {
        return Err(overflow());
    }
    value_mut(page, i).map(Some)
}

fn heap_start(page: &[u8]) -> usize {
    (header::heap(page) as usize).min(page.len())
}

/// The value bytes of an entry.
pub(crate) fn value_mut(page: &mut [u8], i: usize) -> Result<&mut [u8], Damage> {
    let range = Leaf::new(page)?.value_range(i)?;
    page.get_mut(range).ok_or_else(overflow)
}

/// Entries of a leaf, [from, to).
type Part<'s> = (Leaf<'s>, usize, usize);

/// Writes the entries of `parts` into `page`, which keeps kind, level, table and flags, without
/// gaps and with the longest prefix (at most `prefix_max`). False when they do not fit: the page is
/// as it was.
fn pack(
    page: &mut [u8],
    parts: &[Part<'_>],
    order: &Order,
    align: usize,
    prefix_max: usize,
) -> Result<bool, Damage> {
    let mut need = 0;
    let mut count = 0;
    for (leaf, from, to) in parts {
        need += footprints(leaf, *from, *to, align)?;
        count += to.saturating_sub(*from);
    }
    let Some(room) = (page.len() - HEADER).checked_sub(need) else { return Ok(false) };
    let prefix = common_prefix(parts, order)?;
    let len = prefix.len().min(prefix_max).min(prefix_cap(page.len())).min(room);
    start_with_prefix(page, &prefix, len)?;
    header::set_count(page, count as u16);
    let mut slot = 0;
    for part in parts {
        write_part(page, part, (slot, count), order, align)?;
        slot += part.2.saturating_sub(part.1);
    }
    Ok(true)
}

/// Writes entries of a leaf below the heap of a page, whose arrays have room for `count` entries; the
/// first gets slot `slot`. They share the page's prefix.
fn write_part(
    page: &mut [u8],
    (leaf, from, end): &Part<'_>,
    (slot, count): (usize, usize),
    order: &Order,
    align: usize,
) -> Result<(), Damage> {
    let arrays = arrays_at(page);
    let (prefix_len, arrays_end) = (arrays - HEADER, arrays + SLOT * count);
    let same_heads = order.is_custom() || leaf.prefix().len() == prefix_len;
    let (mut heap, mut garbage) = (heap_start(page), header::garbage(page));
    let (slots, records) = page.split_at_mut_checked(arrays_end).ok_or_else(overflow)?;
    let slots = slots.get_mut(arrays..).and_then(|slots| slots.split_at_mut_checked(4 * count));
    let (heads, offsets) = slots.ok_or_else(overflow)?;
    let to = heads.as_chunks_mut::<4>().0.iter_mut().zip(offsets.as_chunks_mut::<2>().0).skip(slot);
    for ((own_head, at), (head, offset)) in leaf.each_slot(*from, *end)?.zip(to) {
        let (record, key_len) = record_at(leaf.page(), at)?;
        let start = below(heap, key_len, record.len() - RECORD_HEAD - key_len, align);
        let start = start.ok_or_else(overflow)?;
        let place = start.checked_sub(arrays_end).and_then(|at| records.get_mut(at..));
        let place = place.and_then(|place| place.get_mut(..record.len()));
        place.ok_or_else(overflow)?.copy_from_slice(record);
        garbage = garbage.saturating_add((heap - start - record.len()) as u32);
        heap = start;
        let key = || record.get(RECORD_HEAD..RECORD_HEAD + key_len).unwrap_or_default();
        let new = if same_heads { own_head } else { head_of_key(key(), order, prefix_len) };
        *head = new.to_le_bytes();
        *offset = (start as u16).to_le_bytes();
    }
    header::set_heap(page, heap as u32);
    header::set_garbage(page, garbage);
    Ok(())
}

fn head_of_key(key: &[u8], order: &Order, prefix_len: usize) -> u32 {
    if let Some(key) = order.as_it_is(key) {
        return head_after(key.norm(), prefix_len);
    }
    let mut buf = NormBuf::default();
    head_after(SearchKey::new(order, key, &mut buf).norm(), prefix_len)
}

/// What the normal forms of the first and the last key share, and so all between.
fn common_prefix(parts: &[Part<'_>], order: &Order) -> Result<Vec<u8>, Damage> {
    let first = parts.iter().find(|(_, from, to)| from < to);
    let last = parts.iter().rev().find(|(_, from, to)| from < to);
    let (Some((a, from, _)), Some((b, _, to))) = (first, last) else { return Ok(Vec::new()) };
    if order.is_custom() {
        return Ok(Vec::new());
    }
    let (mut x, mut y) = (NormBuf::default(), NormBuf::default());
    let first = SearchKey::new(order, a.key(*from)?, &mut x);
    let last = SearchKey::new(order, b.key(*to - 1)?, &mut y);
    let len = common_len(first.norm(), last.norm());
    Ok(first.norm().get(..len).unwrap_or_default().to_vec())
}

/// Compacts the page and derives its prefix anew.
pub(crate) fn rebuild(page: &mut [u8], order: &Order, align: usize) -> Result<(), Damage> {
    rebuild_to(page, order, align, usize::MAX)
}

/// As `rebuild`, with a prefix of at most so many bytes.
pub(crate) fn rebuild_to(
    page: &mut [u8],
    order: &Order,
    align: usize,
    prefix_max: usize,
) -> Result<(), Damage> {
    let count = usize::from(header::count(page));
    keep(page, (0, count), order, align, prefix_max)
}

/// Leaves the page with its entries [from, to), without gaps.
fn keep(
    page: &mut [u8],
    (from, to): (usize, usize),
    order: &Order,
    align: usize,
    prefix_max: usize,
) -> Result<(), Damage> {
    let own = page.to_vec();
    let fits = pack(page, &[(Leaf::new(&own)?, from, to)], order, align, prefix_max)?;
    if fits { Ok(()) } else { Err(overflow()) }
}

/// Inserts entries [from, to) of another leaf at `at`; false, and nothing is changed, when they do
/// not fit.
pub(super) fn take(
    page: &mut [u8],
    at: usize,
    other: &Leaf<'_>,
    (from, to): (usize, usize),
    rules: &Rules<'_>,
) -> Result<bool, Damage> {
    let (order, align) = (rules.order, rules.align);
    let count = Leaf::new(page)?.count();
    if at > count || from > to || to > other.count() {
        return Err(Damage("entries taken that are not there"));
    }
    if from == to || (align == 1 && take_in_place(page, at, other, (from, to), order)?) {
        return Ok(true);
    }
    let own = page.to_vec();
    let own = Leaf::new(&own)?;
    let parts = [(own, 0, at), (*other, from, to), (own, at, count)];
    pack(page, &parts, order, align, usize::MAX)
}

/// As `take`, of entries that share the page's prefix and fit between its arrays and its heap; false
/// where they do not.
fn take_in_place(
    page: &mut [u8],
    at: usize,
    other: &Leaf<'_>,
    (from, to): (usize, usize),
    order: &Order,
) -> Result<bool, Damage> {
    let (count, n) = (usize::from(header::count(page)), to - from);
    let heap = heap_start(page);
    let bytes = footprints(other, from, to, 1)?;
    let arrays_end = arrays_at(page) + SLOT * count;
    if count == 0 || arrays_end + bytes > heap {
        return Ok(false);
    }
    let prefix = Leaf::new(page)?.prefix();
    for i in [from, to - 1] {
        let mut buf = NormBuf::default();
        if !SearchKey::new(order, other.key(i)?, &mut buf).norm().starts_with(prefix) {
            return Ok(false);
        }
    }
    open_slots(page, at, n, count)?;
    write_part(page, &(*other, from, to), (at, count + n), order, 1)?;
    header::set_count(page, (count + n) as u16);
    Ok(true)
}

/// Removes entries [from, to) from one end of a page, which have moved to its neighbour. The page is
/// compacted if that is a good part of them: those left may share a longer prefix.
pub(super) fn cut(
    page: &mut [u8],
    (from, to): (usize, usize),
    order: &Order,
    align: usize,
) -> Result<(), Damage> {
    let count = Leaf::new(page)?.count();
    if 4 * to.saturating_sub(from) < count {
        return remove_range(page, from, to);
    }
    let rest = if from == 0 { (to, count) } else { (0, from) };
    keep(page, rest, order, align, usize::MAX)
}
