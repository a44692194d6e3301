//! Reading branches.

use std::cmp::Ordering;

use crate::num::load_u64;

use super::key::{Order, SearchKey};
use super::slots::Slots;
use super::{Damage, HEADER, Kind, header};

/// Offsets below this are lengths of separators that lie wholly in their heads.
pub(super) const IN_HEAD: usize = 5;

/// A branch, its arrays checked.
#[derive(Clone, Copy)]
pub(crate) struct Branch<'p> {
    slots: Slots<'p>,
}

/// Bytes of a child's reference.
const CHILD: usize = 8;

/// Bytes of an entry's slots: head, offset, child and, where they are kept, number of records.
pub(super) fn slot_size(counted: bool) -> usize {
    if counted { 22 } else { 14 }
}

/// Heap bytes of a separator of this length.
pub(super) fn heap_need(len: usize, prefix_len: usize, custom: bool) -> usize {
    let rest = len.saturating_sub(prefix_len);
    if custom {
        2 + len
    } else if rest < IN_HEAD {
        0
    } else {
        2 + rest - 4
    }
}

impl<'p> Branch<'p> {
    /// The branch in `page`, which must be on `level`.
    #[inline(always)]
    pub(crate) fn on_level(page: &'p [u8], level: u8) -> Result<Branch<'p>, Damage> {
        if header::kind_and_level(page) != (Kind::Branch as u8, level) {
            return Err(Damage("expected a branch page one level below its parent"));
        }
        Ok(Branch { slots: Slots::with_extra(page, CHILD)? })
    }

    #[inline(always)]
    pub(crate) fn new(page: &'p [u8]) -> Result<Branch<'p>, Damage> {
        if page.get(24) != Some(&(Kind::Branch as u8)) {
            return Err(Damage("expected a branch page"));
        }
        Ok(Branch { slots: Slots::with_extra(page, CHILD)? })
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.slots.count()
    }

    /// Reference of a child.
    #[inline(always)]
    pub(crate) fn child(&self, i: usize) -> Result<u64, Damage> {
        let at = self.slots.arrays + 6 * self.count() + CHILD * i;
        if i < self.count()
            && let Some(child) = load_u64(self.slots.page, at)
        {
            return Ok(child);
        }
        Err(Damage("a branch without the child looked for"))
    }

    /// Whether it stores how many records lie under each child.
    pub(crate) fn is_counted(&self) -> bool {
        header::is_counted(self.slots.page)
    }

    /// Number of records under a child, where it is known. Under a child that is not written yet it is
    /// not known.
    pub(crate) fn records(&self, i: usize) -> Result<u64, Damage> {
        let at = self.slots.arrays + 14 * self.count() + 8 * i;
        if i < self.count()
            && self.is_counted()
            && let Some(records) = load_u64(self.slots.page, at)
        {
            return Ok(records);
        }
        Err(Damage("a branch without the number of records under a child"))
    }

    /// As `records`, 0 where it is not stored.
    pub(super) fn records_or_0(&self, i: usize) -> Result<u64, Damage> {
        if self.is_counted() { self.records(i) } else { Ok(0) }
    }

    /// The references of all children.
    #[inline]
    pub(crate) fn children(&self) -> &'p [[u8; 8]] {
        let start = self.slots.arrays + 6 * self.count();
        let bytes = self.slots.page.get(start..start + CHILD * self.count());
        bytes.unwrap_or_default().as_chunks::<8>().0
    }

    /// The last child whose separator is not greater than `key`.
    #[inline(always)]
    pub(crate) fn search(&self, order: &Order, key: &SearchKey<'_>) -> Result<usize, Damage> {
        if self.slots.custom {
            return self.search_custom(order, key.raw());
        }
        let head = match self.slots.head_for(key.norm()) {
            Ok(head) => head,
            Err(Ordering::Less) => return Ok(0),
            Err(_) => return Ok(self.count().saturating_sub(1)),
        };
        // The first separator stands for all keys that are less than the second.
        let low = self.slots.lower_child(head).max(1);
        if low >= self.count() || self.slots.head(low) != head {
            return Ok(low - 1);
        }
        self.search_equal(low, head, key.norm())
    }

    /// As `search`, among the separators from `low` on that share the key's head. These methods
    /// take the view by value: by reference it would have to be in memory for the search, too.
    fn search_equal(self, mut low: usize, head: u32, norm: &[u8]) -> Result<usize, Damage> {
        let rest = norm.get(self.prefix().len()..).unwrap_or_default();
        let mut high = self.slots.upper(head);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.is_after(middle, rest)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low - 1)
    }

    /// Whether separator `i`, whose head equals the key's, is greater than the key.
    #[inline]
    fn is_after(self, i: usize, rest: &[u8]) -> Result<bool, Damage> {
        let offset = self.slots.offset(i)?;
        if offset < IN_HEAD {
            return Ok(offset > rest.len());
        }
        let tail = self.slots.sized(offset)?;
        Ok(tail > rest.get(4..).unwrap_or_default())
    }

    #[cold]
    fn search_custom(self, order: &Order, key: &[u8]) -> Result<usize, Damage> {
        let (mut low, mut high) = (1, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            let separator = self.slots.sized(self.slots.offset(middle)?)?;
            if order.compare(key, separator).is_lt() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low - 1)
    }

    /// Separator `i`, whole and in normal form; empty for the first child. Replaces `out`.
    pub(crate) fn separator(&self, i: usize, out: &mut Vec<u8>) -> Result<(), Damage> {
        out.clear();
        if i == 0 {
            return Ok(());
        }
        let offset = self.slots.offset(i)?;
        if self.slots.custom {
            out.extend_from_slice(self.slots.sized(offset)?);
            return Ok(());
        }
        out.extend_from_slice(self.slots.prefix());
        let head = self.slots.head(i).to_be_bytes();
        if offset < IN_HEAD {
            out.extend_from_slice(head.get(..offset).unwrap_or_default());
        } else {
            out.extend_from_slice(&head);
            out.extend_from_slice(self.slots.sized(offset)?);
        }
        Ok(())
    }

    /// Bytes of the heap that separator `i` takes.
    fn heap_size(&self, i: usize) -> Result<usize, Damage> {
        let offset = self.slots.offset(i)?;
        if i == 0 || (!self.slots.custom && offset < IN_HEAD) {
            return Ok(0);
        }
        Ok(2 + self.slots.sized(offset)?.len())
    }

    /// Bytes that an entry takes after a prefix of this length, which its page has at least.
    pub(super) fn size_after(&self, i: usize, prefix_len: usize) -> Result<usize, Damage> {
        let slots = slot_size(self.is_counted());
        if i == 0 {
            return Ok(slots);
        }
        let offset = self.slots.offset(i)?;
        let len = match (self.slots.custom, offset < IN_HEAD) {
            (true, _) => self.slots.sized(offset)?.len(),
            (false, true) => self.prefix().len() + offset,
            (false, false) => self.prefix().len() + 4 + self.slots.sized(offset)?.len(),
        };
        Ok(slots + heap_need(len, prefix_len, self.slots.custom))
    }

    pub(super) fn heap_span(&self, i: usize) -> Result<(usize, usize), Damage> {
        let size = self.heap_size(i)?;
        let at = if size == 0 { 0 } else { self.slots.offset(i)? };
        Ok((at, size))
    }

    pub(super) fn prefix(&self) -> &'p [u8] {
        self.slots.prefix()
    }

    /// Bytes in use after the header.
    pub(crate) fn used(&self) -> usize {
        let page = self.slots.page;
        let heap = page.len().saturating_sub(header::heap(page) as usize);
        let live = heap.saturating_sub(header::garbage(page) as usize);
        self.slots.prefix().len() + slot_size(self.is_counted()) * self.count() + live
    }

    /// Bytes that an entry takes.
    pub(crate) fn entry_size(&self, i: usize) -> Result<usize, Damage> {
        Ok(slot_size(self.is_counted()) + self.heap_size(i)?)
    }

    /// Checks order, heads and heap.
    pub(crate) fn check(&self, order: &Order) -> Result<(), Damage> {
        if self.slots.custom != order.is_custom() {
            return Err(Damage("the page was written for another kind of order"));
        }
        let mut spans = Vec::new();
        let mut before = Vec::new();
        let mut separator = Vec::new();
        for i in 1..self.count() {
            self.separator(i, &mut separator)?;
            let ascending = if order.is_custom() {
                order.compare(&before, &separator).is_lt()
            } else {
                before < separator
            };
            if i > 1 && !ascending {
                return Err(Damage("separators are not in order"));
            }
            let offset = self.slots.offset(i)?;
            if !self.slots.custom && offset < IN_HEAD {
                let head = self.slots.head(i).to_be_bytes();
                if head.iter().skip(offset).any(|b| *b != 0) {
                    return Err(Damage("a head with bytes past its separator"));
                }
            } else {
                let (at, size) = self.heap_span(i)?;
                spans.push((at, at + size));
            }
            std::mem::swap(&mut before, &mut separator);
        }
        let slots = slot_size(self.is_counted()) * self.count();
        let arrays_end = HEADER + self.slots.prefix().len() + slots;
        super::slots::check_heap(self.slots.page, arrays_end, &mut spans)
    }
}
