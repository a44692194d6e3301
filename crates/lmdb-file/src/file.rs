//! A data file: which tables it has and what is fixed about them.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result, damaged};
use crate::layout::{Layout, Tree};
use crate::meta::{self, Meta};
use crate::reader::Reader;
use crate::source::Source;

/// How a table sorts, and how many values a key has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// Keys are compared from their last byte to the first (`MDB_REVERSEKEY`).
    pub fn reverse_keys(self) -> bool {
        self.0 & 0x02 != 0
    }

    /// A key can have many values (`MDB_DUPSORT`).
    pub fn duplicates(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// Keys are native integers (`MDB_INTEGERKEY`).
    pub fn integer_keys(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// All values have one size (`MDB_DUPFIXED`).
    pub fn fixed_values(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Values are native integers (`MDB_INTEGERDUP`).
    pub fn integer_values(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// Values are compared from their last byte to the first (`MDB_REVERSEDUP`).
    pub fn reverse_values(self) -> bool {
        self.0 & 0x40 != 0
    }

    /// As LMDB has them.
    pub fn bits(self) -> u16 {
        self.0
    }
}

/// A table of the file.
#[derive(Clone, Debug)]
pub struct Table {
    /// None for the unnamed one.
    pub name: Option<Vec<u8>>,
    /// What is fixed about it.
    pub flags: Flags,
    pub(crate) tree: Tree,
    /// The page that holds its description.
    pub(crate) named_on: u64,
    /// Entries that are no records but named tables.
    named: u64,
}

impl Table {
    pub(crate) fn new(name: Option<Vec<u8>>, tree: Tree, named_on: u64) -> Table {
        Table { name, flags: Flags(tree.flags), tree, named_on, named: 0 }
    }

    /// Number of records, as the file states it: each value of a key counts.
    pub fn records(&self) -> u64 {
        self.tree.entries.saturating_sub(self.named)
    }
}

/// Facts about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Bytes of a page.
    pub page_size: u32,
    /// Bits of the machine that wrote it: 32 or 64.
    pub bits: u32,
    /// The commit that is read.
    pub txn: u64,
    /// The size of its map, in bytes.
    pub map_size: u64,
    /// The last page in use.
    pub last_page: u64,
    /// One of the two metas is damaged, and with it perhaps the newest commit: the other one is read.
    pub one_meta_damaged: bool,
}

/// An LMDB data file at its newest commit.
///
/// Nothing keeps LMDB from changing the file meanwhile: see [`LmdbFile::is_unchanged`].
pub struct LmdbFile<S = File> {
    source: S,
    meta: Meta,
    one_meta_damaged: bool,
    pages: u64,
}

impl LmdbFile<File> {
    /// Opens the data file at `path`, or the one in the folder there.
    pub fn open(path: impl AsRef<Path>) -> Result<LmdbFile<File>> {
        let path = path.as_ref();
        let failed = |source| Error::Io { op: "open the file", source };
        let path = if std::fs::metadata(path).map_err(failed)?.is_dir() {
            path.join("data.mdb")
        } else {
            path.to_path_buf()
        };
        // To open a pipe would wait for its other end.
        if !std::fs::metadata(&path).map_err(failed)?.is_file() {
            return Err(Error::NotLmdb);
        }
        LmdbFile::new(File::open(path).map_err(failed)?)
    }
}

impl<S: Source> LmdbFile<S> {
    /// Reads the metas.
    pub fn new(source: S) -> Result<LmdbFile<S>> {
        let size = source.size().map_err(|source| Error::Io { op: "get the size", source })?;
        let (meta, one_meta_damaged) = meta::newest(&source, size)?;
        // What lies after the last page is not this commit's.
        let pages = (size / u64::from(meta.page_size)).min(meta.last_page.saturating_add(1));
        Ok(LmdbFile { source, meta, one_meta_damaged, pages })
    }

    /// Facts about the file.
    pub fn info(&self) -> Info {
        Info {
            page_size: self.meta.page_size,
            bits: self.meta.layout.word as u32 * 8,
            txn: self.meta.txn,
            map_size: self.meta.map_size,
            last_page: self.meta.last_page,
            one_meta_damaged: self.one_meta_damaged,
        }
    }

    /// The tables: first the unnamed one, which may have records of its own, then the named ones in
    /// the order of their names.
    pub fn tables(&self) -> Result<Vec<Table>> {
        let named = Reader::new(self).named_tables()?;
        let mut unnamed = self.unnamed();
        unnamed.named = named.len() as u64;
        Ok(std::iter::once(unnamed).chain(named).collect())
    }

    /// A reader of the tables' records.
    pub fn reader(&self) -> Reader<'_, S> {
        Reader::new(self)
    }

    /// Whether the commit that is read is still the newest. As long as it is, nothing that was read
    /// can have been overwritten: a writer uses pages again only two commits after they were freed.
    pub fn is_unchanged(&self) -> Result<bool> {
        let size = self.source.size().map_err(|source| Error::Io { op: "get the size", source })?;
        Ok(meta::newest(&self.source, size)?.0.txn == self.meta.txn)
    }

    pub(crate) fn unnamed(&self) -> Table {
        Table::new(None, self.meta.names, 0)
    }

    pub(crate) fn layout(&self) -> Layout {
        self.meta.layout
    }

    pub(crate) fn page_size(&self) -> usize {
        self.meta.page_size as usize
    }

    /// Pages that can be referred to.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Reads from a page on; what is read must lie inside the file.
    pub(crate) fn read_at(&self, page: u64, offset: u64, into: &mut [u8]) -> Result<()> {
        let start = page.checked_mul(u64::from(self.meta.page_size));
        let start = start.and_then(|start| start.checked_add(offset));
        let start = start.ok_or(damaged(page, "it is named, but lies outside of the file"))?;
        self.source
            .read(start, into)
            .map_err(|source| Error::Io { op: "read from the file", source })
    }
}
