//! Leaves of any kind, as far as only their keys matter: those of the trees that hold the values of
//! one key are ordinary leaves without values, or packed.

use super::key::{Order, SearchKey};
use super::leaf_read::Leaf;
use super::packed::Packed;
use super::{Damage, Kind, header};

/// What a walk through a tree needs of its leaves.
pub(crate) trait LeafPage<'p>: Copy {
    /// The leaf in `page`, which must say that it is on level 0.
    fn parse(page: &'p [u8]) -> Result<Self, Damage>;
    /// Entries.
    fn count(&self) -> usize;
    /// Key of an entry.
    fn key(&self, i: usize) -> Result<&'p [u8], Damage>;
    /// Index of a key, or where it would be inserted.
    fn search(&self, order: &Order, key: &SearchKey<'_>) -> Result<Result<usize, usize>, Damage>;
}

impl<'p> LeafPage<'p> for Leaf<'p> {
    #[inline(always)]
    fn parse(page: &'p [u8]) -> Result<Leaf<'p>, Damage> {
        Leaf::on_level_0(page)
    }

    #[inline(always)]
    fn count(&self) -> usize {
        Leaf::count(self)
    }

    #[inline(always)]
    fn key(&self, i: usize) -> Result<&'p [u8], Damage> {
        Leaf::key(self, i)
    }

    #[inline(always)]
    fn search(&self, order: &Order, key: &SearchKey<'_>) -> Result<Result<usize, usize>, Damage> {
        Leaf::search(self, order, key)
    }
}

/// An ordinary or a packed leaf.
#[derive(Clone, Copy)]
pub(crate) enum Items<'p> {
    Leaf(Leaf<'p>),
    Packed(Packed<'p>),
}

impl<'p> LeafPage<'p> for Items<'p> {
    #[inline]
    fn parse(page: &'p [u8]) -> Result<Items<'p>, Damage> {
        if header::kind_and_level(page) == (Kind::Packed as u8, 0) {
            return Packed::new(page).map(Items::Packed);
        }
        Leaf::on_level_0(page).map(Items::Leaf)
    }

    #[inline]
    fn count(&self) -> usize {
        match self {
            Items::Leaf(leaf) => leaf.count(),
            Items::Packed(packed) => packed.count(),
        }
    }

    #[inline]
    fn key(&self, i: usize) -> Result<&'p [u8], Damage> {
        match self {
            Items::Leaf(leaf) => leaf.key(i),
            Items::Packed(packed) => packed.item(i),
        }
    }

    fn search(&self, order: &Order, key: &SearchKey<'_>) -> Result<Result<usize, usize>, Damage> {
        match self {
            Items::Leaf(leaf) => leaf.search(order, key),
            Items::Packed(packed) => packed.search(order, key),
        }
    }
}

impl Items<'_> {
    /// Bytes in use behind the header.
    pub(crate) fn used(&self) -> usize {
        match self {
            Items::Leaf(leaf) => leaf.used(),
            Items::Packed(packed) => packed.used(),
        }
    }
}
