//! The meta page: the state of the store after one commit, in 4 KiB whatever the page size.
//!
//! Besides the root it carries the end of the free-space log, see [`crate::space::log`].
//!
//! A meta is eight sectors. Seven hold its content, the eighth their parity; each ends with a checksum
//! of its own. So one damaged sector is rebuilt from the others, and damage is distinguished from a write that
//! was cut off: after a power cut each sector is whole, though not all are of the same meta; after a
//! call that wrote a part only, the sectors before one place are new and those after it old.

use crate::planted::{Bug, has};
use twox_hash::XxHash3_64;

use crate::num::{load_u32, load_u64};
use crate::page::Damage;
use crate::redo::Place;
use crate::space::log::{LogRoot, Segment, TAIL_MAX};
use crate::tree::TreeDesc;
use crate::tree::desc::DESC_SIZE;

use super::mark::{MARK_SIZE, Mark};

/// Bytes of a meta; the rest of a larger page stays zero.
pub(crate) const META_SIZE: usize = 4096;
/// Meta pages in a file: the steady commit's, that of a checkpoint under way, the newest commit's,
/// and one to write.
pub(crate) const META_COUNT: u64 = 4;

/// Version of the file format.
const VERSION: u32 = 2;
/// The same where there is a redo log. Programs that know nothing of one would take the commit before its
/// records for the newest: they refuse this number.
const VERSION_WITH_LOG: u32 = 3;
/// The same of an encrypted store, which programs that know nothing of such must leave alone.
const VERSION_ENCRYPTED: u32 = 4;

/// The same of a transaction that is prepared and not decided. Programs that know none would write over it.
const VERSION_PREPARED: u32 = 0x100 | VERSION;

const MAGIC: [u8; 8] = *b"ZUBILO\x1a\n";
/// What a disk writes as a whole, and what damage mostly takes.
const SECTOR: usize = 512;
/// Bytes of a sector before its checksum.
const BODY: usize = SECTOR - 8;
/// The sector that holds the parity of those before it.
const PARITY: usize = META_SIZE / SECTOR - 1;
/// Where the tail of the log begins. All other fields lie before it, in the first sector.
const TAIL_AT: usize = 272;
/// Bytes of what a meta says of the redo log, at the end of its content.
const REDO_SIZE: usize = 40;
/// Where that begins in the page: in the last sector before the parity.
const REDO_AT: usize = (PARITY - 1) * SECTOR + BODY - REDO_SIZE;
const _: () = assert!(TAIL_AT + TAIL_MAX + REDO_SIZE == PARITY * BODY);
/// Bytes of what proves who has written the meta of an encrypted store; such has no redo log, whose place it takes.
pub(crate) const AUTHENTICATOR_SIZE: usize = 32;
const _: () = assert!(AUTHENTICATOR_SIZE <= REDO_SIZE);
/// By how much the tail of a prepared meta must be shorter: what it says of itself takes this and the place of the
/// redo log.
pub(crate) const MARK_ROOM: usize = MARK_SIZE - REDO_SIZE;
const MARK_AT: usize = REDO_AT - MARK_ROOM;
const _: () = assert!(MARK_AT >= (PARITY - 1) * SECTOR);
/// Bits of the byte that says whether there is a redo log.
const HAS_REDO: u8 = 1;
const IS_LOGGED: u8 = 2;
const HAS_UNFLUSHED: u8 = 4;

pub(crate) type Page = [u8; META_SIZE];

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
    /// The meta of a transaction that is prepared: the store goes on without it until somebody decides.
    Prepared(Box<Meta>),
    /// A meta; one of its sectors may be damaged, whose content the others give.
    Meta(Box<Meta>, Option<usize>),
    /// Whole sectors, but not those of one meta, perhaps with one that a write ended in: it was cut off.
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
    pub(crate) user_words: [u64; 4],
    /// Of a verified commit: XXH3-64 over the pages it wrote, in ascending order. Of a weak one: the
    /// file it was written to (`DataFile::home`).
    pub(crate) digest: u64,
    /// Identity for the next table.
    pub(crate) next_table: u32,
    /// A number by chance of the open that wrote it: metas of two branches of history differ, be all else
    /// the same.
    pub(crate) opening: u32,
    /// The end of the free-space log.
    pub(crate) log: LogRoot,
    /// Where the redo log is, if there is one.
    pub(crate) redo: Option<RedoLog>,
    /// It is that of a transaction which is prepared only.
    pub(crate) prepared: Option<Mark>,
    /// Of an encrypted store: what proves that the meta was written by somebody with the key.
    pub(crate) authenticator: Option<[u8; AUTHENTICATOR_SIZE]>,
}

/// The redo log, as a commit leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedoLog {
    /// First page of the ring.
    pub(crate) first: u64,
    /// Bytes of the ring: whole pages.
    pub(crate) bytes: u64,
    /// The commit that took these pages.
    pub(crate) birth: u64,
    /// Where the record of the next commit goes.
    pub(crate) next: Place,
    /// The record of this commit is in the log, after those of all commits since one that is on disk.
    pub(crate) is_logged: bool,
    /// Records up to here may be in the kernel only.
    pub(crate) has_unflushed: bool,
}

impl RedoLog {
    pub(crate) fn pages(&self, shift: u32) -> u64 {
        self.bytes >> shift
    }

    fn of_words(flags: u8, [first, bytes, birth, pos, chain]: [u64; 5]) -> Option<RedoLog> {
        let next = Place { pos, chain };
        let (is_logged, has_unflushed) = (flags & IS_LOGGED != 0, flags & HAS_UNFLUSHED != 0);
        let log = RedoLog { first, bytes, birth, next, is_logged, has_unflushed };
        (flags & HAS_REDO != 0).then_some(log)
    }

    fn flags(redo: Option<&RedoLog>) -> u8 {
        redo.map_or(0, |redo| {
            let bit = |is_set, bit| if is_set { bit } else { 0 };
            HAS_REDO | bit(redo.is_logged, IS_LOGGED) | bit(redo.has_unflushed, HAS_UNFLUSHED)
        })
    }
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
        let version = match (&self.authenticator, &self.redo) {
            _ if self.prepared.is_some() => VERSION_PREPARED,
            (Some(_), _) => VERSION_ENCRYPTED,
            (None, Some(_)) => VERSION_WITH_LOG,
            (None, None) => VERSION,
        };
        w.bytes(&version.to_le_bytes());
        let flags = RedoLog::flags(self.redo.as_ref());
        w.bytes(&[self.page_shift as u8, self.trust as u8, flags, 0]);
        w.bytes(&self.uuid);
        w.bytes(&self.boot_id);
        let g = &self.geometry;
        w.words(&[self.txn, self.end, g.lower, g.upper, g.growth, g.shrink]);
        w.bytes(&self.main.to_bytes());
        w.words(&self.user_words);
        w.words(&[self.digest]);
        let LogRoot { newest, newest_delta, tail } = &self.log;
        w.words(&[newest.first, newest.len, newest.checksum, newest.txn]);
        w.bytes(&self.next_table.to_le_bytes());
        w.bytes(&newest_delta.to_le_bytes());
        w.bytes(&(tail.len() as u32).to_le_bytes());
        w.bytes(&self.opening.to_le_bytes());
        debug_assert!(w.1 <= TAIL_AT && tail.len() <= TAIL_MAX);
        let (first, rest) = tail.split_at(tail.len().min(BODY - TAIL_AT));
        w.1 = TAIL_AT;
        w.bytes(first);
        for (i, part) in rest.chunks(BODY).enumerate() {
            w.1 = (i + 1) * SECTOR;
            w.bytes(part);
        }
        if let Some(RedoLog { first, bytes, birth, next: Place { pos, chain }, .. }) = self.redo {
            w.1 = REDO_AT;
            w.words(&[first, bytes, birth, pos, chain]);
        }
        if let Some(authenticator) = &self.authenticator {
            w.1 = REDO_AT;
            w.bytes(authenticator);
        }
        if let Some(mark) = &self.prepared {
            debug_assert!(self.redo.is_none() && tail.len() + MARK_ROOM <= TAIL_MAX);
            w.1 = MARK_AT;
            w.bytes(&mark.encode());
        }
        seal_meta(page.as_mut_slice());
        page
    }

    /// What the authenticator of an encrypted store's meta is about: all of it but the authenticator.
    pub(crate) fn to_authenticate(&self) -> Box<Page> {
        let authenticator = Some([0; AUTHENTICATOR_SIZE]);
        Meta { authenticator, ..self.clone() }.encode()
    }

    /// A number that no other meta has: the checksum over all of it with which it is stored.
    pub(crate) fn seal(&self) -> u64 {
        seal_of(&self.encode())
    }

    /// Decodes the meta at the start of `bytes`; every field is checked.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Meta, Damage> {
        match Meta::read(bytes) {
            Reading::Meta(meta, _) => Ok(*meta),
            Reading::Prepared(_) => Err(Damage("the transaction is prepared only")),
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
            Ok(meta) if meta.prepared.is_some() => Reading::Prepared(Box::new(meta)),
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
                Some(whole) if lacks_end(page, &whole, i) => decoded(&whole, None),
                Some(whole) => decoded(&whole, Some(i)),
                None if ends_inside(page, i) => Reading::Torn,
                None => Reading::Damaged(1, named_txn(page)),
            },
            Only::Many(count) => Reading::Damaged(count, named_txn(page)),
        }
    }

    /// Decodes a page whose checksums are right.
    fn of_content(page: &Page) -> Result<Meta, Damage> {
        if page[8..16] != MAGIC {
            return Err(Damage("no magic number of a store"));
        }
        let has_log = page[22] & HAS_REDO != 0;
        let is_prepared = load_u32(page, 16) == Some(VERSION_PREPARED);
        match load_u32(page, 16) {
            Some(VERSION | VERSION_PREPARED) if !has_log => {}
            Some(VERSION_WITH_LOG) if has_log => {}
            Some(VERSION_ENCRYPTED) if page[22] == 0 => {}
            _ => return Err(Damage("another format version")),
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
        let is_encrypted = load_u32(page, 16) == Some(VERSION_ENCRYPTED);
        let authenticator = page.get(REDO_AT..).and_then(|b| b.first_chunk()).copied();
        let words = std::array::from_fn(|i| word(REDO_AT + i * 8));
        let redo = RedoLog::of_words(page[22], words);
        // Stores of before there was a redo log may use its place.
        let prepared = match is_prepared {
            true => Some(Mark::decode(&page[MARK_AT..]).ok_or(Damage("a tag that is too long"))?),
            false => None,
        };
        let tail_max = match redo.is_some() || is_encrypted {
            _ if is_prepared => TAIL_MAX - MARK_ROOM,
            true => TAIL_MAX,
            false => TAIL_MAX + REDO_SIZE,
        };
        let tail = tail_of(page, short(264) as usize, tail_max)?;
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
            user_words: [word(184), word(192), word(200), word(208)],
            digest: word(216),
            next_table: short(256),
            opening: short(268),
            log: LogRoot { newest, newest_delta: short(260), tail },
            redo,
            prepared,
            authenticator: authenticator.filter(|_| is_encrypted),
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
        let is_possible = |redo: &RedoLog| {
            let end = redo.first.checked_add(redo.pages(self.page_shift));
            let whole = redo.bytes > 0 && redo.bytes.is_multiple_of(1 << self.page_shift);
            let born = (1..=self.txn).contains(&redo.birth);
            whole && born && redo.first >= META_COUNT && end.is_some_and(|end| end <= self.end)
        };
        if !self.redo.as_ref().is_none_or(is_possible) {
            return Err(Damage("the redo log lies outside the store"));
        }
        if self.txn == 0 || self.txn >= 1 << 61 {
            return Err(Damage("an impossible transaction number"));
        }
        Ok(())
    }

    /// Whether what a cut-off creation has left is there: zeros, or some of a first meta.
    pub(crate) fn is_residue(page: &[u8]) -> bool {
        let Some(page) = page.first_chunk::<META_SIZE>() else { return false };
        let is_ours = |i| is_whole(sector(page, i)) && !is_zero(sector(page, i));
        match Meta::read(page) {
            Reading::Empty => true,
            // A foreign file of zeros and a few bytes is not to be taken for one.
            Reading::Torn => has_magic(page) || (0..=PARITY).any(is_ours),
            _ => false,
        }
    }

    /// The format version, when the page has the magic number.
    pub(crate) fn version_of(bytes: &[u8]) -> Option<u32> {
        (bytes.get(8..16)? == MAGIC).then(|| load_u32(bytes, 16))?
    }

    /// The format version of a whole meta of a store of such pages, if it is newer than this library. Whatever older
    /// metas are beside it, they are not the newest commit.
    pub(crate) fn newer_version(bytes: &[u8], shift: u32) -> Option<u32> {
        let version =
            Meta::version_of(bytes).filter(|&v| v > VERSION_ENCRYPTED && !Meta::is_known(v))?;
        let is_whole = matches!(Meta::read(bytes), Reading::Useless(_));
        (is_whole && bytes.get(20).is_some_and(|&b| u32::from(b) == shift)).then_some(version)
    }

    /// Whether this library reads and writes stores of a version.
    pub(crate) fn is_known(version: u32) -> bool {
        matches!(version, VERSION | VERSION_WITH_LOG | VERSION_ENCRYPTED | VERSION_PREPARED)
    }
}

/// The tail of the free-space log, of so many bytes.
fn tail_of(page: &Page, len: usize, max: usize) -> Result<Vec<u8>, Damage> {
    if len > max {
        return Err(Damage("the end of the free-space log does not fit"));
    }
    let mut tail = Vec::with_capacity(TAIL_MAX);
    tail.extend_from_slice(&page[TAIL_AT..BODY]);
    (1..PARITY).for_each(|i| tail.extend_from_slice(&sector(page, i)[..BODY]));
    tail.truncate(len);
    Ok(tail)
}

/// The checksum over all of an encoded meta.
pub(crate) fn seal_of(page: &Page) -> u64 {
    load_u64(page, 0).unwrap_or_default()
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

/// Whether of a meta that is whole otherwise only the end of the last sector did not come. A bit alone that
/// is wrong is damage.
fn lacks_end(page: &Page, whole: &Page, i: usize) -> bool {
    let (found, right) = (sector(page, i), sector(whole, i));
    let wrong = |range: std::ops::Range<usize>| -> u32 {
        range.map(|at| (found[at] ^ right[at]).count_ones()).sum()
    };
    // Some of it came, and the seal, which comes last, did not.
    i == PARITY && wrong(0..8) == 0 && wrong(BODY..SECTOR) > 1
}

/// Whether a write that ended inside sector `i`, the only one that is not whole, explains what is there: a
/// first meta over zeros, zeros over a meta, or one meta over another.
fn ends_inside(page: &Page, i: usize) -> bool {
    let is_zero = |i: usize| is_zero(sector(page, i));
    let inside = sector(page, i);
    let began =
        i < PARITY && (i + 1..=PARITY).all(is_zero) && inside[BODY..] == [0; 8] && has_magic(page);
    let wiped = i > 0 && (0..i).all(is_zero) && inside[..8] == [0; 8];
    // Of one meta they would give back the sector between them.
    let over = i > 0 && i < PARITY && !(0..=PARITY).any(is_zero);
    began || wiped || over
}

/// Whether a first sector, whole or not, is of a store of this version.
fn has_magic(page: &Page) -> bool {
    page[8..16] == MAGIC && load_u32(page, 16).is_some_and(Meta::is_known)
}

/// The commit that the first sector of a damaged meta names.
fn named_txn(page: &Page) -> Option<u64> {
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
    use super::super::mark::TAG_MAX;
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
            user_words: [1, 2, 3, 4],
            digest: 5,
            next_table: 15,
            opening: 16,
            log: LogRoot {
                newest: Segment { first: 6, len: 7, checksum: 8, txn: 9 },
                newest_delta: 2,
                tail: vec![1, 2, 3],
            },
            redo: None,
            prepared: None,
            authenticator: None,
        }
    }

    #[test]
    fn metas_survive_the_round_trip() {
        let mut meta = sample();
        assert_eq!(Meta::decode(meta.encode().as_slice()), Ok(meta.clone()));
        meta.log.tail = vec![0xab; TAIL_MAX];
        assert_eq!(Meta::decode(meta.encode().as_slice()), Ok(meta.clone()));
        for (is_logged, has_unflushed) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            meta.redo = Some(RedoLog { is_logged, has_unflushed, ..redo_log() });
            assert_eq!(Meta::decode(meta.encode().as_slice()), Ok(meta.clone()));
        }
    }

    fn redo_log() -> RedoLog {
        let next = Place { pos: u64::MAX, chain: 0xaaaa_bbbb_cccc_dddd };
        RedoLog { first: 5, bytes: 8192, birth: 3, next, is_logged: true, has_unflushed: false }
    }

    #[test]
    fn a_redo_log_that_cannot_be_is_refused() {
        let good = redo_log();
        let of = |redo| Meta::decode(Meta { redo: Some(redo), ..sample() }.encode().as_slice());
        assert!(of(good).is_ok());
        for bad in [
            RedoLog { first: 3, ..good },
            RedoLog { first: u64::MAX, ..good },
            RedoLog { first: sample().end - 1, ..good },
            RedoLog { bytes: 0, ..good },
            RedoLog { bytes: 4097, ..good },
            RedoLog { bytes: !4095, ..good },
            RedoLog { birth: 0, ..good },
            RedoLog { birth: sample().txn + 1, ..good },
        ] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }

    /// A program that knows no redo log refuses a meta that names one; one without has the old number.
    #[test]
    fn the_version_tells_of_a_redo_log() {
        let with = Meta { redo: Some(redo_log()), ..sample() }.encode();
        let without = sample().encode();
        assert_eq!(Meta::version_of(with.as_slice()), Some(VERSION_WITH_LOG));
        assert_eq!(Meta::version_of(without.as_slice()), Some(VERSION));
        for (page, wrong) in [(&with, VERSION), (&without, VERSION_WITH_LOG)] {
            assert_eq!(Meta::newer_version(page.as_slice(), 12), None);
            let mut page = page.clone();
            page[16..20].copy_from_slice(&wrong.to_le_bytes());
            seal_meta(page.as_mut_slice());
            assert_eq!(Meta::decode(page.as_slice()), Err(Damage("another format version")));
        }
        let mut newer = with;
        newer[16..20].copy_from_slice(&(VERSION_ENCRYPTED + 1).to_le_bytes());
        // As it is cut off or damaged, it says nothing.
        assert_eq!(Meta::newer_version(newer.as_slice(), 12), None);
        seal_meta(newer.as_mut_slice());
        assert_eq!(Meta::newer_version(newer.as_slice(), 12), Some(VERSION_ENCRYPTED + 1));
        assert_eq!(Meta::newer_version(newer.as_slice(), 13), None);
    }

    /// Programs that know of none refuse the store; here it is never taken for a commit.
    #[test]
    fn a_prepared_meta_is_none_of_a_commit() {
        for (len, tag) in [(0, 0), (TAIL_MAX - MARK_ROOM, TAG_MAX)] {
            let mut meta = sample();
            meta.log.tail = vec![0xab; len];
            meta.prepared = Some(Mark { id: 99, since: 77, tag: vec![0xcd; tag] });
            let mut page = meta.encode();
            assert_eq!(Meta::read(page.as_slice()), Reading::Prepared(Box::new(meta)));
            assert!(Meta::decode(page.as_slice()).is_err());
            let version = Meta::version_of(page.as_slice()).unwrap();
            assert!(
                version > VERSION_WITH_LOG && Meta::newer_version(page.as_slice(), 12).is_none()
            );
            page[MARK_AT + 16] = TAG_MAX as u8 + 1;
            seal_meta(page.as_mut_slice());
            assert!(matches!(Meta::read(page.as_slice()), Reading::Useless(_)));
        }
    }

    fn full() -> Meta {
        let mut meta = sample();
        meta.log.tail = (0..TAIL_MAX).map(|i| (i * 7 + i / 251) as u8).collect();
        meta.redo = Some(redo_log());
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
    fn torn_writes_are_distinguished_from_damage() {
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

    /// A call that wrote a part only may end anywhere; what the bytes after that place were, they are.
    #[test]
    fn a_write_that_ended_inside_a_sector_is_no_damage() {
        let new = full().encode();
        let mut old = Meta { txn: 41, ..sample() };
        old.log.tail = vec![9; 2000];
        let old = old.encode();
        let zeros = Box::new([0; META_SIZE]);
        for (before, after) in [(&zeros, &new), (&old, &new), (&new, &zeros)] {
            let whole = [before, after].map(|page| Meta::read(page.as_slice()));
            for written in 0..=META_SIZE {
                let mut page = before.clone();
                page[..written].copy_from_slice(&after[..written]);
                let read = Meta::read(page.as_slice());
                let in_seal = written % SECTOR > BODY || written % SECTOR < 20;
                let expected = match &read {
                    Reading::Torn => true,
                    // The sector that was begun can be restored from the others.
                    Reading::Meta(meta, Some(0)) => written < SECTOR && meta.txn < 43,
                    Reading::Damaged(1, _) | Reading::Meta(_, Some(PARITY)) => in_seal,
                    other => whole.contains(other),
                };
                assert!(expected, "{written}: {read:?}");
            }
        }
    }

    /// What only looks like a write that was cut off is not overwritten.
    #[test]
    fn a_foreign_file_is_no_residue() {
        let mut page = [0; META_SIZE];
        assert!(Meta::is_residue(&page));
        for place in [0, 8, 510, 600, 1024, 4086] {
            page.fill(0);
            page[place..place + 9].copy_from_slice(b"a foreign");
            assert!(!Meta::is_residue(&page), "{place}");
        }
        let new = full().encode();
        for written in 20..META_SIZE - 8 {
            page.fill(0);
            page[..written].copy_from_slice(&new[..written]);
            let in_seal = written % SECTOR > BODY;
            let is_whole = matches!(Meta::read(&page), Reading::Meta(..));
            assert!(Meta::is_residue(&page) || in_seal || is_whole, "{written}");
        }
    }
}
