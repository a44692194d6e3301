//! Leaves of fixed-size items without values: sorted sets of duplicates.
//!
//! `header | items`: no prefix, no arrays, no heap; an item's place is its index times the size that
//! the header names. Invariants: the size is at least 1, all items lie inside the page, and they
//! ascend strictly in the order of the set.

use super::key::{Order, SearchKey};
use super::{Damage, FLAG_PLAIN, HEADER, Kind, header};

const NOT_INSIDE: Damage = Damage("the page's items do not fit the page");
const NO_SUCH_ITEM: Damage = Damage("an index behind the last item");

/// A packed leaf, the extent of its items checked.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'p> {
    items: &'p [u8],
    size: usize,
    count: usize,
    plain: bool,
    /// Bytes of the page.
    len: usize,
}

impl<'p> Packed<'p> {
    #[inline]
    pub(crate) fn new(page: &'p [u8]) -> Result<Packed<'p>, Damage> {
        if header::kind(page)? != Kind::Packed {
            return Err(Damage("not a packed leaf where one is due"));
        }
        let count = usize::from(header::count(page));
        let size = header::item_size(page) as usize;
        let items = count.checked_mul(size).filter(|_| size > 0);
        let items = items.and_then(|bytes| page.get(HEADER..)?.get(..bytes)).ok_or(NOT_INSIDE)?;
        let plain = header::flags(page) & FLAG_PLAIN != 0;
        Ok(Packed { items, size, count, plain, len: page.len() })
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of an item.
    #[inline]
    pub(crate) fn item_size(&self) -> usize {
        self.size
    }

    #[inline]
    pub(crate) fn item(&self, i: usize) -> Result<&'p [u8], Damage> {
        let start = i.checked_mul(self.size).ok_or(NO_SUCH_ITEM)?;
        self.items.get(start..).and_then(|rest| rest.get(..self.size)).ok_or(NO_SUCH_ITEM)
    }

    /// All items, one behind the other.
    #[inline]
    pub(crate) fn items(&self) -> &'p [u8] {
        self.items
    }

    /// Index of an item, or where it would be inserted.
    pub(crate) fn search(
        &self,
        order: &Order,
        key: &SearchKey<'_>,
    ) -> Result<Result<usize, usize>, Damage> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match order.compare(self.item(middle)?, key.raw()) {
                std::cmp::Ordering::Equal => return Ok(Ok(middle)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// Bytes in use behind the header.
    pub(crate) fn used(&self) -> usize {
        self.items.len()
    }

    /// Most items that the page holds.
    pub(crate) fn capacity(&self) -> usize {
        (self.len.saturating_sub(HEADER) / self.size).min(usize::from(u16::MAX))
    }

    /// Checks the header's unused fields and that the items ascend.
    pub(crate) fn check(&self, page: &[u8], order: &Order) -> Result<(), Damage> {
        if self.plain != order.is_plain() {
            return Err(Damage("a page made for another kind of order"));
        }
        let heapless = header::heap(page) as usize == page.len() && header::garbage(page) == 0;
        if !heapless || header::prefix_len(page) != 0 {
            return Err(Damage("a packed leaf with a heap or a prefix"));
        }
        for i in 1..self.count {
            if !order.compare(self.item(i - 1)?, self.item(i)?).is_lt() {
                return Err(Damage("items are not in order"));
            }
        }
        Ok(())
    }
}

/// Makes `page` an empty packed leaf; false when not even two items of this size would fit.
pub(crate) fn init(page: &mut [u8], table: u32, plain: bool, item_size: usize) -> bool {
    if item_size == 0 || item_size > (page.len() - HEADER) / 2 {
        return false;
    }
    header::init(page, Kind::Packed, 0, table, plain);
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
    let mut buf = super::NormBuf::default();
    Packed::new(page)?.search(order, &SearchKey::new(order, item, &mut buf))
}

/// Inserts an item at `i`; false when the page is full.
pub(crate) fn insert(page: &mut [u8], i: usize, item: &[u8]) -> Result<bool, Damage> {
    let packed = Packed::new(page)?;
    let (count, size) = (packed.count, packed.size);
    if i > count || item.len() != size {
        return Err(Damage("an item inserted where it cannot be"));
    }
    if count >= packed.capacity() {
        return Ok(false);
    }
    let (at, end) = (HEADER + i * size, HEADER + count * size);
    page.copy_within(at..end, at + size);
    page.get_mut(at..at + size).ok_or(NOT_INSIDE)?.copy_from_slice(item);
    header::set_count(page, count as u16 + 1);
    Ok(true)
}

/// Removes an item.
pub(crate) fn remove(page: &mut [u8], i: usize) -> Result<(), Damage> {
    remove_range(page, i, i.saturating_add(1))
}

/// Removes items [from, to).
pub(crate) fn remove_range(page: &mut [u8], from: usize, to: usize) -> Result<(), Damage> {
    let packed = Packed::new(page)?;
    let (count, size) = (packed.count, packed.size);
    if from > to || to > count {
        return Err(NO_SUCH_ITEM);
    }
    page.copy_within(HEADER + to * size..HEADER + count * size, HEADER + from * size);
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
    let (count, size) = (own.count, own.size);
    if at > count || from > to || to > other.count || other.size != size {
        return Err(NO_SUCH_ITEM);
    }
    let new_count = count + to - from;
    if new_count > own.capacity() {
        return Ok(false);
    }
    let moved = other.items.get(from * size..to * size).ok_or(NO_SUCH_ITEM)?;
    let (at, end) = (HEADER + at * size, HEADER + count * size);
    page.copy_within(at..end, at + moved.len());
    page.get_mut(at..at + moved.len()).ok_or(NOT_INSIDE)?.copy_from_slice(moved);
    header::set_count(page, new_count as u16);
    Ok(true)
}
