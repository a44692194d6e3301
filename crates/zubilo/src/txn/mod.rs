//! Transactions.
//!
//! * Reading: `read` snapshots, `reader` one after the other in one place.
//! * The one `write` transaction: what it does to `records`, `replace` the changes that hand back what was
//!   there, `nested` levels, `spill` for more than memory holds, and its `commit`, for which `layout` gives
//!   pages their places, `places` chooses them, `clean` keeps room and `audit` checks what came of it.
//!   `group` lets many threads share one, `compact` makes it a part of compaction.
//! * Tables in both: `table` what they have in common for users, `write_table` and `table_id` for changes,
//!   `options` what is fixed when one is created, `handle` tables known beyond their transaction, `counted`
//!   the ranks of counted ones, `cursor` positions in them.
//! * `marks`: what users keep beside records; `limit`: how far the file may grow. `raw`: all of it for the C interface.

mod audit;
mod clean;
mod commit;
pub(crate) mod compact;
mod counted;
mod cursor;
pub(crate) mod group;
mod handle;
mod layout;
mod limit;
mod marks;
mod nested;
mod options;
mod places;
pub(crate) mod raw;
mod read;
mod reader;
mod records;
mod replace;
mod spill;
mod table;
mod table_id;
mod write;
mod write_table;

pub use cursor::{Cursor, CursorId, PackedValues, ParkedCursor, PutFlags, Seek, WriteCursor};
pub use handle::TableHandle;
pub use marks::{Canary, Straggler};
pub use options::{Comparator, KeyOrder, TableOptions};
pub use read::{OwnedValue, ReadTable, ReadTxn};
pub use reader::{ReadGuard, Reader};
pub use table::{Iter, TableStats, ValueIter};
pub use table_id::TableId;
pub use write::WriteTxn;
pub use write_table::WriteTable;
