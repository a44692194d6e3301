//! Takes over a data file of LMDB: all its tables, in one commit, compared afterwards.

use std::path::{Path, PathBuf};

use lmdb_file::{Error as LmdbError, Flags, LmdbFile, Record, Table};
use pyo3::prelude::*;
use zubilo::{Durability, KeyOrder, Options, ReadTxn, TableId, TableOptions, WriteTxn};

use crate::errors::{from_engine, raise};
use crate::park;
use crate::progress::Progress;

/// Why an import ended.
enum Failure {
    Store(zubilo::Error),
    Lmdb(LmdbError),
    Named(&'static str, String),
    /// The progress function said so, or raised.
    Stopped,
}

impl From<zubilo::Error> for Failure {
    fn from(error: zubilo::Error) -> Failure {
        Failure::Store(error)
    }
}

impl From<LmdbError> for Failure {
    fn from(error: LmdbError) -> Failure {
        Failure::Lmdb(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Store(error) => from_engine(error),
            Failure::Lmdb(LmdbError::Io { op, source }) => {
                from_engine(zubilo::Error::Io { op, path: None, source })
            }
            Failure::Lmdb(error) => raise("LmdbError", error.to_string()),
            Failure::Named(class, text) => raise(class, text),
            Failure::Stopped => raise("StoppedError", "the import was stopped; nothing was kept"),
        }
    }
}

/// A table of the old file, and its name in the new store.
struct Move {
    from: Table,
    to: Vec<u8>,
}

/// Imports the data file of LMDB at `old`, or in that folder, into a new store at `new`; see
/// `zubilo.import_lmdb`.
#[pyfunction]
pub(crate) fn import_file(
    py: Python<'_>,
    old: PathBuf,
    new: PathBuf,
    main_table: Vec<u8>,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let mut progress = Progress::new(progress);
    let result = park::detach(py, || import(&old, &new, &main_table, &mut progress));
    match progress.into_exception() {
        Some(exception) => Err(exception),
        None => Ok(result?),
    }
}

fn import(old: &Path, new: &Path, main: &[u8], progress: &mut Progress) -> Result<u64, Failure> {
    let file = LmdbFile::open(old)?;
    if file.info().one_meta_damaged {
        let text = "one of the two metas is damaged, and with it perhaps the newest commit; restore the \
                    file from a copy, or use `python -m zubilo import --one-meta`";
        return Err(Failure::Named("LmdbError", text.into()));
    }
    let moves = plan(&file, main)?;
    if std::fs::symlink_metadata(new).is_ok() {
        let error = std::io::Error::from_raw_os_error(libc::EEXIST);
        let path = Some(Box::new(new.to_path_buf()));
        return Err(zubilo::Error::Io {
            op: "import into a file that exists",
            path,
            source: error,
        }
        .into());
    }
    let done = copy(&file, new, &moves, progress);
    if done.is_err() {
        // The error says more than one of the removal could.
        let _ = std::fs::remove_file(new);
        let _ = std::fs::remove_file(Options::default_lock_path(new));
    }
    done
}

fn plan(file: &LmdbFile<std::fs::File>, main: &[u8]) -> Result<Vec<Move>, Failure> {
    let mut moves: Vec<Move> = Vec::new();
    for from in file.tables()? {
        let to = match &from.name {
            Some(name) => name.clone(),
            None if from.records() == 0 => continue,
            None => main.to_vec(),
        };
        moves.push(Move { from, to });
    }
    let clash = moves.iter().any(|m| m.from.name.is_none())
        && moves.iter().any(|m| m.from.name.as_deref() == Some(main));
    if clash {
        let text = "there is a table of this name already; name another main_table";
        return Err(Failure::Named("TableExistsError", text.into()));
    }
    Ok(moves)
}

fn copy(
    file: &LmdbFile<std::fs::File>,
    new: &Path,
    moves: &[Move],
    progress: &mut Progress,
) -> Result<u64, Failure> {
    let total = moves.iter().map(|m| m.from.records()).sum::<u64>().max(1);
    let env = Options::new().durability(Durability::Sync).dirty_limit(64 << 20).open(new)?;
    let mut txn = env.write()?;
    let (mut reader, mut record, mut done) = (file.reader(), Record::default(), 0u64);
    for Move { from, to } in moves {
        reader.begin(from)?;
        let id = txn.create_table(to, options(from.flags))?.id();
        while reader.next(&mut record)? {
            if !store(&mut txn, id, from.flags, &record)? {
                return Err(Failure::Named("LmdbError", "the file has a record twice".into()));
            }
            done += 1;
            // The second half of the work is to compare.
            if done.is_multiple_of(1024) && !progress.step(done / 2, total) {
                return Err(Failure::Stopped);
            }
        }
    }
    if !file.is_unchanged()? {
        let text = "a program writes to the file; end it and import again";
        return Err(Failure::Named("BusyError", text.into()));
    }
    txn.commit()?;
    verify(file, &env.read()?, moves, progress, done, total)?;
    env.close()?;
    Ok(done)
}

fn store(txn: &mut WriteTxn, id: TableId, flags: Flags, record: &Record) -> zubilo::Result<bool> {
    let mut table = txn.at(id)?;
    match flags.duplicates() {
        true => table.insert_value(&record.key, &record.value),
        false => table.insert(&record.key, &record.value),
    }
}

/// Looks up each record of the old file in the new store.
fn verify(
    file: &LmdbFile<std::fs::File>,
    read: &ReadTxn,
    moves: &[Move],
    progress: &mut Progress,
    records: u64,
    total: u64,
) -> Result<(), Failure> {
    let (mut reader, mut record, mut done) = (file.reader(), Record::default(), 0u64);
    for Move { from, to } in moves {
        let table = read.table(to)?;
        let mut count = 0;
        reader.begin(from)?;
        while reader.next(&mut record)? {
            if !table.contains(&record.key, &record.value)? {
                return Err(differs());
            }
            count += 1;
            done += 1;
            if done.is_multiple_of(1024) && !progress.step((records + done) / 2, total) {
                return Err(Failure::Stopped);
            }
        }
        if count != table.len() {
            return Err(differs());
        }
    }
    Ok(())
}

fn differs() -> Failure {
    Failure::Named("LmdbError", "the new store differs from the old file; import again".into())
}

/// The options of a table with such flags.
fn options(flags: Flags) -> TableOptions {
    let keys = match (flags.reverse_keys(), flags.integer_keys()) {
        (true, _) => KeyOrder::Reversed,
        (false, true) => KeyOrder::Integer,
        (false, false) => KeyOrder::Bytes,
    };
    let options = TableOptions::new().key_order(keys);
    if !flags.duplicates() {
        return options;
    }
    let values = match (flags.reverse_values(), flags.integer_values()) {
        (_, true) => KeyOrder::Integer,
        (true, false) => KeyOrder::Reversed,
        (false, false) => KeyOrder::Bytes,
    };
    let options = options.value_order(values);
    if flags.fixed_values() { options.fixed_duplicates() } else { options }
}
