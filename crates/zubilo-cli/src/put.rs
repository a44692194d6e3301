//! `zubilo put`: stores one record.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use zubilo::{Env, Options};

use crate::encoding::{Encoding, EncodingArgs, clip, escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::layout::LayoutArgs;
use crate::opening::{CreateArgs, StoreArgs, TableArg, WriteArgs};
use crate::output::{say, to_stderr};

/// Options of `put`.
#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    /// Leave a key that is there as it is (exit code 1)
    #[arg(long)]
    if_absent: bool,
    /// The key
    key: OsString,
    /// The value
    #[arg(required_unless_present = "value_file", conflicts_with = "value_file")]
    value: Option<OsString>,
    /// Take the value from this file as it is, with - from standard input
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
}

/// Stores the record in a transaction of its own.
pub(crate) fn run(args: &PutArgs) -> Done {
    let name = args.table.name()?;
    let made = args.store.open_or_create(&args.create, Options::new())?;
    let done = put_one(args, &made.env, &name);
    if done.is_err() {
        made.discard_if_empty();
    }
    done
}

fn put_one(args: &PutArgs, env: &Env, name: &[u8]) -> Done {
    let read = env.read().doing("begin to read")?;
    let new = args.layout.given();
    let encodings = args.encoding.of_table(&read, name, new.as_ref(), Encoding::Escaped);
    let encodings = encodings.doing(&format!("open the table \"{}\"", escape(name)))?;
    drop(read);
    let key = encodings.key.argument("the key", &args.key)?;
    let value = value(args, encodings.value)?;
    let stored = put(args, env, name, &key, &value)?;
    let summary =
        json!({ "table": to_json(name), "key": encodings.key.to_json(&key), "stored": stored });
    say(args.store.json, &summary, "")?;
    if !stored && !args.store.json {
        let key = encodings.key.show(&key);
        to_stderr(&format!("zubilo: put \"{key}\": the key is there, it was left as it is"));
    }
    Ok(if stored { Code::Fine } else { Code::NotFound })
}

/// Returns whether the record was stored.
fn put(args: &PutArgs, env: &Env, name: &[u8], key: &[u8], value: &[u8]) -> Done<bool> {
    let mut txn = args.write.begin(env)?;
    let opened = match (args.create.create, args.layout.given()) {
        (true, Some(options)) => txn.table_or_create_with(name, &options),
        (true, None) => txn.table_or_create(name),
        (false, Some(options)) => txn.table_with(name, &options),
        (false, None) => txn.table(name),
    };
    let what = format!("open the table \"{}\"", escape(name));
    let mut table = opened.doing(&what).map_err(|failure| match failure.code {
        Code::NotFound => failure.advise("add --create to make it, or see `zubilo tables`"),
        _ => failure,
    })?;
    let what = format!("store the key \"{}\" in the table \"{}\"", escape(clip(key)), escape(name));
    let stored = if args.if_absent {
        table.insert(key, value).doing(&what)?
    } else {
        table.put(key, value).doing(&what)?;
        true
    };
    if stored {
        txn.commit().doing("commit")?;
    }
    Ok(stored)
}

fn value(args: &PutArgs, encoding: Encoding) -> Done<Vec<u8>> {
    match (&args.value, &args.value_file) {
        (Some(value), _) => encoding.argument("the value", value),
        (None, Some(path)) if path.as_os_str() == "-" => {
            let mut value = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut value);
            read.map_err(|e| Failure::io("read the value from standard input", &e))?;
            Ok(value)
        }
        (None, Some(path)) => std::fs::read(path)
            .map_err(|e| Failure::io(format!("read the value from {}", path.display()), &e)),
        (None, None) => Err(Failure::usage("put", "no value was given")),
    }
}
