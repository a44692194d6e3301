//! Orders of keys, their normal forms and the separators between them.
//!
//! All orders but a caller's compare *normal forms* as byte strings: the key itself for byte
//! order, the reversed key for reversed bytes and for little-endian integers.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::num::load_u64;

/// A caller's comparison; must be a total order that never changes. The first argument is what is
/// looked for, the second what is stored; code that orders two stored items goes by their places.
pub(crate) type Compare = Arc<dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync>;

/// Order of the keys of a table.
#[derive(Clone)]
pub(crate) enum Order {
    /// Byte by byte, shorter first.
    Bytes,
    /// From the last byte to the first; numeric for little-endian integers of one size.
    Reversed,
    /// As the caller says.
    Custom(Compare),
}

impl Order {
    /// Stands for a caller's order that is not known, where keys only come as they are stored: each
    /// counts as greater than the one before. Nothing can be looked up with it.
    pub(crate) fn as_stored() -> Order {
        Order::Custom(Arc::new(|_, _| Ordering::Less))
    }

    /// Compares two keys as the user gave them.
    #[inline(always)]
    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytes => a.cmp(b),
            Order::Reversed => compare_reversed(a, b),
            Order::Custom(compare) => compare(a, b),
        }
    }

    /// The key to look for, where its normal form is the key itself.
    #[inline(always)]
    pub(crate) fn as_it_is<'k>(&self, raw: &'k [u8]) -> Option<SearchKey<'k>> {
        match self {
            Order::Reversed => None,
            _ => Some(SearchKey { raw, norm: raw }),
        }
    }

    /// True when pages of the table have no prefix and no heads.
    #[inline(always)]
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self, Order::Custom(_))
    }
}

#[inline]
fn compare_reversed(a: &[u8], b: &[u8]) -> Ordering {
    if a.len() == 8
        && b.len() == 8
        && let (Some(a), Some(b)) = (load_u64(a, 0), load_u64(b, 0))
    {
        return a.cmp(&b);
    }
    a.iter().rev().cmp(b.iter().rev())
}

/// Room for the normal form of a key where it is not the key itself.
pub(crate) struct NormBuf {
    small: [u8; 64],
    large: Vec<u8>,
}

impl Default for NormBuf {
    #[inline(always)]
    fn default() -> NormBuf {
        NormBuf { small: [0; 64], large: Vec::new() }
    }
}

/// A key to look for: as given and in normal form.
#[derive(Clone, Copy)]
pub(crate) struct SearchKey<'k> {
    raw: &'k [u8],
    norm: &'k [u8],
}

impl<'k> SearchKey<'k> {
    #[inline(always)]
    pub(crate) fn new(order: &Order, raw: &'k [u8], buf: &'k mut NormBuf) -> SearchKey<'k> {
        match order {
            Order::Reversed => SearchKey { raw, norm: reversed(raw, buf) },
            _ => SearchKey { raw, norm: raw },
        }
    }

    /// A key whose normal form is at hand.
    #[inline(always)]
    pub(crate) fn with_norm(raw: &'k [u8], norm: &'k [u8]) -> SearchKey<'k> {
        SearchKey { raw, norm }
    }

    /// The shortest key.
    #[inline(always)]
    pub(crate) fn empty() -> SearchKey<'k> {
        SearchKey { raw: &[], norm: &[] }
    }

    /// As the user gave it.
    #[inline(always)]
    pub(crate) fn raw(&self) -> &'k [u8] {
        self.raw
    }

    /// In normal form.
    #[inline(always)]
    pub(crate) fn norm(&self) -> &'k [u8] {
        self.norm
    }
}

#[inline]
fn reversed<'k>(raw: &[u8], buf: &'k mut NormBuf) -> &'k [u8] {
    if let Some(small) = buf.small.get_mut(..raw.len()) {
        // Integers: one instruction instead of a loop.
        match (<&mut [u8; 8]>::try_from(&mut *small), <[u8; 8]>::try_from(raw)) {
            (Ok(to), Ok(number)) => *to = u64::from_le_bytes(number).to_be_bytes(),
            _ => {
                small.copy_from_slice(raw);
                small.reverse();
            }
        }
        return small;
    }
    buf.large.clear();
    buf.large.extend(raw.iter().rev());
    &buf.large
}

/// Whether two byte strings are equal. Prefixes and keys are short: words compared in place cost
/// less than the call of the library's function.
#[inline(always)]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if let (Some(x), Some(y)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        // The last word may overlap the one before, which in most keys is the first.
        let last = a.len() - 8;
        let is_same = x == y && load_u64(a, last) == load_u64(b, last);
        return is_same && (a.len() <= 16 || same_words(a, b));
    }
    if let (Some(x), Some(y)) = (a.last_chunk::<4>(), b.last_chunk::<4>()) {
        return x == y && a.first_chunk::<4>() == b.first_chunk::<4>();
    }
    a.iter().zip(b).all(|(x, y)| x == y)
}

/// Whether the whole words of two strings are equal.
#[inline]
fn same_words(a: &[u8], b: &[u8]) -> bool {
    a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).all(|(x, y)| x == y)
}

/// Head of a normal form after a prefix of `prefix_len` bytes.
///
/// A short rest is shifted out of the four bytes that it ends: put together in a buffer it would
/// have to wait for the bytes to arrive there one by one.
#[inline(always)]
pub(crate) fn head_after(norm: &[u8], prefix_len: usize) -> u32 {
    match norm.get(prefix_len..).and_then(|rest| rest.first_chunk::<4>()) {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => short_head(norm, prefix_len),
    }
}

/// As `head_after`, of a rest shorter than a head.
#[inline]
fn short_head(norm: &[u8], prefix_len: usize) -> u32 {
    let rest = norm.get(prefix_len..).unwrap_or_default();
    if let Some(bytes) = norm.last_chunk::<4>() {
        let missing = 4 - rest.len().min(4) as u32;
        return (u64::from(u32::from_be_bytes(*bytes)) << (8 * missing)) as u32;
    }
    let byte = |i| rest.get(i).map_or(0, |b| u32::from(*b));
    byte(0) << 24 | byte(1) << 16 | byte(2) << 8
}

/// Length of the common start of two byte strings.
pub(crate) fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The shortest separator (normal form) with `left < separator <= right`; under a caller's order
/// `right` whole. It replaces what `out` held.
pub(crate) fn separator(order: &Order, left: &[u8], right: &[u8], out: &mut Vec<u8>) {
    out.clear();
    match order {
        Order::Bytes => {
            let len = common_len(left, right) + 1;
            out.extend_from_slice(right.get(..len).unwrap_or(right));
        }
        Order::Reversed => {
            let same = left.iter().rev().zip(right.iter().rev()).take_while(|(a, b)| a == b);
            let len = same.count() + 1;
            out.extend(right.iter().rev().take(len));
        }
        Order::Custom(_) => out.extend_from_slice(right),
    }
}
