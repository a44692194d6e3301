//! Compares of many heads at once.

/// Heads compared at once at the end of a search: four vectors, and fewer steps than further halving.
pub(super) const WINDOW: usize = 16;

/// Which heads of a window are less than `head`, the first in the lowest bit.
///
/// By hand: what the compiler makes of a loop counts the bits step by step, each waiting for the one
/// before, and where the window ends is wanted as soon as can be.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn less_bits(window: &[[u8; 4]; WINDOW], head: u32) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_cmplt_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_packs_epi32, _mm_set1_epi32, _mm_xor_si128,
    };
    let four = window.as_ptr().cast::<__m128i>();
    // SAFETY: every x86_64 has SSE2; the four loads, which need no alignment, are the window.
    unsafe {
        // Compares are signed: both sides with their top bit turned.
        let top = _mm_set1_epi32(i32::MIN);
        let key = _mm_xor_si128(_mm_set1_epi32(head as i32), top);
        let less = |i| _mm_cmplt_epi32(_mm_xor_si128(_mm_loadu_si128(four.add(i)), top), key);
        let low = _mm_packs_epi32(less(0), less(1));
        let high = _mm_packs_epi32(less(2), less(3));
        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
    }
}

/// Which heads of a window are less than `head`, the first in the lowest bit.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn less_bits(window: &[[u8; 4]; WINDOW], head: u32) -> u32 {
    let less = window.iter().map(|h| u32::from(u32::from_le_bytes(*h) < head));
    less.rev().fold(0, |bits, bit| bits << 1 | bit)
}
