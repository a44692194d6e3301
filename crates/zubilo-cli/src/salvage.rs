//! `zubilo salvage`: what is still readable of a damaged store, into a new one or as text.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use zubilo::{Env, Error, Options, Salvage, SalvageCount, SalvagedTable, TxnId};

use crate::encoding::{Encoding, EncodingArgs, escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::formats::{CsvWriter, Format, JsonlWriter, Store, TextWriter, Writer};
use crate::interrupt::{self, Unfinished};
use crate::opening::{CommitArg, StoreArgs, mode_like, remove_store, tighten};
use crate::output::{Out, Progress, count, records, say, to_stderr};

/// Options of `salvage`.
#[derive(Args, Debug)]
pub(crate) struct SalvageArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    at: CommitArg,
    /// The new store, which must not exist; without it everything goes to standard output as text
    to: Option<PathBuf>,
    /// The format of the text [default: bytevalue, with --json jsonl]
    #[arg(short, long, value_enum, conflicts_with = "to")]
    format: Option<Format>,
    #[command(flatten)]
    encoding: EncodingArgs,
}

/// What is reported at the end.
struct Recovered {
    table: SalvagedTable,
    count: SalvageCount,
}

/// Brings out what it can; exit code 3 if that is not all, 1 if it is nothing.
pub(crate) fn run(args: &SalvageArgs) -> Done {
    if let Some(to) = &args.to
        && to.symlink_metadata().is_ok()
    {
        let what = format!("salvage into {}", to.display());
        return Err(Failure::usage(what, "the file exists").advise("name a new one"));
    }
    interrupt::catch()?;
    let file = args.store.file();
    let path: &Path = &file;
    let what = || format!("read {}", path.display());
    let keys = args.store.keys.set(Options::new())?;
    let salvage = Salvage::open_as(path, &keys, args.at.commit.map(TxnId));
    let salvage = salvage.map_err(|error| Failure::store(what(), &error))?;
    let recovered = match &args.to {
        Some(to) => into_new(&salvage, path, to, keys)?,
        None => as_text(args, &salvage)?,
    };
    print(args, &salvage, &recovered)?;
    let whole = |t: &Recovered| t.table.rooted && (t.count.gaps | t.count.lost_values) == 0;
    Ok(match recovered.iter().all(whole) && salvage.list_gaps() == 0 {
        false => Code::Damaged,
        true if recovered.is_empty() => Code::NotFound,
        true => Code::Fine,
    })
}

/// Takes records one by one; its own failures end the work.
type Take<'t> = &'t mut dyn FnMut(&[u8], &[u8]) -> Done<()>;

fn each_record(
    salvage: &Salvage,
    table: &SalvagedTable,
    progress: &Progress,
    done: &mut u64,
    take: Take<'_>,
) -> Done<SalvageCount> {
    let mut failed = None;
    let counted = salvage.records(table, &mut |key, value| {
        *done += 1;
        if done.is_multiple_of(1024) {
            progress.set(*done);
            if interrupt::came() {
                return Err(Error::Stopped);
            }
        }
        take(key, value).map_err(|failure| {
            failed = Some(failure);
            Error::Stopped
        })
    });
    match failed {
        Some(failure) => Err(failure),
        None => counted.doing(&format!("salvage the table \"{}\"", escape(&table.name))),
    }
}

/// Makes the new store; if that fails nothing is left of it.
fn into_new(salvage: &Salvage, from: &Path, to: &Path, keys: Options) -> Done<Vec<Recovered>> {
    let from = from.metadata().map_err(|e| Failure::io(format!("read {}", from.display()), &e))?;
    let recovered = into_store(salvage, &from, to, keys);
    if recovered.is_err() {
        remove_store(to);
    }
    recovered
}

fn into_store(
    salvage: &Salvage,
    from: &Metadata,
    to: &Path,
    keys: Options,
) -> Done<Vec<Recovered>> {
    let options = keys.page_size(salvage.page_size() as u32).mode(mode_like(from));
    let what = || format!("make {}", to.display());
    let env = options.open(to).map_err(|error| Failure::store(what(), &error))?;
    let _unfinished = Unfinished::new([to.to_path_buf(), Options::default_lock_path(to)]);
    tighten(to, from)?;
    let progress = Progress::records("salvaging", 0);
    let (mut recovered, mut done) = (Vec::new(), 0);
    for table in salvage.tables() {
        let count = one_table(salvage, table, &env, &progress, &mut done)?;
        recovered.push(Recovered { table: table.clone(), count });
    }
    env.close().doing("close the new store")?;
    Ok(recovered)
}

fn one_table(
    salvage: &Salvage,
    table: &SalvagedTable,
    env: &Env,
    progress: &Progress,
    done: &mut u64,
) -> Done<SalvageCount> {
    let mut txn = env.write().doing("begin to write")?;
    let options = table.options();
    let many = options.has_duplicates();
    let name = escape(&table.name);
    let made = txn.create_table(&table.name, options);
    let mut new = made.doing(&format!("make the table \"{name}\""))?;
    let count = each_record(salvage, table, progress, done, &mut |key, value| {
        let put = match many {
            true => new.insert_value(key, value).map(drop),
            false => new.put(key, value),
        };
        put.doing(&format!("write into the table \"{name}\""))
    })?;
    txn.commit().doing("commit")?;
    Ok(count)
}

fn as_text(args: &SalvageArgs, salvage: &Salvage) -> Done<Vec<Recovered>> {
    let out = Out::new();
    let format = match (args.format, args.store.json) {
        (None, false) => Format::Bytevalue,
        (None | Some(Format::Jsonl), true) => Format::Jsonl,
        (Some(format), false) => format,
        (Some(_), true) => {
            return Err(Failure::usage("salvage", "--json is the format jsonl, another was given"));
        }
    };
    let mut writer: Box<dyn Writer> = match format {
        Format::Csv => Box::new(CsvWriter::new(out, args.encoding, Encoding::Escaped, b',')),
        Format::Jsonl => Box::new(JsonlWriter::new(out)),
        text => {
            let used_bytes = salvage.pages() * salvage.page_size() as u64;
            let store = Store { used_bytes, max_readers: 1024 };
            Box::new(TextWriter::new(out, text == Format::Print, store))
        }
    };
    let progress = Progress::records("salvaging", 0);
    let (mut recovered, mut done) = (Vec::new(), 0);
    for table in salvage.tables() {
        writer.table(&table.name, &table.options())?;
        let take = &mut |key: &[u8], value: &[u8]| writer.record(key, value);
        let count = each_record(salvage, table, &progress, &mut done, take)?;
        writer.table_end()?;
        recovered.push(Recovered { table: table.clone(), count });
    }
    writer.finish()?;
    Ok(recovered)
}

/// The figures: on standard error where the records go to standard output.
fn print(args: &SalvageArgs, salvage: &Salvage, recovered: &[Recovered]) -> Done<()> {
    let as_json = args.store.json;
    let (value, text) = (to_value(salvage, recovered), show(salvage, recovered));
    if args.to.is_some() {
        return say(as_json, &value, &text);
    }
    match as_json {
        true => to_stderr(&value.to_string()),
        false => to_stderr(&text),
    }
    Ok(())
}

fn to_value(salvage: &Salvage, recovered: &[Recovered]) -> Value {
    let table = |t: &Recovered| {
        json!({
            "name": to_json(&t.table.name),
            "named": t.table.named,
            "rooted": t.table.rooted,
            "reordered": t.table.is_reordered(),
            "records": t.count.records,
            "from_leaves": t.count.from_leaves,
            "lost_values": t.count.lost_values,
            "gaps": t.count.gaps,
        })
    };
    json!({
        "txn": salvage.commit().map(|txn| txn.0),
        "list_gaps": salvage.list_gaps(),
        "tables": recovered.iter().map(table).collect::<Vec<_>>(),
    })
}

fn show(salvage: &Salvage, recovered: &[Recovered]) -> String {
    let mut lines = vec![match salvage.commit() {
        Some(txn) => format!("commit {txn}, {} whole pages", count(salvage.pages())),
        None => format!("no meta page is whole; {} whole pages", count(salvage.pages())),
    }];
    if salvage.list_gaps() > 0 {
        lines.push("the list of tables is damaged: tables may be missing, or be back".into());
    }
    for Recovered { table, count: c } in recovered {
        let mut line = format!("table \"{}\": {}", escape(&table.name), records(c.records));
        let mut add = |number: u64, what: &str| {
            if number > 0 {
                line += &format!(", {} {what}", count(number));
            }
        };
        add(c.from_leaves, "found below damaged pages, perhaps not of the last commit");
        add(c.lost_values, "values lost");
        add(c.gaps, "parts damaged");
        if table.is_reordered() {
            line += ", sorted by bytes: its own order is not in the file";
        }
        lines.push(line);
    }
    lines.join("\n")
}
