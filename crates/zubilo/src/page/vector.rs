//! Compares of many heads at once.

/// Heads compared at once at the end of a search: fewer instructions than further halving, and fewer
/// than more of them.
pub(super) const WINDOW: usize = 8;

/// How many of the 8 heads from `start` on are less than `head`, up to the first that is not; 0 where
/// there are not so many.
#[inline(always)]
pub(super) fn less(heads: &[[u8; 4]], start: usize, head: u32) -> usize {
    match heads.get(start..).and_then(|h| h.first_chunk::<WINDOW>()) {
        Some(window) => first_zero(window, head),
        None => 0,
    }
}

/// By hand: what the compiler makes of a loop counts the bits step by step, each waiting for the one
/// before, and where the window ends is wanted as soon as can be.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first_zero(window: &[[u8; 4]; WINDOW], head: u32) -> usize {
    use std::arch::x86_64::{
        __m128i, _mm_cmplt_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi32,
        _mm_set1_epi32, _mm_xor_si128,
    };
    let two = window.as_ptr().cast::<__m128i>();
    // SAFETY: every x86_64 has SSE2; the two loads, which need no alignment, are the window.
    let bits = unsafe {
        // Compares are signed: both sides with their top bit turned.
        let top = _mm_set1_epi32(i32::MIN);
        let key = _mm_xor_si128(_mm_set1_epi32(head as i32), top);
        let less = |i| _mm_cmplt_epi32(_mm_xor_si128(_mm_loadu_si128(two.add(i)), top), key);
        _mm_movemask_epi8(_mm_packs_epi32(less(0), less(1))) as u32
    };
    // Two bits a head, and zeros after them.
    (!bits).trailing_zeros() as usize / 2
}

/// As above, for other processors.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn first_zero(window: &[[u8; 4]; WINDOW], head: u32) -> usize {
    let less = window.iter().map(|h| u32::from(u32::from_le_bytes(*h) < head));
    (!less.rev().fold(0, |bits, bit| bits << 1 | bit)).trailing_zeros() as usize
}
