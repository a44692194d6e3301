//! The way in of the C interface to what LMDB does not have: counted tables, ranges, and the pages that
//! readers hold back.

use std::ops::Bound;

use crate::error::{Error, Result};
use crate::tree::rank;

use super::counted::range_len;
use super::raw::{NAMES, RawTable};
use super::raw_cursor::RawPair;
use super::read::ReadTxn;
use super::table::bounds_of;
use super::write::WriteTxn;

/// Where a range of keys begins and ends.
pub type RawRange<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Counted tables, in both kinds of transactions; see [`crate::ReadTable::nth`] and its neighbours.
macro_rules! counting {
    ($named:ty; $this:ident, $table:ident => $parts:expr) => {
        /// Record `n`, counted from 0.
        pub fn raw_nth(&self, $table: $named, n: u64) -> Result<Option<RawPair<'_>>> {
            let $this = self;
            let (pages, tree) = $parts;
            rank::nth(&pages, tree, n)
        }

        /// Value `n` under `key`, counted from 0.
        pub fn raw_nth_value(&self, $table: $named, key: &[u8], n: u64) -> Result<Option<&[u8]>> {
            let $this = self;
            let (pages, tree) = $parts;
            rank::nth_value(&pages, tree, key, n)
        }

        /// The number of records before those of `key`, or before that with `value`.
        pub fn raw_rank(&self, $table: $named, key: &[u8], value: Option<&[u8]>) -> Result<u64> {
            let $this = self;
            let (pages, tree) = $parts;
            match value {
                Some(value) => rank::rank_of_pair(&pages, tree, key, value),
                None => rank::rank(&pages, tree, key).map(|(before, _)| before),
            }
        }

        /// The number of records with keys inside a range.
        pub fn raw_range_len(&self, $table: $named, keys: RawRange<'_>) -> Result<u64> {
            let $this = self;
            let (pages, tree) = $parts;
            range_len::<_, &[u8]>(&pages, tree, keys)
        }
    };
}

impl ReadTxn {
    counting!(&RawTable; this, table => (this.snapshot(), table.tree()));
}

impl WriteTxn {
    counting!(usize; this, table => {
        this.check()?;
        (this.ws.view(), this.tree(table))
    });

    /// Removes all records with keys inside a range; gives their number. Not of the tree of names.
    pub fn raw_delete_range(&mut self, table: usize, keys: RawRange<'_>) -> Result<u64> {
        if table == NAMES {
            return Err(Error::Incompatible("names of tables may lie in the range"));
        }
        self.delete_range(table, &bounds_of::<&[u8]>(keys))
    }

    /// Bytes of dead pages that a snapshot still sees.
    pub fn raw_held_back(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.space.retired_pages()) << self.env.shift
    }

    /// Looks which readers are there now: pages of those that have ended can be used.
    pub fn raw_renew_pins(&mut self) -> Result<()> {
        self.check()?;
        self.look_for_pins()
    }
}
