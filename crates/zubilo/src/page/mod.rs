//! Layouts of pages: pure functions over bytes, without I/O and without `unsafe` (but for the
//! prefetch and the vector compare of heads). `docs/file-format.md` draws them.
//!
//! Invariant of this module: no content of a page makes it panic or read outside the page. Every
//! offset, count and length read from a page is checked where it is used; what is wrong becomes
//! [`Damage`]. `header` owns the fields all pages have, `key` orders and normal forms, `slots` the
//! arrays of heads and offsets, `search` finds a head among them, `vector` compares many at once;
//! `leaf_read` and `branch_read` read, `quick` reads what a look-up needs of usual pages; `leaf`,
//! `append` and `branch` change, `row` moves entries between neighbours;
//! `packed` has leaves that are no more than sorted items, in pages and in records, `items` what is
//! common to all leaves.

mod append;
pub(crate) mod branch;
mod branch_read;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod exercise;
pub(crate) mod header;
mod items;
mod key;
pub(crate) mod leaf;
mod leaf_read;
pub(crate) mod packed;
mod prefetch;
pub(crate) mod quick;
pub(crate) mod row;
mod search;
mod slots;
#[cfg(test)]
mod tests;
mod vector;

pub(crate) use append::append;
pub(crate) use branch_read::Branch;
pub(crate) use items::LeafPage;
pub(crate) use key::{Compare, NormBuf, Order, SearchKey, separator};
pub(crate) use leaf::NewValue;
use leaf_read::KEY_LEN_MAX;
pub(crate) use leaf_read::{Entry, Leaf, ValueKind, entry_at, entry_of};
pub(crate) use packed::{Items, Packed};
pub(crate) use prefetch::{prefetch, prefetch_heap, prefetch_page, touch};

/// What is wrong with a page; becomes [`crate::Error::Corrupted`] together with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);

/// Bytes of the header that every tree page has.
pub(crate) const HEADER: usize = 48;
/// Bytes of the smallest page.
pub(crate) const SMALLEST: usize = 4096;

/// Kinds of tree pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Separators and children.
    Branch = 1,
    /// Keys and values.
    Leaf = 2,
    /// Items of one size.
    Packed = 3,
}

/// The page is of a table with a caller's comparator: no prefix, no heads.
pub(crate) const FLAG_CUSTOM: u16 = 1;
/// The leaf refers to values, or trees of values, that are still in memory; never on disk.
pub(crate) const FLAG_DIRTY_RUNS: u16 = 2;
/// The branch stores how many records lie under each child.
pub(crate) const FLAG_COUNTED: u16 = 4;

/// Longest key, in bytes: about half of a page, such that the descriptor of a tree of values fits beside it in a record
/// of at most [`max_inline`]. In the largest pages it is what the field for its length can hold.
///
/// A branch then has room for two separators and so for three children: one that is full with them can be split.
pub(crate) const fn max_key(page_size: usize) -> usize {
    let beside_a_tree = max_inline(page_size) - DESC_SIZE;
    if beside_a_tree < KEY_LEN_MAX { beside_a_tree } else { KEY_LEN_MAX }
}

/// Bytes of the descriptor of a tree, the longest value that stands for others.
const DESC_SIZE: usize = 80;

/// Longest key and value together that are kept in a leaf, in bytes.
///
/// With its slots (6), its header (4) and its padding (at most 15 before and after) such a record
/// takes at most half of the room C of a page. So two fit, and so every split makes room for one:
/// cut a full page and the new record, together at most 1.5 C, before the first record at which the
/// rest is at most C; what lies before it is at most the 0.5 C that were too much, and one record.
pub(crate) const fn max_inline(page_size: usize) -> usize {
    (page_size - HEADER) / 2 - 40
}
