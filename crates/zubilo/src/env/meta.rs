//! The meta page: the state of the store after one commit, in 4 KiB whatever the page size.
//!
//! Besides the root it carries the end of the free-space log, see [`crate::space::log`].
//!
//! A meta is eight sectors. Seven hold its content, the eighth their parity; each ends with a checksum
//! of its own. So one damaged sector is rebuilt from the others, and damage is told from a write that
//! was cut off: of the latter each sector is whole, though not all are of the same meta.

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

/// Version of the file format.
pub(crate) const VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"ZUBILO\x1a\n";
/// What a disk writes as a whole, and what damage mostly takes.
const SECTOR: usize = 512;
/// Bytes of a sector before its checksum.
const BODY: usize = SECTOR - 8;
/// The sector that holds the parity of those before it.
const PARITY: usize = META_SIZE / SECTOR - 1;
/// Where the tail of the log begins. All other fields lie before it, in the first sector.
const TAIL_AT: usize = 272;
const _: () = assert!(TAIL_AT + TAIL_MAX == PARITY * BODY);

type Page = [u8; META_SIZE];

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

/// What the bytes in the place of a meta are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Zeros: nothing was written yet, or a meta was wiped.
    Empty,
    /// A meta; one of its sectors may be damaged, whose content the others tell.
    Meta(Box<Meta>, Option<usize>),
    /// Whole sectors, but not those of one meta: a write was cut off.
    Torn,
    /// Bytes that nobody wrote there, in so many sectors. The first one may still name the commit.
    Damaged(usize, Option<u64>),
    /// As it was written, but not what this version can use.
    Useless(Damage),
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
    pub(crate) fn encode(&self) -> Box<Page> {
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
        let (first, rest) = tail.split_at(tail.len().min(BODY - TAIL_AT));
        w.1 = TAIL_AT;
        w.bytes(first);
        for (i, part) in rest.chunks(BODY).enumerate() {
            w.1 = (i + 1) * SECTOR;
            w.bytes(part);
        }
        seal_meta(page.as_mut_slice());
        page
    }

    /// Decodes the meta at the start of `bytes`; every field is checked.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Meta, Damage> {
        match Meta::read(bytes) {
            Reading::Meta(meta, _) => Ok(*meta),
            Reading::Useless(damage) => Err(damage),
            Reading::Empty => Err(Damage("no meta was written here")),
            Reading::Torn => Err(Damage("the write of the meta was cut off")),
            Reading::Damaged(..) => Err(Damage("the meta is damaged")),
        }
    }

    /// Says what the 4 KiB at the start of `bytes` are.
    pub(crate) fn read(bytes: &[u8]) -> Reading {
        let Some(page) = bytes.first_chunk::<META_SIZE>() else {
            return Reading::Useless(Damage("the meta is cut off"));
        };
        let decoded = |page: &Page, damaged| match Meta::of_content(page) {
            Ok(meta) => Reading::Meta(Box::new(meta), damaged),
            Err(damage) => Reading::Useless(damage),
        };
        let unverified = has(Bug::MetaNotVerified) && page[8..16] == MAGIC;
        if unverified {
            return decoded(page, None);
        }
        let damaged = the_only((0..=PARITY).filter(|&i| !is_whole(sector(page, i))));
        match damaged {
            Only::None if is_bound(page) => decoded(page, None),
            Only::None if page.iter().all(|byte| *byte == 0) => Reading::Empty,
            // A sector that never came, or one that the disk has replaced by zeros.
            Only::None => match the_only((0..=PARITY).filter(|&i| is_zero(sector(page, i)))) {
                Only::One(i) => match rebuilt(page, i) {
                    Some(page) => decoded(&page, None),
                    None => Reading::Torn,
                },
                _ => Reading::Torn,
            },
            Only::One(i) => match rebuilt(page, i) {
                Some(page) => decoded(&page, Some(i)),
                None => Reading::Damaged(1, told_txn(page)),
            },
            Only::Many(count) => Reading::Damaged(count, told_txn(page)),
        }
    }

    /// Decodes a page whose checksums are right.
    fn of_content(page: &Page) -> Result<Meta, Damage> {
        if page[8..16] != MAGIC {
            return Err(Damage("no store's mark"));
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
        let mut tail = Vec::with_capacity(TAIL_MAX);
        tail.extend_from_slice(&page[TAIL_AT..BODY]);
        (1..PARITY).for_each(|i| tail.extend_from_slice(&sector(page, i)[..BODY]));
        if short(264) as usize > TAIL_MAX {
            return Err(Damage("the end of the free-space log does not fit"));
        }
        tail.truncate(short(264) as usize);
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
            log: LogRoot { newest, newest_delta: short(260), tail },
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

/// How many there are, and which if it is one.
enum Only {
    None,
    One(usize),
    Many(usize),
}

fn the_only(mut those: impl Iterator<Item = usize>) -> Only {
    match (those.next(), those.count()) {
        (None, _) => Only::None,
        (Some(one), 0) => Only::One(one),
        (Some(_), more) => Only::Many(more + 1),
    }
}

fn sector(page: &Page, i: usize) -> &[u8; SECTOR] {
    &page.as_chunks::<SECTOR>().0[i]
}

/// Whether a sector is as it was written, be it of which meta it may.
fn is_whole(sector: &[u8; SECTOR]) -> bool {
    load_u64(sector, BODY) == Some(XxHash3_64::oneshot(&sector[..BODY])) || is_zero(sector)
}

fn is_zero(sector: &[u8; SECTOR]) -> bool {
    sector.iter().all(|byte| *byte == 0)
}

/// The commit that the first sector of a damaged meta names.
fn told_txn(page: &Page) -> Option<u64> {
    load_u64(page, 56).filter(|_| page[8..16] == MAGIC && is_whole(sector(page, 0)))
}

/// What binds the sectors together: the checksum of the first one's content and of the checksums of the
/// others.
fn binding(page: &Page) -> u64 {
    let mut bound = [0; BODY - 8 + (PARITY - 1) * 8];
    bound[..BODY - 8].copy_from_slice(&page[8..BODY]);
    for (to, i) in bound[BODY - 8..].as_chunks_mut::<8>().0.iter_mut().zip(1..PARITY) {
        to.copy_from_slice(&sector(page, i)[BODY..]);
    }
    XxHash3_64::oneshot(&bound)
}

/// Whether sectors that are whole are those of one meta. Zeros are not.
fn is_bound(page: &Page) -> bool {
    load_u64(page, 0) == Some(binding(page))
}

/// The page with sector `i` made anew from the others, if that gives a meta.
fn rebuilt(page: &Page, i: usize) -> Option<Box<Page>> {
    let mut page = Box::new(*page);
    rebuild(&mut page, i);
    is_bound(&page).then_some(page)
}

/// Makes sector `i` the parity of all others.
fn rebuild(page: &mut Page, i: usize) {
    let mut parity = [0u64; BODY / 8];
    for other in (0..=PARITY).filter(|other| *other != i) {
        let words = sector(page, other).as_chunks::<8>().0;
        parity.iter_mut().zip(words).for_each(|(to, word)| *to ^= u64::from_ne_bytes(*word));
    }
    let body = page[i * SECTOR..i * SECTOR + BODY].as_chunks_mut::<8>().0;
    body.iter_mut().zip(parity).for_each(|(to, word)| *to = word.to_ne_bytes());
    close_sector(page, i);
}

fn close_sector(page: &mut Page, i: usize) {
    let checksum = XxHash3_64::oneshot(&sector(page, i)[..BODY]);
    page[i * SECTOR + BODY..(i + 1) * SECTOR].copy_from_slice(&checksum.to_le_bytes());
}

/// Makes all checksums and the parity of a meta right, be its content what it may. For [`Meta::encode`],
/// and for tests that put lies into metas.
#[doc(hidden)]
pub fn seal_meta(page: &mut [u8]) {
    let Some(page) = page.first_chunk_mut::<META_SIZE>() else { return };
    (1..PARITY).for_each(|i| close_sector(page, i));
    let bound = binding(page);
    page[..8].copy_from_slice(&bound.to_le_bytes());
    close_sector(page, 0);
    rebuild(page, PARITY);
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

    fn full() -> Meta {
        let mut meta = sample();
        meta.log.tail = (0..TAIL_MAX).map(|i| (i * 7 + i / 251) as u8).collect();
        meta
    }

    #[test]
    fn every_flipped_bit_is_noticed_and_put_right() {
        for meta in [sample(), full()] {
            let page = meta.encode();
            let meta = Box::new(meta);
            assert_eq!(Meta::read(page.as_slice()), Reading::Meta(meta.clone(), None));
            for bit in 0..META_SIZE * 8 {
                let mut damaged = page.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let read = Meta::read(damaged.as_slice());
                let expected = Reading::Meta(meta.clone(), Some(bit / 8 / SECTOR));
                assert_eq!(read, expected, "bit {bit}");
            }
        }
    }

    #[test]
    fn a_lost_sector_is_put_right_and_two_are_not() {
        let meta = full();
        let page = meta.encode();
        for lost in 0..=PARITY {
            for byte in [0, 1, 0xff] {
                let mut damaged = page.clone();
                damaged[lost * SECTOR..(lost + 1) * SECTOR].fill(byte);
                assert_eq!(Meta::decode(damaged.as_slice()).as_ref(), Ok(&meta), "{lost}");
                let other = (lost + 3) % (PARITY + 1);
                damaged[other * SECTOR + 9] ^= 4;
                let txn = (lost.min(other) > 0).then_some(meta.txn);
                let count = if byte == 0 { 1 } else { 2 };
                assert_eq!(Meta::read(damaged.as_slice()), Reading::Damaged(count, txn));
            }
        }
    }

    /// A write that was cut off has left any of its sectors, over an older meta or over zeros.
    #[test]
    fn torn_writes_are_told_from_damage() {
        let new = full().encode();
        let mut old = Meta { txn: 41, ..sample() };
        old.log.tail = vec![9; 2000];
        let old = old.encode();
        let zeros = Box::new([0; META_SIZE]);
        for (before, after) in [(&old, &new), (&new, &old), (&zeros, &new), (&new, &zeros)] {
            let whole = [before, after].map(|page| Meta::read(page.as_slice()));
            for written in 0..1u32 << (PARITY + 1) {
                let mut page = before.clone();
                for i in (0..=PARITY).filter(|i| written >> i & 1 == 1) {
                    let range = i * SECTOR..(i + 1) * SECTOR;
                    page[range.clone()].copy_from_slice(&after[range]);
                }
                let read = Meta::read(page.as_slice());
                assert!(read == Reading::Torn || whole.contains(&read), "{written:b}: {read:?}");
            }
        }
    }
}
