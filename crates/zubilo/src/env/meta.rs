//! The meta page: the state of the store after one commit, in 4 KiB whatever the page size.
//!
//! Besides the root it carries the end of the free-space log, see [`crate::space::log`].

use crate::planted::{Bug, has};
use twox_hash::XxHash3_64;

use crate::num::{load_u32, load_u64};
use crate::page::Damage;
use crate::space::log::{LogRoot, Segment, TAIL_MAX};
use crate::tree::TreeDesc;
use crate::tree::desc::DESC_SIZE;

/// Bytes of a meta; the rest of a larger page stays zero.
pub(crate) const META_SIZE: usize = 4096;
/// Meta pages in a file: the steady commit's, that of a checkpoint under way, the newest commit's,
/// and one to write.
pub(crate) const META_COUNT: u64 = 4;

const MAGIC: [u8; 8] = *b"ZUBILO\x1a\n";
const VERSION: u32 = 1;
const TAIL_AT: usize = META_SIZE - TAIL_MAX;

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
    /// Identity for the next table.
    pub(crate) next_table: u32,
    /// The end of the free-space log.
    pub(crate) log: LogRoot,
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
}

impl Meta {
    /// As stored. The tail of the log must fit ([`TAIL_MAX`]).
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
        let LogRoot { newest, newest_delta, tail } = &self.log;
        w.words(&[newest.first, newest.len, newest.checksum, newest.txn]);
        w.bytes(&self.next_table.to_le_bytes());
        w.bytes(&newest_delta.to_le_bytes());
        w.bytes(&(tail.len() as u32).to_le_bytes());
        debug_assert!(w.1 <= TAIL_AT && tail.len() <= TAIL_MAX);
        w.1 = TAIL_AT;
        w.bytes(tail);
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
        let short = |at: usize| load_u32(page, at).unwrap_or_default();
        let trust = match page[21] {
            0 => Trust::Weak,
            1 => Trust::Steady,
            2 => Trust::Verified,
            _ => return Err(Damage("an unknown kind of commit")),
        };
        let tail = page.get(TAIL_AT..TAIL_AT + short(264) as usize);
        let tail = tail.ok_or(Damage("the end of the free-space log does not fit"))?;
        let newest =
            Segment { first: word(224), len: word(232), checksum: word(240), txn: word(248) };
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
            next_table: short(256),
            log: LogRoot { newest, newest_delta: short(260), tail: tail.to_vec() },
        };
        meta.check()?;
        Ok(meta)
    }

    fn check(&self) -> Result<(), Damage> {
        let last = 1 << (62 - self.page_shift.min(16));
        let end_fits = self.end >= META_COUNT && self.end <= last;
        if !(12..=16).contains(&self.page_shift) || !end_fits {
            return Err(Damage("the meta holds impossible sizes"));
        }
        let log = &self.log.newest;
        if log.first.checked_add(log.pages(self.page_shift)).is_none_or(|e| e > self.end) {
            return Err(Damage("the meta leads outside the store"));
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
            next_table: 15,
            log: LogRoot {
                newest: Segment { first: 6, len: 7, checksum: 8, txn: 9 },
                newest_delta: 2,
                tail: vec![1, 2, 3],
            },
        }
    }

    #[test]
    fn metas_survive_the_round_trip() {
        let mut meta = sample();
        assert_eq!(Meta::decode(meta.encode().as_slice()), Ok(meta.clone()));
        meta.log.tail = vec![0xab; TAIL_MAX];
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
