//! What users keep beside records: the canary of a store, the sequence of a table. And what tells
//! how far a reader is behind, and which bytes may change.

use crate::error::{Error, Result};
use crate::num::TxnId;

use super::read::{ReadTable, ReadTxn};
use super::write::WriteTxn;
use super::write_table::WriteTable;

/// Three numbers of the user, committed atomically with the transaction that sets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Canary {
    /// The numbers; zeros until they are set.
    pub words: [u64; 3],
    /// Transaction that set them; 0 if none has.
    pub txn: TxnId,
}

impl Canary {
    fn of(stored: &[u64; 4]) -> Canary {
        let [a, b, c, txn] = *stored;
        Canary { words: [a, b, c], txn: TxnId(txn) }
    }
}

/// How far a read transaction is behind.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Straggler {
    /// Commits made since its snapshot.
    pub lag: u64,
    /// Share of the pages that the store may have which are or were in use, 0 to 1: at 1 it has
    /// reached the upper bound of its geometry, or the end of the reserved address space, and only
    /// pages that come free are left.
    pub used: f64,
}

impl ReadTxn {
    /// The canary as of this snapshot.
    pub fn canary(&self) -> Canary {
        Canary::of(&self.root().canary)
    }

    /// How far this transaction is behind the newest commit, and how full the store is: whether it
    /// is time to end it or to [`ReadTxn::refresh`] it.
    pub fn straggler(&self) -> Result<Straggler> {
        let env = self.env();
        env.check_alive()?;
        let newest = env.newest_meta()?;
        let limit = env.page_limit(&newest.geometry).max(1);
        let lag = newest.txn.saturating_sub(self.id().0);
        Ok(Straggler { lag, used: newest.end as f64 / limit as f64 })
    }
}

impl WriteTxn {
    /// The canary, as of now.
    pub fn canary(&self) -> Canary {
        Canary::of(&self.canary)
    }

    /// Sets the canary; this transaction's number goes with it.
    pub fn set_canary(&mut self, words: [u64; 3]) -> Result<()> {
        self.check()?;
        let [a, b, c] = words;
        self.canary = [a, b, c, self.id().0];
        Ok(())
    }

    /// Whether bytes that this transaction gave may change or go with the next change: those of what
    /// it has changed itself. All others stay as they are until it ends. Also true of bytes that are
    /// not the store's.
    pub fn is_dirty(&self, bytes: &[u8]) -> bool {
        // Nothing of an empty value can change, and its address need not be that of its record.
        !bytes.is_empty() && self.ws.is_dirty(bytes.as_ptr())
    }

    pub(super) fn sequence(&mut self, index: usize, count: u64) -> Result<u64> {
        let next = self.tree(index).desc.sequence;
        if count == 0 {
            self.check()?;
            return Ok(next);
        }
        let after = next.checked_add(count);
        let after = after.ok_or(Error::Invalid("the table's sequence is used up"))?;
        self.change(index)?;
        self.parts(index).1.desc.sequence = after;
        Ok(next)
    }
}

impl WriteTable<'_> {
    /// Takes `count` numbers of the table's sequence and gives the first: they are this transaction's
    /// if it commits, and free again if it, or the nested level, is undone. The sequence of a new
    /// table begins at 0. With a count of 0 it tells which number comes next.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are not so many left; none is taken then.
    pub fn next_sequence(&mut self, count: u64) -> Result<u64> {
        self.txn.sequence(self.index, count)
    }

    /// The number that the table's sequence gives next, as of now.
    pub fn sequence(&self) -> u64 {
        self.txn.tree(self.index).desc.sequence
    }

    /// As [`WriteTxn::is_dirty`].
    pub fn is_dirty(&self, bytes: &[u8]) -> bool {
        self.txn.is_dirty(bytes)
    }
}

impl ReadTable<'_> {
    /// The number that the table's sequence gives next.
    pub fn sequence(&self) -> u64 {
        self.tree().desc.sequence
    }
}
