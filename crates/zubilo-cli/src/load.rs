//! `zubilo load`: records from a stream into tables, in one transaction or in batches.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use zubilo::{Env, Options, TableOptions, WriteTable, WriteTxn};

use crate::encoding::{Encoding, EncodingArgs, TableEncodings, clip, escape};
use crate::failure::{Code, Doing, Done, Failure};
use crate::formats::{
    Bad, CsvReader, CsvShape, Entry, Event, Format, JsonlReader, Reader, Stop, TextReader,
};
use crate::interrupt::{self, Input};
use crate::layout::LayoutArgs;
use crate::opening::{CreateArgs, StoreArgs, TableArg, WriteArgs, one_byte};
use crate::output::{Progress, count, records, say};

/// Options of `load`.
#[derive(Args, Debug)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The input, with - standard input
    #[arg(default_value = "-")]
    input: PathBuf,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    table: TableArg,
    /// The format [default: what the name of the input ends in, else that of mdb_dump]
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// Commit after every N records instead of once at the end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: Option<u64>,
    /// Changed pages to hold before some are written early, in MiB [default: an eighth of memory, 16 MiB
    /// to 4 GiB]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    memory: Option<u32>,
    /// What to do with a key that is in the store already
    #[arg(long, value_enum, default_value = "replace")]
    existing: Existing,
    #[command(flatten)]
    encoding: EncodingArgs,
    /// What separates the columns of CSV
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = one_byte)]
    delimiter: u8,
    /// The first line of CSV is a record: key and value, or table, key and value
    #[arg(long)]
    no_header: bool,
    /// The column of CSV that holds the key
    #[arg(long, value_name = "NAME", default_value = "key")]
    key_column: OsString,
    /// The column of CSV that holds the value [default: value]. Given several times, and where there is no
    /// column value: a JSON object of these columns, or of all but the key
    #[arg(long = "value-column", value_name = "NAME")]
    value_columns: Vec<OsString>,
    #[command(flatten)]
    layout: LayoutArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Existing {
    /// Store the new value
    Replace,
    /// Keep the old value
    Keep,
    /// Stop
    Fail,
}

/// Loads the input.
pub(crate) fn run(args: &LoadArgs) -> Done {
    let default_table = args.table.name()?;
    let (input, total) = open_input(&args.input)?;
    let options = match args.memory {
        Some(mib) => Options::new().dirty_limit(u64::from(mib) << 20),
        None => Options::new(),
    };
    interrupt::catch()?;
    let made = args.store.open_or_create(&args.create, options)?;
    let loaded = load(args, &made.env, input, total, default_table);
    if loaded.is_err() {
        made.discard_if_empty();
    }
    loaded
}

fn load(
    args: &LoadArgs,
    env: &Env,
    input: File,
    total: Option<u64>,
    default_table: Vec<u8>,
) -> Done {
    let progress = Progress::bytes("loading", total);
    let input = Input { inner: input, read: 0, progress: &progress };
    let mut reader = reader(args, env, input, default_table);
    let mut load = Load::new(args, env);
    let done = load.all(reader.as_mut());
    // It holds the store.
    load.txn = None;
    if let Err(failure) = done {
        return Err(failure.and(&interrupt::committed(load.committed)));
    }
    drop(reader);
    drop(progress);
    let summary = json!({
        "records": load.seen,
        "kept": load.kept,
        "tables": load.tables.len(),
        "commits": load.commits,
    });
    let kept = match load.kept {
        0 => String::new(),
        n => format!(", {} kept as they were", count(n)),
    };
    say(args.store.json, &summary, &format!("{} loaded{kept}", records(load.seen)))?;
    Ok(Code::Fine)
}

fn open_input(path: &Path) -> Done<(File, Option<u64>)> {
    if path.as_os_str() == "-" {
        // Not by way of `stdin()`, whose buffer would hide what is left from a poll.
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|e| Failure::io("open standard input", &e))?;
        return Ok((input.into(), None));
    }
    let failed = |e| Failure::io(format!("open {}", path.display()), &e);
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    Ok((file, meta.is_file().then_some(meta.len())))
}

fn reader<'r>(
    args: &LoadArgs,
    env: &Env,
    input: Input<'r>,
    default_table: Vec<u8>,
) -> Box<dyn Reader + 'r> {
    let input = BufReader::with_capacity(256 << 10, input);
    let encodings = |usual| TableEncodings::new(env, args.encoding, args.layout.given(), usual);
    match args.format.unwrap_or_else(|| Format::of_file(&args.input)) {
        Format::Jsonl => {
            Box::new(JsonlReader::new(input, default_table, encodings(Encoding::Escaped)))
        }
        Format::Bytevalue | Format::Print => Box::new(TextReader::new(input, default_table)),
        Format::Csv => {
            let shape = CsvShape {
                encodings: encodings(Encoding::Text),
                delimiter: args.delimiter,
                no_header: args.no_header,
                key_column: args.key_column.clone(),
                value_columns: args.value_columns.clone(),
                default_table,
            };
            Box::new(CsvReader::new(input, shape))
        }
    }
}

/// A load under way.
struct Load<'l> {
    args: &'l LoadArgs,
    env: &'l Env,
    /// What tables are to be that are made.
    new: Option<TableOptions>,
    /// Begun with the first record of a batch.
    txn: Option<WriteTxn>,
    /// Records read.
    seen: u64,
    /// Records of `seen` that are committed.
    committed: u64,
    /// Records that were left as they are in the store.
    kept: u64,
    commits: u64,
    /// Tables met so far.
    tables: BTreeSet<Vec<u8>>,
    /// The one of the last record.
    table: Option<Vec<u8>>,
}

impl<'l> Load<'l> {
    fn new(args: &'l LoadArgs, env: &'l Env) -> Load<'l> {
        Load {
            args,
            env,
            new: args.layout.given(),
            txn: None,
            seen: 0,
            committed: 0,
            kept: 0,
            commits: 0,
            tables: BTreeSet::new(),
            table: None,
        }
    }

    fn all(&mut self, reader: &mut dyn Reader) -> Done<()> {
        let mut entry = Entry::default();
        while let Some(event) = reader.next(&mut entry).map_err(|stop| self.stopped(stop))? {
            if interrupt::came() {
                return Err(interrupted());
            }
            self.take(event, &entry, reader.line())?;
            let full = self.args.batch.is_some_and(|n| self.seen - self.committed >= n);
            if full {
                self.commit()?;
            }
        }
        if interrupt::came() { Err(interrupted()) } else { self.commit() }
    }

    fn take(&mut self, event: Event, entry: &Entry, line: u64) -> Done<()> {
        let args = self.args;
        let what = || {
            let table = escape(&entry.table);
            format!("load {}, line {line}, into the table \"{table}\"", shown_input(args))
        };
        let txn = match &mut self.txn {
            Some(txn) => txn,
            none => none.insert(self.args.write.begin(self.env)?),
        };
        let opened = match (event, &entry.options) {
            (Event::Table, Some(given)) => open_as_given(txn, &entry.table, given),
            _ => match &self.new {
                Some(options) => txn.table_or_create_with(&entry.table, options),
                None => txn.table_or_create(&entry.table),
            },
        };
        let mut table = opened.map_err(|error| Failure::store(what(), &error))?;
        if self.table.as_ref() != Some(&entry.table) {
            self.table = Some(entry.table.clone());
            self.tables.insert(entry.table.clone());
        }
        if event == Event::Table {
            return Ok(());
        }
        let is_new = match self.args.existing {
            Existing::Replace => table.put(&entry.key, &entry.value).map(|()| true),
            // What can be there already is the record, where a key can have many values.
            Existing::Keep | Existing::Fail if table.options().has_duplicates() => {
                table.insert_value(&entry.key, &entry.value)
            }
            Existing::Keep | Existing::Fail => table.insert(&entry.key, &entry.value),
        };
        let is_new = is_new.map_err(|error| Failure::store(what(), &error))?;
        if !is_new && self.args.existing == Existing::Fail {
            let key = escape(clip(&entry.key)).into_owned();
            return Err(Failure::new(Code::Other, what(), format!("the key \"{key}\" exists"))
                .advise("--existing says what to do with such"));
        }
        self.kept += u64::from(!is_new);
        self.seen += 1;
        Ok(())
    }

    fn commit(&mut self) -> Done<()> {
        if let Some(txn) = self.txn.take() {
            txn.commit().doing("commit")?;
            self.commits += 1;
            self.committed = self.seen;
            interrupt::note_committed(self.committed);
        }
        Ok(())
    }

    fn stopped(&self, stop: Stop) -> Failure {
        let input = shown_input(self.args);
        match stop {
            Stop::Bad(Bad { line, cause }) => {
                let what = format!("load {input}, line {line}");
                Failure::new(Code::Other, what, cause).advise("correct the input and load it again")
            }
            Stop::Io(_) if interrupt::came() => interrupted(),
            Stop::Io(error) => Failure::io(format!("read {input}"), &error),
        }
    }
}

/// Opens or makes a table as the input describes it. An existing table keeps what LMDB's dumps cannot express.
fn open_as_given<'t>(
    txn: &'t mut WriteTxn,
    name: &[u8],
    given: &TableOptions,
) -> zubilo::Result<WriteTable<'t>> {
    let mut options = given.clone();
    if let Ok(table) = txn.table(name) {
        let existing = table.options();
        if given.alignment() == 1 {
            options = options.align_values(existing.alignment());
        }
        if existing.is_counted() {
            options = options.counted();
        }
    }
    txn.table_or_create_with(name, &options)
}

/// The input as it is spoken of.
fn shown_input(args: &LoadArgs) -> String {
    match args.input.as_os_str() == "-" {
        true => "standard input".into(),
        false => args.input.display().to_string(),
    }
}

fn interrupted() -> Failure {
    Failure::new(Code::Interrupted, "load", "interrupted").advise("load the input again")
}
