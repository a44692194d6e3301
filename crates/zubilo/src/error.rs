//! The error of the public interface. Each variant says what happened and, in its text, what to
//! do; none of them leaves a transaction or the store in an undefined state.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::num::{PageNo, TxnId};

/// Result of the store's operations.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// fn count(env: &zubilo::Env, table: &str) -> zubilo::Result<u64> {
///     Ok(env.read()?.table(table)?.len())
/// }
/// assert!(count(&env, "missing").is_err());
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong.
///
/// ```
/// use zubilo::Error;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// match env.read()?.table("missing") {
///     Ok(table) => println!("{} records", table.len()),
///     Err(Error::NoSuchTable { .. }) => println!("nothing yet"),
///     Err(error) => return Err(error),
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    Io {
        /// What the store was doing, as a phrase: "write pages".
        op: &'static str,
        /// The file concerned, where one is.
        path: Option<Box<PathBuf>>,
        /// The cause.
        source: io::Error,
    },
    /// A page holds what no writer of this format writes. The rest of the store may be readable:
    /// run `zubilo chk`, restore from a copy.
    Corrupted {
        /// The damaged page.
        page: PageNo,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file is not a Zubilo store; it was left as it is.
    NotAStore {
        /// The file.
        path: Box<PathBuf>,
        /// What it seems to be.
        found: &'static str,
    },
    /// The store was written by a newer format than this library knows.
    Version {
        /// The format version found in the file.
        found: u32,
        /// The file.
        path: Box<PathBuf>,
    },
    /// The store is encrypted: open it with `Options::encryption_key` or `Options::passphrase`, which are there
    /// with the feature `encryption`.
    KeyMissing,
    /// The store is encrypted with another key or passphrase.
    WrongKey,
    /// A key or passphrase was given for a store that is not encrypted. Copy it into one that is.
    NotEncrypted,
    /// The option or argument cannot be used; the text says why.
    Invalid(&'static str),
    /// The key is longer than this page size allows.
    KeyTooLong {
        /// Length given, in bytes.
        len: usize,
        /// Longest key of this store, in bytes.
        max: usize,
    },
    /// A value of a table with many values under a key is longer than this page size allows beside its key.
    ValueTooLong {
        /// Length given, in bytes.
        len: usize,
        /// Longest such value under this key, in bytes.
        max: usize,
    },
    /// The key has several values, and the change does not say which one it means. Name the value.
    ManyValues {
        /// Number of values of the key.
        values: u64,
    },
    /// The store has reached the upper bound of its geometry. Abort, free something or raise the
    /// bound; the store stays usable.
    MapFull {
        /// The upper bound, in bytes.
        limit: u64,
        /// The store.
        path: Box<PathBuf>,
    },
    /// All slots of the reader table are taken. End readers or open with more.
    ReadersFull {
        /// Number of slots.
        slots: u32,
        /// The lock file, which holds the table; none for a store whose table is in memory of this process.
        path: Option<Box<PathBuf>>,
    },
    /// Another process or transaction holds what this call needs, and waiting was not asked for
    /// or would never end.
    Busy(&'static str),
    /// Others have committed since the snapshot that a write transaction was to begin on: read again and
    /// decide anew.
    Outdated {
        /// The snapshot.
        snapshot: TxnId,
        /// The newest commit.
        newest: TxnId,
    },
    /// The read transaction was parked, and others have ended it: begin a new one.
    Expired,
    /// This process was forked after the store was opened: open it again in the child. Handles do so by themselves with
    /// [`Options::reopen_after_fork`](crate::Options::reopen_after_fork); transactions never.
    Forked,
    /// An earlier flush failed, so nothing more can be acknowledged. Close and open the store.
    Poisoned {
        /// The store.
        path: Box<PathBuf>,
    },
    /// The store or transaction was opened for reading only.
    ReadOnly,
    /// No table has this name.
    NoSuchTable {
        /// The name; none where a handle or an identity names a table that was dropped or belongs to another
        /// transaction.
        table: Option<Box<[u8]>>,
    },
    /// A table with this name exists.
    TableExists {
        /// The name.
        table: Box<[u8]>,
    },
    /// The table exists with other options than the ones asked for or the call needs, or the name is taken by a
    /// plain record; the lock file is one of another version.
    Incompatible {
        /// The table, where it is known by its name.
        table: Option<Box<[u8]>>,
        /// What does not fit.
        reason: &'static str,
    },
    /// The transaction was ended by an earlier error and can only be aborted.
    TxnBroken,
    /// No nested level is open, or none that the code which runs may end: levels that were open before a
    /// closure began belong to its caller.
    NoNestedLevel,
    /// A callback asked to stop.
    Stopped,
    /// A transaction is prepared and waits for its decision; nobody writes until it is committed or rolled back:
    /// [`Env::commit_prepared`](crate::Env::commit_prepared), [`Env::roll_back_prepared`](crate::Env::roll_back_prepared).
    Prepared {
        /// The number that it has when it is committed.
        txn: TxnId,
    },
    /// No prepared transaction of this identity waits: somebody has decided about it. [`Env::prepared`](crate::Env::prepared) says
    /// what waits.
    NotPrepared,
    /// Changes that do not go on from this copy: take other ones, or make a full copy anew.
    ForeignChanges {
        /// The commit that the changes go on from.
        since: TxnId,
        /// The commit of the copy, with the changes before these.
        commit: TxnId,
        /// Why they do not fit.
        reason: &'static str,
    },
}

impl Error {
    /// The process gets no more memory.
    pub(crate) fn no_memory(op: &'static str) -> Error {
        Error::Io { op, path: None, source: io::ErrorKind::OutOfMemory.into() }
    }

    /// There is no table of this name.
    #[cold]
    pub(crate) fn no_such_table(name: &[u8]) -> Error {
        Error::NoSuchTable { table: Some(name.into()) }
    }

    /// A handle or an identity leads to no table.
    #[cold]
    pub(crate) fn stale_table() -> Error {
        Error::NoSuchTable { table: None }
    }

    /// A flush of this store has failed.
    #[cold]
    pub(crate) fn poisoned(path: &std::path::Path) -> Error {
        Error::Poisoned { path: Box::new(path.to_path_buf()) }
    }

    /// What cannot be done with a table.
    pub(crate) const fn incompatible(reason: &'static str) -> Error {
        Error::Incompatible { table: None, reason }
    }

    /// The same error with the name of the table, where it has none.
    pub(crate) fn of_table(self, name: &[u8]) -> Error {
        match self {
            Error::Incompatible { table: None, reason } => {
                Error::Incompatible { table: Some(name.into()), reason }
            }
            Error::NoSuchTable { table: None } => Error::no_such_table(name),
            other => other,
        }
    }

    /// The file is of a newer format.
    pub(crate) fn version(found: u32, path: &std::path::Path) -> Error {
        Error::Version { found, path: Box::new(path.to_path_buf()) }
    }

    pub(crate) fn io(op: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { op, path: None, source }
    }

    pub(crate) fn io_at(
        op: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { op, path: Some(Box::new(path.to_path_buf())), source }
    }
}

impl Error {
    /// The same error for another of the threads that shared what failed.
    pub(crate) fn shared(error: &Error) -> Error {
        match error {
            Error::Io { op, path, source } => Error::Io {
                op,
                path: path.clone(),
                source: match source.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::new(source.kind(), source.to_string()),
                },
            },
            Error::Corrupted { page, reason } => Error::Corrupted { page: *page, reason },
            Error::NotAStore { path, found } => Error::NotAStore { path: path.clone(), found },
            Error::Version { found, path } => Error::Version { found: *found, path: path.clone() },
            Error::KeyMissing => Error::KeyMissing,
            Error::WrongKey => Error::WrongKey,
            Error::NotEncrypted => Error::NotEncrypted,
            Error::Invalid(what) => Error::Invalid(what),
            Error::KeyTooLong { len, max } => Error::KeyTooLong { len: *len, max: *max },
            Error::ValueTooLong { len, max } => Error::ValueTooLong { len: *len, max: *max },
            Error::ManyValues { values } => Error::ManyValues { values: *values },
            Error::MapFull { limit, path } => Error::MapFull { limit: *limit, path: path.clone() },
            Error::ReadersFull { slots, path } => {
                Error::ReadersFull { slots: *slots, path: path.clone() }
            }
            Error::Busy(what) => Error::Busy(what),
            Error::Outdated { snapshot, newest } => {
                Error::Outdated { snapshot: *snapshot, newest: *newest }
            }
            Error::Expired => Error::Expired,
            Error::Forked => Error::Forked,
            Error::Poisoned { path } => Error::Poisoned { path: path.clone() },
            Error::ReadOnly => Error::ReadOnly,
            Error::NoSuchTable { table } => Error::NoSuchTable { table: table.clone() },
            Error::TableExists { table } => Error::TableExists { table: table.clone() },
            Error::Incompatible { table, reason } => {
                Error::Incompatible { table: table.clone(), reason }
            }
            Error::TxnBroken => Error::TxnBroken,
            Error::NoNestedLevel => Error::NoNestedLevel,
            Error::Stopped => Error::Stopped,
            Error::Prepared { txn } => Error::Prepared { txn: *txn },
            Error::NotPrepared => Error::NotPrepared,
            Error::ForeignChanges { since, commit, reason } => {
                Error::ForeignChanges { since: *since, commit: *commit, reason }
            }
        }
    }
}

/// A name as text, in quotes; what is not UTF-8 or not to be printed is escaped.
struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(name) => write!(f, "{name:?}"),
            Err(_) => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

fn readers_full(f: &mut fmt::Formatter<'_>, slots: u32, path: Option<&PathBuf>) -> fmt::Result {
    write!(f, "all {slots} reader slots ")?;
    if let Some(path) = path {
        write!(f, "of {} ", path.display())?;
    }
    f.write_str("are taken; end readers or open with more slots")
}

fn no_such_table(f: &mut fmt::Formatter<'_>, table: Option<&[u8]>) -> fmt::Result {
    match table {
        Some(table) => write!(f, "no such table: {}", Quoted(table)),
        None => f.write_str(
            "no such table: it was dropped, or it is one of another transaction; open it by its name",
        ),
    }
}

/// What is wrong with the key of a store.
fn of_key(error: &Error) -> &'static str {
    match error {
        Error::KeyMissing => "the store is encrypted; open it with its key or passphrase",
        Error::NotEncrypted => {
            "a key was given, and the store is not encrypted; copy it into a store that is"
        }
        _ => "the store is encrypted with another key or passphrase",
    }
}

/// What keeps a transaction, or a store as it was opened, from doing what was asked.
fn of_state(error: &Error) -> &'static str {
    match error {
        Error::TxnBroken => "an earlier error ended the transaction; abort it",
        Error::NoNestedLevel => {
            "no nested level is open that was begun here; end only what you began"
        }
        Error::Expired => "the read transaction was expired while it was parked; begin a new one",
        Error::Forked => "the store was opened before a fork; open it again",
        Error::ReadOnly => "opened for reading only",
        Error::NotPrepared => {
            "no such prepared transaction waits: it was committed or rolled back; see Env::prepared"
        }
        _ => "stopped by the callback",
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { op, path: Some(path), source } => {
                write!(f, "cannot {op} ({}): {source}", path.display())
            }
            Error::Io { op, path: None, source } => write!(f, "cannot {op}: {source}"),
            Error::Corrupted { page, reason } => {
                write!(f, "page {page} is damaged: {reason}; run `zubilo chk` for the extent")
            }
            Error::NotAStore { path, found } => write!(
                f,
                "{} is not a Zubilo store ({found}); it was left as it is",
                path.display()
            ),
            Error::Version { found, path } => write!(
                f,
                "{}: format version {found} is newer than this library; upgrade it",
                path.display()
            ),
            Error::KeyMissing | Error::WrongKey | Error::NotEncrypted => f.write_str(of_key(self)),
            Error::Invalid(what)
            | Error::Busy(what)
            | Error::Incompatible { table: None, reason: what } => f.write_str(what),
            Error::KeyTooLong { len, max } => {
                write!(f, "a key of {len} bytes is too long; this page size allows {max}")
            }
            Error::ValueTooLong { len, max } => write!(
                f,
                "a value of {len} bytes is too long where keys have many values; this page size allows {max} beside this key"
            ),
            Error::ManyValues { values } => {
                write!(f, "the key has {values} values; name the one that is meant")
            }
            Error::MapFull { limit, path } => write!(
                f,
                "{} has reached its upper bound of {limit} bytes; raise it or free space",
                path.display()
            ),
            Error::ReadersFull { slots, path } => readers_full(f, *slots, path.as_deref()),
            Error::Outdated { snapshot, newest } => write!(
                f,
                "commit {snapshot} is no longer the newest, {newest} is; read it and decide anew"
            ),
            Error::Poisoned { path } => write!(
                f,
                "{}: a flush failed earlier, nothing more is acknowledged; reopen the store",
                path.display()
            ),
            Error::NoSuchTable { table } => no_such_table(f, table.as_deref()),
            Error::TableExists { table } => write!(f, "the table exists: {}", Quoted(table)),
            Error::Incompatible { table: Some(table), reason } => {
                write!(f, "table {}: {reason}", Quoted(table))
            }
            Error::TxnBroken
            | Error::NoNestedLevel
            | Error::Expired
            | Error::Stopped
            | Error::Forked
            | Error::ReadOnly
            | Error::NotPrepared => f.write_str(of_state(self)),
            Error::Prepared { txn } => write!(
                f,
                "transaction {txn} is prepared and waits for its decision; commit it or roll it back"
            ),
            Error::ForeignChanges { since, commit, reason } => write!(
                f,
                "changes since commit {since} do not fit a copy of commit {commit}: {reason}; make a full copy anew"
            ),
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
