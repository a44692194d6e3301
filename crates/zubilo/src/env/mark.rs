//! What the meta of a prepared transaction says besides: which one it is, since when it waits, and what its user calls it.
//!
//! It lies at the end of a meta's content, in the place of the redo log, which such a store has not, and of the last bytes of
//! the free-space log's tail.

use crate::num::load_u64;

/// Bytes of the user's name for a prepared transaction, at most.
pub(crate) const TAG_MAX: usize = 64;
/// Bytes before the tag: identity, time and the tag's length.
const HEAD: usize = 24;
/// Bytes of it all, at most.
pub(super) const MARK_SIZE: usize = HEAD + TAG_MAX;

/// What is known of a transaction that waits for its decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// By chance, not 0. Its transaction number may be used again after it was rolled back, this is not.
    pub(crate) id: u64,
    /// When it was prepared: seconds since 1970.
    pub(crate) since: u64,
    /// What the user calls it.
    pub(crate) tag: Vec<u8>,
}

impl Mark {
    /// As it is stored.
    pub(super) fn encode(&self) -> Vec<u8> {
        let head = [self.id, self.since, self.tag.len() as u64];
        head.iter().flat_map(|word| word.to_le_bytes()).chain(self.tag.iter().copied()).collect()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Mark> {
        let len = usize::try_from(load_u64(bytes, 16)?).ok()?;
        let tag = bytes.get(HEAD..MARK_SIZE)?.get(..len)?.to_vec();
        Some(Mark { id: load_u64(bytes, 0)?, since: load_u64(bytes, 8)?, tag })
    }
}
