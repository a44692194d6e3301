//! Transactions.
//!
//! * Reading: `read` snapshots, `reader` one after the other in one place, `parked` those that others may end.
//! * The one `write` transaction is put together from parts: the `catalogue` of its tables, the
//!   `space_writer`, the cursors of `cursor`, and the workspace of `dirty`. `records` is what it does to tables,
//!   `replace` the changes that hand back what was there, `nested` its levels, `soundness` whether its trees are
//!   whole. Its `commit` is a row of steps; `commit_times` says what they took; `writeback` gives pages their
//!   places, `clean` keeps room. `chain` is what follows a transaction without a gap, `view` the transaction
//!   read by many threads. `group` lets many threads share one, `compact` makes it a part of compaction.
//!   `slow_readers` is what it does about readers that hold pages back.
//! * Tables in both: `table` what they have in common for users, `write_table` and `table_id` for changes,
//!   `options` what is fixed when one is created, `handle` tables known beyond their transaction, `counted`
//!   the ranks of counted ones, `cursor` positions in them, `estimate` about how many records a range has and
//!   where to cut it, `parallel` its scan by many threads.
//!   `map_like` is what Rust's maps have, too, `owned` what keeps its transaction alive.
//! * `user_metadata`: what users keep beside records. `raw`: all of it for the C interface.

mod catalogue;
mod chain;
mod clean;
mod commit;
mod commit_times;
pub(crate) mod compact;
mod counted;
mod cursor;
mod estimate;
pub(crate) mod group;
mod handle;
mod map_like;
mod nested;
mod options;
mod owned;
#[cfg(feature = "rayon")]
mod parallel;
mod parked;
mod pinned;
mod prepared;
pub(crate) mod raw;
mod read;
mod reader;
mod records;
pub(crate) mod redo;
mod replace;
mod slow_readers;
mod soundness;
mod space_writer;
mod table;
mod table_id;
mod user_metadata;
mod view;
mod write;
mod write_table;
mod writeback;

pub use commit_times::CommitReport;
pub use cursor::{
    Cursor, CursorId, PackedValues, ParkedCursor, PutFlags, Seek, Standing, WriteCursor,
};
pub use estimate::KeyRange;
pub use handle::TableHandle;
pub use map_like::Entry;
pub use options::{Comparator, KeyOrder, TableOptions};
pub use owned::{OwnedIter, OwnedRecord, OwnedTable};
#[cfg(feature = "rayon")]
pub use parallel::ParRange;
pub use parked::ParkedRead;
pub(crate) use pinned::pinned;
pub use prepared::Prepared;
pub use read::{OwnedValue, ReadTable, ReadTxn};
pub use reader::{ReadGuard, Reader};
pub(crate) use table::bounds_of;
pub use table::{Iter, TableStats, ValueIter};
pub use table_id::TableId;
pub use user_metadata::{ReaderLag, UserWords};
pub use view::{ViewTable, WriteView};
pub use write::WriteTxn;
pub use write_table::WriteTable;
