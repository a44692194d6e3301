//! Records after all others of a leaf: what a sorted load does nearly always.

use crate::num::{store_u16, store_u32};

use super::leaf::place;
use super::leaf_read::{KEY_LEN_MAX, Leaf, RECORD_HEAD, key_field};
use super::slots::arrays_at;
use super::{ValueKind, header};

/// Puts a record with a value of `len` bytes after the last one, and gives the value's bytes to be
/// filled. `None`, and nothing is changed, where that is not a matter of one look: the key's head is
/// not greater than the last head, the page has no heads or no room, its prefix must be cut.
#[inline]
pub(crate) fn append<'p>(
    page: &'p mut [u8],
    key: &[u8],
    norm: &[u8],
    len: usize,
    align: usize,
) -> Option<&'p mut [u8]> {
    let leaf = Leaf::on_level_0(page).ok()?;
    let count = leaf.count();
    let last = leaf.head(count.checked_sub(1)?);
    let head = leaf.head_of(norm)?;
    if head <= last || key.len() > KEY_LEN_MAX || len > usize::from(u16::MAX) {
        return None;
    }
    let heads = arrays_at(page);
    let start = place(page, heads - super::HEADER, count, (key.len(), len), align)?;
    let value = start + RECORD_HEAD + key.len();
    let padding = (header::heap(page) as usize).saturating_sub(value + len);
    let (arrays, record) = page.split_at_mut_checked(start)?;
    let (fields, rest) = record.split_first_chunk_mut::<RECORD_HEAD>()?;
    let (to_key, rest) = rest.split_at_mut_checked(key.len())?;
    // All that can fail has been: from here on the page changes.
    let to_value = rest.get_mut(..len)?;
    let offsets = heads + 4 * count;
    if offsets + 2 * count + 6 > arrays.len() {
        return None;
    }
    let fields_word = u32::from(key_field(key.len(), ValueKind::Inline)) | (len as u32) << 16;
    *fields = fields_word.to_le_bytes();
    to_key.copy_from_slice(key);
    arrays.copy_within(offsets..offsets + 2 * count, offsets + 4);
    let stored = store_u32(arrays, offsets, head)
        && store_u16(arrays, offsets + 4 + 2 * count, start as u16);
    debug_assert!(stored, "the slots were looked at");
    header::append(arrays, count + 1, start, padding);
    Some(to_value)
}
