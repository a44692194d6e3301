//! What a walk through a tree needs of its leaves, of whatever kind they are.

use super::Damage;
use super::key::{Order, SearchKey};
use super::leaf_read::Leaf;
use super::packed::Packed;
use super::row::Node;

/// A leaf as far as only its keys matter.
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

impl<'p> LeafPage<'p> for Packed<'p> {
    #[inline]
    fn parse(page: &'p [u8]) -> Result<Packed<'p>, Damage> {
        Packed::new(page)
    }

    #[inline]
    fn count(&self) -> usize {
        Packed::count(self)
    }

    #[inline]
    fn key(&self, i: usize) -> Result<&'p [u8], Damage> {
        self.item(i)
    }

    #[inline]
    fn search(&self, order: &Order, key: &SearchKey<'_>) -> Result<Result<usize, usize>, Damage> {
        Packed::search(self, order, key.raw())
    }
}

/// Leaves of either kind, where only the page says which.
impl<'p> LeafPage<'p> for Node<'p> {
    fn parse(page: &'p [u8]) -> Result<Node<'p>, Damage> {
        Node::on_level(page, 0)
    }

    fn count(&self) -> usize {
        Node::count(self)
    }

    fn key(&self, i: usize) -> Result<&'p [u8], Damage> {
        Node::key(self, i)
    }

    fn search(&self, order: &Order, key: &SearchKey<'_>) -> Result<Result<usize, usize>, Damage> {
        match self {
            Node::Leaf(leaf) => leaf.search(order, key),
            Node::Packed(packed) => packed.search(order, key.raw()),
            Node::Branch(_) => Err(Damage("expected a leaf page")),
        }
    }
}
