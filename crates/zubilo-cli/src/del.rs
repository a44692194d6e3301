//! `zubilo del`: removes records, by key or by range.

use std::ffi::OsString;

use clap::Args;
use serde_json::json;
use zubilo::Env;

use crate::encoding::{Encoding, EncodingArgs, escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::opening::{StoreArgs, TableArg, WriteArgs};
use crate::output::{records, say, to_stderr};
use crate::range::RangeArgs;

/// Options of `del`.
#[derive(Args, Debug)]
pub(crate) struct DelArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// The keys
    keys: Vec<OsString>,
}

/// Removes the records in one transaction.
pub(crate) fn run(args: &DelArgs) -> Done {
    if args.keys.is_empty() != args.range.is_given() {
        return Err(Failure::usage("del", "give either keys or a range")
            .advise("`zubilo drop --empty` removes all records of a table"));
    }
    let name = args.table.name()?;
    let env = args.store.open_to_write()?;
    let encoding = key_encoding(args, &env, &name)?;
    let keys = args.keys.iter().map(|key| encoding.argument("the key", key));
    let keys = keys.collect::<Done<Vec<_>>>()?;
    let mut txn = args.write.begin(&env)?;
    let shown = format!("the table \"{}\"", escape(&name));
    let mut table = txn.table(&name).doing(&format!("open {shown}"))?;
    let range = args.range.range(encoding, table.options().keys())?;
    let mut deleted = 0;
    let mut missing = false;
    if keys.is_empty() {
        if let Some(bounds) = range.bounds() {
            deleted =
                table.delete_range::<&[u8]>(bounds).doing(&format!("delete a range of {shown}"))?;
        }
        missing = deleted == 0;
    }
    for key in &keys {
        let what = format!("delete the key \"{}\" of {shown}", encoding.show(key));
        if table.delete(key).doing(&what)? {
            deleted += 1;
        } else {
            missing = true;
            if !args.store.json {
                to_stderr(&format!("zubilo: del \"{}\": no such key", encoding.show(key)));
            }
        }
    }
    if deleted > 0 {
        txn.commit().doing("commit")?;
    }
    let summary = json!({ "table": to_json(&name), "deleted": deleted });
    say(args.store.json, &summary, &format!("{} deleted", records(deleted)))?;
    Ok(if missing { Code::NotFound } else { Code::Fine })
}

fn key_encoding(args: &DelArgs, env: &Env, name: &[u8]) -> Done<Encoding> {
    let read = env.read().doing("begin to read")?;
    let encodings = args.encoding.of_table(&read, name, None, Encoding::Escaped);
    Ok(encodings.doing(&format!("open the table \"{}\"", escape(name)))?.key)
}
