//! Packed leaves: sorted items without values, one after the other. The values of one key are kept
//! so: few of them inside their record, more in the pages of a tree of their own.
//!
//! `header | items` where all items have one size, which the header names; else
//! `header | ends | items`, where an end is the length of all items up to and with its own. The header
//! is that of a page, or a short one in a record; what follows it, the *body*, is the same, so a small
//! set becomes a page, and a page a small set, by a copy. No prefix, no heads, no heap.
//!
//! Invariants: all items lie inside the body, and they ascend strictly in the order of the values. A
//! set in a record has at least two.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use crate::num::{load_u16, store_u16};

use super::key::Order;
use super::{Damage, FLAG_CUSTOM, HEADER, Kind, header};

const NOT_INSIDE: Damage = Damage("packed items do not fit their page or record");
const NO_SUCH_ITEM: Damage = Damage("index past the last item");

/// Bytes of an end.
const END: usize = 2;
/// Bytes that tell most items apart.
const HEAD: usize = 8;

/// A packed leaf, the extent of its items checked.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'p> {
    /// Size of all items; 0 when they differ.
    size: usize,
    count: usize,
    /// The end of each item, where they differ.
    ends: &'p [[u8; END]],
    items: &'p [u8],
}

/// Some neighbouring items, to be taken from both ends.
pub(crate) struct Items<'p> {
    of: Packed<'p>,
    /// The first one, and where it starts.
    first: usize,
    start: usize,
    end: usize,
}

impl<'p> Items<'p> {
    #[inline(always)]
    pub(crate) fn new(of: Packed<'p>, items: std::ops::Range<usize>) -> Items<'p> {
        Items { of, first: items.start, start: of.start(items.start), end: items.end }
    }

    /// No items.
    pub(crate) fn none() -> Items<'p> {
        Items::new(Packed { size: 0, count: 0, ends: &[], items: &[] }, 0..0)
    }

    /// How many are left.
    pub(crate) fn len(&self) -> usize {
        self.end - self.first
    }

    /// The first one; none also where it is not inside the leaf.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<&'p [u8]> {
        if self.first >= self.end {
            return None;
        }
        let end = match self.of.size {
            0 => usize::from(u16::from_le_bytes(*self.of.ends.get(self.first)?)),
            size => self.start + size,
        };
        let item = self.of.items.get(self.start..end)?;
        (self.first, self.start) = (self.first + 1, end);
        Some(item)
    }

    /// The last one, likewise.
    pub(crate) fn next_back(&mut self) -> Option<&'p [u8]> {
        let last = self.end.checked_sub(1).filter(|last| *last >= self.first)?;
        let item = self.of.item(last).ok()?;
        self.end = last;
        Some(item)
    }
}

impl<'p> Packed<'p> {
    /// The packed leaf in `page`.
    #[inline]
    pub(crate) fn new(page: &'p [u8]) -> Result<Packed<'p>, Damage> {
        if header::kind_and_level(page) != (Kind::Packed as u8, 0) {
            return Err(Damage("expected a packed leaf page"));
        }
        let (size, count) = (header::item_size(page) as usize, usize::from(header::count(page)));
        Packed::of_body(page.get(HEADER..).ok_or(NOT_INSIDE)?, size, count)
    }

    /// The small set in a record.
    #[inline]
    pub(crate) fn in_record(value: &'p [u8]) -> Result<Packed<'p>, Damage> {
        let (head, size, count) = record_header(value)?;
        if count < 2 {
            return Err(Damage("a set of fewer than two values"));
        }
        Packed::of_body(value.get(head..).ok_or(NOT_INSIDE)?, size, count)
    }

    #[inline(always)]
    fn of_body(body: &'p [u8], size: usize, count: usize) -> Result<Packed<'p>, Damage> {
        if size > 0 {
            let items = count.checked_mul(size).and_then(|len| body.get(..len));
            return Ok(Packed { size, count, ends: &[], items: items.ok_or(NOT_INSIDE)? });
        }
        let (ends, items) = body.split_at_checked(END * count).ok_or(NOT_INSIDE)?;
        let ends = ends.as_chunks::<END>().0;
        let len = ends.last().map_or(0, |end| u16::from_le_bytes(*end));
        let items = items.get(..usize::from(len)).ok_or(NOT_INSIDE)?;
        Ok(Packed { size, count, ends, items })
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// All items, one after the other, and their size, if they have one.
    #[inline]
    pub(crate) fn of_one_size(&self) -> Option<(&'p [u8], usize)> {
        (self.size > 0).then_some((self.items, self.size))
    }

    /// Size of all items; 0 where they differ.
    pub(crate) fn item_size(&self) -> usize {
        self.size
    }

    /// Where an item starts; after the last one the end of all.
    #[inline(always)]
    fn start(&self, i: usize) -> usize {
        if self.size > 0 {
            return i * self.size;
        }
        // Before the first item is no end.
        self.ends.get(i.wrapping_sub(1)).map_or(0, |end| usize::from(u16::from_le_bytes(*end)))
    }

    #[inline(always)]
    pub(crate) fn item(&self, i: usize) -> Result<&'p [u8], Damage> {
        if i >= self.count {
            return Err(NO_SUCH_ITEM);
        }
        self.items.get(self.start(i)..self.start(i + 1)).ok_or(NO_SUCH_ITEM)
    }

    /// Index of an item, or where it would be inserted.
    pub(crate) fn search(
        &self,
        order: &Order,
        item: &[u8],
    ) -> Result<Result<usize, usize>, Damage> {
        match (order, item.first_chunk::<HEAD>()) {
            (Order::Bytes, Some(head)) => {
                // Bytes compare as big-endian numbers do, and most items differ early.
                let head = u64::from_be_bytes(*head);
                self.search_by(|own| match own.first_chunk::<HEAD>() {
                    Some(own) if u64::from_be_bytes(*own) != head => {
                        head.cmp(&u64::from_be_bytes(*own))
                    }
                    _ => item.cmp(own),
                })
            }
            _ => self.search_by(|own| order.compare(item, own)),
        }
    }

    /// As `search`; `compare` says how the item looked for compares with one of these.
    ///
    /// Which half comes next cannot be predicted, so the steps do not branch on it.
    #[inline(always)]
    fn search_by(
        &self,
        compare: impl Fn(&[u8]) -> Ordering,
    ) -> Result<Result<usize, usize>, Damage> {
        if self.count == 0 {
            return Ok(Err(0));
        }
        let (mut low, mut len) = (0, self.count);
        while len > 1 {
            let half = len / 2;
            let is_before = compare(self.item(low + half)?).is_lt();
            low = select_unpredictable(is_before, low, low + half);
            len -= half;
        }
        Ok(match compare(self.item(low)?) {
            Ordering::Equal => Ok(low),
            Ordering::Less => Err(low),
            Ordering::Greater => Err(low + 1),
        })
    }

    /// Bytes of the body.
    pub(crate) fn used(&self) -> usize {
        END * self.ends.len() + self.items.len()
    }

    /// Bytes that an item takes.
    pub(crate) fn entry_size(&self, i: usize) -> Result<usize, Damage> {
        Ok(footprint(self.size, self.item(i)?.len()))
    }

    /// Bytes that a record needs for these items.
    pub(crate) fn len_in_record(&self) -> usize {
        record_head(self.size) + self.used()
    }

    /// Checks that the items lie one after the other and ascend.
    pub(crate) fn check(&self, order: &Order) -> Result<(), Damage> {
        for i in 0..self.count {
            let item = self.item(i)?;
            if i > 0 && !order.compare(self.item(i - 1)?, item).is_lt() {
                return Err(Damage("items are not in order"));
            }
        }
        Ok(())
    }
}

/// Bytes that an item of this length takes where all have `size`, which is 0 if they differ.
pub(crate) fn footprint(size: usize, len: usize) -> usize {
    if size > 0 { size } else { END + len }
}

/// Checks the fields of a packed page's header that packed pages do not use.
pub(crate) fn check_header(page: &[u8], order: &Order) -> Result<(), Damage> {
    if (header::flags(page) & FLAG_CUSTOM != 0) != order.is_custom() {
        return Err(Damage("the page was written for another kind of order"));
    }
    let heapless = header::heap(page) as usize == page.len() && header::garbage(page) == 0;
    if !heapless || header::prefix_len(page) != 0 {
        return Err(Damage("a packed leaf with a heap or a prefix"));
    }
    Ok(())
}

/// Makes `page` an empty packed leaf for items of one size, or with 0 of any; false when not even two
/// of this size would fit.
pub(crate) fn init(page: &mut [u8], table: u32, custom: bool, item_size: usize) -> bool {
    if item_size > (page.len() - HEADER) / 2 {
        return false;
    }
    header::init(page, Kind::Packed, 0, table, custom);
    header::set_item_size(page, item_size as u32);
    true
}

/// Index where `item` belongs, `Err` when it is there already.
#[cfg(test)]
pub(crate) fn position(
    page: &[u8],
    order: &Order,
    item: &[u8],
) -> Result<Result<usize, usize>, Damage> {
    Packed::new(page)?.search(order, item)
}

/// Items to be put into a body, one after the other.
#[derive(Clone, Copy)]
struct Run<'i> {
    items: &'i [u8],
    /// How many there are, and where they end in an array of ends that begin at `base`.
    count: usize,
    ends: &'i [[u8; END]],
    base: usize,
}

/// Opens a body at item `at` and puts items there; it has `size` and `count` as yet, and room after it.
#[inline]
fn open(
    body: &mut [u8],
    (size, count): (usize, usize),
    at: usize,
    run: Run<'_>,
) -> Result<(), Damage> {
    let own = Packed::of_body(body, size, count)?;
    let (start, used) = (own.start(at), own.used());
    let (n, bytes) = (run.count, run.items.len());
    if at > count || start > own.items.len() || used + bytes > body.len() {
        return Err(NOT_INSIDE);
    }
    if size > 0 {
        body.copy_within(start..used, start + bytes);
        body.get_mut(start..start + bytes).ok_or(NOT_INSIDE)?.copy_from_slice(run.items);
        return Ok(());
    }
    let (old, new) = (END * count, END * (count + n));
    if used + bytes + END * n > body.len() {
        return Err(NOT_INSIDE);
    }
    body.copy_within(old + start..used, new + start + bytes);
    body.copy_within(old..old + start, new);
    body.copy_within(END * at..old, END * (at + n));
    let to = body.get_mut(new + start..new + start + bytes).ok_or(NOT_INSIDE)?;
    to.copy_from_slice(run.items);
    shift_ends(body, at + n..count + n, bytes as u16)?;
    let ends = body.get_mut(END * at..END * (at + n)).ok_or(NOT_INSIDE)?.as_chunks_mut::<END>().0;
    for (to, end) in ends.iter_mut().zip(run.ends) {
        let end = usize::from(u16::from_le_bytes(*end)).wrapping_sub(run.base);
        *to = ((start.wrapping_add(end)) as u16).to_le_bytes();
    }
    Ok(())
}

/// Takes items [from, to) out of a body; gives the bytes that the others fill.
fn close(
    body: &mut [u8],
    (size, count): (usize, usize),
    (from, to): (usize, usize),
) -> Result<usize, Damage> {
    let own = Packed::of_body(body, size, count)?;
    if from > to || to > count {
        return Err(NO_SUCH_ITEM);
    }
    let (start, end, used) = (own.start(from), own.start(to), own.used());
    if end < start || end > own.items.len() {
        return Err(NOT_INSIDE);
    }
    if size > 0 {
        body.copy_within(end..used, start);
        return Ok(used - (end - start));
    }
    let gone = end - start;
    let (old, new) = (END * count, END * (count - (to - from)));
    shift_ends(body, to..count, (gone as u16).wrapping_neg())?;
    body.copy_within(END * to..old, END * from);
    body.copy_within(old..old + start, new);
    body.copy_within(old + end..used, new + start);
    Ok(used - gone - (old - new))
}

/// Adds to the ends in a range of indexes.
#[inline]
fn shift_ends(body: &mut [u8], range: std::ops::Range<usize>, by: u16) -> Result<(), Damage> {
    let ends = body.get_mut(END * range.start..END * range.end);
    for end in ends.ok_or(NOT_INSIDE)?.as_chunks_mut::<END>().0 {
        *end = u16::from_le_bytes(*end).wrapping_add(by).to_le_bytes();
    }
    Ok(())
}

/// Inserts items into a page.
fn open_page(page: &mut [u8], at: usize, run: Run<'_>) -> Result<(), Damage> {
    let (size, count) = (header::item_size(page) as usize, usize::from(header::count(page)));
    open(page.get_mut(HEADER..).ok_or(NOT_INSIDE)?, (size, count), at, run)?;
    header::set_count(page, (count + run.count) as u16);
    Ok(())
}

/// Inserts an item at `i`; false when the page is full.
pub(crate) fn insert(page: &mut [u8], i: usize, item: &[u8]) -> Result<bool, Damage> {
    let packed = Packed::new(page)?;
    if i > packed.count || (packed.size > 0 && item.len() != packed.size) {
        return Err(Damage("an item inserted where it cannot be"));
    }
    if packed.used() + footprint(packed.size, item.len()) > page.len() - HEADER {
        return Ok(false);
    }
    let ends = [(item.len() as u16).to_le_bytes()];
    open_page(page, i, Run { items: item, count: 1, ends: &ends, base: 0 })?;
    Ok(true)
}

/// Removes an item.
pub(crate) fn remove(page: &mut [u8], i: usize) -> Result<(), Damage> {
    remove_range(page, i, i.saturating_add(1))
}

/// Removes items [from, to).
pub(crate) fn remove_range(page: &mut [u8], from: usize, to: usize) -> Result<(), Damage> {
    let packed = Packed::new(page)?;
    let (size, count) = (packed.size, packed.count);
    close(page.get_mut(HEADER..).ok_or(NOT_INSIDE)?, (size, count), (from, to))?;
    header::set_count(page, (count - (to - from)) as u16);
    Ok(())
}

/// Inserts items [from, to) of another packed leaf at `at`; false when they do not fit.
pub(super) fn take(
    page: &mut [u8],
    at: usize,
    other: &Packed<'_>,
    (from, to): (usize, usize),
) -> Result<bool, Damage> {
    let own = Packed::new(page)?;
    if from > to || to > other.count || other.size != own.size {
        return Err(NO_SUCH_ITEM);
    }
    let (base, end) = (other.start(from), other.start(to));
    let items = other.items.get(base..end).ok_or(NO_SUCH_ITEM)?;
    let ends = if own.size > 0 { Some(&[][..]) } else { other.ends.get(from..to) };
    let run = Run { items, count: to - from, ends: ends.ok_or(NO_SUCH_ITEM)?, base };
    if own.used() + run.items.len() + END * run.ends.len() > page.len() - HEADER {
        return Ok(false);
    }
    open_page(page, at, run)?;
    Ok(true)
}

/// Bytes before the items in a record: their size, and their number where they have none.
fn record_head(size: usize) -> usize {
    if size > 0 { 2 } else { 4 }
}

/// Bytes before the items of a record, their size and their number.
#[inline(always)]
fn record_header(value: &[u8]) -> Result<(usize, usize, usize), Damage> {
    let size = usize::from(load_u16(value, 0).ok_or(NOT_INSIDE)?);
    let head = record_head(size);
    let count = match value.len().saturating_sub(head).checked_div(size) {
        Some(count) => count,
        None => usize::from(load_u16(value, 2).ok_or(NOT_INSIDE)?),
    };
    Ok((head, size, count))
}

/// Appends a small set of sorted items to `out`, as a record holds it; `size` is that of all, or 0.
pub(crate) fn build_record<'v>(
    size: usize,
    items: impl Iterator<Item = &'v [u8]> + Clone,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&(size as u16).to_le_bytes());
    if size == 0 {
        out.extend_from_slice(&(items.clone().count() as u16).to_le_bytes());
        let mut end = 0u16;
        for item in items.clone() {
            end = end.wrapping_add(item.len() as u16);
            out.extend_from_slice(&end.to_le_bytes());
        }
    }
    items.for_each(|item| out.extend_from_slice(item));
}

/// Inserts an item at `i` into the set that the first `old_len` bytes of `value` are; `value` has the
/// new length already.
pub(crate) fn insert_in_record(
    value: &mut [u8],
    old_len: usize,
    i: usize,
    item: &[u8],
) -> Result<(), Damage> {
    let (head, size, count) = record_header(value.get(..old_len).ok_or(NOT_INSIDE)?)?;
    if size > 0 && item.len() != size {
        return Err(Damage("an item inserted where it cannot be"));
    }
    let ends = [(item.len() as u16).to_le_bytes()];
    let run = Run { items: item, count: 1, ends: &ends, base: 0 };
    open(value.get_mut(head..).ok_or(NOT_INSIDE)?, (size, count), i, run)?;
    set_record_count(value, size, count + 1)
}

/// Takes item `i` out of a set of at least three; the set is then in the first bytes, whose number is
/// given.
pub(crate) fn remove_in_record(value: &mut [u8], i: usize) -> Result<usize, Damage> {
    let (head, size, count) = record_header(value)?;
    if count < 3 {
        return Err(NO_SUCH_ITEM);
    }
    let body = value.get_mut(head..).ok_or(NOT_INSIDE)?;
    let used = close(body, (size, count), (i, i.saturating_add(1)))?;
    set_record_count(value, size, count - 1)?;
    Ok(head + used)
}

fn set_record_count(value: &mut [u8], size: usize, count: usize) -> Result<(), Damage> {
    if size > 0 || store_u16(value, 2, count as u16) { Ok(()) } else { Err(NOT_INSIDE) }
}

/// Copies the items of a record into an empty packed page; gives their number.
pub(crate) fn fill_from_record(page: &mut [u8], value: &[u8]) -> Result<usize, Damage> {
    let set = Packed::in_record(value)?;
    if take(page, 0, &set, (0, set.count))? { Ok(set.count) } else { Err(NOT_INSIDE) }
}

/// Appends the items of a packed page to `out`, as a record holds them.
pub(crate) fn to_record(packed: &Packed<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&(packed.size as u16).to_le_bytes());
    if packed.size == 0 {
        out.extend_from_slice(&(packed.count as u16).to_le_bytes());
    }
    out.extend_from_slice(packed.ends.as_flattened());
    out.extend_from_slice(packed.items);
}
