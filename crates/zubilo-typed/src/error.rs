//! The error of typed tables: the engine's, or one of the step between types and bytes.

use std::fmt;

/// Result of operations on typed tables.
///
/// ```
/// use zubilo_typed::{Result, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const STOCK: Table<&str, u32> = Table::new("stock");
///
/// fn sell(txn: &mut zubilo::WriteTxn, what: &str) -> Result<bool> {
///     let mut stock = STOCK.open_mut(txn)?;
///     match stock.get(what)? {
///         Some(count) if count > 0 => stock.put(what, count - 1).map(|()| true),
///         _ => Ok(false),
///     }
/// }
/// assert!(!env.try_update(|txn| sell(txn, "nails"))?);
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong.
///
/// ```
/// use zubilo_typed::{Error, Table};
///
/// # fn f(env: &zubilo::Env) -> zubilo_typed::Result<()> {
/// const OLD: Table<&str, u32> = Table::new("stock");
/// const NEW: Table<&str, u64> = Table::new("stock");
/// env.try_update(|txn| OLD.open_mut(txn)?.put("nails", 500))?;
/// match NEW.open(&env.read()?) {
///     Err(Error::Types { found: Some(found), wanted, .. }) => {
///         assert_eq!((found.as_str(), wanted.as_str()), ("table<str, u32>", "table<str, u64>"));
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// # let dir = tempfile::tempdir().unwrap();
/// # f(&zubilo::Options::new().open(dir.path().join("store")).unwrap()).unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The store's own error.
    Store(zubilo::Error),
    /// The table was made for other types than the definition's; it was left as it is.
    Types {
        /// The table.
        table: String,
        /// The types noted when it was made; none if it was made through the byte interface.
        found: Option<String>,
        /// The definition's types.
        wanted: String,
    },
    /// Stored bytes are no value of the type: they were written through the byte interface, or by
    /// another version of the type.
    Decode {
        /// The type, as it is noted in the store.
        ty: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// The value has no encoding.
    Encode(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Store(error) => error.fmt(f),
            Error::Types { table, found: Some(found), wanted } => write!(
                f,
                "the table \"{table}\" is a {found}, not a {wanted}; open it as what it is, or \
                 move its records to a new table"
            ),
            Error::Types { table, found: None, wanted } => write!(
                f,
                "nothing is noted about the types of the table \"{table}\"; if it is a {wanted}, \
                 note it with `adopt`"
            ),
            Error::Decode { ty, reason } => write!(f, "stored bytes are no {ty}: {reason}"),
            Error::Encode(cause) => write!(f, "the value cannot be encoded: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    /// What is behind the cause: the cause itself is part of the text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Store(error) => error.source(),
            Error::Encode(cause) => cause.source(),
            Error::Types { .. } | Error::Decode { .. } => None,
        }
    }
}

impl From<zubilo::Error> for Error {
    fn from(error: zubilo::Error) -> Error {
        Error::Store(error)
    }
}

/// Makes an [`Error::Decode`].
pub(crate) fn bad(ty: &'static str, reason: &'static str) -> Error {
    Error::Decode { ty, reason }
}
