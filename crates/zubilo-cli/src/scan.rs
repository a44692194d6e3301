//! `zubilo scan`: records in order.

use clap::Args;
use serde_json::json;
use zubilo::Iter;

use crate::encoding::{Encoding, EncodingArgs, Encodings, escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::opening::{ReadArgs, TableArg, VerifyArg};
use crate::output::Out;
use crate::range::RangeArgs;

/// Options of `scan`.
#[derive(Args, Debug)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    verify: VerifyArg,
    #[command(flatten)]
    range: RangeArgs,
    /// From the last key to the first
    #[arg(short, long)]
    reverse: bool,
    /// Stop after so many records
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// Keys without values
    #[arg(short, long)]
    keys_only: bool,
    /// Only how many there are
    #[arg(short, long, conflicts_with_all = ["keys_only", "reverse"])]
    count: bool,
}

/// Prints the records, or counts them.
pub(crate) fn run(args: &ScanArgs) -> Done {
    let name = args.table.name()?;
    let env = args.verify.open(&args.store)?;
    let read = env.read().doing("begin to read")?;
    let table = read.table(&name).doing(&format!("open the table \"{}\"", escape(&name)))?;
    let encodings = args.encoding.of_table(&read, &name, None, Encoding::Escaped);
    let encodings = encodings.doing(&format!("open the table \"{}\"", escape(&name)))?;
    let range = args.range.range(encodings.key, table.options().keys())?;
    let limit = args.limit.unwrap_or(u64::MAX);
    let seen = match range.bounds() {
        // The table knows.
        Some(_) if args.count && !args.range.is_given() => table.len().min(limit),
        Some(bounds) => walk(args, &name, encodings, table.range::<&[u8]>(bounds), limit)?,
        None => 0,
    };
    if args.count {
        let mut out = Out::new();
        match args.store.json {
            true => out.json(&json!({ "table": to_json(&name), "count": seen }))?,
            false => out.line(&seen.to_string())?,
        }
        out.finish()?;
    }
    Ok(if seen == 0 { Code::NotFound } else { Code::Fine })
}

/// Prints the records unless they are only counted; gives their number.
fn walk(
    args: &ScanArgs,
    name: &[u8],
    encodings: Encodings,
    mut records: Iter<'_>,
    limit: u64,
) -> Done<u64> {
    let mut out = Out::new();
    let mut seen = 0;
    while seen < limit {
        let record = if args.reverse { records.next_back() } else { records.next() };
        let Some(record) = record else { break };
        let what = || format!("read the table \"{}\"", escape(name));
        let (key, value) = record.map_err(|error| Failure::store(what(), &error))?;
        seen += 1;
        if !args.count {
            print(args, &mut out, name, encodings, (key, value))?;
        }
    }
    out.finish()?;
    Ok(seen)
}

fn print(
    args: &ScanArgs,
    out: &mut Out,
    name: &[u8],
    encodings: Encodings,
    (key, value): (&[u8], &[u8]),
) -> Done<()> {
    if args.store.json {
        let mut record = json!({ "table": to_json(name), "key": encodings.key.to_json(key) });
        if !args.keys_only {
            record["value"] = encodings.value.to_json(value);
        }
        return out.json(&record);
    }
    let what = || format!("print a record of the table \"{}\"", escape(name));
    let failed = |cause| Failure::new(Code::Other, what(), cause);
    out.bytes(encodings.key.encode(key).map_err(failed)?.as_bytes())?;
    if !args.keys_only {
        out.bytes(b"\t")?;
        out.bytes(encodings.value.encode(value).map_err(failed)?.as_bytes())?;
    }
    out.bytes(b"\n")
}
