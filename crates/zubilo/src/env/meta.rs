//! The meta page: the state of the store after one commit, in 4 KiB whatever the page size.
//!
//! Besides the root it carries the free-space log: the deltas of the last commits, so that a small
//! commit needs no bookkeeping page of its own. When the log is full it moves to a blob, which
//! the next meta links to; when the blobs have grown past the size of the map of free space, a new
//! base map replaces base and blobs. See `docs/commit-and-recovery.md`.

use crate::planted::{Bug, has};
use twox_hash::XxHash3_64;

use crate::num::{load_u32, load_u64};
use crate::page::Damage;
use crate::tree::TreeDesc;
use crate::tree::desc::DESC_SIZE;

/// Bytes of a meta; the rest of a larger page stays zero.
pub(crate) const META_SIZE: usize = 4096;
/// Meta pages in a file: the steady commit's, that of a checkpoint under way, the newest commit's,
/// and one to write.
pub(crate) const META_COUNT: u64 = 4;
/// Bytes that the log may take inside a meta.
pub(crate) const LOG_CAPACITY: usize = META_SIZE - LOG_AT;

const MAGIC: [u8; 8] = *b"ZUBILO\x1a\n";
const VERSION: u32 = 1;
const LOG_AT: usize = 312;

/// How far the commit of a meta can be trusted after a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// On the same boot only: nothing was flushed for it.
    Weak = 0,
    /// Always: its pages were on disk before the meta was written.
    Steady = 1,
    /// If the digest of its pages is right: pages and meta shared one flush.
    Verified = 2,
}

/// A blob of bookkeeping in the file: pages without header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlobRef {
    /// First page; 0 is none.
    pub(crate) first: u64,
    pub(crate) len: u64,
    pub(crate) checksum: u64,
    /// Transaction that wrote it.
    pub(crate) txn: u64,
}

impl BlobRef {
    pub(crate) fn is_some(&self) -> bool {
        self.first != 0
    }

    pub(crate) fn pages(&self, shift: u32) -> u64 {
        self.len.div_ceil(1 << shift)
    }
}

/// Bounds and steps of the file's size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredGeometry {
    pub(crate) lower: u64,
    pub(crate) upper: u64,
    pub(crate) growth: u64,
    pub(crate) shrink: u64,
}

/// A decoded meta page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) page_shift: u32,
    pub(crate) trust: Trust,
    /// Identity of the store, from its creation.
    pub(crate) uuid: [u8; 16],
    pub(crate) boot_id: [u8; 16],
    pub(crate) txn: u64,
    /// First page that was never used.
    pub(crate) end: u64,
    pub(crate) geometry: StoredGeometry,
    /// The main tree: names of tables and their descriptors.
    pub(crate) main: TreeDesc,
    /// Three words of the user, and the transaction that set them.
    pub(crate) canary: [u64; 4],
    /// Of a verified commit: XXH3-64 over the pages it wrote, in ascending order. Of a weak one: the
    /// file it was written to (`DataFile::home`).
    pub(crate) digest: u64,
    pub(crate) base: BlobRef,
    pub(crate) blob: BlobRef,
    /// Bytes in the chain of blobs since the base.
    pub(crate) chain_len: u64,
    /// The furthest end in base and log: ends may come down between them.
    pub(crate) chain_end: u64,
    /// Identity for the next table.
    pub(crate) next_table: u32,
    /// Encoded deltas, oldest first.
    pub(crate) log: Vec<u8>,
}

struct Writer<'a>(&'a mut [u8], usize);

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(to) = self.0.get_mut(self.1..self.1 + bytes.len()) {
            to.copy_from_slice(bytes);
        }
        self.1 += bytes.len();
    }

    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|w| self.bytes(&w.to_le_bytes()));
    }

    fn blob(&mut self, blob: &BlobRef) {
        self.words(&[blob.first, blob.len, blob.checksum, blob.txn]);
    }
}

impl Meta {
    /// As stored. The log must fit ([`LOG_CAPACITY`]).
    pub(crate) fn encode(&self) -> Box<[u8; META_SIZE]> {
        let mut page = Box::new([0u8; META_SIZE]);
        let mut w = Writer(page.as_mut_slice(), 8);
        w.bytes(&MAGIC);
        w.bytes(&VERSION.to_le_bytes());
        w.bytes(&[self.page_shift as u8, self.trust as u8, 0, 0]);
        w.bytes(&self.uuid);
        w.bytes(&self.boot_id);
        let g = &self.geometry;
        w.words(&[self.txn, self.end, g.lower, g.upper, g.growth, g.shrink]);
        w.bytes(&self.main.to_bytes());
        w.words(&self.canary);
        w.words(&[self.digest]);
        w.blob(&self.base);
        w.blob(&self.blob);
        w.words(&[self.chain_len]);
        w.bytes(&self.next_table.to_le_bytes());
        w.bytes(&(self.log.len() as u32).to_le_bytes());
        w.words(&[self.chain_end]);
        debug_assert!(w.1 <= LOG_AT && self.log.len() <= LOG_CAPACITY);
        w.1 = LOG_AT;
        w.bytes(&self.log);
        let checksum = XxHash3_64::oneshot(&page[8..]);
        page[..8].copy_from_slice(&checksum.to_le_bytes());
        page
    }

    /// Decodes the meta at the start of `bytes`; every field is checked.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Meta, Damage> {
        let page: &[u8; META_SIZE] = bytes.first_chunk().ok_or(Damage("the meta is cut off"))?;
        if page[8..16] != MAGIC {
            return Err(Damage("no store's mark"));
        }
        if load_u64(page, 0) != Some(XxHash3_64::oneshot(&page[8..])) && !has(Bug::MetaNotVerified)
        {
            return Err(Damage("the meta's checksum is wrong"));
        }
        if load_u32(page, 16) != Some(VERSION) {
            return Err(Damage("another format version"));
        }
        let word = |at: usize| load_u64(page, at).unwrap_or_default();
        let chunk = |at: usize| -> [u8; 16] {
            page.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default()
        };
        let blob = |at: usize| BlobRef {
            first: word(at),
            len: word(at + 8),
            checksum: word(at + 16),
            txn: word(at + 24),
        };
        let trust = match page[21] {
            0 => Trust::Weak,
            1 => Trust::Steady,
            2 => Trust::Verified,
            _ => return Err(Damage("an unknown kind of commit")),
        };
        let log_len = load_u32(page, 300).unwrap_or_default() as usize;
        let log = page.get(LOG_AT..LOG_AT + log_len).ok_or(Damage("the log does not fit"))?;
        let meta = Meta {
            page_shift: u32::from(page[20]),
            trust,
            uuid: chunk(24),
            boot_id: chunk(40),
            txn: word(56),
            end: word(64),
            geometry: StoredGeometry {
                lower: word(72),
                upper: word(80),
                growth: word(88),
                shrink: word(96),
            },
            main: TreeDesc::from_bytes(&page[104..104 + DESC_SIZE])?,
            canary: [word(184), word(192), word(200), word(208)],
            digest: word(216),
            base: blob(224),
            blob: blob(256),
            chain_len: word(288),
            chain_end: word(304),
            next_table: load_u32(page, 296).unwrap_or_default(),
            log: log.to_vec(),
        };
        meta.check()?;
        Ok(meta)
    }

    fn check(&self) -> Result<(), Damage> {
        let last = 1 << (62 - self.page_shift.min(16));
        let end_fits = self.end >= META_COUNT && self.end <= last && self.chain_end <= last;
        if !(12..=16).contains(&self.page_shift) || !end_fits {
            return Err(Damage("the meta holds impossible sizes"));
        }
        for blob in [&self.base, &self.blob] {
            let pages = blob.pages(self.page_shift);
            if blob.is_some() && blob.first.checked_add(pages).is_none_or(|e| e > self.end) {
                return Err(Damage("the meta leads outside the store"));
            }
        }
        if self.txn == 0 || self.txn >= 1 << 61 {
            return Err(Damage("an impossible transaction number"));
        }
        Ok(())
    }

    /// The format version, when the page bears the store's mark.
    pub(crate) fn version_of(bytes: &[u8]) -> Option<u32> {
        (bytes.get(8..16)? == MAGIC).then(|| load_u32(bytes, 16))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TreeOptions;

    fn sample() -> Meta {
        Meta {
            page_shift: 12,
            trust: Trust::Verified,
            uuid: [7; 16],
            boot_id: [9; 16],
            txn: 42,
            end: 1000,
            geometry: StoredGeometry { lower: 1, upper: 2, growth: 3, shrink: 4 },
            main: TreeDesc::empty(1, TreeOptions { order: 0, align: 1, flags: 0 }),
            canary: [1, 2, 3, 4],
            digest: 5,
            base: BlobRef { first: 6, len: 7, checksum: 8, txn: 9 },
            blob: BlobRef { first: 10, len: 11, checksum: 12, txn: 13 },
            chain_len: 14,
            chain_end: 2000,
            next_table: 15,
            log: vec![1, 2, 3],
        }
    }

    #[test]
    fn metas_survive_the_round_trip() {
        let mut meta = sample();
        assert_eq!(Meta::decode(meta.encode().as_slice()), Ok(meta.clone()));
        meta.log = vec![0xab; LOG_CAPACITY];
        assert_eq!(Meta::decode(meta.encode().as_slice()), Ok(meta));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let page = sample().encode();
        for bit in 0..META_SIZE * 8 {
            let mut damaged = page.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Meta::decode(damaged.as_slice()).is_err(), "bit {bit}");
        }
    }
}
