//! Errors of the engine as exceptions. The classes are Python's, in `zubilo.errors`; here each kind of
//! error finds its class. Nothing else in the crate makes an exception of the package.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};

/// An exception of the class `name` of `zubilo.errors`.
pub(crate) fn raise(name: &str, text: impl Into<String>) -> PyErr {
    let text = text.into();
    Python::attach(|py| match class(py, name) {
        Ok(class) => PyErr::from_type(class, text),
        Err(error) => error,
    })
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("zubilo.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into()?)
}

/// A system call's failure, with its number and file.
fn io(op: &str, path: Option<&std::path::Path>, source: &std::io::Error) -> PyErr {
    let name = match source.kind() {
        std::io::ErrorKind::NotFound => "FileMissingError",
        std::io::ErrorKind::AlreadyExists => "FileInTheWayError",
        std::io::ErrorKind::PermissionDenied => "AccessError",
        std::io::ErrorKind::OutOfMemory => {
            return raise("OutOfMemoryError", format!("cannot {op}: {source}"));
        }
        _ => "IoError",
    };
    let text = format!("cannot {op}: {source}");
    let path = path.map(std::path::Path::to_path_buf);
    Python::attach(|py| match class(py, name) {
        Ok(class) => PyErr::from_type(class, (source.raw_os_error(), text, path)),
        Err(error) => error,
    })
}

/// The exception that an error of the engine becomes.
pub(crate) fn from_engine(error: zubilo::Error) -> PyErr {
    use zubilo::Error as E;
    let name = match &error {
        E::Io { op, path, source } => return io(op, path.as_ref().map(|p| p.as_path()), source),
        E::Corrupted { .. } => "CorruptedError",
        E::NotAStore { .. } => "NotAStoreError",
        E::Version { .. } => "VersionError",
        E::KeyMissing | E::WrongKey | E::NotEncrypted => "EncryptionError",
        E::Invalid(_) | E::NoNestedLevel => "InvalidError",
        E::KeyTooLong { .. } => "KeyTooLongError",
        E::ValueTooLong { .. } => "ValueTooLongError",
        E::ManyValues { .. } => "ManyValuesError",
        E::MapFull { .. } => "MapFullError",
        E::ReadersFull { .. } => "ReadersFullError",
        E::Busy(_) => "BusyError",
        E::Forked => "ForkedError",
        E::Poisoned { .. } => "PoisonedError",
        E::ReadOnly => "ReadOnlyError",
        E::NoSuchTable { .. } => "NoSuchTableError",
        E::TableExists { .. } => "TableExistsError",
        E::Incompatible { .. } => "IncompatibleError",
        E::TxnBroken => "TxnBrokenError",
        E::Stopped => "StoppedError",
        _ => "Error",
    };
    raise(name, error.to_string())
}

/// The exception of a closed `what`.
pub(crate) fn closed(what: &str) -> PyErr {
    raise("ClosedError", format!("the {what} is closed"))
}

/// The exception of a transaction that was begun before a fork.
pub(crate) fn forked() -> PyErr {
    raise(
        "ForkedError",
        "the transaction was begun before a fork; begin one of your own in the child",
    )
}

/// A state that no call leads to.
pub(crate) fn internal(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("zubilo: {what}"))
}

/// Turns the engine's errors into exceptions.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for zubilo::Result<T> {
    #[inline(always)]
    fn or_raise(self) -> PyResult<T> {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(from_engine(error)),
        }
    }
}
