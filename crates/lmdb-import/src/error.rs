//! What can keep a file from being taken over.

use std::fmt;

/// Result of a part of an import.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was done to the new store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Records were stored.
    Import,
    /// Records were compared.
    Compare,
}

/// Why an import failed. Tables are named by what they become; none is the unnamed database.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The old file cannot be read.
    Old(lmdb_file::Error),
    /// The new store refused.
    New {
        /// What was done.
        doing: Doing,
        /// The table.
        table: Option<Vec<u8>>,
        /// The key, where it is about one.
        key: Option<Vec<u8>>,
        /// The cause.
        source: zubilo::Error,
    },
    /// The unnamed database is to become a table that the file has.
    NameTaken,
    /// A record stands twice in the old file.
    Twice {
        /// The table.
        table: Option<Vec<u8>>,
        /// The record's key.
        key: Vec<u8>,
    },
    /// A key, or a value among several, is longer than the caller takes.
    TooLong {
        /// The table.
        table: Option<Vec<u8>>,
        /// The key.
        key: Vec<u8>,
        /// Bytes of it, or of its value.
        len: usize,
        /// Bytes that would do.
        max: usize,
    },
    /// The new store does not hold what the old file does.
    Differs {
        /// The table.
        table: Option<Vec<u8>>,
        /// Where it was noticed.
        key: Vec<u8>,
    },
    /// The caller wanted no more.
    Stopped,
}

impl From<lmdb_file::Error> for Error {
    fn from(error: lmdb_file::Error) -> Error {
        Error::Old(error)
    }
}

/// A table as it is spoken of.
struct Shown<'t>(&'t Option<Vec<u8>>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) if !name.is_empty() => write!(f, "the table \"{}\"", name.escape_ascii()),
            _ => f.write_str("the unnamed database"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Old(error) => error.fmt(f),
            Error::New { table, key: None, source, .. } => write!(f, "{}: {source}", Shown(table)),
            Error::New { table, key: Some(key), source, .. } => {
                write!(f, "{}, key \"{}\": {source}", Shown(table), key.escape_ascii())
            }
            Error::NameTaken => f.write_str("the file has a table of that name already"),
            Error::Twice { table, key } => {
                write!(f, "{} has the record of key \"{}\" twice", Shown(table), key.escape_ascii())
            }
            Error::TooLong { table, key, len, max } => write!(
                f,
                "{}, key \"{}\": the key, or a value of it, has {len} bytes, at most {max} are taken",
                Shown(table),
                key.escape_ascii()
            ),
            Error::Differs { table, key } => write!(
                f,
                "{}: the new store differs from the old file at the key \"{}\"",
                Shown(table),
                key.escape_ascii()
            ),
            Error::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {
    /// What is behind the cause: that one is part of the text already.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Old(error) => error.source(),
            Error::New { source, .. } => source.source(),
            _ => None,
        }
    }
}
