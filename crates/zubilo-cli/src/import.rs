//! `zubilo import`: all tables of a data file of LMDB into a new store, in one commit, compared
//! afterwards record by record. LMDB itself is not needed.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind::NotFound;
use std::path::PathBuf;

use clap::Args;
use lmdb_file::{Error as LmdbError, Flags, LmdbFile, Record, Table};
use serde_json::json;
use zubilo::raw::{NAMES, RawTable};
use zubilo::{
    Iter, KeyOrder, Options, ReadTable, ReadTxn, TableId, TableOptions, VerifyReads, WriteTxn,
};

use crate::encoding::{clip, escape};
use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt::{self, Unfinished};
use crate::opening::{
    PAGE_SIZES, StoreArgs, data_file, is_store, mode_like, remove_store, table_name, tighten,
};
use crate::output::{Progress, count, records, say};

/// Options of `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// LMDB's data file, or the folder with data.mdb. No program may write to it meanwhile
    old: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Put the records that LMDB keeps in the unnamed database into this table. Without it they stay
    /// without a table, where only programs that use Zubilo as LMDB find them
    #[arg(long, value_name = "TABLE")]
    main_table: Option<OsString>,
    /// Read the file though one of its two metas is damaged; the newest commit may be lost
    #[arg(long)]
    one_meta: bool,
    /// Do not compare afterwards
    #[arg(long)]
    no_verify: bool,
    /// Bytes of a page of the new store
    #[arg(long, value_name = "BYTES",
          value_parser = clap::builder::PossibleValuesParser::new(PAGE_SIZES))]
    page_size: Option<String>,
    /// Changed pages to hold before some are written early, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    memory: u32,
}

/// Where the library that stands in for LMDB keeps the unnamed database: its records lie in the tree of
/// names; if it has flags, in a table with an empty name, and a mark says so.
pub(crate) const NAMELESS: &[u8] = b"";
pub(crate) const IN_NAMELESS: u64 = 1;

/// A table of the old file and what it becomes.
struct Move {
    from: Table,
    /// None for the records that stay without a table.
    to: Option<Vec<u8>>,
    /// Its records came in the order they have here.
    sorted: bool,
}

/// Imports the file.
pub(crate) fn run(args: &ImportArgs) -> Done {
    let old = LmdbFile::open(&args.old).map_err(|error| failed(args, &error))?;
    if old.info().one_meta_damaged && !args.one_meta {
        let cause = "one of its two metas is damaged, and with it perhaps the newest commit";
        return Err(Failure::new(Code::Damaged, what(args), cause)
            .advise("restore it from a copy, or read the other meta's commit with --one-meta"));
    }
    let mut moves = plan(args, &old)?;
    if std::fs::symlink_metadata(&args.store.store).is_ok() {
        let cause = format!("{} exists", args.store.store.display());
        return Err(Failure::new(Code::Other, what(args), cause).advise("name a new file"));
    }
    interrupt::catch()?;
    let done = import(args, &old, &mut moves);
    let Err(failure) = done else { return done };
    remove_store(&args.store.store);
    // What looks like damage, or like a fault of ours, may be another program's work.
    match old.is_unchanged() {
        Ok(false) if !interrupt::came() => Err(changed(args)),
        _ => Err(failure),
    }
}

fn changed(args: &ImportArgs) -> Failure {
    Failure::new(Code::Other, what(args), "a program writes to the file")
        .advise("end the program and import again")
}

/// Which tables there will be.
fn plan(args: &ImportArgs, old: &LmdbFile<File>) -> Done<Vec<Move>> {
    let main = args.main_table.as_ref().map(table_name).transpose()?;
    let mut moves = Vec::new();
    for from in old.tables().map_err(|error| failed(args, &error))? {
        let to = match &from.name {
            Some(name) => Some(name.clone()),
            None if from.records() == 0 => continue,
            None => main.clone().or_else(|| (from.flags.bits() != 0).then(|| NAMELESS.to_vec())),
        };
        moves.push(Move { from, to, sorted: true });
    }
    let unnamed = moves.iter().any(|m| m.from.name.is_none());
    if let Some(main) = main.filter(|_| unnamed)
        && moves.iter().any(|m| m.from.name.as_ref() == Some(&main))
    {
        let cause = format!("it has a table \"{}\" and records without a table", escape(&main));
        return Err(Failure::usage(what(args), cause)
            .advise("name another table for the latter with --main-table"));
    }
    Ok(moves)
}

fn import(args: &ImportArgs, old: &LmdbFile<File>, moves: &mut [Move]) -> Done {
    let mut options = Options::new().dirty_limit(u64::from(args.memory) << 20);
    if let Some(size) = args.page_size.as_ref().and_then(|size| size.parse().ok()) {
        options = options.page_size(size);
    }
    let total: u64 = moves.iter().map(|m| m.from.records()).sum();
    let from = data_file(&args.old).metadata().map_err(|e| Failure::io(what(args), &e))?;
    let env = args.store.make(options.mode(mode_like(&from)))?;
    let lock = Options::default_lock_path(&args.store.store);
    let _unfinished = Unfinished::new([args.store.store.clone(), lock]);
    tighten(&args.store.store, &from)?;
    let progress = Progress::records("importing", total);
    let mut txn = env.write().doing("begin to write")?;
    copy(args, old, moves, &mut txn, &progress)?;
    if !old.is_unchanged().map_err(|error| failed(args, &error))? {
        return Err(changed(args));
    }
    for table in moves.iter().filter(|m| !m.sorted) {
        progress.note(&format!(
            "zubilo: import: {} was in the order of a program's own comparison; here it is in the \
             order that its flags say",
            shown(&table.to)
        ));
    }
    txn.commit().doing("commit")?;
    env.close().doing("close the new store")?;
    drop(progress);
    if !args.no_verify {
        let progress = Progress::records("comparing", total);
        verify(args, old, moves, &progress)?;
    }
    let told = json!({
        "records": total,
        "tables": moves.len(),
        "verified": !args.no_verify,
        "lmdb": { "txn": old.info().txn, "bits": old.info().bits, "page_size": old.info().page_size },
    });
    let tables = moves.len();
    let plural = if tables == 1 { "" } else { "s" };
    let compared = if args.no_verify { "" } else { " and compared" };
    let tables = count(tables as u64);
    say(
        args.store.json,
        &told,
        &format!("{} in {tables} table{plural} imported{compared}", records(total)),
    )?;
    Ok(Code::Fine)
}

/// Copies all records.
fn copy(
    args: &ImportArgs,
    old: &LmdbFile<File>,
    moves: &mut [Move],
    txn: &mut WriteTxn,
    progress: &Progress,
) -> Done<()> {
    let (mut reader, mut record, mut last) = (old.reader(), Record::default(), Record::default());
    let mut done = 0u64;
    for Move { from, to, sorted } in moves {
        let what = format!("import {}", shown(to));
        let flags = from.flags;
        reader.begin(from).map_err(|error| failed(args, &error))?;
        let table = create(txn, to.as_deref(), flags).doing(&what)?;
        let mut is_first = true;
        while reader.next(&mut record).map_err(|error| failed(args, &error))? {
            *sorted &= is_first || in_order(flags, &last, &record);
            let what = || format!("{what}, key \"{}\"", escape(clip(&record.key)));
            let is_new = store(txn, table, flags, &record);
            if !is_new.map_err(|error| Failure::store(what(), &error))? {
                let cause = "the record stands there twice";
                return Err(Failure::new(Code::Damaged, what(), cause).advise(RESTORE));
            }
            std::mem::swap(&mut record, &mut last);
            is_first = false;
            step(&mut done, progress)?;
        }
    }
    Ok(())
}

/// Makes the table for a move; none for records that stay without one.
fn create(
    txn: &mut WriteTxn,
    name: Option<&[u8]>,
    flags: Flags,
) -> zubilo::Result<Option<TableId>> {
    let Some(name) = name else { return Ok(None) };
    if name == NAMELESS {
        txn.raw_set_mark(IN_NAMELESS)?;
    }
    Ok(Some(txn.create_table(name, options(flags))?.id()))
}

fn store(
    txn: &mut WriteTxn,
    table: Option<TableId>,
    flags: Flags,
    record: &Record,
) -> zubilo::Result<bool> {
    let Record { key, value } = record;
    match table {
        None => txn.raw_put(NAMES, key, value, false),
        Some(table) if flags.duplicates() => txn.at(table)?.insert_value(key, value),
        Some(table) => txn.at(table)?.insert(key, value),
    }
}

/// Compares all records, read again from both files; the pages of the new one are checked.
fn verify(
    args: &ImportArgs,
    old: &LmdbFile<File>,
    moves: &[Move],
    progress: &Progress,
) -> Done<()> {
    let env = Options::new().read_only(true).create(false).verify_reads(VerifyReads::FirstTouch);
    let env = env.open(&args.store.store).doing("open the new store")?;
    let read = env.read().doing("read the new store")?;
    let mut reader = old.reader();
    let mut record = Record::default();
    let mut done = 0u64;
    for Move { from, to, sorted } in moves {
        let what = format!("compare {}", shown(to));
        let mut ours = Ours::open(&read, to.as_deref(), from.flags, *sorted).doing(&what)?;
        let mut theirs = 0u64;
        reader.begin(from).map_err(|error| failed(args, &error))?;
        while reader.next(&mut record).map_err(|error| failed(args, &error))? {
            if !ours.has(&record).doing(&what)? {
                return Err(differs(&what, &record.key));
            }
            theirs += 1;
            step(&mut done, progress)?;
        }
        if theirs != ours.len().doing(&what)? {
            return Err(differs(&what, b""));
        }
    }
    Ok(())
}

/// What became of a table.
enum Ours<'t> {
    /// Its records come in the order of the old file.
    InOrder(u64, Box<Iter<'t>>),
    /// They have to be looked up.
    InAnyOrder(ReadTable<'t>),
    /// Records without a table.
    Unnamed(&'t ReadTxn, RawTable),
}

impl<'t> Ours<'t> {
    fn open(
        read: &'t ReadTxn,
        name: Option<&[u8]>,
        flags: Flags,
        sorted: bool,
    ) -> zubilo::Result<Ours<'t>> {
        let Some(name) = name else { return Ok(Ours::Unnamed(read, read.raw_names())) };
        let table = read.table_with(name, &options(flags))?;
        Ok(match sorted {
            true => Ours::InOrder(table.len(), Box::new(table.iter())),
            false => Ours::InAnyOrder(table),
        })
    }

    fn has(&mut self, record: &Record) -> zubilo::Result<bool> {
        let Record { key, value } = record;
        match self {
            Ours::InOrder(_, records) => Ok(records.next().transpose()? == Some((key, value))),
            Ours::InAnyOrder(table) => table.contains(key, value),
            Ours::Unnamed(read, names) => Ok(read.raw_get(names, key)? == Some(value)),
        }
    }

    fn len(&self) -> zubilo::Result<u64> {
        match self {
            Ours::InOrder(records, _) => Ok(*records),
            Ours::InAnyOrder(table) => Ok(table.len()),
            Ours::Unnamed(read, names) => {
                Ok(names.info().stats.entries.saturating_sub(read.tables()?.len() as u64))
            }
        }
    }
}

fn differs(what: &str, key: &[u8]) -> Failure {
    let key = escape(clip(key)).into_owned();
    let cause = format!("the new store differs from the old file at the key \"{key}\"");
    Failure::new(Code::Damaged, what, cause).advise("import again; if it stays so report it")
}

/// A table as it is spoken of.
fn shown(name: &Option<Vec<u8>>) -> String {
    match name {
        Some(name) if name != NAMELESS => format!("the table \"{}\"", escape(name)),
        _ => "the unnamed database".to_string(),
    }
}

/// Counts a record; a failure when the user has had enough.
fn step(done: &mut u64, progress: &Progress) -> Done<()> {
    *done += 1;
    if done.is_multiple_of(1024) {
        progress.set(*done);
        if interrupt::came() {
            return Err(Failure::new(Code::Interrupted, "import", "interrupted; nothing was kept")
                .advise("import again"));
        }
    }
    Ok(())
}

/// The options of a table with such flags.
fn options(flags: Flags) -> TableOptions {
    // Where two orders are named: of keys the first wins in LMDB, of values the second.
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

/// Whether one record comes before another as the flags say.
fn in_order(flags: Flags, a: &Record, b: &Record) -> bool {
    let before = |a: &[u8], b: &[u8], from_the_end: bool| match from_the_end {
        true => a.iter().rev().cmp(b.iter().rev()),
        false => a.cmp(b),
    };
    // Little-endian numbers of one size compare from their last byte.
    let keys = before(&a.key, &b.key, flags.integer_keys() || flags.reverse_keys());
    let values = flags.integer_values() || flags.reverse_values();
    keys.then_with(|| match flags.duplicates() {
        true => before(&a.value, &b.value, values),
        false => std::cmp::Ordering::Equal,
    })
    .is_lt()
}

const RESTORE: &str = "restore the old file from a copy; what can be read of it mdb_dump may tell";

fn what(args: &ImportArgs) -> String {
    format!("import {}", args.old.display())
}

fn failed(args: &ImportArgs, error: &LmdbError) -> Failure {
    match error {
        LmdbError::Io { source, .. } if source.kind() == NotFound && args.old.is_dir() => {
            Failure::new(Code::Other, what(args), "there is no data.mdb in the folder")
                .advise("name LMDB's data file, or the folder with data.mdb")
        }
        LmdbError::Io { op, source } => Failure::io(format!("{}: {op}", what(args)), source),
        LmdbError::Unsupported(_) => Failure::new(Code::Other, what(args), error.to_string()),
        LmdbError::NotLmdb if is_store(&args.old) => {
            let cause = "this is a Zubilo store already";
            Failure::new(Code::Damaged, what(args), cause)
                .advise("`zubilo copy` makes a second one of it")
        }
        LmdbError::NotLmdb => Failure::new(Code::Damaged, what(args), error.to_string())
            .advise("name the data file of an LMDB environment, or its folder"),
        _ => Failure::new(Code::Damaged, what(args), error.to_string()).advise(RESTORE),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use zubilo::Error;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ImportArgs,
    }

    /// Imports a fixture, changes the new store, compares.
    fn compared_after(change: impl FnOnce(&mut WriteTxn) -> Result<(), Error>) -> Done<()> {
        let dir = tempfile::tempdir().unwrap();
        let old = concat!(env!("CARGO_MANIFEST_DIR"), "/../lmdb-file/tests/fixtures/pages2k.mdb");
        let new = dir.path().join("new");
        let Line { args } = Line::parse_from(["import".as_ref(), old.as_ref(), new.as_os_str()]);
        let file = LmdbFile::open(old).unwrap();
        let mut moves = plan(&args, &file)?;
        import(&args, &file, &mut moves)?;
        let env = Options::new().open(&new).unwrap();
        let mut txn = env.write().unwrap();
        change(&mut txn).unwrap();
        txn.commit().unwrap();
        env.close().unwrap();
        // The one that looks records up as well.
        moves.iter_mut().filter(|m| m.from.name.as_deref() == Some(b"numbers")).for_each(|m| {
            m.sorted = false;
        });
        verify(&args, &file, &moves, &Progress::records("comparing", 0))
    }

    #[test]
    fn comparing_finds_every_kind_of_difference() {
        compared_after(|_| Ok(())).unwrap();
        let differs = |change: fn(&mut WriteTxn) -> Result<(), Error>| {
            let failure = compared_after(change).unwrap_err().to_string();
            assert!(failure.contains("differs"), "{failure}");
        };
        differs(|txn| txn.table("plain")?.put("00007", "other"));
        differs(|txn| txn.table("plain")?.delete("00007").map(drop));
        differs(|txn| txn.table("plain")?.put("99999", "more"));
        differs(|txn| txn.table("numbers")?.put([0; 4], "other"));
        differs(|txn| txn.table("numbers")?.put([0xff; 4], "more"));
        differs(|txn| txn.table("packed")?.delete_value("b", 7919u32.to_le_bytes()).map(drop));
        differs(|txn| txn.table("texts")?.insert_value("c", "more").map(drop));
        differs(|txn| txn.raw_put(NAMES, b"unnamed", b"other", true).map(drop));
        differs(|txn| txn.raw_put(NAMES, b"more", b"", true).map(drop));
        differs(|txn| txn.raw_delete(NAMES, b"unnamed").map(drop));
    }
}
