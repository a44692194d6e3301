//! `zubilo dump`: tables as text on standard output, from one snapshot.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::Args;
use zubilo::{Env, KeyOrder, ReadTxn, TableOptions};

use crate::encoding::{Encoding, EncodingArgs, escape};
use crate::failure::{Code, Doing, Done, Failure};
use crate::formats::{CsvWriter, Format, JsonlWriter, Store, TextWriter, Writer};
use crate::opening::{ReadArgs, one_byte, table_name};
use crate::output::{Out, Progress, to_stderr};
use crate::tables::NO_TABLES;

/// Options of `dump`.
#[derive(Args, Debug)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// Only this table; may be repeated
    #[arg(short, long = "table", value_name = "TABLE")]
    tables: Vec<OsString>,
    /// The format [default: bytevalue, with --json jsonl]
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    encoding: EncodingArgs,
    /// Values are JSON objects: their fields with these names become columns of CSV
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// In jsonl, values that are JSON objects or lists stand as such, not as strings
    #[arg(long)]
    json_values: bool,
    /// What separates the columns of CSV
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = one_byte)]
    delimiter: u8,
}

/// Dumps the tables; exit code 1 if there is none.
pub(crate) fn run(args: &DumpArgs) -> Done {
    let format = match (args.format, args.store.json) {
        (None, false) => Format::Bytevalue,
        (None | Some(Format::Jsonl), true) => Format::Jsonl,
        (Some(format), false) => format,
        (Some(_), true) => {
            return Err(Failure::usage("dump", "--json is the format jsonl, another was given"));
        }
    };
    let chosen = args.tables.iter().map(table_name).collect::<Done<Vec<_>>>()?;
    let env = args.store.open_to_read_verified()?;
    let read = env.read().doing("begin to read")?;
    let names = match chosen.is_empty() {
        true => read.tables().doing("list the tables")?,
        false => chosen,
    };
    let mut writer = writer(args, format, &env, &read, &names)?;
    dump(&read, &names, writer.as_mut())?;
    writer.finish()?;
    if names.is_empty() && !args.store.json {
        to_stderr(NO_TABLES);
    }
    Ok(if names.is_empty() { Code::NotFound } else { Code::Fine })
}

fn writer(
    args: &DumpArgs,
    format: Format,
    env: &Env,
    read: &ReadTxn,
    names: &[Vec<u8>],
) -> Done<Box<dyn Writer>> {
    let wrong = |option: &str, of: &str| {
        Err(Failure::usage("dump", format!("{option} is for {of}, another format was chosen")))
    };
    if !args.columns.is_empty() && format != Format::Csv {
        return wrong("--columns", "csv");
    }
    if args.json_values && format != Format::Jsonl {
        return wrong("--json-values", "jsonl");
    }
    let out = Out::new();
    Ok(match format {
        Format::Csv => {
            let writer = CsvWriter::new(out, args.encoding, Encoding::Text, args.delimiter);
            let mut known = BTreeMap::new();
            for name in names {
                let of = args.encoding.of_table(read, name, None, Encoding::Text);
                let of = of.doing(&format!("open the table \"{}\"", escape(name)))?;
                known.insert(name.clone(), of);
            }
            Box::new(writer.with_known(known).with_columns(args.columns.clone(), names.len() == 1))
        }
        Format::Jsonl if args.json_values => Box::new(JsonlWriter::new(out).with_json_values()),
        Format::Jsonl => Box::new(JsonlWriter::new(out)),
        text => {
            let info = env.info().doing("read the figures")?;
            let store = Store { used_bytes: info.used_len, max_readers: info.max_readers };
            Box::new(TextWriter::new(out, text == Format::Print, store))
        }
    })
}

fn dump(read: &ReadTxn, names: &[Vec<u8>], writer: &mut dyn Writer) -> Done<()> {
    let mut tables = Vec::new();
    for name in names {
        let table = read.table(name).doing(&format!("open the table \"{}\"", escape(name)))?;
        tables.push((name, table));
    }
    let progress = Progress::records("dumping", tables.iter().map(|(_, t)| t.len()).sum());
    let mut done = 0u64;
    for (name, table) in &tables {
        if table.is_empty() && !writer.keeps_empty_tables() {
            let name = escape(name);
            progress.note(&format!(
                "zubilo: dump: the table \"{name}\" is empty, this format leaves it out"
            ));
        }
        if !writer.keeps_options() && !is_plain(&table.options()) {
            let name = escape(name);
            progress.note(&format!(
                "zubilo: dump: the table \"{name}\" has an order, many values under a key, counted \
                 records or aligned values, which this format cannot express: make the table \
                 before you load it"
            ));
        }
        writer.table(name, &table.options())?;
        for record in table.iter() {
            let what = || format!("read the table \"{}\"", escape(name));
            let (key, value) = record.map_err(|error| Failure::store(what(), &error))?;
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

/// Whether a table has what a new one has without being asked.
fn is_plain(options: &TableOptions) -> bool {
    options.keys() == KeyOrder::Bytes
        && !options.has_duplicates()
        && !options.is_counted()
        && options.alignment() == 1
}
