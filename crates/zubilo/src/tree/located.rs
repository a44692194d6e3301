//! Pages that know where they are: damage found in one becomes an error that names it.

use std::ops::Deref;

use crate::error::Result;
use crate::page::row::{Cut, Node, Row};
use crate::page::{Branch, Damage, Entry, Leaf, LeafPage, Order, Packed, SearchKey};

use super::Ref;

/// A page, or a part of one, and the reference that led to it.
#[derive(Clone, Copy)]
pub(crate) struct Located<T> {
    at: Ref,
    inner: T,
}

impl<T> Deref for Located<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> Located<T> {
    /// What was read from the page at `at`.
    #[inline(always)]
    pub(crate) fn new(at: Ref, read: Result<T, Damage>) -> Result<Located<T>> {
        match read {
            Ok(inner) => Ok(Located { at, inner }),
            Err(damage) => Err(at.damaged()(damage)),
        }
    }

    /// Where the page is.
    #[inline(always)]
    pub(crate) fn at(&self) -> Ref {
        self.at
    }

    #[inline(always)]
    fn locate<U>(&self, read: Result<U, Damage>) -> Result<U> {
        read.map_err(self.at.damaged())
    }
}

impl<'p, L: LeafPage<'p>> Located<L> {
    /// Key of an entry.
    #[inline(always)]
    pub(crate) fn key(&self, i: usize) -> Result<&'p [u8]> {
        self.locate(self.inner.key(i))
    }

    /// Index of a key, or where it would be inserted.
    #[inline(always)]
    pub(crate) fn search(
        &self,
        order: &Order,
        key: &SearchKey<'_>,
    ) -> Result<Result<usize, usize>> {
        self.locate(self.inner.search(order, key))
    }
}

impl<'p> Located<Leaf<'p>> {
    #[inline(always)]
    pub(crate) fn entry(&self, i: usize) -> Result<Entry<'p>> {
        self.locate(self.inner.entry(i))
    }

    /// The entry under `key`.
    #[inline(always)]
    pub(crate) fn find(&self, order: &Order, key: &SearchKey<'_>) -> Result<Option<Entry<'p>>> {
        match self.inner.find(order, key) {
            Ok(entry) => Ok(entry),
            Err(damage) => Err(self.at.damaged()(damage)),
        }
    }
}

impl<'p> Located<Packed<'p>> {
    #[inline(always)]
    pub(crate) fn item(&self, i: usize) -> Result<&'p [u8]> {
        self.locate(self.inner.item(i))
    }

    /// Index of an item, or where it would be inserted.
    pub(crate) fn position(&self, order: &Order, item: &[u8]) -> Result<Result<usize, usize>> {
        self.locate(self.inner.search(order, item))
    }
}

impl<'p> Located<Branch<'p>> {
    #[inline(always)]
    pub(crate) fn child(&self, i: usize) -> Result<Ref> {
        self.locate(self.inner.child(i)).map(Ref)
    }

    /// The child under which `key` belongs.
    #[inline(always)]
    pub(crate) fn search(&self, order: &Order, key: &SearchKey<'_>) -> Result<usize> {
        self.locate(self.inner.search(order, key))
    }

    /// Number of records under a child.
    pub(crate) fn records(&self, i: usize) -> Result<u64> {
        self.locate(self.inner.records(i))
    }

    /// Separator `i`; replaces `out`.
    pub(crate) fn separator(&self, i: usize, out: &mut Vec<u8>) -> Result<()> {
        self.locate(self.inner.separator(i, out))
    }
}

impl Located<Node<'_>> {
    /// Bytes that all entries take, wherever they lie.
    pub(crate) fn size(&self, align: usize) -> Result<usize> {
        self.locate(self.inner.size(align))
    }

    /// Bytes that an entry takes, wherever it lies.
    pub(crate) fn entry_size(&self, i: usize, align: usize) -> Result<usize> {
        self.locate(self.inner.entry_size(i, align))
    }
}

impl Located<Row<'_>> {
    /// See [`Row::even`].
    pub(crate) fn even(&self, capacity: usize) -> Result<Option<Cut>> {
        self.locate(self.inner.even(capacity))
    }

    /// See [`Row::filled`].
    pub(crate) fn filled(&self, room: usize) -> Result<Option<Cut>> {
        self.locate(self.inner.filled(room))
    }

    /// See [`Row::separator`].
    pub(crate) fn separator(&self, cut: Cut, out: &mut Vec<u8>) -> Result<()> {
        self.locate(self.inner.separator(cut, out))
    }
}
