//! The log against what disks do to it.

use std::ops::Bound;

use support::Rng;

use super::record::write;
use super::{HEADER, Op, Ops, Place, Record, Records, parts, put_op, reseed, seal};

const START: Place = Place { pos: 0, chain: 0x1234_5678_9abc_def0 };

/// A ring that is written as commits write it.
struct Log {
    ring: Vec<u8>,
    at: Place,
    txn: u64,
}

impl Log {
    fn new(len: usize, at: Place) -> Log {
        Log { ring: vec![0; len], at, txn: 10 }
    }

    /// Appends the record of the next commit. Gives where it lies.
    fn append(&mut self, payload: &[u8], opening: u32) -> (Place, usize) {
        let mut record = [&[0; HEADER], payload].concat();
        self.txn += 1;
        let from = self.at;
        self.at = seal(&mut record, from, self.txn, opening);
        write(&mut self.ring, from.pos, &record);
        (from, record.len())
    }

    fn read(&self, txn: u64, at: Place) -> Vec<Vec<u8>> {
        Records::after(&self.ring, txn, at).map(|record| record.ops).collect()
    }
}

fn payload(rng: &mut Rng, max: u64) -> Vec<u8> {
    let len = rng.below(max + 1) as usize;
    rng.bytes(len)
}

#[test]
fn operations_come_back_as_they_were() {
    let mut rng = support::rng();
    for _ in 0..500 {
        let strings: Vec<Vec<u8>> = (0..40).map(|_| payload(&mut rng, 300)).collect();
        let pick = |rng: &mut Rng| strings[rng.index(strings.len())].as_slice();
        let ops: Vec<Op<'_>> = (0..rng.below(30))
            .map(|_| match rng.below(11) {
                0 => Op::Table(pick(&mut rng)),
                1 => Op::Catalogue,
                2 => Op::Put(pick(&mut rng), pick(&mut rng)),
                3 => Op::Add(pick(&mut rng), pick(&mut rng)),
                4 => Op::Delete(pick(&mut rng)),
                5 => Op::DeleteValue(pick(&mut rng), pick(&mut rng)),
                6 => Op::Sequence(u64::MAX >> rng.below(64)),
                7 => {
                    let keys = [pick(&mut rng), pick(&mut rng)];
                    let [start, end] = keys.map(|key| match rng.below(3) {
                        0 => Bound::Unbounded,
                        1 => Bound::Included(key),
                        _ => Bound::Excluded(key),
                    });
                    Op::DeleteRange(start, end)
                }
                8 => Op::Clear,
                9 => Op::Drop,
                _ => Op::Words([0, rng.below(1 << 20), u64::MAX >> rng.below(64)]),
            })
            .collect();
        let mut bytes = Vec::new();
        ops.iter().for_each(|op| put_op(&mut bytes, *op));
        let read: Vec<Op<'_>> = Ops::new(&bytes).map(|op| op.unwrap()).collect();
        assert_eq!(read, ops);
        // Cut off anywhere, what is read is a beginning of it, and then the end or an error.
        let len = rng.index(bytes.len() + 1);
        let read: Vec<Op<'_>> = Ops::new(&bytes[..len]).map_while(Result::ok).collect();
        assert!(ops.starts_with(&read));
        let complete = Ops::new(&bytes[..len]).all(|op| op.is_ok());
        let mut ends = Vec::new();
        let mut again = Vec::new();
        ops.iter().for_each(|op| {
            ends.push(again.len());
            put_op(&mut again, *op);
        });
        ends.push(again.len());
        assert_eq!(complete, ends.contains(&len), "{len} of {ends:?}");
    }
}

#[test]
fn numbers_that_are_too_large_are_refused() {
    let over = [7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    assert!(Ops::new(&over).next().unwrap().is_err());
    let endless = [7, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0];
    assert!(Ops::new(&endless).next().unwrap().is_err());
    let most = [7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(Ops::new(&most).next().unwrap().ok(), Some(Op::Sequence(u64::MAX)));
    assert!(Ops::new(&[0]).next().unwrap().is_err(), "zeros are no operation");
    assert!(Ops::new(&[8, 3, 0]).next().unwrap().is_err(), "a bound that is none");
}

#[test]
fn a_range_over_the_end_goes_on_at_the_beginning() {
    assert_eq!(parts(0, 10, 100), [0..10, 0..0]);
    assert_eq!(parts(95, 10, 100), [95..100, 0..5]);
    assert_eq!(parts(390, 10, 100), [90..100, 0..0]);
    assert_eq!(parts(30, 100, 100), [30..100, 0..30]);
}

/// What was appended is read from each place on, over any number of laps, and no more than that.
#[test]
fn records_are_read_over_many_laps() {
    let mut rng = support::rng();
    let mut log = Log::new(1000, Place { pos: u64::MAX / 3, ..START });
    let mut live: Vec<(Place, u64, Vec<u8>, usize)> = Vec::new();
    for _ in 0..3000 {
        let ops = payload(&mut rng, 200);
        // What a checkpoint has made needless goes.
        while live.iter().map(|(.., len)| len).sum::<usize>() + HEADER + ops.len() > 1000 {
            live.remove(0);
        }
        let txn = log.txn;
        let (at, len) = log.append(&ops, 3);
        live.push((at, txn, ops, len));
        let from = rng.index(live.len());
        let (at, txn, ..) = live[from];
        let expected: Vec<Vec<u8>> =
            live[from..].iter().map(|(_, _, ops, _)| ops.clone()).collect();
        assert_eq!(log.read(txn, at), expected);
    }
}

/// Any sectors of the newest record may have come: then it is whole, or the log ends before it.
#[test]
fn a_torn_record_ends_the_log() {
    let mut rng = support::rng();
    for _ in 0..300 {
        let mut log = Log::new(4096, Place { pos: rng.below(9000), ..START });
        let mut before: Vec<Vec<u8>> = Vec::new();
        for _ in 0..rng.below(4) {
            before.push(payload(&mut rng, 300));
            log.append(before.last().unwrap(), 3);
        }
        let start = Place { pos: log.at.pos, ..log.at };
        let old = log.ring.clone();
        let last = payload(&mut rng, 1500);
        let (at, len) = log.append(&last, 3);
        assert_eq!(at, start);
        let new = std::mem::replace(&mut log.ring, old);
        let mut missing = false;
        for (old, new) in log.ring.chunks_mut(512).zip(new.chunks(512)) {
            if rng.one_in(3) {
                missing |= old != new;
            } else {
                old.copy_from_slice(new);
            }
        }
        let first = Place { pos: 0, chain: 0 };
        let read = Records::after(&log.ring, log.txn - 1, at).next();
        assert_eq!(read.is_none(), missing, "{len} bytes");
        if let Some(Record { txn, ops, next }) = read {
            assert_eq!((txn, ops, next), (log.txn, last, log.at));
        }
        assert!(Records::after(&log.ring, log.txn - 1, first).next().is_none());
    }
}

/// A flipped bit anywhere in a record ends the log before it.
#[test]
fn a_flipped_bit_ends_the_log() {
    let mut log = Log::new(512, START);
    log.append(b"first", 3);
    let (at, len) = log.append(b"second", 3);
    log.append(b"third", 3);
    for bit in 0..len * 8 {
        let byte = at.pos as usize + bit / 8;
        log.ring[byte] ^= 1 << (bit % 8);
        assert_eq!(log.read(10, START), [b"first".to_vec()], "bit {bit}");
        log.ring[byte] ^= 1 << (bit % 8);
    }
    assert_eq!(log.read(10, START).len(), 3);
}

/// Records of another branch of history in the same places do not go on from those of this one.
#[test]
fn records_of_another_branch_are_not_followed() {
    let mut log = Log::new(512, START);
    log.append(b"one", 3);
    let branch = (log.at, log.txn);
    log.append(b"two", 3);
    log.append(b"three", 3);
    assert_eq!(log.read(10, START).len(), 3);
    // After a restart the same change is made again, by another open: the same bytes but for its number.
    (log.at, log.txn) = branch;
    log.append(b"two", 4);
    assert_eq!(log.read(10, START), [b"one".to_vec(), b"two".to_vec()]);
    // A commit without a record: what lies at its place is not of the one after it.
    let mut log = Log::new(512, START);
    log.append(b"one", 3);
    let (at, txn) = (log.at, log.txn);
    log.append(b"two", 3);
    let salted = Place { chain: reseed(at.chain, txn + 1, 3), ..at };
    assert!(log.read(txn + 1, salted).is_empty());
    assert!(log.read(txn, salted).is_empty());
    assert!(log.read(txn + 1, at).is_empty(), "a record of an earlier commit");
    assert_eq!(log.read(txn, at), [b"two".to_vec()]);
}

/// Lengths that lie do no harm.
#[test]
fn a_record_longer_than_the_ring_is_none() {
    let mut log = Log::new(256, START);
    log.append(&[1; 100], 3);
    for len in [0, 101, 231, 232, 233, 10_000, u32::MAX] {
        log.ring[16..20].copy_from_slice(&len.to_le_bytes());
        assert!(log.read(10, START).is_empty(), "{len}");
    }
    assert!(Records::after(&[], 10, START).next().is_none());
    assert!(Records::after(&[0; HEADER - 1], 10, START).next().is_none());
}

/// What the fuzzer runs, on its seeds and on changed ones.
#[cfg(feature = "fuzz")]
#[test]
fn the_fuzzers_function_returns() {
    let mut rng = support::rng();
    for seed in super::fuzz_seeds() {
        super::fuzz(&seed);
        for _ in 0..300 {
            let mut changed = seed.clone();
            for _ in 0..=rng.below(4) {
                let at = rng.index(changed.len());
                changed[at] = rng.byte();
            }
            changed.truncate(rng.index(changed.len() + 1));
            super::fuzz(&changed);
        }
    }
}
