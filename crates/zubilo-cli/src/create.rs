//! `zubilo create`: makes a table, and the store if there is none.

use std::ffi::OsString;

use clap::Args;
use serde_json::json;
use zubilo::{Env, Error, Options};

use crate::encoding::{escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::layout::{self, LayoutArgs};
use crate::opening::{CreateArgs, StoreArgs, WriteArgs, table_name};
use crate::output::say;

/// Options of `create`.
#[derive(Args, Debug)]
pub(crate) struct CreateTableArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The table, which must not exist
    #[arg(short, long, default_value = "main")]
    table: OsString,
    #[command(flatten)]
    write: WriteArgs,
    /// Bytes of a page of a new store
    #[arg(long, value_name = "BYTES",
          value_parser = clap::builder::PossibleValuesParser::new(crate::opening::PAGE_SIZES))]
    page_size: Option<String>,
    #[command(flatten)]
    layout: LayoutArgs,
}

/// Makes the table.
pub(crate) fn run(args: &CreateTableArgs) -> Done {
    let name = table_name(&args.table)?;
    let how = CreateArgs::new(args.page_size.clone());
    let made = args.store.open_or_create(&how, Options::new())?;
    let done = create(args, &made.env, &name);
    if done.is_err() {
        made.discard_if_empty();
    }
    done?;
    let options = args.layout.options();
    let summary = json!({ "table": to_json(&name), "options": layout::to_value(&options) });
    let described = match layout::describe(&options) {
        text if text.is_empty() => text,
        text => format!(" ({text})"),
    };
    say(args.store.json, &summary, &format!("table \"{}\" made{described}", escape(&name)))?;
    Ok(Code::Fine)
}

fn create(args: &CreateTableArgs, env: &Env, name: &[u8]) -> Done<()> {
    let what = format!("make the table \"{}\"", escape(name));
    let mut txn = args.write.begin(env)?;
    match txn.create_table(name, args.layout.options()) {
        Ok(_) => {}
        Err(error @ Error::TableExists { .. }) => {
            return Err(Failure::store(what, &error)
                .advise("`zubilo tables` shows its options; they cannot be changed"));
        }
        Err(error) => return Err(Failure::store(what, &error)),
    }
    txn.commit().doing("commit")?;
    Ok(())
}
