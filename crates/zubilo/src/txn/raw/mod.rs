//! Transactions for callers that cannot hold borrows, such as the C interface: tables by number,
//! comparators exchanged at any time, nested levels begun and ended by calls.
//!
//! The tree of names itself can be used as a table (`TableRef::CATALOGUE`): its plain records are the caller's,
//! the records of tables are left to the engine. Slices that come from a write transaction hold
//! until its next change; here nothing but the borrow says so, callers that drop it must.
//!
//! `read` and `write` have the calls of the two kinds of transactions, `counted` those that both have for
//! counted tables, `cursor` the cursors.

pub(crate) mod counted;
pub(crate) mod cursor;
mod read;
mod write;

use crate::error::Result;
use crate::page::{Compare, Entry, Order, ValueKind};
use crate::tree::desc::ORDER_CUSTOM;
use crate::tree::{Pages, Ref, Tree, TreeDesc, lookup};

use super::table::TableStats;

pub use super::catalogue::TableRef;
pub use super::space_writer::OwnLimit;
pub use read::RawTable;

/// A caller's comparison.
pub type RawCompare = Compare;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<T> {
    /// Nothing.
    Nothing,
    /// A plain record.
    Record,
    /// A table.
    Table(T),
}

/// What is known of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableInfo {
    /// Figures.
    pub stats: TableStats,
    /// Order of keys: 0 bytes, 1 reversed, 2 integers, 3 a caller's.
    pub key_order: u8,
    /// Order of the values of a key, likewise.
    pub value_order: u8,
    /// Many values under a key.
    pub duplicates: bool,
    /// All values of one size.
    pub fixed: bool,
    /// The table's persistent sequence.
    pub sequence: u64,
    /// Branches count records.
    pub counted: bool,
    /// To how many bytes values are aligned.
    pub alignment: u8,
}

impl TableInfo {
    fn of(desc: &TreeDesc) -> TableInfo {
        TableInfo {
            stats: TableStats::of(desc),
            key_order: desc.options.order,
            value_order: desc.options.value_order_code(),
            duplicates: desc.options.has_duplicates(),
            fixed: desc.options.is_fixed(),
            sequence: desc.sequence,
            counted: desc.options.is_counted(),
            alignment: desc.options.align,
        }
    }
}

fn set_orders(tree: &mut Tree, keys: Option<RawCompare>, values: Option<RawCompare>) {
    let custom = |compare: Option<RawCompare>| {
        Order::Custom(compare.unwrap_or_else(|| std::sync::Arc::new(|a: &[u8], b: &[u8]| a.cmp(b))))
    };
    if tree.desc.options.order == ORDER_CUSTOM {
        tree.order = custom(keys);
    }
    if tree.desc.options.value_order_code() == ORDER_CUSTOM {
        tree.values = custom(values);
    }
    tree.finger.reset();
}

/// The value of an entry; of a table's record in the tree of names, its bytes as they are stored.
#[inline]
fn value_of<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    at: Ref,
    entry: &Entry<'p>,
) -> Result<&'p [u8]> {
    if entry.kind == ValueKind::Tree && !tree.desc.options.has_duplicates() {
        return Ok(entry.value);
    }
    lookup::value_of(pages, at, entry)
}

/// What `name` stands for in the tree of names.
fn find<'p, P: Pages<'p>>(pages: &P, names: &Tree, name: &[u8]) -> Result<Named<TreeDesc>> {
    match lookup::get_entry(pages, &names.desc, &names.order, name)? {
        None => Ok(Named::Nothing),
        Some((at, entry)) if entry.kind == ValueKind::Tree => {
            TreeDesc::from_bytes(entry.value).map_err(at.damaged()).map(Named::Table)
        }
        Some(_) => Ok(Named::Record),
    }
}
