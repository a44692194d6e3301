//! Errors on their way to Java: a negative number each. Small ones say all there is to say; others are
//! addresses of what [`take`] hands over and frees.

use std::io;

use zubilo::Error;

/// What a call can fail with.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The handle was closed, or never given.
    Closed,
    /// The handle is of another kind, or the place in a table does not exist.
    Foreign,
    /// All handles are taken.
    TooMany,
    /// A bug in the library; the text of the panic.
    Panic(String),
    /// What the engine says.
    Engine(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

/// Kinds of errors, as `zubilo.Failures` in Java knows them.
fn kind(error: &Error) -> (i32, i64, i64) {
    match error {
        Error::Io { source, .. } => {
            let memory = source.kind() == io::ErrorKind::OutOfMemory;
            (if memory { 2 } else { 1 }, source.raw_os_error().unwrap_or(0).into(), 0)
        }
        Error::Corrupted { page, .. } => (3, page.0 as i64, 0),
        Error::NotAStore { .. } => (4, 0, 0),
        Error::Version { found, .. } => (5, (*found).into(), 0),
        Error::Invalid(_) => (6, 0, 0),
        Error::KeyTooLong { len, max } => (7, *len as i64, *max as i64),
        Error::ValueTooLong { len, max } => (8, *len as i64, *max as i64),
        Error::ManyValues { values } => (9, *values as i64, 0),
        Error::MapFull { limit, .. } => (10, *limit as i64, 0),
        Error::ReadersFull { slots, .. } => (11, (*slots).into(), 0),
        Error::Busy(_) => (12, 0, 0),
        Error::Forked => (13, 0, 0),
        Error::Poisoned { .. } => (14, 0, 0),
        Error::ReadOnly => (15, 0, 0),
        Error::NoSuchTable { .. } => (16, 0, 0),
        Error::TableExists { .. } => (17, 0, 0),
        Error::Incompatible { .. } => (18, 0, 0),
        Error::TxnBroken => (19, 0, 0),
        Error::Stopped => (20, 0, 0),
        Error::NoNestedLevel => (22, 0, 0),
        _ => (0, 0, 0),
    }
}

/// The number for the object or the argument that was wrong.
pub(crate) const CLOSED: i64 = -1;
pub(crate) const FOREIGN: i64 = -2;
pub(crate) const TOO_MANY: i64 = -3;
/// Numbers below this are addresses, negated.
const SMALL: i64 = -4096;

/// What [`take`] hands over.
struct Report {
    kind: i32,
    numbers: [i64; 2],
    text: String,
}

impl Failure {
    pub(crate) fn into_number(self) -> i64 {
        let report = match self {
            Failure::Closed => return CLOSED,
            Failure::Foreign => return FOREIGN,
            Failure::TooMany => return TOO_MANY,
            Failure::Panic(text) => Report { kind: 21, numbers: [0; 2], text },
            Failure::Engine(error) => {
                let (kind, a, b) = kind(&error);
                Report { kind, numbers: [a, b], text: error.to_string() }
            }
        };
        -(Box::into_raw(Box::new(report)) as i64)
    }
}

/// Writes kind, two numbers and the text of a failure and frees it; gives the bytes written.
///
/// # Safety
/// `number` came from [`Failure::into_number`] and is taken once.
pub(crate) unsafe fn take(number: i64, out: &mut [u8]) -> i64 {
    if number >= SMALL || out.len() < 24 {
        return 0;
    }
    // SAFETY: the caller's promise; small numbers were sorted out.
    let report = unsafe { Box::from_raw(-number as *mut Report) };
    let mut text = report.text.as_str();
    while text.len() > out.len() - 24 {
        let mut cut = text.len() - 1;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text = &text[..cut];
    }
    out[..8].copy_from_slice(&i64::from(report.kind).to_le_bytes());
    out[8..16].copy_from_slice(&report.numbers[0].to_le_bytes());
    out[16..24].copy_from_slice(&report.numbers[1].to_le_bytes());
    out[24..24 + text.len()].copy_from_slice(text.as_bytes());
    24 + text.len() as i64
}
