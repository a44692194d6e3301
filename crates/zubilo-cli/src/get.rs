//! `zubilo get`: values under keys.

use std::ffi::OsString;

use clap::Args;
use serde_json::json;

use crate::encoding::{Encoding, EncodingArgs, clip, escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::opening::{ReadArgs, TableArg, VerifyArg};
use crate::output::{Out, to_stderr};

/// Options of `get`.
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    verify: VerifyArg,
    /// The bytes of the value as they are, without a line break after them
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// The keys
    #[arg(required = true)]
    keys: Vec<OsString>,
}

/// Prints the values in the order of the keys, one a line.
pub(crate) fn run(args: &GetArgs) -> Done {
    if args.raw && args.keys.len() > 1 {
        return Err(Failure::usage("get --raw", "raw values of several keys would run together"));
    }
    let name = args.table.name()?;
    let env = args.verify.open(&args.store)?;
    let read = env.read().doing("begin to read")?;
    let table = read.table(&name).doing(&format!("open the table \"{}\"", escape(&name)))?;
    let encodings = args.encoding.of_table(&read, &name, None, Encoding::Escaped);
    let encodings = encodings.doing(&format!("open the table \"{}\"", escape(&name)))?;
    let keys = args.keys.iter().map(|key| encodings.key.argument("the key", key));
    let keys = keys.collect::<Done<Vec<_>>>()?;
    let mut out = Out::new();
    let mut code = Code::Fine;
    for key in &keys {
        let what =
            || format!("read the key \"{}\" of the table \"{}\"", escape(clip(key)), escape(&name));
        let value = table.get(key).map_err(|error| Failure::store(what(), &error))?;
        if args.store.json {
            let mut found = json!({
                "table": to_json(&name), "key": encodings.key.to_json(key), "found": value.is_some(),
            });
            if let Some(value) = value {
                found["value"] = encodings.value.to_json(value);
            }
            out.json(&found)?;
        } else if let Some(value) = value {
            let print =
                |key: &[u8]| format!("print the value of the key \"{}\"", escape(clip(key)));
            if args.raw {
                out.bytes(value)?;
            } else {
                let text = encodings.value.encode(value);
                out.line(&text.map_err(|cause| Failure::new(Code::Other, print(key), cause))?)?;
            }
        } else {
            to_stderr(&format!("zubilo: get \"{}\": no such key", encodings.key.show(key)));
        }
        if value.is_none() {
            code = Code::NotFound;
        }
    }
    out.finish()?;
    Ok(code)
}
