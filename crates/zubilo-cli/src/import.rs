//! `zubilo import`: all tables of a data file of LMDB into a new store, in one commit, compared
//! afterwards record by record. LMDB itself is not needed.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind::NotFound;
use std::path::PathBuf;

use clap::Args;
use lmdb_file::{Error as LmdbError, LmdbFile};
use lmdb_import::{Doing as ImportDoing, Error as ImportError, How, Import, NAMELESS};
use serde_json::json;
use zubilo::{Options, VerifyReads};

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

/// Imports the file.
pub(crate) fn run(args: &ImportArgs) -> Done {
    let old = LmdbFile::open(&args.old).map_err(|error| failed(args, &error))?;
    if old.info().one_meta_damaged && !args.one_meta {
        let cause = "one of its two metas is damaged, and with it perhaps the newest commit";
        return Err(Failure::new(Code::Damaged, what(args), cause)
            .advise("restore it from a copy, or read the other meta's commit with --one-meta"));
    }
    let mut import = plan(args, &old)?;
    if std::fs::symlink_metadata(&args.store.store).is_ok() {
        let cause = format!("{} exists", args.store.store.display());
        return Err(Failure::new(Code::Other, what(args), cause).advise("name a new file"));
    }
    interrupt::catch()?;
    let done = take_over(args, &old, &mut import);
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
fn plan<'f>(args: &ImportArgs, old: &'f LmdbFile<File>) -> Done<Import<'f>> {
    let main_table = args.main_table.as_ref().map(table_name).transpose()?;
    let how = How { main_table: main_table.clone(), keep_orders: false, longest: usize::MAX };
    Import::plan(old, how).map_err(|error| match error {
        ImportError::NameTaken => {
            let main = escape(main_table.as_deref().unwrap_or_default()).into_owned();
            let cause = format!("it has a table \"{main}\" and records without a table");
            Failure::usage(what(args), cause)
                .advise("name another table for the latter with --main-table")
        }
        error => import_failed(args, error),
    })
}

fn take_over(args: &ImportArgs, old: &LmdbFile<File>, import: &mut Import<'_>) -> Done {
    let mut options = Options::new().dirty_limit(u64::from(args.memory) << 20);
    if let Some(size) = args.page_size.as_ref().and_then(|size| size.parse().ok()) {
        options = options.page_size(size);
    }
    let total = import.records();
    let from = data_file(&args.old).metadata().map_err(|e| Failure::io(what(args), &e))?;
    let env = args.store.make(options.mode(mode_like(&from)))?;
    let lock = Options::default_lock_path(&args.store.store);
    let _unfinished = Unfinished::new([args.store.store.clone(), lock]);
    tighten(&args.store.store, &from)?;
    let progress = Progress::records("importing", total);
    let mut txn = env.write().doing("begin to write")?;
    let copied = import.copy(&mut txn, &mut |done| step(done, &progress));
    copied.map_err(|error| import_failed(args, error))?;
    if !old.is_unchanged().map_err(|error| failed(args, &error))? {
        return Err(changed(args));
    }
    for table in import.sorted_anew() {
        progress.note(&format!(
            "zubilo: import: {} was in the order of a program's own comparison; here it is in the \
             order that its flags say",
            shown(table)
        ));
    }
    txn.commit().doing("commit")?;
    env.close().doing("close the new store")?;
    drop(progress);
    if !args.no_verify {
        let progress = Progress::records("comparing", total);
        verify(args, import, &progress)?;
    }
    let summary = json!({
        "records": total,
        "tables": import.tables(),
        "verified": !args.no_verify,
        "lmdb": { "txn": old.info().txn, "bits": old.info().bits, "page_size": old.info().page_size },
    });
    let tables = import.tables();
    let plural = if tables == 1 { "" } else { "s" };
    let compared = if args.no_verify { "" } else { " and compared" };
    let tables = count(tables as u64);
    say(
        args.store.json,
        &summary,
        &format!("{} in {tables} table{plural} imported{compared}", records(total)),
    )?;
    Ok(Code::Fine)
}

/// Compares all records, read again from both files; the pages of the new one are checked.
fn verify(args: &ImportArgs, import: &Import<'_>, progress: &Progress) -> Done<()> {
    let env = Options::new().read_only(true).create(false).verify_reads(VerifyReads::FirstTouch);
    let env = env.open(&args.store.store).doing("open the new store")?;
    let read = env.read().doing("read the new store")?;
    let compared = import.verify(&read, &mut |done| step(done, progress));
    compared.map_err(|error| import_failed(args, error))
}

/// A table as it is spoken of.
fn shown(name: Option<&[u8]>) -> String {
    match name {
        Some(name) if name != NAMELESS => format!("the table \"{}\"", escape(name)),
        _ => "the unnamed database".to_string(),
    }
}

/// Shows how far it is; false when the user has had enough.
fn step(done: u64, progress: &Progress) -> bool {
    progress.set(done);
    !interrupt::came()
}

const RESTORE: &str = "restore the old file from a copy; mdb_dump may show what can still be read";

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

/// The failure of a part of the import.
fn import_failed(args: &ImportArgs, error: ImportError) -> Failure {
    let at = |what: &str, table: Option<&[u8]>, key: &[u8]| {
        format!("{what} {}, key \"{}\"", shown(table), escape(clip(key)))
    };
    match error {
        ImportError::Old(error) => failed(args, &error),
        ImportError::New { doing, table, key, source } => {
            let what = if doing == ImportDoing::Compare { "compare" } else { "import" };
            let table = table.as_deref();
            let what = match key {
                Some(key) => at(what, table, &key),
                None => format!("{what} {}", shown(table)),
            };
            Failure::store(what, &source)
        }
        ImportError::Twice { table, key } => {
            let what = at("import", table.as_deref(), &key);
            Failure::new(Code::Damaged, what, "the record stands there twice").advise(RESTORE)
        }
        ImportError::Differs { table, key } => {
            let what = format!("compare {}", shown(table.as_deref()));
            let key = escape(clip(&key)).into_owned();
            let cause = format!("the new store differs from the old file at the key \"{key}\"");
            Failure::new(Code::Damaged, what, cause)
                .advise("import again; if it stays so report it")
        }
        ImportError::Stopped => {
            Failure::new(Code::Interrupted, "import", "interrupted; nothing was kept")
                .advise("import again")
        }
        error => Failure::new(Code::Other, what(args), error.to_string()),
    }
}
