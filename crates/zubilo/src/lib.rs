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

mod check;
mod compact;
mod copy;
mod debug;
mod dirty;
mod env;
mod error;
mod num;
mod page;
#[doc(hidden)]
pub mod planted;
#[doc(hidden)]
pub mod platform;
mod salvage;
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
}

/// What the C interface needs beyond the safe API.
#[doc(hidden)]
pub mod raw {
    pub use crate::txn::raw::counted::RawRange;
    pub use crate::txn::raw::cursor::{RawCursor, RawPair, RawPlace, RawRemoved, RawStand};
    pub use crate::txn::raw::{NAMES, Named, OwnLimit, RawCompare, RawTable, Runs, TableInfo};
}

pub use check::{CheckReport, PROBLEMS_MAX, PageKind, PageVisit, Problem, SpaceInfo};
pub use compact::{CompactOptions, CompactReport};
pub use env::Env;
pub use env::info::{DamagedMeta, EnvInfo, ReaderInfo};
pub use env::log::Level;
#[doc(hidden)]
pub use env::meta::seal_meta;
pub use env::options::{Durability, Geometry, Options, VerifyReads};
pub use env::scrub::{Scrub, ScrubReport};
pub use error::{Error, Result};
pub use num::{PageNo, TxnId};
pub use salvage::{Salvage, SalvageCount, SalvagedTable};
pub use txn::{
    Canary, Comparator, Cursor, CursorId, Iter, KeyOrder, OwnedValue, PackedValues, ParkedCursor,
    PutFlags, ReadGuard, ReadTable, ReadTxn, Reader, Seek, Straggler, TableHandle, TableId,
    TableOptions, TableStats, ValueIter, WriteCursor, WriteTable, WriteTxn,
};

/// Programs that must not compile; see `tests/it/types.rs` for what is asserted at run time.
#[cfg(doctest)]
#[doc = include_str!("../tests/must_not_compile.md")]
struct MustNotCompile;
