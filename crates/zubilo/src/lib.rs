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
//!
//! # Concepts
//! * A **store** is one file, opened as an [`Env`]; threads share its clones, processes share the file.
//! * A **table** is an ordered map from keys to values, both byte strings; the crate `zubilo-typed` puts types in
//!   their place. [`TableOptions`] say what is fixed when it is made: the order of its keys, whether a key has many
//!   values, whether it counts its records.
//! * A **read transaction** ([`ReadTxn`]) is a snapshot of one commit. It never waits and never changes, and what it
//!   gives are slices of the map that live as long as it does. While it lives, pages of its snapshot are kept.
//! * There is one **write transaction** ([`WriteTxn`]) at a time, over all processes. It changes any number of tables;
//!   all of that happens at [`WriteTxn::commit`], or nothing.
//! * A **commit** is on disk when it returns, unless [`Durability`] says otherwise. [`Env::update`] lets many threads
//!   share one.
//!
//! # Map of the types
//! | for | types |
//! |---|---|
//! | opening | [`Options`], [`Durability`], [`Geometry`], [`VerifyReads`], [`Scrub`], [`Level`] |
//! | reading | [`ReadTxn`], [`ReadTable`], [`Iter`], [`ValueIter`], [`Cursor`]; many short reads in one place: [`Reader`], [`ReadGuard`] |
//! | reading without a borrow | [`OwnedTable`], [`OwnedIter`], [`OwnedRecord`], [`OwnedValue`] |
//! | writing | [`WriteTxn`], [`WriteTable`], [`Entry`], [`WriteCursor`]; several tables by turns: [`TableId`]; a change as a future: [`Update`] |
//! | reading what is being written | [`WriteView`], [`ViewTable`] |
//! | tables | [`TableOptions`], [`KeyOrder`], [`Comparator`], [`TableHandle`], [`TableStats`] |
//! | positions | [`Cursor`], [`WriteCursor`], [`Seek`], [`PutFlags`], [`ParkedCursor`], [`CursorId`], [`PackedValues`] |
//! | snapshots that others may end | [`ParkedRead`], [`SlowReader`], [`SlowReaderAction`] |
//! | figures | [`EnvInfo`], [`EnvCounters`], [`CommitReport`], [`ReaderInfo`], [`ReaderLag`], [`SpaceInfo`], [`HeldBack`], [`Residency`] |
//! | care | [`CheckReport`], [`CompactOptions`], [`ScrubReport`], [`Salvage`], [`WarmUp`]; copies: [`Env::copy_to_path`], [`Env::copy_changes_to_path`], [`restore`] |
//! | what goes wrong | [`Error`] |
//!
//! # Cookbook
//! **Several tables in one transaction.** A [`WriteTable`] borrows its transaction; a [`TableId`] does not:
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let env = zubilo::Options::new().open(dir.path().join("store")).unwrap();
//! # fn show(env: &zubilo::Env) -> zubilo::Result<()> {
//! env.update(|txn| {
//!     let people = txn.table_id_or_create("people")?;
//!     let by_name = txn.table_id_or_create("by name")?;
//!     people.put(txn, "7", "Ada")?;
//!     by_name.put(txn, "Ada", "7")?;
//!     Ok(())
//! })
//! # }
//! # show(&env).unwrap();
//! ```
//!
//! **Numbers as keys** sort as numbers if they are big-endian. **Counters** are changed in place:
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let env = zubilo::Options::new().open(dir.path().join("store")).unwrap();
//! # fn show(env: &zubilo::Env) -> zubilo::Result<()> {
//! let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
//! env.update(|txn| {
//!     let mut visits = txn.table_or_create("visits")?;
//!     visits.entry("/index").and_modify(|n| (number(n) + 1).to_be_bytes())?.or_insert(1u64.to_be_bytes())?;
//!     Ok(())
//! })
//! # }
//! # show(&env).unwrap();
//! ```
//!
//! **Pages of results.** Go on after the last key that was shown:
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let env = zubilo::Options::new().open(dir.path().join("store")).unwrap();
//! # env.update(|txn| txn.table_or_create("t")?.put("b", "value")).unwrap();
//! use std::ops::Bound;
//!
//! # fn show(env: &zubilo::Env) -> zubilo::Result<()> {
//! # let last = b"a";
//! let read = env.read()?;
//! let after = (Bound::Excluded(&last[..]), Bound::Unbounded);
//! let rest = read.table("t")?.range::<&[u8]>(after);
//! let page: Vec<_> = rest.take(20).collect::<zubilo::Result<_>>()?;
//! assert_eq!(page[0].0, b"b");
//! # Ok(())
//! # }
//! # show(&env).unwrap();
//! ```
//!
//! **A predicate** sees the bytes of the map; nothing is copied:
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let env = zubilo::Options::new().open(dir.path().join("store")).unwrap();
//! # env.update(|txn| txn.table_or_create("t")?.put("b", "value")).unwrap();
//! # fn show(env: &zubilo::Env) -> zubilo::Result<()> {
//! let read = env.read()?;
//! let mut records = read.table("t")?.prefix("b");
//! let long = records.find(|record| record.as_ref().is_ok_and(|(_, value)| value.len() > 4));
//! assert_eq!(long.transpose()?, Some((&b"b"[..], &b"value"[..])));
//! # Ok(())
//! # }
//! # show(&env).unwrap();
//! ```
//!
//! **A part that may fail** runs in a level of its own, [`WriteTxn::nested`]. **Errors of your own** pass through
//! [`Env::try_update`]. **In async code** use [`Env::update_async`] and [`ReadTxn::owned_table`]; a read transaction can
//! be moved between threads. **A backup** of a live store is [`Env::copy_to_path`]. **A long scan** that must not hold pages
//! back for ever: [`ReadTxn::park`]. **All cores**: [`ReadTable::split`], or `par_range` with the feature `rayon`.
//!
//! Programs written for heed, redb, sled or rusqlite find their calls in [`coming_from`].
//!
//! # Features
//! `encryption`: stores whose pages are encrypted, `Options::encryption_key`. `rayon`: scans on a thread pool. `metrics`, `tracing`: counters and spans for these facades. None is on by default.

/// From heed, redb, sled and rusqlite: their calls beside those of this crate.
#[cfg(any(doc, doctest))]
#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

mod crypt;
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
pub use env::prepared::{PreparedId, PreparedInfo};
pub use env::slow::{SlowReader, SlowReaderAction};
pub use error::{Error, Result};
pub use handle::Env;
pub use handle::later::Update;
pub use handle::maintenance::restore;
pub use maintenance::ScrubReport;
pub use maintenance::check::{
    CheckReport, HeldBack, PROBLEMS_MAX, PageKind, PageVisit, Problem, SpaceInfo,
};
pub use maintenance::compact::{CompactOptions, CompactReport};
pub use maintenance::memory::{Residency, WarmUp};
pub use maintenance::salvage::{Salvage, SalvageCount, SalvagedTable};
pub use num::{PageNo, TxnId};
pub use txn::{
    CommitReport, Comparator, Cursor, CursorId, Entry, Iter, KeyOrder, KeyRange, OwnedIter,
    OwnedRecord, OwnedTable, OwnedValue, PackedValues, ParkedCursor, ParkedRead, Prepared,
    PutFlags, ReadGuard, ReadTable, ReadTxn, Reader, ReaderLag, Seek, TableHandle, TableId,
    TableOptions, TableStats, UserWords, ValueIter, ViewTable, WriteCursor, WriteTable, WriteTxn,
    WriteView,
};

#[cfg(feature = "rayon")]
pub use txn::ParRange;

/// Programs that must not compile; see `tests/it/types.rs` for what is asserted at run time.
#[cfg(doctest)]
#[doc = include_str!("../tests/must_not_compile.md")]
struct MustNotCompile;
