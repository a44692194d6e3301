//! The arrays behind the header: prefix, heads, offsets and, in branches, children.

use std::hint::select_unpredictable;

use crate::num::load_u16;

use super::key::{head_behind, same};
use super::{Damage, FLAG_PLAIN, HEADER, header};

/// Heads counted at once at the end of a search: a number that the compiler turns into a few vector
/// compares without a loop, and below which a count is cheaper than further halving.
const WINDOW: usize = 16;

/// Prefix, heads and offsets of a page, checked to lie inside it. What a search does not need is
/// found again when it is asked for: this is made for every page of every look-up.
#[derive(Clone, Copy)]
pub(super) struct Slots<'p> {
    pub(super) page: &'p [u8],
    pub(super) heads: &'p [[u8; 4]],
    /// Where the heads start.
    pub(super) arrays: usize,
    pub(super) plain: bool,
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

    /// As `new`; each entry has `extra` further bytes behind heads and offsets, which are inside
    /// the page too.
    #[inline(always)]
    pub(super) fn with_extra(page: &'p [u8], extra: usize) -> Result<Slots<'p>, Damage> {
        let count = usize::from(header::count(page));
        let arrays = arrays_at(page);
        let all = page.get(arrays..arrays + (6 + extra) * count);
        match all.and_then(|all| all.get(..4 * count)) {
            Some(heads) => {
                let plain = header::flags(page) & FLAG_PLAIN != 0;
                Ok(Slots { page, heads: heads.as_chunks::<4>().0, arrays, plain })
            }
            None => Err(Damage("the page's arrays do not fit the page")),
        }
    }

    #[inline(always)]
    pub(super) fn prefix(&self) -> &'p [u8] {
        self.page.get(HEADER..self.arrays).unwrap_or_default()
    }

    /// The offsets of all entries.
    #[inline(always)]
    pub(super) fn offsets(&self) -> &'p [[u8; 2]] {
        let (start, count) = (self.arrays + 4 * self.count(), self.count());
        self.page.get(start..start + 2 * count).unwrap_or_default().as_chunks::<2>().0
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.heads.len()
    }

    /// The stored offset of an entry.
    #[inline(always)]
    pub(super) fn offset(&self, i: usize) -> Result<usize, Damage> {
        if i < self.count()
            && let Some(offset) = load_u16(self.page, self.arrays + 4 * self.count() + 2 * i)
        {
            return Ok(usize::from(offset));
        }
        Err(Damage("an index behind the last entry"))
    }

    #[inline(always)]
    pub(super) fn head(&self, i: usize) -> u32 {
        self.heads.get(i).map_or(0, |h| u32::from_le_bytes(*h))
    }

    /// The head that a key with this normal form would have here, or where the key stands to all
    /// entries because it does not share their prefix.
    #[inline(always)]
    pub(super) fn head_for(&self, norm: &[u8]) -> Result<u32, std::cmp::Ordering> {
        let len = self.arrays - HEADER;
        if len > 0 && !norm.get(..len).is_some_and(|start| same(start, self.prefix())) {
            return Err(norm.cmp(self.prefix()));
        }
        Ok(head_behind(norm, len))
    }

    /// Index of the first head in [from, count) that is not less than `head`.
    #[inline(always)]
    pub(super) fn lower(&self, from: usize, head: u32) -> usize {
        bound(self.heads, from, |h| h < head)
    }

    /// Index of the first head in [from, count) that is greater than `head`.
    pub(super) fn upper(&self, from: usize, head: u32) -> usize {
        bound(self.heads, from, |h| h <= head)
    }

    /// Length at `at` in the heap, and the bytes behind it.
    pub(super) fn sized(&self, at: usize) -> Result<&'p [u8], Damage> {
        load_u16(self.page, at)
            .and_then(|len| self.page.get(at + 2..)?.get(..usize::from(len)))
            .ok_or(Damage("a separator leads outside its page"))
    }
}

/// Index of the first head in [from, count) for which `before` is false.
///
/// Branchless halving down to a window, then a count of the window. The window may start further
/// left than the halving ended: heads there are `before` too and are counted as such. On a damaged
/// page, whose heads are in no order, the answer is wrong but within [from, count].
#[inline(always)]
pub(super) fn bound(heads: &[[u8; 4]], from: usize, before: impl Fn(u32) -> bool) -> usize {
    let Some(last_window) = heads.len().checked_sub(WINDOW) else {
        let few = heads.get(from..).unwrap_or_default();
        return from + count_before(few, before);
    };
    let mut base = from;
    let mut len = heads.len().saturating_sub(from);
    while len > WINDOW {
        let half = len / 2;
        let head = heads.get(base + half - 1).map_or(0, |h| u32::from_le_bytes(*h));
        base += select_unpredictable(before(head), half, 0);
        len -= half;
    }
    let start = base.min(last_window);
    match heads.get(start..).and_then(|h| h.first_chunk::<WINDOW>()) {
        Some(window) => (start + count_window(window, before)).max(from),
        None => from,
    }
}

/// How many heads satisfy `before`.
#[inline(always)]
fn count_before(heads: &[[u8; 4]], before: impl Fn(u32) -> bool) -> usize {
    heads.iter().map(|h| u32::from(before(u32::from_le_bytes(*h)))).sum::<u32>() as usize
}

/// As `count_before`. Counts in four lanes, each as wide as a head, so that the compiler adds up
/// the compares as they are instead of counting bits, for which not every CPU has an instruction.
#[inline(always)]
fn count_window(heads: &[[u8; 4]; WINDOW], before: impl Fn(u32) -> bool) -> usize {
    let mut lanes = [0u32; 4];
    for four in heads.as_chunks::<4>().0 {
        for (lane, h) in lanes.iter_mut().zip(four) {
            *lane += u32::from(before(u32::from_le_bytes(*h)));
        }
    }
    lanes.iter().sum::<u32>() as usize
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
