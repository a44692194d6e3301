//! Counted tables, estimates and cuts, in both kinds of transactions; see [`crate::ReadTable::nth`] and its neighbours.

use std::ops::Bound;

use crate::error::Result;
use crate::tree::{rank, split};
use crate::txn::catalogue::TableRef;
use crate::txn::counted::range_len;
use crate::txn::estimate::estimate_len;
use crate::txn::read::ReadTxn;
use crate::txn::table::bounds_of;
use crate::txn::write::WriteTxn;

use super::RawTable;
use super::cursor::RawPair;

/// Where a range of keys begins and ends.
pub type RawRange<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// The calls of one kind of transaction; `$parts` are the pages and the tree of `$table` in it.
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

        /// About how many records have keys inside a range.
        pub fn raw_estimate_len(&self, $table: $named, keys: RawRange<'_>) -> Result<u64> {
            let $this = self;
            let (pages, tree) = $parts;
            estimate_len::<_, &[u8]>(&pages, tree, keys)
        }

        /// The keys at which a range is cut into even parts.
        pub fn raw_cuts(
            &self,
            $table: $named,
            keys: RawRange<'_>,
            parts: usize,
        ) -> Result<Vec<Vec<u8>>> {
            let $this = self;
            let (pages, tree) = $parts;
            let cuts = split::cuts(&pages, tree, &bounds_of::<&[u8]>(keys), parts)?;
            Ok(cuts.iter().map(|key| key.to_vec()).collect())
        }
    };
}

#[doc(hidden)]
impl ReadTxn {
    counting!(&RawTable; this, table => (this.snapshot(), table.tree()));
}

#[doc(hidden)]
impl WriteTxn {
    counting!(TableRef; this, table => {
        this.check()?;
        (this.ws.view(), this.tree(table)?)
    });
}
