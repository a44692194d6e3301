//! How a command ends: exit codes, and failures as people and programs see them.

use std::fmt;
use std::io;

use serde_json::json;
use zubilo::Error;

use crate::output::to_stderr;

/// Exit codes, as `docs/cli.md` promises them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Done, and there was something.
    Fine = 0,
    /// No such key or table, or nothing matched.
    NotFound = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The store is damaged, or the file is no store.
    Damaged = 3,
    /// Everything else: I/O, busy, full, bad input.
    Other = 4,
    /// Ctrl-C, as shells report it.
    Interrupted = 130,
}

/// What a command gives back.
pub(crate) type Done<T = Code> = Result<T, Failure>;

/// Why a command failed: what it was doing, the cause, what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    what: String,
    cause: String,
    advice: Option<String>,
    /// The reader of standard output is gone.
    pub(crate) pipe: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, what: impl Into<String>, cause: impl Into<String>) -> Failure {
        Failure { code, what: what.into(), cause: cause.into(), advice: None, pipe: false }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(what: impl Into<String>, cause: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, what, cause)
    }

    /// An error of the store, met while doing `what`.
    pub(crate) fn store(what: impl Into<String>, error: &Error) -> Failure {
        let what = what.into();
        let is_named = |table: &Option<Box<[u8]>>| {
            let name = table.as_deref().map(String::from_utf8_lossy);
            name.is_some_and(|name| what.contains(&format!("\"{name}\"")))
        };
        let code = match error {
            Error::NoSuchTable { .. } | Error::NotPrepared => Code::NotFound,
            Error::Corrupted { .. } | Error::NotAStore { .. } => Code::Damaged,
            Error::Stopped => Code::Interrupted,
            _ => Code::Other,
        };
        let pipe = matches!(error, Error::Io { path: None, source, .. }
            if source.kind() == io::ErrorKind::BrokenPipe);
        let advice = match error {
            Error::NoSuchTable { .. } => Some("`zubilo tables` lists them"),
            Error::Io { source, .. } => io_advice(source),
            Error::Corrupted { .. } => Some("run `zubilo chk` for the extent"),
            Error::Stopped => Some("run it again"),
            Error::Prepared { .. } => Some("`zubilo prepared` shows it and decides"),
            Error::KeyTooLong { .. } | Error::ValueTooLong { .. } => {
                Some("shorten it, or use a store with larger pages")
            }
            Error::NotAStore { .. } => Some("name a store"),
            _ => None,
        };
        let cause = match error {
            Error::Stopped => "interrupted".to_string(),
            // Once is enough.
            Error::NoSuchTable { table } if is_named(table) => "no such table".to_string(),
            Error::Incompatible { table, reason } if is_named(table) => (*reason).to_string(),
            // The advice is given apart.
            Error::Corrupted { page, reason } => match reason.starts_with("the file ") {
                // It is about no page.
                true => (*reason).to_string(),
                false => format!("page {page} is damaged: {reason}"),
            },
            other => other.to_string(),
        };
        Failure { pipe, ..Failure::new(code, what, cause) }.maybe_advise(advice)
    }

    /// Writing to standard output failed.
    pub(crate) fn output(error: &io::Error) -> Failure {
        let pipe = error.kind() == io::ErrorKind::BrokenPipe;
        let failure = Failure::new(Code::Other, "write the output", error.to_string());
        Failure { pipe, ..failure }.maybe_advise(io_advice(error))
    }

    /// Another system call failed.
    pub(crate) fn io(what: impl Into<String>, error: &io::Error) -> Failure {
        Failure::new(Code::Other, what, error.to_string()).maybe_advise(io_advice(error))
    }

    /// With what to do about it.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Failure {
        self.advice = Some(advice.into());
        self
    }

    fn maybe_advise(self, advice: Option<&str>) -> Failure {
        match advice {
            Some(advice) => self.advise(advice),
            None => self,
        }
    }

    /// With a further cause behind the first one.
    pub(crate) fn and(mut self, more: &str) -> Failure {
        self.cause = format!("{}; {more}", self.cause);
        self
    }

    /// Reports it on standard error: one line, or one JSON object.
    pub(crate) fn report(&self, as_json: bool) {
        if as_json {
            let error = json!({
                "what": self.what,
                "cause": self.cause,
                "advice": self.advice,
                "code": self.code as u8,
            });
            to_stderr(&json!({ "error": error }).to_string());
        } else {
            to_stderr(&format!("zubilo: {self}"));
        }
    }
}

fn io_advice(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::NotFound => Some("check the path"),
        io::ErrorKind::PermissionDenied => Some("check owner and mode of the file and its folder"),
        io::ErrorKind::StorageFull => Some("free space on the file system"),
        io::ErrorKind::ReadOnlyFilesystem => Some("only reading commands work here"),
        io::ErrorKind::IsADirectory => Some("name a file"),
        io::ErrorKind::AlreadyExists => Some("choose another name or remove the file"),
        _ => None,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)?;
        match &self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// Names what was being done when a call of the store failed.
pub(crate) trait Doing<T> {
    /// `what` as a phrase: "read the table".
    fn doing(self, what: &str) -> Done<T>;
}

impl<T> Doing<T> for zubilo::Result<T> {
    fn doing(self, what: &str) -> Done<T> {
        self.map_err(|error| Failure::store(what, &error))
    }
}
