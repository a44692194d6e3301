//! `zubilo export`: tables as a dump that LMDB's own `mdb_load` reads. What LMDB cannot hold is refused,
//! where `zubilo dump` would write it.

use std::ffi::OsString;

use clap::Args;
use lmdb_import::{IN_NAMELESS, NAMELESS};
use zubilo::{KeyOrder, ReadTable, ReadTxn, TableOptions};

use crate::encoding::{clip, escape};
use crate::failure::{Code, Doing, Done, Failure};
use crate::formats::{Store, TextWriter, Writer};
use crate::opening::{ReadArgs, table_name};
use crate::output::{Out, Progress, to_stderr};
use crate::tables::NO_TABLES;

/// Options of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// Only this table; may be repeated
    #[arg(short, long = "table", value_name = "TABLE")]
    tables: Vec<OsString>,
    /// The table that becomes the unnamed database
    #[arg(long, value_name = "TABLE")]
    main_table: Option<OsString>,
    /// Printable characters as they are, as mdb_dump -p writes them
    #[arg(short, long)]
    print: bool,
}

/// LMDB's longest key, and value among many, as it is compiled by default.
const KEY_MAX: usize = 511;

/// Exports the tables; exit code 1 if there is nothing.
pub(crate) fn run(args: &ExportArgs) -> Done {
    let env = args.store.open_to_read_verified()?;
    let read = env.read().doing("begin to read")?;
    let tables = choose(args, &read)?;
    let info = env.info().doing("read the figures")?;
    let store = Store { used_bytes: info.used_len, max_readers: info.max_readers };
    let writer = TextWriter::new(Out::new(), args.print, store);
    let mut export = Export {
        writer: writer.for_lmdb(UNNAMED),
        progress: Progress::records("exporting", tables.iter().map(|t| t.records).sum()),
        done: 0,
    };
    for table in &tables {
        export.table(&read, table)?;
    }
    Box::new(export.writer).finish()?;
    if tables.is_empty() && !args.store.json {
        to_stderr(NO_TABLES);
    }
    Ok(if tables.is_empty() { Code::NotFound } else { Code::Fine })
}

/// A name that no exported table has.
const UNNAMED: &[u8] = b"";

/// A part of the dump.
struct Part<'t> {
    name: Vec<u8>,
    /// None for records without a table.
    table: Option<ReadTable<'t>>,
    records: u64,
}

impl Part<'_> {
    fn what(&self) -> String {
        match self.name.as_slice() {
            UNNAMED => "export the unnamed database".to_string(),
            name => format!("export the table \"{}\"", escape(name)),
        }
    }
}

/// What is to be exported, the unnamed database first; an error if LMDB could not have it so.
fn choose<'t>(args: &ExportArgs, read: &'t ReadTxn) -> Done<Vec<Part<'t>>> {
    let all = args.tables.is_empty();
    let main = args.main_table.as_ref().map(table_name).transpose()?;
    let stored = read.tables().doing("list the tables")?;
    let in_nameless = read.raw_counter() == IN_NAMELESS;
    let plain = read.raw_names().info().stats.entries.saturating_sub(stored.len() as u64);
    let mut names = match all {
        true => stored,
        false => args.tables.iter().map(table_name).collect::<Done<Vec<_>>>()?,
    };
    names.extend(main.clone().filter(|main| !names.contains(main)));
    let mut parts = Vec::new();
    for name in names {
        let what = format!("export the table \"{}\"", escape(&name));
        let table = read.table(&name).doing(&what)?;
        let unnamed = Some(&name) == main.as_ref() || in_nameless && name == NAMELESS;
        let bad = name.is_empty() || name.iter().any(|byte| matches!(byte, 0 | b'\n' | b'\r'));
        if bad && !unnamed {
            return Err(Failure::new(Code::Other, what, "LMDB's tools have no such names")
                .advise("leave it out with -t, or use `zubilo dump`"));
        }
        let records = table.len();
        let name = if unnamed { UNNAMED.to_vec() } else { name };
        parts.push(Part { name, table: Some(table), records });
    }
    if all && plain > 0 {
        parts.push(Part { name: UNNAMED.to_vec(), table: None, records: plain });
    }
    parts.sort_by(|a, b| a.name.cmp(&b.name));
    check_unnamed(&parts)?;
    Ok(parts)
}

/// LMDB keeps the names of tables among the records of the unnamed database: what follows from that.
fn check_unnamed(parts: &[Part<'_>]) -> Done<()> {
    let (unnamed, named): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.name == UNNAMED);
    let refused = |cause: String| {
        let failure = Failure::new(Code::Other, "export the unnamed database", cause);
        Err(failure.advise("leave out --main-table, or choose tables with -t"))
    };
    if unnamed.len() > 1 {
        return refused("the store has records without a table already".into());
    }
    let Some(table) = unnamed.first().and_then(|part| part.table.as_ref()) else { return Ok(()) };
    let options = table.options();
    if !named.is_empty() && (options.keys() != KeyOrder::Bytes || options.has_duplicates()) {
        return refused("it has an order or many values under a key, and there are tables".into());
    }
    for part in named {
        if table.get(&part.name).doing("export the unnamed database")?.is_some() {
            let name = escape(&part.name);
            return refused(format!("it has a key with the name of the table \"{name}\""));
        }
    }
    Ok(())
}

/// An export under way.
struct Export {
    writer: TextWriter,
    progress: Progress,
    done: u64,
}

impl Export {
    fn table(&mut self, read: &ReadTxn, part: &Part<'_>) -> Done<()> {
        let what = part.what();
        let Some(table) = &part.table else {
            self.writer.table(&part.name, &TableOptions::new())?;
            let mut stopped = None;
            let walked = read.raw_records(|key, value| -> zubilo::Result<()> {
                self.record(&what, false, key, value).map_err(|failure| {
                    stopped = Some(failure);
                    zubilo::Error::Stopped
                })
            });
            if let Some(failure) = stopped {
                return Err(failure);
            }
            walked.doing(&what)?;
            return self.writer.table_end();
        };
        let options = table.options();
        self.writer.table(&part.name, &options)?;
        for record in table.iter() {
            let (key, value) = record.doing(&what)?;
            self.record(&what, options.has_duplicates(), key, value)?;
        }
        self.writer.table_end()
    }

    fn record(&mut self, what: &str, many: bool, key: &[u8], value: &[u8]) -> Done<()> {
        let too_long = key.len() > KEY_MAX || many && value.len() > KEY_MAX;
        if key.is_empty() || too_long {
            let key = escape(clip(key)).into_owned();
            let cause = format!(
                "LMDB has no empty keys, and no keys and values among many of more than {KEY_MAX} \
                 bytes: key \"{key}\""
            );
            return Err(Failure::new(Code::Other, what, cause)
                .advise("leave the table out with -t, or use `zubilo dump`"));
        }
        self.writer.record(key, value)?;
        self.done += 1;
        if self.done.is_multiple_of(1024) {
            self.progress.set(self.done);
        }
        Ok(())
    }
}
