//! Reads data files of LMDB 0.9 without LMDB: the two metas, any page size, files of 64-bit and 32-bit
//! little-endian machines, named tables, every table flag, values in the record, in pages inside it, in
//! trees of their own and in overflow pages.
//!
//! Nothing is trusted: each reference is checked where it is followed, no page is visited twice, and
//! what memory is taken is bounded by the file. Damage is an [`Error`] that names the page.
//!
//! ```no_run
//! use lmdb_file::{LmdbFile, Record};
//!
//! # fn main() -> lmdb_file::Result<()> {
//! let file = LmdbFile::open("old.lmdb")?;
//! let mut reader = file.reader();
//! let mut record = Record::default();
//! for table in file.tables()? {
//!     reader.begin(&table)?;
//!     while reader.next(&mut record)? {
//!         println!("{:?} {:?}", record.key, record.value);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod error;
mod file;
mod layout;
mod meta;
mod page;
mod reader;
mod source;

pub use error::{Error, Result};
pub use file::{Flags, Info, LmdbFile, Table};
pub use reader::{Reader, Record};
pub use source::Source;
