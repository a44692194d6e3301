//! Encrypted files that are written or read without a map: copies, and what is left of damaged stores.

use crate::error::Result;
use crate::platform::Purpose;

use super::header::Header;
use super::keys::{DRAWN, Keys, NONCE, Secret, TRAILER, draw, purpose_of};
use super::layout::{Layout, METAS};

/// The keys and the layout of one file.
pub(crate) struct Sealer {
    header: Header,
    keys: Keys,
    layout: Layout,
}

impl Sealer {
    /// For a new file.
    pub(crate) fn new(secret: &Secret, shift: u32) -> Result<Sealer> {
        let (header, keys) = Header::new(secret, shift)?;
        Ok(Sealer { header, keys, layout: Layout { shift } })
    }

    /// For the file with this page after its metas; none if that is no header of a store of such pages.
    pub(crate) fn of_header(page: &[u8], shift: u32, secret: &Secret) -> Option<Result<Sealer>> {
        let header = Header::of_page(page, shift)?;
        let keys = header.keys(secret);
        Some(keys.map(|keys| Sealer { header, keys, layout: Layout { shift } }))
    }

    /// What goes into the page after the metas.
    pub(crate) fn header(&self) -> Vec<u8> {
        self.header.page()
    }

    /// Where the page `number` begins in the file.
    pub(crate) fn place(&self, number: u64) -> u64 {
        self.layout.place(number)
    }

    /// Bytes of a page in the file.
    pub(crate) fn stride(&self) -> usize {
        self.layout.stride() as usize
    }

    /// Bytes of the file for so many of the store.
    pub(crate) fn file_len(&self, len: u64) -> u64 {
        self.layout.file_len(len)
    }

    /// Bytes of the store for so many of the file.
    pub(crate) fn store_len(&self, len: u64) -> u64 {
        self.layout.store_len(len)
    }

    /// Whole pages, the first of which is `first`, as the file has them.
    pub(crate) fn seal(&self, first: u64, pages: &[u8], purpose: Purpose) -> Result<Vec<u8>> {
        let size = self.layout.page() as usize;
        let mut nonce = [0; NONCE];
        draw(&mut nonce[..DRAWN])?;
        let mut sealed = Vec::with_capacity(pages.len() / size * self.stride());
        for (i, page) in pages.chunks_exact(size).enumerate() {
            let from = sealed.len();
            sealed.extend_from_slice(page);
            nonce[DRAWN..].copy_from_slice(&(i as u64).to_le_bytes());
            let number = first + i as u64;
            let trailer = self.keys.seal(number, nonce, &mut sealed[from..], purpose)?;
            sealed.extend_from_slice(&trailer);
        }
        Ok(sealed)
    }

    /// The page `number` of what the file has in its place; none if it is not authentic, or was
    /// written for something else.
    pub(crate) fn open(
        &self,
        number: u64,
        mut sealed: Vec<u8>,
        purpose: Purpose,
    ) -> Option<Vec<u8>> {
        let at = sealed.len().checked_sub(TRAILER).filter(|_| number >= METAS)?;
        let trailer = *sealed.get(at..)?.first_chunk()?;
        sealed.truncate(at);
        let is_it = purpose_of(&trailer) == purpose as u8;
        (is_it && self.keys.open(number, &mut sealed, &trailer)).then_some(sealed)
    }

    /// What proves that somebody with the key has written `meta`.
    pub(crate) fn authenticator(&self, meta: &[u8]) -> [u8; 32] {
        self.keys.proof(b"meta", meta)
    }
}
