//! Typed tables over [Zubilo](zubilo): definitions `Table<K, V>` and `Multimap<K, V>` whose keys and
//! values are Rust types instead of bytes.
//!
//! * Keys keep their order: integers of any width and sign, floats in total order, truth values,
//!   characters, strings, byte strings and arrays, options, tuples of up to six of these, nested too.
//! * Values are these, plain data cast in place (`Aligned`, feature `bytemuck`), and any serde type
//!   (`Postcard`, feature `serde`, on by default).
//! * Strings, byte strings and plain data are read where they lie, as long as the transaction lives.
//! * The types are noted in the store, and a table of other types is refused ([`Error::Types`]).
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("store");
//! use zubilo::Options;
//! use zubilo_typed::{Result, Table};
//!
//! const FRUIT: Table<&str, i32> = Table::new("fruit");
//!
//! fn first_steps(path: &std::path::Path) -> Result<()> {
//!     let env = Options::new().open(path)?;
//!
//!     let mut write = env.write()?;
//!     let mut fruit = FRUIT.open_mut(&mut write)?;
//!     fruit.put("apple", -5)?;
//!     fruit.put("banana", 7)?;
//!     write.commit()?;
//!
//!     let read = env.read()?;
//!     let fruit = FRUIT.open(&read)?;
//!     assert_eq!(fruit.get("apple")?, Some(-5));
//!     let from_b: Vec<(&str, i32)> = fruit.range("b"..).collect::<Result<_>>()?;
//!     assert_eq!(from_b, [("banana", 7)]);
//!     Ok(())
//! }
//! # first_steps(&path).unwrap();
//! ```
//!
//! The parameters of a definition are codecs. For most types the type is its own; `&str` and `&[u8]`
//! stand for strings read in place, `String` and `Vec<u8>` for the same bytes read as copies. Own
//! codecs implement [`Value`], and [`Key`] if they sort.

#![forbid(unsafe_code)]

mod codec;
mod cursor;
mod entry;
mod error;
mod iter;
mod methods;
mod multimap;
mod owned;
mod read;
mod table;
mod write;

#[cfg(feature = "bytemuck")]
pub use codec::Aligned;
#[cfg(feature = "serde")]
pub use codec::Postcard;
pub use codec::{ByteOrdered, Key, Native, Part, Prefix, Reserve, Value};
pub use cursor::{Cursor, WriteCursor};
pub use entry::Entry;
pub use error::{Error, Result};
pub use iter::{Records, Values};
pub use multimap::{ReadMultimap, WriteMultimap};
pub use owned::{OwnedMultimap, OwnedRecords, OwnedTable};
pub use read::ReadTable;
pub use table::{Handle, Multimap, TYPES, Table};
pub use write::WriteTable;

/// Programs that must not compile, on any compiler; `tests/ui` holds those whose messages are checked.
#[cfg(doctest)]
#[doc = include_str!("../tests/must_not_compile.md")]
struct MustNotCompile;
