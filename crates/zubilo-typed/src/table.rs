//! Definitions of tables: a name, the types of keys and values, the options that follow from them.
//! The types are noted in the store, in the table [`TYPES`]; a definition opens no table that was
//! made for others.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use zubilo::{KeyOrder, ReadTxn, TableId, TableOptions, WriteTxn};

use crate::codec::{Key, Value};
use crate::error::{Error, Result};
use crate::multimap::{ReadMultimap, WriteMultimap};
use crate::owned::{OwnedMultimap, OwnedTable};
use crate::read::ReadTable;
use crate::write::WriteTable;

/// The table in which the types of all typed tables are noted: names and types as text.
pub const TYPES: &str = "zubilo.types";

/// What definitions of both kinds are made of.
#[derive(Clone)]
struct Definition {
    name: Cow<'static, str>,
    version: &'static str,
    counted: bool,
}

impl Definition {
    const fn new(name: &'static str) -> Definition {
        Definition { name: Cow::Borrowed(name), version: "", counted: false }
    }

    /// The options that do not follow from the types.
    fn options(&self) -> TableOptions {
        let options = TableOptions::new();
        if self.counted { options.counted() } else { options }
    }

    /// The types as they are noted.
    fn types<K: Key, V: Value>(&self, kind: &str) -> String {
        let mut types = format!("{kind}<");
        K::tag(&mut types);
        types.push_str(", ");
        V::tag(&mut types);
        types.push('>');
        if !self.version.is_empty() {
            types.push(' ');
            types.push_str(self.version);
        }
        types
    }

    fn compare(&self, found: Option<&[u8]>, wanted: &str) -> Result<()> {
        if found == Some(wanted.as_bytes()) {
            return Ok(());
        }
        Err(Error::Types {
            table: self.name.to_string(),
            found: found.map(|types| String::from_utf8_lossy(types).into_owned()),
            wanted: wanted.to_string(),
        })
    }

    fn open<'t>(
        &self,
        txn: &'t ReadTxn,
        types: &str,
        options: &TableOptions,
    ) -> Result<zubilo::ReadTable<'t>> {
        let table = txn.table_with(&*self.name, options);
        if !matches!(table, Err(zubilo::Error::NoSuchTable { .. })) {
            let noted = match txn.table(TYPES) {
                Ok(noted) => noted.get(&*self.name)?,
                Err(zubilo::Error::NoSuchTable { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            self.compare(noted, types)?;
        }
        Ok(table?)
    }

    /// Whether there is a table of this name, which then has these types.
    fn check(&self, txn: &mut WriteTxn, types: &str, options: &TableOptions) -> Result<bool> {
        let table = txn.table_with(&*self.name, options).map(drop);
        if matches!(table, Err(zubilo::Error::NoSuchTable { .. })) {
            return Ok(false);
        }
        match txn.table(TYPES) {
            Ok(noted) => self.compare(noted.get(&*self.name)?, types)?,
            Err(zubilo::Error::NoSuchTable { .. }) => self.compare(None, types)?,
            Err(error) => return Err(error.into()),
        }
        table?;
        Ok(true)
    }

    fn open_mut<'t>(
        &self,
        txn: &'t mut WriteTxn,
        types: &str,
        options: &TableOptions,
    ) -> Result<zubilo::WriteTable<'t>> {
        if !self.check(txn, types, options)? {
            // All or nothing: a table without its types could not be opened again.
            txn.try_nested(|txn| -> Result<()> {
                self.note(txn, types)?;
                txn.create_table(&*self.name, options.clone())?;
                Ok(())
            })?;
        }
        Ok(txn.table_with(&*self.name, options)?)
    }

    fn note(&self, txn: &mut WriteTxn, types: &str) -> Result<()> {
        if self.name == TYPES {
            let what = "the name is that of the table of types; choose another";
            return Err(zubilo::Error::Invalid(what).into());
        }
        Ok(txn.table_or_create(TYPES)?.put(&*self.name, types)?)
    }

    fn adopt(&self, txn: &mut WriteTxn, types: &str, options: &TableOptions) -> Result<()> {
        txn.table_with(&*self.name, options)?;
        self.note(txn, types)
    }

    fn drop_table(&self, txn: &mut WriteTxn, types: &str, options: &TableOptions) -> Result<bool> {
        if !self.check(txn, types, options)? {
            return Ok(false);
        }
        txn.try_nested(|txn| -> Result<()> {
            txn.table(TYPES)?.delete(&*self.name)?;
            Ok(txn.drop_table(&*self.name)?)
        })?;
        Ok(true)
    }
}

/// What both kinds of definition have in common.
macro_rules! definition {
    ($name:ident, $value:ident, $kind:literal, $read:ident, $write:ident, $owned:ident) => {
        impl<K: Key, V: $value> $name<K, V> {
            /// The definition of the table `name`.
            pub const fn new(name: &'static str) -> Self {
                $name { definition: Definition::new(name), types: PhantomData }
            }

            /// The same, for a name that is made at run time.
            pub fn named(name: impl Into<String>) -> Self {
                let name = Cow::Owned(name.into());
                let definition = Definition { name, version: "", counted: false };
                $name { definition, types: PhantomData }
            }

            /// Notes a word of the caller's with the types, for what they do not express, such as the
            /// fields of a serde type. A table of another version is refused like one of other types.
            pub const fn version(mut self, version: &'static str) -> Self {
                self.definition.version = version;
                self
            }

            /// Counts the table's records, so that the n-th one, the rank of a key and the number of
            /// records in a range cost a look-up or two; see [`TableOptions::counted`]. A table is
            /// counted or not from its creation on, and the definition must say the same.
            ///
            /// ```
            /// # use zubilo_typed::Table;
            /// const SCORES: Table<u32, &str> = Table::new("scores").counted();
            /// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
            /// let mut txn = env.write()?;
            /// let mut scores = SCORES.open_mut(&mut txn)?;
            /// for (points, name) in [(310, "Ada"), (190, "Bo"), (250, "Cy")] {
            ///     scores.put(points, name)?;
            /// }
            /// assert_eq!(scores.nth(1)?, Some((250, "Cy")));
            /// assert_eq!(scores.rank(300)?, 2);
            /// assert_eq!(scores.range_len(200..)?, 2);
            /// # Ok(())
            /// # }
            /// # let dir = tempfile::tempdir().unwrap();
            /// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
            /// ```
            pub const fn counted(mut self) -> Self {
                self.definition.counted = true;
                self
            }

            /// The table's name.
            pub fn name(&self) -> &str {
                &self.definition.name
            }

            /// The types as they are noted in the store.
            pub fn types(&self) -> String {
                self.definition.types::<K, V>($kind)
            }

            /// Opens the table to read.
            pub fn open<'t>(&self, txn: &'t ReadTxn) -> Result<$read<'t, K, V>> {
                self.definition.open(txn, &self.types(), &self.options()).map($read::new)
            }

            /// Opens the table to read, together with a share of the transaction: to keep it, to send it to
            /// other threads, to hold it across an `await`.
            pub fn open_owned(&self, txn: &Arc<ReadTxn>) -> Result<$owned<K, V>> {
                let (types, options) = (self.types(), self.options());
                self.definition.open(txn, &types, &options)?;
                Ok($owned::new(txn.owned_table_with(self.name(), &options)?))
            }

            /// Opens the table to read and change it, and makes it if there is none.
            pub fn open_mut<'t>(&self, txn: &'t mut WriteTxn) -> Result<$write<'t, K, V>> {
                self.definition.open_mut(txn, &self.types(), &self.options()).map($write::new)
            }

            /// Notes the types of a table that was made through the byte interface, or of another
            /// version. That its records are of these types is the caller's promise; where they are
            /// not, reading gives errors or wrong values.
            pub fn adopt(&self, txn: &mut WriteTxn) -> Result<()> {
                self.definition.adopt(txn, &self.types(), &self.options())
            }

            /// Removes the table with all its records and what is noted about it; returns whether there
            /// was one.
            pub fn drop_table(&self, txn: &mut WriteTxn) -> Result<bool> {
                self.definition.drop_table(txn, &self.types(), &self.options())
            }

            /// As [`Self::open_mut`], to come back to the table in the same transaction without
            /// another look-up: so several tables can be changed by turns.
            pub fn handle(&self, txn: &mut WriteTxn) -> Result<Handle<Self>> {
                let table = self.definition.open_mut(txn, &self.types(), &self.options())?;
                Ok(Handle { id: table.id(), of: PhantomData })
            }
        }

        impl<K, V> Clone for $name<K, V> {
            fn clone(&self) -> Self {
                $name { definition: self.definition.clone(), types: PhantomData }
            }
        }

        /// Name and types.
        impl<K: Key, V: $value> fmt::Debug for $name<K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}: {}", self.name(), self.types())
            }
        }

        impl<K, V> fmt::Debug for $read<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl<K, V> fmt::Debug for $write<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl<K: Key, V: $value> Handle<$name<K, V>> {
            /// The table. The transaction must be the one that gave the handle.
            pub fn at<'t>(&self, txn: &'t mut WriteTxn) -> Result<$write<'t, K, V>> {
                Ok($write::new(txn.at(self.id)?))
            }
        }
    };
}

/// A table with one value under a key.
///
/// ```
/// use zubilo_typed::Table;
///
/// const POPULATION: Table<(&str, &str), u64> = Table::new("population");
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// let mut txn = env.write()?;
/// POPULATION.open_mut(&mut txn)?.put(("fr", "Lyon"), 522_250)?;
/// txn.commit()?;
///
/// let read = env.read()?;
/// let population = POPULATION.open(&read)?;
/// assert_eq!(population.get(("fr", "Lyon"))?, Some(522_250));
/// // The same table without types.
/// assert_eq!(read.table_with("population", &POPULATION.options())?.len(), 1);
/// for record in population.prefix(("fr",)) {
///     let ((_, city), people) = record?;
///     println!("{city}: {people}");
/// }
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct Table<K, V> {
    definition: Definition,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table with many values under a key, sorted and each once.
///
/// ```
/// use zubilo_typed::Multimap;
///
/// const TAGS: Multimap<&str, u32> = Multimap::new("tags");
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// let mut txn = env.write()?;
/// let mut tags = TAGS.open_mut(&mut txn)?;
/// for article in [30, 10, 20] {
///     tags.insert("rust", article)?;
/// }
/// let articles: Vec<u32> = tags.get("rust")?.collect::<Result<_, _>>()?;
/// assert_eq!(articles, [10, 20, 30]);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct Multimap<K, V> {
    definition: Definition,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table that the running write transaction has opened.
///
/// ```
/// use zubilo_typed::{Multimap, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const PEOPLE: Table<u32, &str> = Table::new("people");
/// const BY_NAME: Multimap<&str, u32> = Multimap::new("people by name");
/// let mut txn = env.write()?;
/// let (people, by_name) = (PEOPLE.handle(&mut txn)?, BY_NAME.handle(&mut txn)?);
/// for (id, name) in [(7, "Ada"), (8, "Bo"), (9, "Ada")] {
///     people.at(&mut txn)?.put(id, name)?;
///     by_name.at(&mut txn)?.insert(name, id)?;
/// }
/// assert_eq!(by_name.at(&mut txn)?.count("Ada")?, 2);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub struct Handle<T> {
    id: TableId,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.id).finish()
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// The options the table has, for those who open it through the byte interface.
    pub fn options(&self) -> TableOptions {
        self.definition.options().key_order(K::ORDER).align_values(V::ALIGN)
    }
}

impl<K: Key, V: Key> Multimap<K, V> {
    /// The options the table has, for those who open it through the byte interface.
    pub fn options(&self) -> TableOptions {
        let options = self.definition.options().key_order(K::ORDER).duplicates();
        // Values of one size are packed; of size 0 there is one, so nothing to be gained.
        let options = match V::WIDTH {
            Some(width) if width > 0 => options.fixed_duplicates(),
            _ => options,
        };
        match V::ORDER {
            KeyOrder::Bytes => options,
            order => options.value_order(order),
        }
    }
}

definition!(Table, Value, "table", ReadTable, WriteTable, OwnedTable);
definition!(Multimap, Key, "multimap", ReadMultimap, WriteMultimap, OwnedMultimap);
