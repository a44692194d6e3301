//! Zubilo: an embedded, transactional, ordered key-value store.
//!
//! A memory-mapped copy-on-write B+tree: any number of readers that never wait, one writer, many
//! processes, no write-ahead log, no recovery. A commit is one run of pages and one flush.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("first.zubilo");
//! use zubilo::{Options, Result};
//!
//! fn first_steps(path: &std::path::Path) -> Result<()> {
//!     let env = Options::new().open(path)?;
//!
//!     let mut write = env.write()?;
//!     let mut fruit = write.table_or_create("fruit")?;
//!     fruit.put("apple", "red")?;
//!     fruit.put("banana", "yellow")?;
//!     write.commit()?;
//!
//!     let read = env.read()?;
//!     let fruit = read.table("fruit")?;
//!     assert_eq!(fruit.get("apple")?, Some(&b"red"[..]));
//!     for record in fruit.range("b"..) {
//!         let (key, value) = record?;
//!         assert_eq!((key, value), (&b"banana"[..], &b"yellow"[..]));
//!     }
//!     Ok(())
//! }
//! # first_steps(&path).unwrap();
//! ```

mod debug;
mod dirty;
mod env;
mod error;
mod handle;
mod maintenance;
mod num;
mod page;
#[doc(hidden)]
pub mod planted;
#[doc(hidden)]
pub mod platform;
mod redo;
mod shared;
mod space;
mod sync;
mod tree;
mod txn;

/// What fuzzers reach of the parsers inside.
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz {
    /// Every function of pages on pages made of these bytes.
    pub fn pages(data: &[u8]) {
        crate::page::exercise::fuzz_pages(data);
    }

    /// The redo log whose ring these bytes are.
    pub fn redo(data: &[u8]) {
        crate::redo::fuzz(data);
    }

    /// Logs to start from.
    pub fn redo_seeds() -> Vec<Vec<u8>> {
        crate::redo::fuzz_seeds()
    }
}

/// What the C interface needs beyond the safe API.
#[doc(hidden)]
pub mod raw {
    pub use crate::handle::raw::Runs;
    pub use crate::txn::Standing;
    pub use crate::txn::raw::counted::RawRange;
    pub use crate::txn::raw::cursor::{RawAt, RawCursor, RawNote, RawPair, RawStand};
    pub use crate::txn::raw::{Named, OwnLimit, RawCompare, RawTable, TableInfo, TableRef};
}

pub use env::counters::EnvCounters;
pub use env::info::{CommitState, DamagedMeta, EnvInfo, ReaderInfo, StoredCommit};
pub use env::log::Level;
#[doc(hidden)]
pub use env::meta::seal_meta;
pub use env::options::{Durability, Geometry, Options, Scrub, VerifyReads};
pub use env::slow::{SlowReader, SlowReaderAction};
pub use error::{Error, Result};
pub use handle::Env;
pub use handle::later::Update;
pub use maintenance::ScrubReport;
pub use maintenance::check::{CheckReport, PROBLEMS_MAX, PageKind, PageVisit, Problem, SpaceInfo};
pub use maintenance::compact::{CompactOptions, CompactReport};
pub use maintenance::memory::{Residency, WarmUp};
pub use maintenance::salvage::{Salvage, SalvageCount, SalvagedTable};
pub use num::{PageNo, TxnId};
pub use txn::{
    CommitReport, Comparator, Cursor, CursorId, Entry, Iter, KeyOrder, KeyRange, OwnedIter,
    OwnedRecord, OwnedTable, OwnedValue, PackedValues, ParkedCursor, ParkedRead, PutFlags,
    ReadGuard, ReadTable, ReadTxn, Reader, ReaderLag, Seek, TableHandle, TableId, TableOptions,
    TableStats, UserWords, ValueIter, ViewTable, WriteCursor, WriteTable, WriteTxn, WriteView,
};

#[cfg(feature = "rayon")]
pub use txn::ParRange;

/// Programs that must not compile; see `tests/it/types.rs` for what is asserted at run time.
#[cfg(doctest)]
#[doc = include_str!("../tests/must_not_compile.md")]
struct MustNotCompile;
