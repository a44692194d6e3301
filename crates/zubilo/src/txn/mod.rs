//! Transactions: `read` snapshots (`reader`: one after the other), the one `write` transaction with its `nested` levels, its
//! `commit` (laid out by `layout`, early parts by `spill`, room kept by `clean`), and the `group` of closures that
//! share a commit. `table` holds what reading and writing have in common for users.

mod books;
mod clean;
mod commit;
pub(crate) mod group;
mod layout;
mod nested;
mod read;
mod reader;
mod spill;
mod table;
mod write;

pub use read::{OwnedValue, ReadTable, ReadTxn};
pub use reader::{ReadGuard, Reader};
pub use table::{Cursor, Iter, TableOptions, TableStats};
pub use write::{WriteTable, WriteTxn};
