//! What can be wrong with a file.

use std::fmt;
use std::io;

/// Result of reading a file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file, or a part of it, cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    Io {
        /// What was tried, as a phrase.
        op: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The file is no data file of LMDB.
    NotLmdb,
    /// The file is LMDB's, of a kind that is not read here.
    Unsupported(String),
    /// The file holds what LMDB does not write.
    Damaged {
        /// The page concerned.
        page: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A table has another number of records than it says.
    Count {
        /// The table; none for the unnamed one.
        table: Option<Vec<u8>>,
        /// What it says.
        stated: u64,
        /// What was found.
        found: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { op, source } => write!(f, "cannot {op}: {source}"),
            Error::NotLmdb => f.write_str("this is no data file of LMDB"),
            Error::Unsupported(what) => f.write_str(what),
            Error::Damaged { page, reason } => write!(f, "page {page} is damaged: {reason}"),
            Error::Count { table: Some(name), stated, found } => write!(
                f,
                "the table \"{}\" says it has {stated} records, it has {found}",
                name.escape_ascii()
            ),
            Error::Count { table: None, stated, found } => {
                write!(f, "the unnamed table says it has {stated} records, it has {found}")
            }
        }
    }
}

impl std::error::Error for Error {
    /// What is behind the system's error: that one is part of the text already.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => source.source(),
            _ => None,
        }
    }
}

/// Makes an [`Error::Damaged`].
pub(crate) fn damaged(page: u64, reason: &'static str) -> Error {
    Error::Damaged { page, reason }
}
