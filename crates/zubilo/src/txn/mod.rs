//! Transactions: `read` snapshots (`reader`: one after the other), the one `write` transaction with its `nested` levels, its
//! `commit` (laid out by `layout`, early parts by `spill`, room kept by `clean`), and the `group` of closures that
//! share a commit. `table` holds what reading and writing have in common for
//! users, `options` what is fixed when a table is created, `replace` the changes that hand back what was
//! there, `marks` what users keep beside records, `handle` tables known beyond their transaction, `audit` the
//! check after a commit, `counted` the ranks of counted tables, `parked` cursors between
//! transactions, `compact` the write transaction as a part of compaction.

mod audit;
mod books;
mod clean;
mod commit;
pub(crate) mod compact;
mod counted;
mod cursor;
mod cursors;
pub(crate) mod group;
mod handle;
mod layout;
mod marks;
mod nested;
mod options;
mod parked;
pub(crate) mod raw;
pub(crate) mod raw_cursor;
pub(crate) mod raw_more;
mod read;
mod reader;
mod records;
mod replace;
mod spill;
mod table;
mod write;
mod write_cursor;
mod write_table;

pub use cursor::{Cursor, PackedValues, Seek};
pub use cursors::{CursorId, TableId};
pub use handle::TableHandle;
pub use marks::{Canary, Straggler};
pub use options::{Comparator, KeyOrder, TableOptions};
pub use parked::ParkedCursor;
pub use read::{OwnedValue, ReadTable, ReadTxn};
pub use reader::{ReadGuard, Reader};
pub use table::{Iter, TableStats, ValueIter};
pub use write::WriteTxn;
pub use write_cursor::{PutFlags, WriteCursor};
pub use write_table::WriteTable;
