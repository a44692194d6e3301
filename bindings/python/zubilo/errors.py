"""The exceptions of zubilo: a class for each kind, all of them below `Error`.

Where Python has a class of its own for such a case, the exception is one of those too: a missing table
is a `KeyError`, a missing file a `FileNotFoundError`, a closed transaction a `ValueError`. So programs can
catch what they are used to, or `zubilo.Error` for everything.
"""

__all__ = [
    "Error",
    "IoError",
    "FileMissingError",
    "FileInTheWayError",
    "AccessError",
    "OutOfMemoryError",
    "CorruptedError",
    "NotAStoreError",
    "VersionError",
    "EncryptionError",
    "InvalidError",
    "KeyTooLongError",
    "ValueTooLongError",
    "ManyValuesError",
    "MapFullError",
    "ReadersFullError",
    "BusyError",
    "ForkedError",
    "PoisonedError",
    "ReadOnlyError",
    "NoSuchTableError",
    "TableExistsError",
    "IncompatibleError",
    "TxnBrokenError",
    "StoppedError",
    "ClosedError",
    "ThreadError",
    "TypesError",
    "DecodeError",
    "LmdbError",
]


class Error(Exception):
    """Whatever goes wrong in zubilo is an exception of this class."""


class IoError(Error, OSError):
    """A system call failed; `errno` and `filename` say which and where."""


class FileMissingError(IoError, FileNotFoundError):
    """There is no such file or directory."""


class FileInTheWayError(IoError, FileExistsError):
    """A file of this name exists; a copy needs a new name."""


class AccessError(IoError, PermissionError):
    """The permissions of a file or directory do not allow this."""


class OutOfMemoryError(Error, MemoryError):
    """The process gets no more memory. The transaction is as it was before the call, or says that it is broken."""


class CorruptedError(Error):
    """A page of the file is damaged. Run `python -m zubilo chk`, restore from a copy."""


class NotAStoreError(Error, ValueError):
    """The file is not a Zubilo store; it was left as it is."""


class VersionError(Error):
    """A newer version of Zubilo wrote the store."""


class EncryptionError(Error):
    """The store is encrypted and the right key or passphrase was not given; or one was given and it is not encrypted."""


class InvalidError(Error, ValueError):
    """An argument or option cannot be used; the text says why."""


class KeyTooLongError(InvalidError):
    """The key is longer than the page size allows (`Env.max_key_len`)."""


class ValueTooLongError(InvalidError):
    """One of many values under a key is longer than the page size allows."""


class ManyValuesError(Error):
    """The key has several values, and the change does not say which one it means."""


class MapFullError(Error):
    """The store has reached the size it was opened with (`max_size`)."""


class ReadersFullError(Error):
    """All reader slots are taken: end read transactions, or make the store with more `max_readers`."""


class BusyError(Error):
    """Another thread, process or transaction holds what this call needs."""


class ForkedError(Error, RuntimeError):
    """The transaction was begun before a fork: begin one of your own in the child."""


class PoisonedError(Error):
    """A flush to disk failed earlier. Close the store and open it again."""


class ReadOnlyError(Error, TypeError):
    """The store or the transaction was opened for reading only."""


class NoSuchTableError(Error, KeyError):
    """There is no table of this name."""

    __str__ = Exception.__str__


class TableExistsError(Error):
    """A table of this name exists."""


class IncompatibleError(Error, ValueError):
    """The table was made with other options."""


class TxnBrokenError(Error):
    """An earlier error ended the transaction; it can only be aborted."""


class StoppedError(Error):
    """The work was stopped by its `progress` function."""


class ClosedError(Error, ValueError):
    """The store, transaction, cursor or iterator is closed."""


class ThreadError(Error, RuntimeError):
    """A write transaction belongs to the thread that began it."""


class TypesError(Error, TypeError):
    """The table holds keys or values of other types than it is opened with."""


class DecodeError(Error, ValueError):
    """Stored bytes are no value of the table's type."""


class LmdbError(Error):
    """A file of LMDB cannot be read, or is damaged."""
