//! The frame of a record, and the ring that records lie in.
//!
//! A place in the ring is a number that only grows; its remainder by the ring's length is where the byte
//! lies. So "how much of the ring is in use" is a difference, and a record may go over the end of the ring
//! into its beginning. A record is
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | checksum of all that follows, seeded with that of the record before |
//! | 8 | 8 | transaction |
//! | 16 | 4 | bytes of the payload |
//! | 20 | 4 | the number that the writer's open drew by chance |
//! | 24 | | payload: operations |

use std::ops::Range;

use twox_hash::XxHash3_64;

use crate::num::{load_u32, load_u64, store_u32, store_u64};
use crate::planted::{Bug, has};

/// Bytes of a record before its payload.
pub(crate) const HEADER: usize = 24;

/// Where the next record goes, and the seed of its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) pos: u64,
    pub(crate) chain: u64,
}

/// The chain after a commit that has no record: what an earlier writer left at the same place does not fit it.
pub(crate) fn reseed(chain: u64, txn: u64, opening: u32) -> u64 {
    if has(Bug::ChainNotReseeded) {
        return chain;
    }
    let opening = if has(Bug::OpeningNotInChain) { 0 } else { opening };
    let mut bytes = [0; 12];
    let stored = store_u64(&mut bytes, 0, txn) && store_u32(&mut bytes, 8, opening);
    debug_assert!(stored);
    XxHash3_64::oneshot_with_seed(chain, &bytes)
}

/// Completes a record: [`HEADER`] bytes of any content, then the payload. Gives the place after it.
pub(crate) fn seal(record: &mut [u8], at: Place, txn: u64, opening: u32) -> Place {
    let payload = record.len().saturating_sub(HEADER) as u32;
    let opening = if has(Bug::OpeningNotInChain) { 0 } else { opening };
    let stored = store_u64(record, 8, txn)
        && store_u32(record, 16, payload)
        && store_u32(record, 20, opening);
    debug_assert!(stored);
    let chain = checksum(record.get(8..).unwrap_or_default(), at.chain);
    let stored = store_u64(record, 0, chain);
    debug_assert!(stored);
    Place { pos: at.pos.wrapping_add(record.len() as u64), chain }
}

fn checksum(bytes: &[u8], chain: u64) -> u64 {
    let chain = if has(Bug::RecordsNotChained) { 0 } else { chain };
    XxHash3_64::oneshot_with_seed(chain, bytes)
}

/// Where `len` bytes from place `pos` on lie in a ring of `ring` bytes: one range, or two where they go over
/// the ring's end. They must not be longer than the ring.
pub(crate) fn parts(pos: u64, len: u64, ring: u64) -> [Range<u64>; 2] {
    let first = pos.checked_rem(ring).unwrap_or(0);
    let until_end = len.min(ring - first);
    [first..first + until_end, 0..len - until_end]
}

/// A record that was read.
pub(crate) struct Record {
    /// The commit that it is of.
    pub(crate) txn: u64,
    /// Its payload.
    pub(crate) ops: Vec<u8>,
    /// Where the one after it is.
    pub(crate) next: Place,
}

/// The records of a ring after a commit, oldest first. The first that is not there as a whole ends them.
pub(crate) struct Records<'a> {
    ring: &'a [u8],
    at: Place,
    txn: u64,
    /// Bytes that the ring can still hold of them.
    left: usize,
}

impl<'a> Records<'a> {
    /// Those after commit `txn`, the first of them at a place.
    pub(crate) fn after(ring: &'a [u8], txn: u64, at: Place) -> Records<'a> {
        Records { ring, at, txn, left: ring.len() }
    }

    fn copy(&self, len: usize) -> Option<Vec<u8>> {
        if len > self.left {
            return None;
        }
        let mut copy = Vec::new();
        copy.try_reserve_exact(len).ok()?;
        for part in parts(self.at.pos, len as u64, self.ring.len() as u64) {
            copy.extend_from_slice(self.ring.get(part.start as usize..part.end as usize)?);
        }
        Some(copy)
    }

    fn read(&self) -> Option<Record> {
        let header = self.copy(HEADER)?;
        let txn = self.txn.checked_add(1)?;
        if load_u64(&header, 8)? != txn {
            return None;
        }
        let mut record = self.copy(HEADER.checked_add(load_u32(&header, 16)? as usize)?)?;
        let chain = checksum(record.get(8..)?, self.at.chain);
        if load_u64(&record, 0)? != chain && !has(Bug::RecordNotVerified) {
            return None;
        }
        let next = Place { pos: self.at.pos.wrapping_add(record.len() as u64), chain };
        record.drain(..HEADER);
        Some(Record { txn, ops: record, next })
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let record = self.read();
        match &record {
            Some(Record { txn, ops, next }) => {
                self.left -= HEADER + ops.len();
                (self.at, self.txn) = (*next, *txn);
            }
            None => self.left = 0,
        }
        record
    }
}

/// Makes what lies from a place on into records as they follow commit `txn`, with the payloads that are there:
/// so a fuzzer's payloads are looked at.
#[cfg(feature = "fuzz")]
pub(super) fn make_right(ring: &mut [u8], mut at: Place, mut txn: u64) {
    let mut left = ring.len();
    loop {
        let there = Records { ring, at, txn, left };
        let payload = there.copy(HEADER).and_then(|header| load_u32(&header, 16));
        let len = payload.map(|payload| HEADER + payload as usize % 64);
        let Some(mut record) = len.and_then(|len| there.copy(len)) else { return };
        left -= record.len();
        txn += 1;
        let next = seal(&mut record, at, txn, 7);
        write(ring, at.pos, &record);
        at = next;
    }
}

/// Writes into a ring, over its end where they reach it.
#[cfg(any(test, feature = "fuzz"))]
pub(super) fn write(ring: &mut [u8], pos: u64, mut bytes: &[u8]) {
    for part in parts(pos, bytes.len() as u64, ring.len() as u64) {
        let (now, later) = bytes.split_at((part.end - part.start) as usize);
        ring[part.start as usize..part.end as usize].copy_from_slice(now);
        bytes = later;
    }
}
