//! The redo log, as bytes: records of what commits changed, one after the other in a ring. A commit whose
//! record is on disk is durable although its pages are not.
//!
//! `op` has the changes that a record holds, `record` its frame and the ring. All of it is pure: bytes in,
//! bytes out, no I/O. Who appends and who replays is above, in `env` and `txn`.
//!
//! What must hold:
//! * A record is trusted only if its checksum holds, and the checksum is seeded with that of the record
//!   before. So a record that is torn, lost, left from an earlier lap or from another branch of history ends
//!   the log, and nothing after it is looked at.
//! * The place of the next record and the seed of its checksum are in the meta of each commit. So whichever
//!   commit is trusted at open, the records after it are found, and none before it is applied twice.
//! * No byte of the ring makes a reader of it panic, loop or allocate beyond the ring's length.

mod op;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use op::{Op, Ops, put_op};
pub(crate) use record::{HEADER, Place, Record, Records, parts, reseed, seal};

/// What a fuzzer does with the log: two numbers, then a ring. Whatever its bytes are, reading it ends; records
/// whose checksums are made right are read to the end of their payload.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz(data: &[u8]) {
    let Some((start, ring)) = data.split_first_chunk::<16>() else { return };
    let start = u128::from_le_bytes(*start);
    let at = Place { pos: start as u64, chain: (start >> 64) as u64 };
    let mut ring = ring.to_vec();
    for right in [false, true] {
        if right {
            record::make_right(&mut ring, at, 1);
        }
        let (mut read, mut last) = (0, 1);
        for Record { txn, ops, .. } in Records::after(&ring, 1, at) {
            assert_eq!(txn, last + 1, "records of commits that do not follow each other");
            (last, read) = (txn, read + HEADER + ops.len());
            let count = Ops::new(&ops).take_while(Result::is_ok).count();
            assert!(count <= ops.len(), "an operation of no bytes");
        }
        assert!(read <= ring.len(), "more was read than the ring holds");
    }
}

/// Logs to start a fuzzer from.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_seeds() -> Vec<Vec<u8>> {
    use std::ops::Bound;

    let ops = [
        Op::Table(b"main"),
        Op::Put(b"key", b"value"),
        Op::Add(b"key", b"another"),
        Op::DeleteValue(b"key", b"another"),
        Op::Delete(b"key"),
        Op::Catalogue,
        Op::Sequence(u64::MAX),
        Op::DeleteRange(Bound::Included(b"a"), Bound::Excluded(b"b")),
        Op::DeleteRange(Bound::Excluded(b"a"), Bound::Unbounded),
        Op::Words([1, 2, u64::MAX]),
        Op::Clear,
        Op::Drop,
    ];
    let log = |pos: u64, len: usize| {
        let mut ring = vec![0; len];
        let mut at = Place { pos, chain: 9 };
        for txn in 2..5 {
            let mut record = vec![0; HEADER];
            ops.iter().for_each(|op| put_op(&mut record, *op));
            let next = seal(&mut record, at, txn, 7);
            record::write(&mut ring, at.pos, &record);
            at = next;
        }
        [&pos.to_le_bytes()[..], &9u64.to_le_bytes(), &ring].concat()
    };
    vec![log(0, 512), log(450, 512), log(u64::MAX - 20, 300)]
}
