//! Typed tables over [Zubilo](zubilo): definitions `Table<K, V>` and `Multimap<K, V>` whose keys and
//! values are Rust types instead of bytes.
//!
//! * Keys keep their order: integers of any width and sign, floats in total order, truth values,
//!   characters, strings, byte strings and arrays, options, tuples of up to six of these, nested too.
//! * Values are these, plain data cast in place (`Aligned`, feature `bytemuck`), and any serde type
//!   (`Postcard`, feature `serde`, on by default).
//! * Strings, byte strings and plain data are read where they lie, as long as the transaction lives.
//! * Structs and enums of the program are keys and values by a derive (feature `derive`).
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
//!
//! # Types of your own
//! With the feature `derive`, `#[derive(Key)]` makes a struct or enum a key, and with it a value: stored field by field,
//! in an order that is the one of its derived `Ord`. The first fields, as a tuple, are a [`Prefix`]. `#[derive(Value)]`
//! makes a value, and `#[zubilo(format = "..")]` has to say of which format:
//!
//! * `"fields"`: as a key is stored; fields may be floats, too. Notes the fields' names and types.
//! * `"tuple"`: the same bytes, noted as the tuple that has them, so that a table of such tuples is one of these.
//!   Keys take `"fields"`, unless they say so, and `"tuple"`.
//! * `"postcard"`: by serde, as [`Postcard`] does. Notes the names of fields or variants.
//! * `"aligned"`: plain data read in place, as `Aligned` does. Notes the names of fields.
//!
//! A table whose fields were noted under other names, or in another order, is refused as one of other types is.
//! A variant is stored as its position, so new ones come last.
//!
#![cfg_attr(feature = "derive", doc = "```")]
#![cfg_attr(not(feature = "derive"), doc = "```ignore")]
//! use zubilo_typed::{Key, Table, Value};
//!
//! #[derive(Key, Debug, PartialEq, Eq, PartialOrd, Ord)]
//! struct Place {
//!     country: String,
//!     number: u32,
//! }
//!
//! #[derive(Value)]
//! #[zubilo(format = "fields")]
//! struct City {
//!     people: u64,
//!     area: f64,
//!     name: String,
//! }
//!
//! const CITIES: Table<Place, City> = Table::new("cities");
//!
//! # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
//! let mut txn = env.write()?;
//! let mut cities = CITIES.open_mut(&mut txn)?;
//! let lyon = City { people: 522_250, area: 47.9, name: "Lyon".to_string() };
//! cities.put(&Place { country: "fr".to_string(), number: 2 }, &lyon)?;
//! for record in cities.prefix(("fr",)) {
//!     let (place, city) = record?;
//!     assert_eq!((place.number, city.name.as_str()), (2, "Lyon"));
//! }
//! # Ok(())
//! # }
//! # let dir = tempfile::tempdir().unwrap();
//! # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
//! ```

#![forbid(unsafe_code)]

mod codec;
mod cursor;
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod derive;
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
#[cfg(feature = "derive")]
pub use zubilo_derive::{Key, Value};

/// Programs that must not compile, on any compiler; `tests/ui` holds those whose messages are checked.
#[cfg(doctest)]
#[doc = include_str!("../tests/must_not_compile.md")]
struct MustNotCompile;
