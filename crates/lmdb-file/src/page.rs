//! Pages and what is on them. Everything is looked up with its bounds checked; what is out of them is
//! damage.

use crate::error::{Result, damaged};
use crate::layout::{Layout, NODE_HEAD, Tree, u16_at, u32_at};

const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const PACKED: u16 = 0x20;
const SUB_PAGE: u16 = 0x40;

const IN_OVERFLOW: u16 = 0x01;
const IS_TREE: u16 = 0x02;
const HAS_DUPLICATES: u16 = 0x04;

/// The bytes of a page, or of a small page inside a record.
#[derive(Clone, Copy)]
pub(crate) struct Page<'p> {
    bytes: &'p [u8],
    layout: Layout,
    /// For errors: the page it is or is on.
    no: u64,
}

/// What kind of page is expected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Branch,
    Leaf,
    /// A leaf inside a record.
    SubPage,
}

/// A record's data.
pub(crate) enum Data<'p> {
    Plain(&'p [u8]),
    /// In pages of its own: the first of them and the length.
    Overflow(u64, u64),
    /// A named table.
    Table(Tree),
    /// Many values, in a page inside the record.
    Values(&'p [u8]),
    /// Many values, in a tree of their own.
    ValueTree(Tree),
}

impl<'p> Page<'p> {
    /// Checks the head of a page.
    pub(crate) fn new(layout: Layout, bytes: &'p [u8], no: u64, kind: Kind) -> Result<Page<'p>> {
        let page = Page { bytes, layout, no };
        let flags = page.flags()?;
        let (good, reason) = match kind {
            Kind::Branch => (flags & (BRANCH | LEAF) == BRANCH, "it should be a branch"),
            Kind::Leaf => {
                (flags & (BRANCH | LEAF | OVERFLOW | SUB_PAGE) == LEAF, "it should be a leaf")
            }
            Kind::SubPage => (
                flags & (LEAF | SUB_PAGE | BRANCH) == LEAF | SUB_PAGE,
                "a record should hold a page of values",
            ),
        };
        if !good {
            return Err(damaged(no, reason));
        }
        if kind != Kind::SubPage && layout.word_at(bytes, 0) != Some(no) {
            return Err(damaged(no, "it bears another number"));
        }
        let head = layout.page_head();
        let lower = usize::from(page.u16_at(layout.word + 4)?);
        if lower < head || lower > bytes.len() || !(lower - head).is_multiple_of(2) {
            return Err(damaged(no, "the list of its records does not fit"));
        }
        Ok(page)
    }

    fn u16_at(&self, at: usize) -> Result<u16> {
        u16_at(self.bytes, at).ok_or(damaged(self.no, "it is too short"))
    }

    fn flags(&self) -> Result<u16> {
        self.u16_at(self.layout.word + 2)
    }

    /// Whether its keys lie one after the other, without heads and data.
    pub(crate) fn is_packed(&self) -> Result<bool> {
        Ok(self.flags()? & PACKED != 0)
    }

    /// Number of records.
    pub(crate) fn count(&self) -> Result<usize> {
        let lower = usize::from(self.u16_at(self.layout.word + 4)?);
        Ok(lower.saturating_sub(self.layout.page_head()) / 2)
    }

    /// Key `i` of a packed page.
    pub(crate) fn packed(&self, i: usize) -> Result<&'p [u8]> {
        let size = usize::from(self.u16_at(self.layout.word)?);
        if size == 0 && i > 0 {
            // One value of no length is all there can be; more would be the same again.
            return Err(damaged(self.no, "its values have no length"));
        }
        let start = i.checked_mul(size).and_then(|at| at.checked_add(self.layout.page_head()));
        start
            .and_then(|start| self.bytes.get(start..start.checked_add(size)?))
            .ok_or(damaged(self.no, "a value lies beyond its end"))
    }

    /// Offset of record `i`.
    fn node(&self, i: usize) -> Result<usize> {
        let head = self.layout.page_head();
        let at = i.checked_mul(2).and_then(|at| at.checked_add(head));
        let at = at.and_then(|at| u16_at(self.bytes, at)).map(usize::from);
        at.filter(|at| *at >= head).ok_or(damaged(self.no, "a record lies outside of it"))
    }

    /// Key of record `i`.
    pub(crate) fn key(&self, i: usize) -> Result<&'p [u8]> {
        let node = self.node(i)?;
        let size = usize::from(self.u16_at(node + 6)?);
        let start = node + NODE_HEAD;
        self.bytes.get(start..start + size).ok_or(damaged(self.no, "a key lies beyond its end"))
    }

    /// The child that record `i` of a branch leads to.
    pub(crate) fn child(&self, i: usize) -> Result<u64> {
        let node = self.node(i)?;
        let low = u32_at(self.bytes, node).ok_or(damaged(self.no, "it is too short"))?;
        // Words of 8 bytes give page numbers of 48 bits: the flags' place holds the upper part.
        let high = if self.layout.word == 8 { self.u16_at(node + 4)? } else { 0 };
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    /// The data of record `i` of a leaf.
    pub(crate) fn data(&self, i: usize) -> Result<Data<'p>> {
        let node = self.node(i)?;
        let size = u32_at(self.bytes, node).ok_or(damaged(self.no, "it is too short"))? as usize;
        let flags = self.u16_at(node + 4)?;
        let start = node + NODE_HEAD + usize::from(self.u16_at(node + 6)?);
        if flags & IN_OVERFLOW != 0 {
            if flags & (IS_TREE | HAS_DUPLICATES) != 0 {
                return Err(damaged(self.no, "a record has flags that exclude each other"));
            }
            let page = self.layout.word_at(self.bytes, start);
            let page = page.ok_or(damaged(self.no, "a record lies beyond its end"))?;
            return Ok(Data::Overflow(page, size as u64));
        }
        let data = start.checked_add(size).and_then(|end| self.bytes.get(start..end));
        let data = data.ok_or(damaged(self.no, "a record lies beyond its end"))?;
        if flags & IS_TREE == 0 {
            return Ok(match flags & HAS_DUPLICATES {
                0 => Data::Plain(data),
                _ => Data::Values(data),
            });
        }
        let tree = Tree::read(self.layout, data, 0).filter(|_| data.len() == self.layout.tree());
        let tree = tree.ok_or(damaged(self.no, "the description of a tree has a wrong size"))?;
        Ok(match flags & HAS_DUPLICATES {
            0 => Data::Table(tree),
            _ => Data::ValueTree(tree),
        })
    }
}

/// Number of pages of an overflow run, by the head of the first.
pub(crate) fn overflow_pages(layout: Layout, head: &[u8], no: u64) -> Result<u64> {
    let flags = u16_at(head, layout.word + 2).unwrap_or_default();
    if flags & OVERFLOW == 0 || layout.word_at(head, 0) != Some(no) {
        return Err(damaged(no, "it should begin a large value"));
    }
    let pages = u32_at(head, layout.word + 4).unwrap_or_default();
    Ok(u64::from(pages))
}
