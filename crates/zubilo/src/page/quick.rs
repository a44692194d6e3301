//! What a look-up needs of a page, and no more: the parse of descents.
//!
//! These functions know the ordinary case only. Whatever else there is - damage, a caller's order,
//! keys with one head, values that are not in the leaf - they say so by `None`, and the caller begins
//! again with [`super::Branch`] and [`super::Leaf`], which know all cases and name what is wrong. So
//! nothing is checked less here, but what is found out is only that something is to be looked at.

use crate::num::{load_u32, load_u64};

use super::header::Shape;
use super::key::{head_after, same};
use super::leaf_read::RECORD_HEAD;
use super::search::{Heads, heads_of, lower_child_of, lower_of, lower_of_many};
use super::{HEADER, Kind, SMALLEST};

/// A key as it is compared with pages of tables in one of the engine's own orders.
pub(crate) trait QuickKey: Copy {
    /// The head after no prefix, as most branches have none.
    fn whole_head(&self) -> u32;
    /// The head after a prefix of this length, if the key is so long.
    fn head(&self, prefix_len: usize) -> Option<u32>;
    /// Whether the normal form starts with a page's prefix, which has this length and is not empty.
    fn shares(&self, page: &[u8], prefix_len: usize) -> bool;
    /// Whether a record of a leaf that has the length of the key is the key's.
    fn is(&self, key: &[u8]) -> bool;
    /// Bytes.
    fn len(&self) -> usize;
}

/// A key in byte order.
#[derive(Clone, Copy)]
pub(crate) struct ByteKey<'k> {
    bytes: &'k [u8],
    /// The head of the whole key.
    head: u32,
}

impl<'k> ByteKey<'k> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'k [u8]) -> ByteKey<'k> {
        ByteKey { bytes, head: head_after(bytes, 0) }
    }
}

impl QuickKey for ByteKey<'_> {
    #[inline(always)]
    fn whole_head(&self) -> u32 {
        self.head
    }

    #[inline(always)]
    fn head(&self, prefix_len: usize) -> Option<u32> {
        match self.bytes.get(prefix_len..prefix_len + 4).and_then(|rest| rest.first_chunk::<4>()) {
            Some(bytes) => Some(u32::from_be_bytes(*bytes)),
            None => (prefix_len <= self.bytes.len()).then(|| head_after(self.bytes, prefix_len)),
        }
    }

    #[inline(always)]
    fn shares(&self, page: &[u8], prefix_len: usize) -> bool {
        match self.bytes.first_chunk::<8>() {
            Some(start) if prefix_len <= 8 => {
                NumberKey(u64::from_be_bytes(*start)).shares(page, prefix_len)
            }
            _ => {
                let prefix = page.get(HEADER..HEADER + prefix_len);
                prefix.zip(self.bytes.get(..prefix_len)).is_some_and(|(a, b)| same(a, b))
            }
        }
    }

    #[inline(always)]
    fn is(&self, key: &[u8]) -> bool {
        same(self.bytes, key)
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A key of 8 bytes in reversed order: a number.
#[derive(Clone, Copy)]
pub(crate) struct NumberKey(pub(crate) u64);

impl QuickKey for NumberKey {
    #[inline(always)]
    fn whole_head(&self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    fn head(&self, prefix_len: usize) -> Option<u32> {
        (prefix_len < 8).then(|| (self.0 << (8 * prefix_len as u32) >> 32) as u32)
    }

    #[inline(always)]
    fn shares(&self, page: &[u8], prefix_len: usize) -> bool {
        let start = load_u64(page, HEADER).unwrap_or(0).swap_bytes();
        prefix_len <= 8 && (self.0 ^ start) >> (64 - 8 * prefix_len as u32).min(63) == 0
    }

    #[inline(always)]
    fn is(&self, key: &[u8]) -> bool {
        load_u64(key, 0) == Some(self.0)
    }

    #[inline(always)]
    fn len(&self) -> usize {
        8
    }
}

/// A level on the way down, as its branches bear it.
#[derive(Clone, Copy)]
pub(crate) struct Level(u32);

impl Level {
    /// The levels of a tree's branches, from its root down.
    #[inline(always)]
    pub(crate) fn of_branches(depth: u8) -> Levels {
        Levels(u32::from(depth) << 8 | Kind::Branch as u32)
    }

    /// As a number: 1 above leaves.
    #[inline(always)]
    pub(crate) fn number(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

/// The levels still to come; one above them as a branch there would bear it.
pub(crate) struct Levels(u32);

impl Iterator for Levels {
    type Item = Level;

    #[inline(always)]
    fn next(&mut self) -> Option<Level> {
        if self.0 < 2 << 8 {
            return None;
        }
        self.0 -= 1 << 8;
        Some(Level(self.0))
    }
}

/// Where a branch leads.
pub(crate) struct Way {
    /// The entry taken.
    pub(crate) index: usize,
    /// Entries of the branch.
    pub(crate) count: usize,
    /// Reference of the child.
    pub(crate) child: u64,
}

/// The way to `key` through the branch in `page`, which must be on `level`.
#[inline(always)]
pub(crate) fn way(page: &[u8], level: Level, key: &impl QuickKey) -> Option<Way> {
    if page.len() < SMALLEST {
        return None;
    }
    way_through::<false>(page, Shape::of(page, level.0)?, key)
}

/// The child that `key` is under in a branch with more children than a page of 4 KiB has room for.
#[inline(never)]
pub(crate) fn child_among_many(page: &[u8], level: Level, key: &impl QuickKey) -> Option<u64> {
    let shape = Shape::of_any(page, level.0).filter(|shape| shape.count > Shape::MOST)?;
    way_through::<true>(page, shape, key).map(|way| way.child)
}

#[inline(always)]
fn way_through<const MANY: bool>(
    page: &[u8],
    Shape { count, prefix_len }: Shape,
    key: &impl QuickKey,
) -> Option<Way> {
    let children = page.get(HEADER + prefix_len + 6 * count..)?.get(..8 * count)?;
    let head = match prefix_len {
        0 => key.whole_head(),
        _ if key.shares(page, prefix_len) => key.head(prefix_len)?,
        _ => return None,
    };
    // The first separator stands for all keys that are less than the second.
    let arrays = page.get(HEADER + prefix_len..)?;
    let (low, next) = if MANY {
        let low = lower_of_many(arrays, count, head).max(1);
        (low, load_u32(arrays, 4 * low)?)
    } else {
        let heads = heads_of(arrays)?;
        let low = lower_child_of(heads, arrays, count, head).max(1);
        (low, u32::from_le_bytes(*heads.get(low)?))
    };
    if next == head {
        return None;
    }
    let index = low - 1;
    let child = u64::from_le_bytes(*children.as_chunks::<8>().0.get(index)?);
    Some(Way { index, count, child })
}

/// Why there is no answer to a quick question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Miss {
    /// The key is not there.
    Absent,
    /// Something is to be looked at.
    Unsure,
}

/// Where the record of `key` lies in the leaf in `page`, if it is there at all and no other key has
/// its head.
#[inline(always)]
pub(crate) fn place(page: &[u8], key: &impl QuickKey) -> Result<usize, Miss> {
    let parts = leaf_parts(page, key);
    let Some((arrays, heads, count, head)) = parts else { return Err(Miss::Unsure) };
    let low = lower_of(heads, count, head);
    // Whether the key shares the prefix is not asked: if it does not, it is no key of the page.
    if heads.get(low).is_none_or(|next| u32::from_le_bytes(*next) != head) {
        return Err(Miss::Absent);
    }
    // What lies after the last head, and happens to look like the one looked for, leads to no record
    // of the key.
    let at = 4 * count + 2 * low;
    let offset = arrays.get(at..at + 2).and_then(|offset| offset.first_chunk::<2>());
    offset.map_or(Err(Miss::Unsure), |offset| Ok(usize::from(u16::from_le_bytes(*offset))))
}

/// The heads and all that follows them, the number of heads, and the head that the key would have.
#[inline(always)]
fn leaf_parts<'p>(
    page: &'p [u8],
    key: &impl QuickKey,
) -> Option<(&'p [u8], &'p Heads, usize, u32)> {
    // The arrays of a usual leaf end before this, so they need no further check.
    const { assert!(HEADER + 7 * Shape::MOST <= SMALLEST) };
    if page.len() < SMALLEST {
        return None;
    }
    let Shape { count, prefix_len } = Shape::of(page, Kind::Leaf as u32)?;
    let arrays = page.get(HEADER + prefix_len..)?;
    Some((arrays, heads_of(arrays)?, count, key.head(prefix_len)?))
}

/// The value in the record at `place` of a leaf, if the record is that of `key` and holds it.
#[inline(always)]
pub(crate) fn value_at<'p>(page: &'p [u8], place: usize, key: &impl QuickKey) -> Option<&'p [u8]> {
    let fields = u32::from_le_bytes(*page.get(place..place + RECORD_HEAD)?.first_chunk()?);
    // The upper bits of the length are the kind, and 0 stands for a value in its record.
    let (key_len, value_len) = ((fields & 0xffff) as usize, (fields >> 16) as usize);
    let start = place + RECORD_HEAD;
    let value = page.get(start + key_len..start + key_len + value_len)?;
    let is_it = key_len == key.len() && key.is(page.get(start..start + key_len)?);
    is_it.then_some(value)
}
