//! `zubilo export`: tables as a dump that LMDB's own `mdb_load` reads. What LMDB cannot hold is refused,
//! where `zubilo dump` would write it.

use std::ffi::OsString;

use clap::Args;
use zubilo::{KeyOrder, ReadTable, ReadTxn};

use crate::encoding::{clip, escape};
use crate::failure::{Code, Doing, Done, Failure};
use crate::formats::{Store, TextWriter, Writer};
use crate::opening::{ReadArgs, table_name};
use crate::output::{Out, Progress};

/// Options of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// Only this table; may be repeated
    #[arg(short, long = "table", value_name = "TABLE")]
    tables: Vec<OsString>,
    /// The table that becomes the unnamed database
    #[arg(long, value_name = "TABLE", default_value = "main", conflicts_with = "all_named")]
    main_table: OsString,
    /// All tables keep their names
    #[arg(long)]
    all_named: bool,
    /// Printable characters as they are, as mdb_dump -p writes them
    #[arg(short, long)]
    print: bool,
}

/// LMDB's longest key, and value among many, as it is compiled by default.
const KEY_MAX: usize = 511;

/// Exports the tables; exit code 1 if there is none.
pub(crate) fn run(args: &ExportArgs) -> Done {
    let env = args.store.open_to_read_verified()?;
    let read = env.read().doing("begin to read")?;
    let names = match args.tables.is_empty() {
        true => read.tables().doing("list the tables")?,
        false => args.tables.iter().map(table_name).collect::<Done<Vec<_>>>()?,
    };
    let main = match args.all_named {
        true => None,
        false => Some(table_name(&args.main_table)?),
    };
    let tables = open(&read, &names, main.as_deref())?;
    let info = env.info().doing("read the figures")?;
    let store = Store { used_bytes: info.used_len, max_readers: info.max_readers };
    let mut writer = TextWriter::new(Out::new(), args.print, store);
    if let Some(main) = &main {
        writer = writer.unnamed(main);
    }
    let mut writer = Box::new(writer);
    export(&tables, writer.as_mut())?;
    writer.finish()?;
    Ok(if names.is_empty() { Code::NotFound } else { Code::Fine })
}

/// A table and its name.
type Named<'n, 't> = (&'n [u8], ReadTable<'t>);

/// Opens the tables, the one without a name first; an error if LMDB could not have them side by side.
fn open<'n, 't>(
    read: &'t ReadTxn,
    names: &'n [Vec<u8>],
    main: Option<&[u8]>,
) -> Done<Vec<Named<'n, 't>>> {
    let mut tables = Vec::new();
    for name in names {
        let what = format!("export the table \"{}\"", escape(name));
        if name.is_empty() || name.iter().any(|byte| matches!(byte, 0 | b'\n' | b'\r')) {
            return Err(Failure::new(Code::Other, what, "LMDB's tools have no such names")
                .advise("leave it out with -t, or use `zubilo dump`"));
        }
        let table = read.table(name).doing(&what)?;
        tables.push((name.as_slice(), table));
    }
    let Some(at) = tables.iter().position(|(name, _)| Some(*name) == main) else {
        return Ok(tables);
    };
    let unnamed = tables.remove(at);
    let what = format!("export the table \"{}\" without a name", escape(unnamed.0));
    let refused = |cause: String| {
        Failure::new(Code::Other, &what, cause).advise("keep its name with --all-named")
    };
    let options = unnamed.1.options();
    let plain = options.keys() == KeyOrder::Bytes && !options.has_duplicates();
    if !plain && !tables.is_empty() {
        let cause = "LMDB's unnamed database has no order or duplicates where there are others";
        return Err(refused(cause.into()));
    }
    for (name, _) in &tables {
        // LMDB keeps the names among the records.
        if unnamed.1.get(name).doing(&what)?.is_some() {
            return Err(refused(format!(
                "it has a key with the name of the table \"{}\"",
                escape(name)
            )));
        }
    }
    tables.insert(0, unnamed);
    Ok(tables)
}

fn export(tables: &[Named<'_, '_>], writer: &mut TextWriter) -> Done<()> {
    let progress = Progress::records("exporting", tables.iter().map(|(_, t)| t.len()).sum());
    let mut done = 0u64;
    for (name, table) in tables {
        let options = table.options();
        let many = options.has_duplicates();
        writer.table(name, &options)?;
        for record in table.iter() {
            let what = || format!("export the table \"{}\"", escape(name));
            let (key, value) = record.map_err(|error| Failure::store(what(), &error))?;
            let too_long = key.len() > KEY_MAX || many && value.len() > KEY_MAX;
            if key.is_empty() || too_long {
                let key = escape(clip(key)).into_owned();
                let cause = format!(
                    "LMDB has no empty keys, and no keys and values among many of more than \
                     {KEY_MAX} bytes: key \"{key}\""
                );
                return Err(Failure::new(Code::Other, what(), cause)
                    .advise("leave the table out with -t, or use `zubilo dump`"));
            }
            writer.record(key, value)?;
            done += 1;
            if done.is_multiple_of(1024) {
                progress.set(done);
            }
        }
        writer.table_end()?;
    }
    Ok(())
}
