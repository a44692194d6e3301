//! Where the pages of an encrypted store are in its file: after the metas and the header, each with its trailer.

use super::keys::TRAILER;

/// Pages before those of the store: the metas, after which the file has the header.
pub(super) const METAS: u64 = 4;

/// Where pages are in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) shift: u32,
}

impl Layout {
    pub(super) fn page(self) -> u64 {
        1 << self.shift
    }

    pub(super) fn stride(self) -> u64 {
        self.page() + TRAILER as u64
    }

    /// Where the page `number` is, which is not one of a meta.
    pub(super) fn place(self, number: u64) -> u64 {
        ((METAS + 1) << self.shift) + (number - METAS) * self.stride()
    }

    /// Bytes of the file for so many of the store.
    pub(super) fn file_len(self, len: u64) -> u64 {
        match len.div_ceil(self.page()) {
            pages if pages > METAS => self.place(pages).next_multiple_of(4096),
            _ => len,
        }
    }

    /// Bytes of the store for so many of the file.
    pub(super) fn store_len(self, len: u64) -> u64 {
        let first = (METAS + 1) << self.shift;
        match len.checked_sub(first) {
            Some(rest) => (METAS + rest / self.stride()) << self.shift,
            None => len.min(METAS << self.shift),
        }
    }
}
