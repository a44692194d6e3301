//! Counted tables: the n-th record, the rank of a key, the number of records in a range, each by one
//! or two descents ([`TableOptions::counted`]).
//!
//! [`TableOptions::counted`]: super::TableOptions::counted

use std::ops::{Bound, RangeBounds};

use crate::error::Result;
use crate::tree::{Pages, Tree, rank};

use super::read::ReadTable;
use super::view::ViewTable;
use super::write_table::WriteTable;

/// How many records lie before the start of a range, and before its end.
pub(super) fn range_len<'p, P: Pages<'p>, K: AsRef<[u8]>>(
    pages: &P,
    tree: &Tree,
    range: impl RangeBounds<K>,
) -> Result<u64> {
    let before = |key: &K| rank::rank(pages, tree, key.as_ref()).map(|(before, _)| before);
    let behind = |key: &K| {
        let (before, own) = rank::rank(pages, tree, key.as_ref())?;
        Ok(before.saturating_add(own))
    };
    let start = match range.start_bound() {
        Bound::Included(key) => before(key)?,
        Bound::Excluded(key) => behind(key)?,
        // Also a table that does not count refuses.
        Bound::Unbounded => rank::rank(pages, tree, &[]).map(|_| 0)?,
    };
    let end = match range.end_bound() {
        Bound::Included(key) => behind(key)?,
        Bound::Excluded(key) => before(key)?,
        Bound::Unbounded => tree.desc.entries,
    };
    Ok(end.saturating_sub(start))
}

/// The methods of both kinds of tables: `$life` is how long what they give lives, `$this` gives the
/// pages and the tree.
macro_rules! counting {
    ($life:lifetime, $this:ident => $parts:expr) => {
        /// Record `n` in the order of the table, counted from 0; each value of a key is one. Only
        /// in counted tables.
        pub fn nth(&self, n: u64) -> Result<Option<(&$life [u8], &$life [u8])>> {
            let $this = self;
            let (pages, tree) = $parts;
            rank::nth(&pages, tree, n)
        }

        /// Value `n` under `key`, counted from 0. Only in counted tables.
        pub fn nth_value(&self, key: impl AsRef<[u8]>, n: u64) -> Result<Option<&$life [u8]>> {
            let $this = self;
            let (pages, tree) = $parts;
            rank::nth_value(&pages, tree, key.as_ref(), n)
        }

        /// The number of records before those of `key`, which need not be there. Only in counted
        /// tables.
        pub fn rank(&self, key: impl AsRef<[u8]>) -> Result<u64> {
            let $this = self;
            let (pages, tree) = $parts;
            rank::rank(&pages, tree, key.as_ref()).map(|(before, _)| before)
        }

        /// The number of records before that of `key` with `value`, which need not be there. Only
        /// in counted tables.
        pub fn rank_of_pair(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<u64> {
            let $this = self;
            let (pages, tree) = $parts;
            rank::rank_of_pair(&pages, tree, key.as_ref(), value.as_ref())
        }

        /// The number of records with keys inside `range`; each value of a key is one. Only in
        /// counted tables.
        pub fn range_len<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
            let $this = self;
            let (pages, tree) = $parts;
            range_len(&pages, tree, range)
        }
    };
}

impl<'t> ReadTable<'t> {
    counting!('t, this => (this.snapshot(), this.tree()));
}

impl<'t> ViewTable<'t> {
    counting!('t, this => this.parts());
}

/// What the transaction has changed in the table since it began, or since it outgrew its memory, is
/// counted page by page.
impl WriteTable<'_> {
    counting!('_, this => {
        this.txn.check()?;
        (this.txn.ws.view(), this.txn.tree(this.table)?)
    });
}
