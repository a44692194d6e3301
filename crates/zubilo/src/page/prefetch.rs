//! Asking the CPU for a page that will be needed soon.

use super::header;

/// Of larger pages no more than this is fetched ahead: it would drive out what is in use.
const AHEAD_MAX: usize = 8192;

/// Fetches the header and the first heads of the page at an address, which need not be valid.
#[inline(always)]
pub(crate) fn prefetch(page: *const u8) {
    for line in [0, 64, 128, 192] {
        fetch(page.wrapping_add(line));
    }
}

/// Fetches the heap of a page: for scans, which read all of it and know it early enough.
#[inline]
pub(crate) fn prefetch_heap(page: &[u8]) {
    let from = (header::heap(page) as usize).min(page.len()) & !63;
    prefetch_page(page.as_ptr().wrapping_add(from), page.len() - from);
}

/// Fetches a page, of which `len` bytes are wanted.
#[inline]
pub(crate) fn prefetch_page(start: *const u8, len: usize) {
    for line in 0..len.min(AHEAD_MAX) / 64 {
        fetch(start.wrapping_add(line * 64));
    }
}

/// Fetches the cache line at `at`, and the one after it.
#[inline(always)]
pub(crate) fn touch(page: &[u8], at: usize) {
    fetch(page.as_ptr().wrapping_add(at));
    fetch(page.as_ptr().wrapping_add(at + 64));
}

/// Fetches so many cache lines from the one with byte `at` on.
#[inline(always)]
pub(super) fn touch_lines(page: &[u8], at: usize, lines: usize) {
    for line in 0..lines {
        fetch(page.as_ptr().wrapping_add(at + 64 * line));
    }
}

#[inline(always)]
fn fetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on the caches; of an address that is not mapped it
        // has none at all.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
