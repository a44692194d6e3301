//! The arrays after the header: prefix, heads, offsets and, in branches, children.

use crate::num::{load_u16, load_u32};

use super::key::{head_after, same};
use super::search::{self, lower};
use super::{Damage, FLAG_CUSTOM, HEADER, header};

/// Prefix, heads and offsets of a page, checked to lie inside it. What a search does not need is
/// found again when it is asked for: this is made for every page of every look-up.
#[derive(Clone, Copy)]
pub(super) struct Slots<'p> {
    pub(super) page: &'p [u8],
    /// Where the heads start.
    pub(super) arrays: usize,
    /// The page from there on.
    rest: &'p [u8],
    count: usize,
    pub(super) custom: bool,
}

/// Where the arrays of a page start.
pub(super) fn arrays_at(page: &[u8]) -> usize {
    HEADER + usize::from(header::prefix_len(page))
}

impl<'p> Slots<'p> {
    #[inline(always)]
    pub(super) fn new(page: &'p [u8]) -> Result<Slots<'p>, Damage> {
        Slots::with_extra(page, 0)
    }

    /// As `new`; each entry has `extra` further bytes after heads and offsets, which are inside
    /// the page too.
    #[inline(always)]
    pub(super) fn with_extra(page: &'p [u8], extra: usize) -> Result<Slots<'p>, Damage> {
        let count = usize::from(header::count(page));
        let arrays = arrays_at(page);
        match page.get(arrays..) {
            Some(rest) if (6 + extra) * count <= rest.len() => {
                let custom = header::flags(page) & FLAG_CUSTOM != 0;
                Ok(Slots { page, arrays, rest, count, custom })
            }
            _ => Err(Damage("the page's arrays do not fit the page")),
        }
    }

    #[inline(always)]
    pub(super) fn prefix(&self) -> &'p [u8] {
        self.page.get(HEADER..self.arrays).unwrap_or_default()
    }

    /// The heads of all entries.
    #[inline(always)]
    pub(super) fn heads(&self) -> &'p [[u8; 4]] {
        self.rest.get(..4 * self.count).unwrap_or_default().as_chunks::<4>().0
    }

    /// The offsets of all entries.
    #[inline(always)]
    pub(super) fn offsets(&self) -> &'p [[u8; 2]] {
        self.rest.get(4 * self.count..6 * self.count).unwrap_or_default().as_chunks::<2>().0
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The stored offset of an entry.
    #[inline(always)]
    pub(super) fn offset(&self, i: usize) -> Result<usize, Damage> {
        if i < self.count()
            && let Some(offset) = load_u16(self.rest, 4 * self.count + 2 * i)
        {
            return Ok(usize::from(offset));
        }
        Err(Damage("index past the last entry"))
    }

    #[inline(always)]
    pub(super) fn head(&self, i: usize) -> u32 {
        if i < self.count { load_u32(self.rest, 4 * i).unwrap_or(0) } else { 0 }
    }

    /// The head that a key with this normal form would have here, or where the key stands to all
    /// entries because it does not share their prefix.
    #[inline(always)]
    pub(super) fn head_for(&self, norm: &[u8]) -> Result<u32, std::cmp::Ordering> {
        let len = self.arrays - HEADER;
        if len > 0 && !norm.get(..len).is_some_and(|start| same(start, self.prefix())) {
            return Err(norm.cmp(self.prefix()));
        }
        Ok(head_after(norm, len))
    }

    /// As `head_for`, of a key that is not known to share the prefix.
    #[inline(always)]
    pub(super) fn head_after_prefix(&self, norm: &[u8]) -> u32 {
        head_after(norm, self.arrays - HEADER)
    }

    /// Index of the first head that is not less than `head`.
    #[inline(always)]
    pub(super) fn lower(&self, head: u32) -> usize {
        lower(self.rest, self.count, head)
    }

    /// As `lower`, in a branch: asks for the references of the children that it may lead to while
    /// the rest of the search is still to be done.
    #[inline(always)]
    pub(super) fn lower_child(&self, head: u32) -> usize {
        search::lower_child(self.rest, self.count, head)
    }

    /// Index of the first head that is greater than `head`.
    pub(super) fn upper(&self, head: u32) -> usize {
        head.checked_add(1).map_or(self.count(), |next| self.lower(next))
    }

    /// Length at `at` in the heap, and the bytes after it.
    pub(super) fn sized(&self, at: usize) -> Result<&'p [u8], Damage> {
        load_u16(self.page, at)
            .and_then(|len| self.page.get(at + 2..)?.get(..usize::from(len)))
            .ok_or(Damage("a separator leads outside its page"))
    }
}

/// Checks that the spans of live records do not overlap, lie in the heap, and leave just the bytes
/// that the header counts as garbage.
pub(super) fn check_heap(
    page: &[u8],
    arrays_end: usize,
    spans: &mut [(usize, usize)],
) -> Result<(), Damage> {
    let heap = header::heap(page) as usize;
    if heap < arrays_end || heap > page.len() {
        return Err(Damage("the heap overlaps the page's arrays"));
    }
    spans.sort_unstable();
    let mut live = 0;
    let mut last = heap;
    for &(start, end) in spans.iter() {
        if start < last || end > page.len() {
            return Err(Damage("records overlap or lie outside the heap"));
        }
        live += end - start;
        last = end;
    }
    if page.len() - heap - live != header::garbage(page) as usize {
        return Err(Damage("the count of garbage is wrong"));
    }
    Ok(())
}
