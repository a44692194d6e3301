"""Zubilo: an embedded, transactional, ordered key-value store in one file.

A store is opened once and read by any number of threads and processes, which never wait. One transaction at a
time writes, over all processes. Tables are mappings in the order of their keys:

    import zubilo

    with zubilo.open("fruit.zubilo") as env:
        with env.write() as w:                   # commits at the end, aborts on an exception
            fruit = w.table("fruit")             # made if it is not there
            fruit[b"apple"] = b"red"
            fruit.update({b"banana": b"yellow", b"cherry": b"red"})

        with env.read() as r:                    # a snapshot
            fruit = r.table("fruit")
            print(fruit[b"apple"], len(fruit), b"kiwi" in fruit)
            for key, value in fruit.items(b"b"):
                print(key, value)
            print(fruit.get_many([b"apple", b"kiwi"]))
            view = fruit.view(b"apple")          # a memoryview of the map

        env.update(lambda w: w.table("fruit").pop(b"apple"))   # a group commit: threads share the flush

Types: `w.table("scores", key=(str, int), value=float)` keeps keys and values of these types, in their order,
and notes them in the store. `"json"`, `"pickle"` and `zubilo.array(dtype, shape)` are types of values.

Threads: an `Env`, its read transactions and their tables may be used by all threads at once. A write
transaction belongs to the thread that began it.

Processes: an `Env` can be pickled, and works in forked and spawned processes; each opens the store for
itself. Transactions do not travel: begin one in each process.

Memory: values are `bytes`. Memoryviews and arrays lie over the map, without a copy. A memoryview is
released when its transaction ends, so using it later raises `ValueError`. Arrays, and slices of a
memoryview, keep the snapshot until they are gone; nothing ever reads memory that was freed.

Errors: `zubilo.Error` is the base of all; see `zubilo.errors`.
"""

from __future__ import annotations

import atexit as _atexit
import collections.abc as _abc
import os as _os
from collections.abc import Callable as _Callable
from typing import Any as _Any

from . import _zubilo, errors
from ._types import Array, array
from ._zubilo import Cursor, Env, Nested, ReadTxn, Records, Table, WriteTable, WriteTxn, __version__
from .errors import (
    AccessError,
    BusyError,
    ClosedError,
    CorruptedError,
    DecodeError,
    EncryptionError,
    Error,
    FileInTheWayError,
    FileMissingError,
    ForkedError,
    IncompatibleError,
    InvalidError,
    IoError,
    KeyTooLongError,
    LmdbError,
    ManyValuesError,
    MapFullError,
    NoSuchTableError,
    NotAStoreError,
    OutOfMemoryError,
    PoisonedError,
    ReadersFullError,
    ReadOnlyError,
    StoppedError,
    TableExistsError,
    ThreadError,
    TxnBrokenError,
    TypesError,
    ValueTooLongError,
    VersionError,
)

__all__ = [
    "open",
    "import_lmdb",
    "errors",
    "array",
    "Array",
    "Env",
    "ReadTxn",
    "WriteTxn",
    "Nested",
    "Table",
    "WriteTable",
    "Records",
    "Cursor",
    "Error",
    "AccessError",
    "BusyError",
    "ClosedError",
    "CorruptedError",
    "DecodeError",
    "EncryptionError",
    "FileInTheWayError",
    "FileMissingError",
    "ForkedError",
    "IncompatibleError",
    "InvalidError",
    "IoError",
    "KeyTooLongError",
    "LmdbError",
    "ManyValuesError",
    "MapFullError",
    "NoSuchTableError",
    "NotAStoreError",
    "OutOfMemoryError",
    "PoisonedError",
    "ReadersFullError",
    "ReadOnlyError",
    "StoppedError",
    "TableExistsError",
    "ThreadError",
    "TxnBrokenError",
    "TypesError",
    "ValueTooLongError",
    "VersionError",
    "__version__",
]

_atexit.register(_zubilo.at_exit)
_os.register_at_fork(
    before=_zubilo.before_fork,
    after_in_parent=_zubilo.after_fork_in_parent,
    after_in_child=_zubilo.after_fork_in_child,
)

_abc.Mapping.register(Table)
_abc.MutableMapping.register(WriteTable)
_abc.Iterator.register(Cursor)


def open(
    path: str | bytes | _os.PathLike[str] | _os.PathLike[bytes],
    *,
    read_only: bool = False,
    create: bool = True,
    durability: str = "sync",
    page_size: int | None = None,
    max_size: int | None = None,
    max_readers: int | None = None,
    reserve: int | None = None,
    dirty_limit: int | None = None,
    exclusive: bool = False,
    lock_file: bool = True,
    verify: str = "never",
    huge_pages: bool = False,
    read_ahead: bool | None = None,
    mode: int | None = None,
    redo_log: int | None = None,
    key: bytes | None = None,
    passphrase: str | bytes | None = None,
) -> Env:
    """Opens the store at `path`, a file, and makes it if there is none.

    The defaults need no thought; there is no map size to guess.

    read_only: open for reading only. create: make a missing store. durability: what a commit promises when it
    returns: "sync", it is on disk; "lazy", it is in the kernel and on disk within about a second; "nosync", it
    is in the kernel, and on disk after `Env.sync`. The end of the process loses nothing in any of them.
    page_size: of a new store, 4096 to 65536; keys are at most about half a page long. max_size: the file does
    not grow beyond this many bytes. max_readers: read transactions at a time, of all processes (1024).
    reserve: address space for the map (1 TiB), which bounds the file. dirty_limit: memory for changed pages.
    exclusive: keep other processes out. lock_file=False: no lock file, if no other process uses the store.
    verify: when checksums of pages are checked, "never", "first" (touch) or "always". huge_pages, read_ahead:
    advice to the kernel; read_ahead=None decides by the size of the file. mode: permission bits of new files.
    redo_log: small durable commits are appended to a log of this many bytes within the file; 0 takes it away.
    key, 32 bytes, or passphrase: of an encrypted store; a new one becomes encrypted. A pickled `Env` contains them.
    """
    given = {name: value for name, value in locals().items() if name != "path" and value is not None}
    return _zubilo.open_env(path, given)


def _reopen(path: str, arguments: dict[str, _Any]) -> Env:
    """What a pickled handle becomes. The store is there: it is not made anew."""
    return _zubilo.open_env(path, {**arguments, "create": False})


def import_lmdb(
    old: str | _os.PathLike[str],
    new: str | _os.PathLike[str] | None = None,
    *,
    main_table: str | bytes = "main",
    progress: _Callable[[int, int], _Any] | None = None,
) -> int:
    """Takes over all tables of a data file of LMDB into a new store, and gives the number of records.

    `old` is the data file, or the folder with `data.mdb`; no program may write to it meanwhile. `new` must not
    exist; unless it is named it lies beside `old` and is called as that, with `.zubilo` at the end. Named databases become tables of the same names and options; the records of the unnamed one, in
    which LMDB's programs keep theirs unless they use named ones, go into the table `main_table`. Everything is
    stored in one commit and compared afterwards, record by record. `progress(done, total)` is called from time
    to time; if it returns False the import stops with `StoppedError`, and nothing is kept. LMDB is not needed.
    """
    name = main_table.encode() if isinstance(main_table, str) else bytes(main_table)
    if new is None:
        new = _os.fspath(old).rstrip("/") + ".zubilo"
    return _zubilo.import_file(old, new, name, progress)
