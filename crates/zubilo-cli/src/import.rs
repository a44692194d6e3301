//! `zubilo import`: all tables of a data file of LMDB into a new store, in one commit, compared
//! afterwards record by record. LMDB itself is not needed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use lmdb_file::{Error as LmdbError, Flags, LmdbFile, Record, Table};
use serde_json::json;
use zubilo::{Env, KeyOrder, Options, ReadTable, TableOptions, VerifyReads, WriteTxn};

use crate::encoding::{clip, escape};
use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt;
use crate::opening::{PAGE_SIZES, StoreArgs, table_name};
use crate::output::{Progress, count, records, say};

/// Options of `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// LMDB's data file, or the folder with data.mdb. No program may write to it meanwhile
    old: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The table for the records that LMDB keeps in the unnamed database
    #[arg(long, value_name = "TABLE", default_value = "main")]
    main_table: OsString,
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

/// A table of the old file and what it becomes.
struct Move {
    from: Table,
    to: Vec<u8>,
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
    remove(&args.store.store);
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
    let main = table_name(&args.main_table)?;
    let mut moves = Vec::new();
    for from in old.tables().map_err(|error| failed(args, &error))? {
        let to = match &from.name {
            Some(name) => name.clone(),
            None if from.records() == 0 => continue,
            None => main.clone(),
        };
        moves.push(Move { from, to, sorted: true });
    }
    let unnamed = moves.iter().any(|m| m.from.name.is_none());
    if unnamed && moves.iter().any(|m| m.from.name.as_ref() == Some(&main)) {
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
    let env = args.store.make(options)?;
    let progress = Progress::records("importing", total);
    let mut txn = env.write().doing("begin to write")?;
    copy(args, old, moves, &mut txn, &progress)?;
    if !old.is_unchanged().map_err(|error| failed(args, &error))? {
        return Err(changed(args));
    }
    for table in moves.iter().filter(|m| !m.sorted) {
        progress.note(&format!(
            "zubilo: import: the table \"{}\" was in the order of a program's own comparison; here \
             it is in the order that its flags say",
            escape(&table.to)
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
        let what = || format!("import the table \"{}\"", escape(to));
        let flags = from.flags;
        reader.begin(from).map_err(|error| failed(args, &error))?;
        let mut table = txn.create_table(&*to, options(flags)).doing(&what())?;
        let mut is_first = true;
        while reader.next(&mut record).map_err(|error| failed(args, &error))? {
            *sorted &= is_first || in_order(flags, &last, &record);
            let stored = match flags.duplicates() {
                true => table.insert_value(&record.key, &record.value),
                false => table.insert(&record.key, &record.value),
            };
            let is_new = stored.map_err(|error| {
                let key = escape(clip(&record.key)).into_owned();
                Failure::store(format!("{}, key \"{key}\"", what()), &error)
            })?;
            if !is_new {
                let key = escape(clip(&record.key)).into_owned();
                let cause = format!("the key \"{key}\" stands there twice");
                return Err(Failure::new(Code::Damaged, what(), cause).advise(RESTORE));
            }
            std::mem::swap(&mut record, &mut last);
            is_first = false;
            step(&mut done, progress)?;
        }
    }
    Ok(())
}

/// Compares all records, read again from both files; the pages of the new one are checked.
fn verify(
    args: &ImportArgs,
    old: &LmdbFile<File>,
    moves: &[Move],
    progress: &Progress,
) -> Done<()> {
    let env = Options::new().read_only(true).create(false).verify_reads(VerifyReads::FirstTouch);
    let env: Env = env.open(&args.store.store).doing("open the new store")?;
    let read = env.read().doing("read the new store")?;
    let mut reader = old.reader();
    let mut done = 0u64;
    for Move { from, to, sorted } in moves {
        let what = || format!("compare the table \"{}\"", escape(to));
        let table = read.table_with(to, &options(from.flags)).doing(&what())?;
        let mut ours = table.iter();
        let mut record = Record::default();
        let mut theirs = 0u64;
        reader.begin(from).map_err(|error| failed(args, &error))?;
        while reader.next(&mut record).map_err(|error| failed(args, &error))? {
            let same = match sorted {
                true => {
                    ours.next().transpose().doing(&what())? == Some((&record.key, &record.value))
                }
                false => holds(&table, &record).doing(&what())?,
            };
            if !same {
                return Err(differs(&what(), &record.key));
            }
            theirs += 1;
            step(&mut done, progress)?;
        }
        if theirs != table.len() {
            return Err(differs(&what(), b""));
        }
    }
    Ok(())
}

/// Whether a table has a record.
fn holds(table: &ReadTable<'_>, record: &Record) -> zubilo::Result<bool> {
    table.contains(&record.key, &record.value)
}

fn differs(what: &str, key: &[u8]) -> Failure {
    let key = escape(clip(key)).into_owned();
    let cause = format!("the new store differs from the old file at the key \"{key}\"");
    Failure::new(Code::Damaged, what, cause).advise("import again; if it stays so report it")
}

/// Counts a record; a failure when the user has had enough.
fn step(done: &mut u64, progress: &Progress) -> Done<()> {
    *done += 1;
    if done.is_multiple_of(1024) {
        progress.set(*done);
        if interrupt::came() {
            return Err(Failure::new(Code::Other, "import", "interrupted; nothing was kept")
                .advise("import again"));
        }
    }
    Ok(())
}

/// The options of a table with such flags.
fn options(flags: Flags) -> TableOptions {
    let order = |integer, reversed| match (integer, reversed) {
        (true, _) => KeyOrder::Integer,
        (false, true) => KeyOrder::Reversed,
        (false, false) => KeyOrder::Bytes,
    };
    let keys = order(flags.integer_keys(), flags.reverse_keys());
    let options = TableOptions::new().key_order(keys);
    if !flags.duplicates() {
        return options;
    }
    let values = order(flags.integer_values(), flags.reverse_values());
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
        LmdbError::Io { op, source } => Failure::io(format!("{}: {op}", what(args)), source),
        LmdbError::Unsupported(_) => Failure::new(Code::Other, what(args), error.to_string()),
        LmdbError::NotLmdb => Failure::new(Code::Damaged, what(args), error.to_string())
            .advise("name the data file of an LMDB environment, or its folder"),
        _ => Failure::new(Code::Damaged, what(args), error.to_string()).advise(RESTORE),
    }
}

/// Takes away what a failed import has made.
fn remove(store: &Path) {
    let mut lock = store.as_os_str().to_owned();
    lock.push("-lock");
    for path in [store, Path::new(&lock)] {
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => eprintln!("zubilo: import: cannot remove {}: {error}", path.display()),
        }
    }
}
