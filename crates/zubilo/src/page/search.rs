//! The search among the heads of a page.

use std::hint::select_unpredictable;

use super::prefetch;
use super::vector::{WINDOW, less};

/// Bytes of the references of the children among which a search has still to choose when it asks
/// for them.
const NEAR: usize = 32 * 8;
/// More heads than a page of 4 KiB has.
const MOST: usize = 512;
/// The same, and the windows that may begin behind them.
const ROOM: usize = MOST + WINDOW;

/// The heads of a usual page, and what lies after them.
pub(super) type Heads = [[u8; 4]; ROOM];

/// The heads of a page whose arrays are these, if it is none of the large ones. (Nor a damaged one: the
/// heads are in the first half of the smallest page.)
#[inline(always)]
pub(super) fn usual(arrays: &[u8], count: usize) -> Option<&Heads> {
    if count > MOST { None } else { heads_of(arrays) }
}

#[inline(always)]
pub(super) fn heads_of(arrays: &[u8]) -> Option<&Heads> {
    arrays.as_chunks::<4>().0.first_chunk()
}

/// How many of the `count` heads that `arrays` begins with are less than `head`. What lies after them
/// may be loaded, and does not count. On a damaged page, whose heads are in no order, the answer is
/// wrong but at most `count`.
#[inline(always)]
pub(super) fn lower(arrays: &[u8], count: usize, head: u32) -> usize {
    match usual(arrays, count) {
        Some(heads) => lower_of(heads, count, head),
        None => lower_of_many(arrays, count, head),
    }
}

/// As `lower`, of the separators of a branch: asks for the references of the children that it may
/// lead to while the rest of the search is still to be done.
#[inline(always)]
pub(super) fn lower_child(arrays: &[u8], count: usize, head: u32) -> usize {
    match usual(arrays, count) {
        Some(heads) => lower_child_of(heads, arrays, count, head),
        None => lower_of_many(arrays, count, head),
    }
}

/// As `lower_child`, of a usual page. Most branches have more than 128 children.
#[inline(always)]
pub(super) fn lower_child_of(heads: &Heads, arrays: &[u8], count: usize, head: u32) -> usize {
    if count > 128 {
        let start = quarter_of_many(heads, count, head);
        prefetch::touch_lines(arrays, 6 * count + 8 * start, NEAR / 64 + 1);
        last_32(heads, start, head)
    } else {
        lower_of(heads, count, head)
    }
}

/// As `lower`, of a usual page.
///
/// Steps without branches down to a window, then the compares of the window as bits of one word, whose
/// first zero ends what is less: heads ascend.
///
/// The number of steps is the same for all usual leaves, and for all usual branches: it comes from a
/// page that may not have arrived yet, and what the CPU has begun on a wrong guess is lost. The heads
/// are an array of a known length, so that the compiler sees that no step leads out of it.
#[inline(always)]
pub(super) fn lower_of(heads: &Heads, count: usize, head: u32) -> usize {
    if count > 32 {
        let start = match count {
            ..=128 => halved_twice(heads, count, head).min(count - 32),
            _ => quarter_of_many(heads, count, head),
        };
        return last_32(heads, start, head);
    }
    if count >= 16 {
        // Past all but 16 if they are less; then 16 are left, whichever they are.
        let start = past(heads, 0, count - 16, head);
        return last_16(heads, start, head);
    }
    let low = less(heads, 0, head);
    if count <= WINDOW {
        return low.min(count);
    }
    let high = WINDOW + less(heads, WINDOW, head);
    select_unpredictable(low < WINDOW, low, high).min(count)
}

/// Where 32 heads start among which the answer is, or after the last of which, of more than 128.
#[inline(always)]
fn quarter_of_many(heads: &Heads, count: usize, head: u32) -> usize {
    let count = count.min(MOST);
    let start = halved_twice(heads, count, head).min(count - 128);
    let start = step::<64>(heads, start, head);
    step::<32>(heads, start, head)
}

#[inline(always)]
fn last_32(heads: &Heads, start: usize, head: u32) -> usize {
    last_16(heads, step::<16>(heads, start, head), head)
}

#[inline(always)]
fn last_16(heads: &Heads, start: usize, head: u32) -> usize {
    let start = step::<8>(heads, start, head);
    start + less(heads, start, head)
}

/// Past the next `len` heads from `start` on if they are all less.
#[inline(always)]
fn past(heads: &Heads, start: usize, len: usize, head: u32) -> usize {
    // Of no heads at all: whatever the first one is, nothing is passed.
    let last = heads.get((start + len).saturating_sub(1));
    let is_less = last.is_some_and(|h| u32::from_le_bytes(*h) < head);
    select_unpredictable(is_less, start + len, start)
}

#[inline(always)]
fn step<const LEN: usize>(heads: &Heads, start: usize, head: u32) -> usize {
    let is_less = heads.get(start + LEN - 1).is_some_and(|h| u32::from_le_bytes(*h) < head);
    select_unpredictable(is_less, start + LEN, start)
}

/// Where the quarter of the first `count` heads starts in which the answer is.
#[inline(always)]
fn halved_twice(heads: &Heads, count: usize, head: u32) -> usize {
    let start = past(heads, 0, count / 2, head);
    past(heads, start, (count + 1) / 4, head)
}

/// As `lower`, in large pages and damaged ones.
#[inline(never)]
pub(super) fn lower_of_many(arrays: &[u8], count: usize, head: u32) -> usize {
    let heads = arrays.as_chunks::<4>().0;
    let heads = heads.get(..count).unwrap_or_default();
    let (mut start, mut len) = (0, heads.len());
    while len > 1 {
        let half = len / 2;
        let is_less = heads.get(start + half - 1).is_some_and(|h| u32::from_le_bytes(*h) < head);
        start = select_unpredictable(is_less, start + half, start);
        len -= half;
    }
    start + usize::from(heads.get(start).is_some_and(|h| u32::from_le_bytes(*h) < head))
}
