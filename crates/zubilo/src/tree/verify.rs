//! Checksums on reads, for those who ask for them: each page once, or each time.

use crate::page::{Damage, header};
use crate::sync::{AtomicU64, Ordering};

use super::RunRef;

/// Verifies pages of one open store.
pub(crate) struct Verifier {
    /// One bit a page that has been verified; empty when each read is to be verified.
    seen: Box<[AtomicU64]>,
}

impl Verifier {
    /// Verifies on each read.
    pub(crate) fn always() -> Verifier {
        Verifier { seen: Box::new([]) }
    }

    /// Verifies the first read of each of the first `pages` pages, and every read of the others.
    /// A page that is written anew later is trusted: it came through memory, not from the disk.
    pub(crate) fn first_touch(pages: u64) -> Verifier {
        let words = pages.div_ceil(64) as usize;
        Verifier { seen: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    #[inline]
    pub(crate) fn page(&self, number: u64, bytes: &[u8]) -> Result<(), Damage> {
        let word = self.seen.get((number / 64) as usize);
        let bit = 1 << (number % 64);
        if word.is_some_and(|w| w.load(Ordering::Relaxed) & bit != 0) {
            return Ok(());
        }
        header::verify(bytes, number)?;
        if let Some(word) = word {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn run(&self, run: &RunRef, bytes: &[u8]) -> Result<(), Damage> {
        let word = self.seen.get((run.first / 64) as usize);
        let bit = 1 << (run.first % 64);
        if word.is_some_and(|w| w.load(Ordering::Relaxed) & bit != 0) {
            return Ok(());
        }
        run.verify(bytes)?;
        if let Some(word) = word {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }
}
