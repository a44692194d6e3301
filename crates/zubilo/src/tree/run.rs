//! References to value runs: large values in pages of their own, without a header.

use crate::num::{load_u64, store_u64};
use crate::page::Damage;

use super::Ref;

/// Bytes of a stored run reference.
pub(crate) const RUN_REF_SIZE: usize = 32;
const DIRTY: u64 = 1 << 63;

/// Where a large value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunRef {
    /// First page; with the top bit set the index of a run that is not yet in the file.
    pub(crate) first: u64,
    /// Length of the value in bytes.
    pub(crate) len: u64,
    /// XXH3-64 of the value; 0 until it is written.
    pub(crate) checksum: u64,
    /// Transaction that wrote it.
    pub(crate) birth: u64,
}

impl RunRef {
    /// A run of the running transaction that is still in memory.
    pub(crate) fn dirty(index: u32, len: u64, birth: u64) -> RunRef {
        RunRef { first: DIRTY | u64::from(index), len, checksum: 0, birth }
    }

    /// Index of the run while it is in memory.
    pub(crate) fn slot(&self) -> Option<u32> {
        (self.first & DIRTY != 0).then_some(self.first as u32)
    }

    /// Pages it fills; a run of no bytes fills none.
    pub(crate) fn pages(&self, page_shift: u32) -> u64 {
        self.len.div_ceil(1 << page_shift)
    }

    pub(crate) fn store(&self, out: &mut [u8]) -> Result<(), Damage> {
        let fits = store_u64(out, 0, self.first)
            && store_u64(out, 8, self.len)
            && store_u64(out, 16, self.checksum)
            && store_u64(out, 24, self.birth);
        if fits { Ok(()) } else { Err(Damage("a run reference has the wrong size")) }
    }

    /// The reference in a record of the leaf at `at`.
    pub(crate) fn of(at: Ref, bytes: &[u8]) -> crate::error::Result<RunRef> {
        RunRef::load(bytes).map_err(at.damaged())
    }

    pub(crate) fn load(bytes: &[u8]) -> Result<RunRef, Damage> {
        if bytes.len() != RUN_REF_SIZE {
            return Err(Damage("a run reference has the wrong size"));
        }
        let word = |i: usize| load_u64(bytes, i * 8).unwrap_or_default();
        Ok(RunRef { first: word(0), len: word(1), checksum: word(2), birth: word(3) })
    }
}

/// Checksum of a value run.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

impl RunRef {
    /// Compares the checksum with the value's bytes.
    pub(crate) fn verify(&self, bytes: &[u8]) -> Result<(), Damage> {
        if checksum(bytes) == self.checksum {
            Ok(())
        } else {
            Err(Damage("a value run's checksum is wrong"))
        }
    }
}
