//! Which pages of the file this process has written a moment ago.
//!
//! The writer verifies a page before it replaces or frees it: a copy with a fresh checksum would hide damage
//! for good. A page that it wrote itself within the last second came through memory and need not be
//! asked again ([`docs/decisions/0019`]); those are the branches and the hot leaves of small transactions, that
//! is, most of what they copy.
//!
//! Invariant: no page is known for longer than [`KNOWN_MS`].
//!
//! [`docs/decisions/0019`]: ../../../../docs/decisions/0019-pages-are-verified-before-they-go.md

use crate::platform;

/// How long a page is known. The kernel keeps what was written that shortly ago in memory: nothing of it
/// has been on a disk and come back.
const KNOWN_MS: u64 = 1000;

/// Blocks of 64 neighbouring pages that are known, at most: 16 KiB of memory, 256 MiB of small pages.
const BLOCKS: usize = 1024;

/// Neighbouring pages: their number in front of the last 6 bits, and a bit for each.
#[derive(Clone, Copy, Default)]
struct Block {
    number: u64,
    pages: u64,
}

/// The pages written of late.
#[derive(Default)]
pub(crate) struct Recent {
    /// Each block where its number's last bits say; empty before the first page.
    blocks: Vec<Block>,
    /// Since when the pages here were written, in milliseconds.
    since: u64,
}

impl Recent {
    /// Notes a page that is written now.
    pub(crate) fn note(&mut self, page: u64) {
        if self.blocks.is_empty() {
            // Without memory for it nothing is known.
            if self.blocks.try_reserve_exact(BLOCKS).is_err() {
                return;
            }
            self.blocks.resize(BLOCKS, Block::default());
            self.since = platform::coarse_ms();
        }
        let number = page >> 6;
        if let Some(block) = self.blocks.get_mut(number as usize % BLOCKS) {
            if block.number != number {
                *block = Block { number, pages: 0 };
            }
            block.pages |= 1 << (page & 63);
        }
    }

    /// Whether a page was written within the last second.
    #[inline]
    pub(crate) fn knows(&mut self, page: u64) -> bool {
        let number = page >> 6;
        let block = self.blocks.get(number as usize % BLOCKS);
        block.is_some_and(|b| b.number == number && b.pages & 1 << (page & 63) != 0)
            && self.is_recent(platform::coarse_ms())
    }

    /// Whether what is known still counts; it is forgotten if not.
    fn is_recent(&mut self, now: u64) -> bool {
        let recent = now.saturating_sub(self.since) < KNOWN_MS;
        if !recent {
            self.forget();
        }
        recent
    }

    /// Forgets all pages.
    pub(crate) fn forget(&mut self) {
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_pages_noted_are_known() {
        let mut recent = Recent::default();
        assert!(!recent.knows(0) && !recent.knows(70));
        [70, 71, 127].into_iter().for_each(|page| recent.note(page));
        for page in 0..300_000 {
            assert_eq!(recent.knows(page), [70, 71, 127].contains(&page), "{page}");
        }
        // Another block that has the same place takes it.
        let other = 70 + 64 * BLOCKS as u64;
        recent.note(other);
        assert!(recent.knows(other) && !recent.knows(70) && !recent.knows(other + 1));
    }

    #[test]
    fn nothing_is_known_for_long() {
        let mut recent = Recent::default();
        recent.note(5);
        let since = recent.since;
        assert!(recent.is_recent(since + KNOWN_MS - 1) && recent.knows(5));
        // A page noted later does not lengthen the time of those before.
        recent.note(6);
        assert!(!recent.is_recent(since + KNOWN_MS));
        assert!(!recent.knows(5) && !recent.knows(6));
        recent.note(7);
        assert!(recent.knows(7) && !recent.knows(5));
    }
}
