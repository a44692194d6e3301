//! What is done with a page of the file before its bytes are looked at: pages of an encrypted store are decrypted,
//! and checksums are verified for those who ask for it, of each page once or each time.

use std::sync::Arc;

use crate::page::{Damage, header};
use crate::platform::{DataFile, Decryption, Purpose};
use crate::sync::{AtomicU64, Ordering};

use super::RunRef;

/// Verifies pages of one open store.
pub(crate) struct Verifier {
    /// One bit a page that has been verified; empty when each read is to be verified.
    seen: Box<[AtomicU64]>,
    /// Whether checksums are looked at.
    checksums: bool,
    /// Of an encrypted store.
    decryption: Option<Arc<dyn Decryption>>,
    /// What is readable already is compared with the file.
    again: bool,
}

impl Verifier {
    /// Verifies on each read of `data`.
    pub(crate) fn always(data: &dyn DataFile) -> Verifier {
        let decryption = data.decryption();
        Verifier { seen: Box::new([]), checksums: true, decryption, again: false }
    }

    /// Verifies the first read of each of the first `pages` pages, and every read of the others.
    /// A page that is written anew later is trusted: it came through memory, not from the disk.
    pub(crate) fn first_touch(data: &dyn DataFile, pages: u64) -> Verifier {
        let words = pages.div_ceil(64) as usize;
        let seen = (0..words).map(|_| AtomicU64::new(0)).collect();
        Verifier { seen, ..Verifier::always(data) }
    }

    /// Looks at no checksum. None where a page is there as it is.
    pub(crate) fn never(data: &dyn DataFile) -> Option<Verifier> {
        let decryption = Some(data.decryption()?);
        Some(Verifier { seen: Box::new([]), checksums: false, decryption, again: false })
    }

    /// For who looks at no checksum but at what the file has now. None where a page is there as the file has it.
    pub(crate) fn of_file(data: &dyn DataFile) -> Option<Verifier> {
        Some(Verifier { again: true, ..Verifier::never(data)? })
    }

    /// Makes pages readable; to be called before each look at their bytes.
    #[inline]
    pub(crate) fn decrypt(
        &self,
        first: u64,
        count: u64,
        purpose: Option<Purpose>,
    ) -> Result<(), Damage> {
        let Some(decryption) = &self.decryption else { return Ok(()) };
        let decrypted = match self.again {
            false => decryption.decrypt(first, count, purpose),
            true => decryption.decrypt_again(first, count, purpose),
        };
        decrypted.map_err(|_| NOT_AUTHENTIC)
    }

    #[inline]
    pub(crate) fn page(&self, number: u64, bytes: &[u8]) -> Result<(), Damage> {
        self.once(number, || header::verify(bytes, number))
    }

    pub(crate) fn run(&self, run: &RunRef, bytes: &[u8]) -> Result<(), Damage> {
        if self.decryption.is_some() {
            // What its pages were before is authentic too, and nothing in them says whose they are.
            return run.verify(bytes);
        }
        self.once(run.first, || run.verify(bytes))
    }

    #[inline]
    fn once(&self, number: u64, verify: impl FnOnce() -> Result<(), Damage>) -> Result<(), Damage> {
        if !self.checksums {
            return Ok(());
        }
        let word = self.seen.get((number / 64) as usize);
        let bit = 1 << (number % 64);
        if word.is_some_and(|w| w.load(Ordering::Relaxed) & bit != 0) {
            return Ok(());
        }
        verify()?;
        if let Some(word) = word {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// What is wrong with a page that does not decrypt.
pub(crate) const NOT_AUTHENTIC: Damage = Damage("the page is not what was encrypted in its place");
