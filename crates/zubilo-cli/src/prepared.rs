//! `zubilo prepared`: the transaction that waits for its decision, and the decision.

use std::time::UNIX_EPOCH;

use clap::Args;
use serde_json::{Value, json};
use zubilo::{Env, Options, PreparedId, PreparedInfo};

use crate::failure::{Code, Doing, Done, Failure};
use crate::opening::StoreArgs;
use crate::output::say;

/// Options of `prepared`.
#[derive(Args, Debug)]
pub(crate) struct PreparedArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Commit the prepared transaction with this identity
    #[arg(long, value_name = "ID", value_parser = identity)]
    commit: Option<PreparedId>,
    /// Take the prepared transaction with this identity back, for ever
    #[arg(long, value_name = "ID", value_parser = identity, conflicts_with = "commit")]
    roll_back: Option<PreparedId>,
}

/// An identity, as it is shown.
fn identity(text: &str) -> Result<PreparedId, String> {
    let is_one = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let id = u64::from_str_radix(text, 16).ok().filter(|_| is_one);
    id.map(PreparedId).ok_or("an identity has 16 hexadecimal digits".to_string())
}

/// Shows what waits, or decides.
pub(crate) fn run(args: &PreparedArgs) -> Done {
    let (decision, done) = match (args.commit, args.roll_back) {
        (Some(id), _) => (Some((id, true)), "committed"),
        (None, Some(id)) => (Some((id, false)), "rolled back"),
        (None, None) => (None, ""),
    };
    let options = Options::new().create(false).read_only(decision.is_none());
    let env = args.store.open_for(options, "there is no such store")?;
    let Some((id, commits)) = decision else {
        let waiting = env.prepared().doing("look for a prepared transaction")?;
        let value = json!({ "prepared": waiting.as_ref().map(to_value) });
        let text = waiting.as_ref().map_or("no transaction is prepared".to_string(), show);
        say(args.store.json, &value, &text)?;
        return Ok(if waiting.is_some() { Code::Fine } else { Code::NotFound });
    };
    let decided = match commits {
        true => env.commit_prepared(id).map(drop),
        false => env.roll_back_prepared(id),
    };
    let what = || format!("decide about prepared transaction {id}");
    decided.map_err(|error| Failure::store(what(), &error))?;
    let summary = json!({ "id": id.to_string(), "committed": commits });
    say(args.store.json, &summary, &format!("prepared transaction {id} is {done}"))?;
    Ok(Code::Fine)
}

/// What waits, for a command that is about something else: as JSON, and as a note.
pub(crate) fn note(env: &Env) -> (Value, Option<String>) {
    match env.prepared() {
        Ok(None) => (Value::Null, None),
        Ok(Some(waiting)) => (to_value(&waiting), Some(show(&waiting))),
        Err(error) => (Value::Null, Some(error.to_string())),
    }
}

/// What waits as JSON.
fn to_value(info: &PreparedInfo) -> Value {
    let since = info.since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({
        "id": info.id.to_string(),
        "txn": info.txn.0,
        "tag": info.tag.escape_ascii().to_string(),
        "since": since,
        "user_words": info.user_words,
    })
}

/// What waits as text.
fn show(PreparedInfo { id, txn, tag, since, .. }: &PreparedInfo) -> String {
    let waits = since.elapsed().map_or(0, |time| time.as_secs());
    format!(
        "prepared transaction {id}, \"{}\", has waited for its decision for {waits} seconds; nobody can \
         write until `zubilo prepared --commit {id}`, which makes it commit {txn}, or --roll-back {id}",
        tag.escape_ascii()
    )
}
