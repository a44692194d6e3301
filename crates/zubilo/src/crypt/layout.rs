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
            // The header is never cut off.
            METAS => (METAS + 1) << self.shift,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_lengths_go_both_ways() {
        for shift in 12..=16 {
            let layout = Layout { shift };
            let header_end = (METAS + 1) << shift;
            assert_eq!(layout.place(METAS), header_end);
            for pages in METAS..200 {
                assert_eq!(layout.place(pages + 1) - layout.place(pages), layout.stride());
                let len = pages << shift;
                let file = layout.file_len(len);
                assert!(file >= header_end.max(layout.place(pages)));
                assert_eq!(layout.store_len(file), len);
                assert_eq!(layout.file_len(len - 1), file);
                assert_eq!(layout.store_len(layout.place(pages)), len);
                assert!(layout.store_len(layout.place(pages + 1) - 1) <= len);
            }
            for len in [0, 1, 4096, METAS << shift] {
                assert!(layout.store_len(layout.file_len(len)) >= len);
            }
        }
    }
}
