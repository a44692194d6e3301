//! The arrays behind the header: prefix, heads, offsets and, in branches, children.

use std::hint::select_unpredictable;

use crate::num::{load_u16, load_u32};

use super::key::{head_behind, same};
use super::vector::{WINDOW, less_bits};
use super::{Damage, FLAG_PLAIN, HEADER, header, prefetch};

/// Cache lines of the references of 64 children.
const NEAR_LINES: usize = 64 * 8 / 64 + 1;

/// Prefix, heads and offsets of a page, checked to lie inside it. What a search does not need is
/// found again when it is asked for: this is made for every page of every look-up.
#[derive(Clone, Copy)]
pub(super) struct Slots<'p> {
    pub(super) page: &'p [u8],
    /// Where the heads start.
    pub(super) arrays: usize,
    /// The page from there on.
    behind: &'p [u8],
    count: usize,
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
        match page.get(arrays..) {
            Some(behind) if (6 + extra) * count <= behind.len() => {
                let plain = header::flags(page) & FLAG_PLAIN != 0;
                Ok(Slots { page, arrays, behind, count, plain })
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
        self.behind.get(..4 * self.count).unwrap_or_default().as_chunks::<4>().0
    }

    /// The offsets of all entries.
    #[inline(always)]
    pub(super) fn offsets(&self) -> &'p [[u8; 2]] {
        self.behind.get(4 * self.count..6 * self.count).unwrap_or_default().as_chunks::<2>().0
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The stored offset of an entry.
    #[inline(always)]
    pub(super) fn offset(&self, i: usize) -> Result<usize, Damage> {
        if i < self.count()
            && let Some(offset) = load_u16(self.behind, 4 * self.count + 2 * i)
        {
            return Ok(usize::from(offset));
        }
        Err(Damage("an index behind the last entry"))
    }

    #[inline(always)]
    pub(super) fn head(&self, i: usize) -> u32 {
        if i < self.count { load_u32(self.behind, 4 * i).unwrap_or(0) } else { 0 }
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

    /// As `head_for`, of a key that is not known to share the prefix.
    #[inline(always)]
    pub(super) fn head_behind_prefix(&self, norm: &[u8]) -> u32 {
        head_behind(norm, self.arrays - HEADER)
    }

    /// Index of the first head that is not less than `head`.
    #[inline(always)]
    pub(super) fn lower(&self, head: u32) -> usize {
        lower(self.behind, self.count, head)
    }

    /// As `lower`, in a branch: asks for the references of the children that it may lead to while
    /// the rest of the search is still to be done.
    #[inline(always)]
    pub(super) fn lower_child(&self, head: u32) -> usize {
        lower_with(self.behind, self.count, head, |start| {
            let at = self.arrays + 6 * self.count + 8 * start;
            prefetch::touch_lines(self.page, at, NEAR_LINES);
        })
    }

    /// Index of the first head that is greater than `head`.
    pub(super) fn upper(&self, head: u32) -> usize {
        head.checked_add(1).map_or(self.count(), |next| self.lower(next))
    }

    /// Length at `at` in the heap, and the bytes behind it.
    pub(super) fn sized(&self, at: usize) -> Result<&'p [u8], Damage> {
        load_u16(self.page, at)
            .and_then(|len| self.page.get(at + 2..)?.get(..usize::from(len)))
            .ok_or(Damage("a separator leads outside its page"))
    }
}

/// How many of the `count` heads that `bytes` begins with are less than `head`. What lies behind them
/// may be loaded, and does not count.
///
/// Branchless steps down to a window, then the compares of the window as bits of one word, whose
/// first zero ends what is less: heads ascend. The window may start further left than the steps
/// ended: heads there are less too. On a damaged page, whose heads are in no order, the answer is
/// wrong but at most `count`.
///
/// The number of steps is the same for all usual leaves, and for all usual branches: it comes from a
/// page that may not have arrived yet, and what the CPU has begun on a wrong guess is lost.
#[inline(always)]
pub(super) fn lower(bytes: &[u8], count: usize, head: u32) -> usize {
    lower_with(bytes, count, head, |_| {})
}

/// As `lower`; tells `near` where the 64 heads start among which the answer is, when that is known.
#[inline(always)]
pub(super) fn lower_with(bytes: &[u8], count: usize, head: u32, near: impl Fn(usize)) -> usize {
    let all = bytes.as_chunks::<4>().0;
    let Some(last_window) = count.checked_sub(WINDOW) else {
        return match all.first_chunk::<WINDOW>() {
            Some(window) => first_zero(less_bits(window, head) & ((1 << count) - 1)),
            None => few(all, count, head),
        };
    };
    let Some(heads) = all.get(..count) else { return 0 };
    // One step: past the next `len` heads if they are all less.
    let step = |start: usize, len: usize| {
        let last = (start + len - 1).min(count - 1);
        let is_less = heads.get(last).is_some_and(|h| u32::from_le_bytes(*h) < head);
        select_unpredictable(is_less, start + len, start)
    };
    let mut start = 0;
    if count > 64 {
        if count > 256 {
            let mut len = count.next_power_of_two() / 2;
            while len > 128 {
                start = step(start, len);
                len /= 2;
            }
        }
        start = step(start, 128);
        start = step(start, 64);
        near(start);
    }
    start = step(start, 32);
    start = step(start, 16).min(last_window);
    match heads.get(start..).and_then(|h| h.first_chunk::<WINDOW>()) {
        Some(window) => start + first_zero(less_bits(window, head)),
        None => 0,
    }
}

/// As `lower`, for heads that lie so near the end of their page that no window fits.
#[cold]
fn few(heads: &[[u8; 4]], count: usize, head: u32) -> usize {
    let heads = heads.get(..count).unwrap_or_default();
    heads.iter().take_while(|h| u32::from_le_bytes(**h) < head).count()
}

/// Place of the lowest zero of 16 bits; 16 when there is none.
#[inline(always)]
fn first_zero(bits: u32) -> usize {
    // The bit above them spares the question whether there is any.
    (!bits | 1 << WINDOW).trailing_zeros() as usize
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
