//! Where numbers lie. All are little-endian here; sizes and page numbers have the width of the machine
//! that wrote the file, 4 or 8 bytes, and shift what comes behind them.
//!
//! ```text
//! page     number (word), pad u16, flags u16, then lower u16 and upper u16, or pages u32
//! record   low u16, high u16, flags u16, key size u16, key, data
//! tree     pad u32, flags u16, depth u16, branch, leaf and overflow pages, entries, root (words)
//! meta     after a page's head: magic u32, version u32, address, map size (words), tree of free
//!          pages, tree of names, last page, transaction (words)
//! ```

/// Width of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) word: usize,
}

/// Bytes of a record before its key.
pub(crate) const NODE_HEAD: usize = 8;

impl Layout {
    pub(crate) const BITS_64: Layout = Layout { word: 8 };
    pub(crate) const BITS_32: Layout = Layout { word: 4 };

    /// Bytes of a page before its contents.
    pub(crate) fn page_head(self) -> usize {
        self.word + 8
    }

    /// Bytes of a tree's description.
    pub(crate) fn tree(self) -> usize {
        8 + 5 * self.word
    }

    /// Bytes of a meta.
    pub(crate) fn meta(self) -> usize {
        8 + 2 * self.word + 2 * self.tree() + 2 * self.word
    }

    /// The root of an empty tree.
    pub(crate) fn no_page(self) -> u64 {
        if self.word == 8 { u64::MAX } else { u64::from(u32::MAX) }
    }

    /// The word at an offset.
    pub(crate) fn word_at(self, bytes: &[u8], at: usize) -> Option<u64> {
        let low = u64::from(u32_at(bytes, at)?);
        if self.word == 4 {
            return Some(low);
        }
        Some(low | u64::from(u32_at(bytes, at.checked_add(4)?)?) << 32)
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*bytes))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// The description of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) pad: u32,
    pub(crate) flags: u16,
    pub(crate) depth: u16,
    pub(crate) entries: u64,
    pub(crate) root: u64,
}

impl Tree {
    pub(crate) fn read(layout: Layout, bytes: &[u8], at: usize) -> Option<Tree> {
        let word = |n: usize| layout.word_at(bytes, at.checked_add(8 + n * layout.word)?);
        Some(Tree {
            pad: u32_at(bytes, at)?,
            flags: u16_at(bytes, at.checked_add(4)?)?,
            depth: u16_at(bytes, at.checked_add(6)?)?,
            entries: word(3)?,
            root: word(4)?,
        })
    }
}
