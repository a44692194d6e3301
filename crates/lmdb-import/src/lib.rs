//! Takes the tables of an LMDB data file over into a Zubilo store, and compares both record by record.
//! The command `zubilo import` and the conversion of the drop-in library are made of it.
//!
//! * A table gets the orders that its flags name. LMDB does not store that a program has an order of its
//!   own; the records show it where they are out of the order of the flags. The caller says what becomes
//!   of such a table ([`How::keep_orders`]).
//! * Records of the unnamed database stay without a table, in the tree of names, where the drop-in looks
//!   for them. If that database has flags, or an order that is kept, they go into a table with an empty
//!   name, and the counter of the tree of names says so.
//! * Nothing is committed here.

#![forbid(unsafe_code)]

mod compare;
mod error;
mod order;

use std::fs::File;

use lmdb_file::{Flags, LmdbFile, Reader, Record, Table};
use zubilo::WriteTxn;
use zubilo::raw::TableRef;

pub use self::error::{Doing, Error, Result};
use self::order::{Watch, options};

/// Name of the table that holds the records of the unnamed database, where that has flags or an order.
pub const NAMELESS: &[u8] = b"";
/// The counter that says so.
pub const IN_NAMELESS: u64 = 1;

/// What may differ from one import to the next.
#[derive(Clone, Debug)]
pub struct How {
    /// The table for records of the unnamed database.
    pub main_table: Option<Vec<u8>>,
    /// A table whose records are not in the order of its flags keeps the order that they have, as that of
    /// a program's function; else it is sorted as its flags say.
    pub keep_orders: bool,
    /// Bytes of the longest key, and of the longest value among several, that is taken.
    pub longest: usize,
}

/// Which orders of a table are a program's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Own {
    keys: bool,
    values: bool,
}

/// A table of the old file and what it becomes.
struct Move {
    from: Table,
    /// None for the records that stay without a table.
    to: Option<Vec<u8>>,
    /// Orders that are kept.
    own: Own,
    /// Its records came in the order they have here.
    sorted: bool,
}

/// Called with the number of records done; false stops.
pub type Step<'s> = &'s mut dyn FnMut(u64) -> bool;

/// An import of a file, from the plan to the comparison.
pub struct Import<'f> {
    old: &'f LmdbFile<File>,
    how: How,
    moves: Vec<Move>,
}

impl<'f> Import<'f> {
    /// Finds out which tables there will be.
    pub fn plan(old: &'f LmdbFile<File>, how: How) -> Result<Import<'f>> {
        let mut moves = Vec::new();
        for from in old.tables()? {
            let flagged = || (from.flags.bits() != 0).then(|| NAMELESS.to_vec());
            let to = match &from.name {
                Some(name) => Some(name.clone()),
                None if from.records() == 0 && from.flags.bits() == 0 => continue,
                None => how.main_table.clone().or_else(flagged),
            };
            moves.push(Move { from, to, own: Own::default(), sorted: true });
        }
        let unnamed = moves.iter().any(|m| m.from.name.is_none());
        if let Some(main) = how.main_table.as_ref().filter(|_| unnamed)
            && moves.iter().any(|m| m.from.name.as_ref() == Some(main))
        {
            return Err(Error::NameTaken);
        }
        Ok(Import { old, how, moves })
    }

    /// Number of records that the file claims.
    pub fn records(&self) -> u64 {
        self.moves.iter().map(|m| m.from.records()).sum()
    }

    /// Number of tables.
    pub fn tables(&self) -> usize {
        self.moves.len()
    }

    /// After the copy: tables that were not in the order of their flags and are now, by what they have
    /// become; none for the unnamed database.
    pub fn sorted_anew(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let anew = self.moves.iter().filter(|m| !m.sorted && m.own == Own::default());
        anew.map(|m| m.to.as_deref().filter(|name| *name != NAMELESS))
    }

    /// Copies all records into an empty store.
    pub fn copy(&mut self, txn: &mut WriteTxn, step: Step<'_>) -> Result<()> {
        let mut reader = self.old.reader();
        let mut counter = Counter { done: 0, step };
        let Import { old, how, moves } = self;
        moves.iter_mut().try_for_each(|m| m.copy(old, how, &mut reader, txn, &mut counter))
    }
}

struct Counter<'s> {
    done: u64,
    step: Step<'s>,
}

impl Counter<'_> {
    fn count(&mut self) -> Result<()> {
        self.done += 1;
        match self.done.is_multiple_of(1024) && !(self.step)(self.done) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}

impl Move {
    fn copy<'f>(
        &mut self,
        old: &'f LmdbFile<File>,
        how: &How,
        reader: &mut Reader<'f, File>,
        txn: &mut WriteTxn,
        counter: &mut Counter<'_>,
    ) -> Result<()> {
        let (mut record, mut watch, before) =
            (Record::default(), Watch::new(self.from.flags), counter.done);
        let mut own = Own::default();
        reader.begin(&self.from)?;
        let table = self.create(txn)?;
        while reader.next(&mut record)? {
            self.check_len(how, &record)?;
            watch.look(&mut record);
            let record = watch.last();
            if how.keep_orders {
                own = watch.own();
            }
            // Out of order: the rest is only looked at.
            if own == Own::default() {
                self.store(txn, table, record)?;
                counter.count()?;
            }
        }
        self.sorted = watch.is_sorted();
        if own == Own::default() {
            return Ok(());
        }
        self.remove(txn, table)?;
        counter.done = before;
        self.own = own;
        self.to.get_or_insert(NAMELESS.to_vec());
        let table = self.create(txn)?;
        // A reader goes to each page once.
        let mut again = old.reader();
        again.begin(&self.from)?;
        while again.next(&mut record)? {
            self.store(txn, table, &record)?;
            counter.count()?;
        }
        Ok(())
    }

    fn flags(&self) -> Flags {
        self.from.flags
    }

    /// Makes the table; its number.
    fn create(&self, txn: &mut WriteTxn) -> Result<TableRef> {
        let Some(name) = &self.to else { return Ok(TableRef::CATALOGUE) };
        let created = (|| {
            if name == NAMELESS {
                txn.raw_set_counter(IN_NAMELESS)?;
            }
            txn.raw_create(name, &options(self.flags(), self.own))
        })();
        created.map_err(|source| self.failed(Doing::Import, None, source))
    }

    /// Undoes `create` and what was stored since.
    fn remove(&self, txn: &mut WriteTxn, table: TableRef) -> Result<()> {
        let removed = match &self.to {
            Some(name) => txn.raw_drop(name),
            // The unnamed database comes first, so there are no tables yet that could go with it.
            None => txn.raw_clear(table),
        };
        removed.map_err(|source| self.failed(Doing::Import, None, source))
    }

    fn store(&self, txn: &mut WriteTxn, table: TableRef, record: &Record) -> Result<()> {
        let Record { key, value } = record;
        let stored = match self.flags().duplicates() {
            true => txn.raw_put_value(table, key, value),
            false => txn.raw_put(table, key, value, false),
        };
        match stored {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Twice { table: self.to.clone(), key: key.clone() }),
            Err(source) => Err(self.failed(Doing::Import, Some(key), source)),
        }
    }

    fn check_len(&self, how: &How, record: &Record) -> Result<()> {
        let Record { key, value } = record;
        let value = if self.flags().duplicates() { value.len() } else { 0 };
        let len = key.len().max(value);
        if len <= how.longest {
            return Ok(());
        }
        Err(Error::TooLong { table: self.to.clone(), key: key.clone(), len, max: how.longest })
    }

    fn failed(&self, doing: Doing, key: Option<&[u8]>, source: zubilo::Error) -> Error {
        Error::New { doing, table: self.to.clone(), key: key.map(<[u8]>::to_vec), source }
    }
}
