//! Asking the CPU for a page that will be needed soon.

/// Fetches the header and the first heads of a page.
#[inline(always)]
pub(crate) fn prefetch(page: &[u8]) {
    for line in [0, 64, 128, 192] {
        touch(page, line);
    }
}

/// Fetches the cache line at `at`.
#[inline(always)]
pub(crate) fn touch(page: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = page.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of a valid address has no effect but on the caches.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (page, at);
}
