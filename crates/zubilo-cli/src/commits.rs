//! `zubilo commits`: which commits the meta pages of a file name, and the way back to one of them.

use std::io::{self, IsTerminal};

use clap::Args;
use serde_json::json;
use zubilo::{Env, Options, StoredCommit, TxnId};

use crate::drop::ask;
use crate::failure::{Code, Done, Failure};
use crate::interrupt;
use crate::opening::StoreArgs;
use crate::output::{Out, Progress, say, size, to_stderr};

/// Options of `commits`.
#[derive(Args, Debug)]
pub(crate) struct CommitsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Read all that each commit reaches, and say whether it is whole. Nobody else may have the store open
    #[arg(long)]
    check: bool,
    /// Make this commit the newest one. All that are newer are lost for ever; if it is not whole nothing is changed
    #[arg(long, value_name = "NUMBER", conflicts_with = "check")]
    go_back_to: Option<u64>,
    /// Do not ask. Where standard input is no terminal nobody can be asked, and this must be given
    #[arg(short, long, requires = "go_back_to")]
    yes: bool,
}

/// Lists the commits, or goes back.
pub(crate) fn run(args: &CommitsArgs) -> Done {
    if let Some(commit) = args.go_back_to {
        return go_back(args, TxnId(commit));
    }
    let what = || format!("read {}", args.store.store.display());
    let keys = args.store.keys.set(Options::new())?;
    let stored = Env::stored_commits_as(args.store.file(), &keys);
    let stored = stored.map_err(|error| Failure::store(what(), &error))?;
    interrupt::catch()?;
    let mut found = Vec::new();
    for commit in &stored {
        let whole = if args.check { is_whole(args, commit)? } else { None };
        found.push((commit, whole));
    }
    let mut out = Out::new();
    if args.store.json {
        let value = |(commit, whole): &(&StoredCommit, Option<bool>)| {
            json!({
                "page": commit.page.0,
                "txn": commit.txn.map(|txn| txn.0),
                "state": commit.state.to_string(),
                "used_bytes": commit.used_len,
                "whole": whole,
            })
        };
        out.json(&found.iter().map(value).collect::<Vec<_>>().into())?;
    } else {
        for line in found.iter().map(|(commit, whole)| show(commit, *whole)) {
            out.line(&line)?;
        }
    }
    out.finish()?;
    Ok(if stored.is_empty() { Code::NotFound } else { Code::Fine })
}

fn show(commit: &StoredCommit, whole: Option<bool>) -> String {
    let name = match commit.txn {
        Some(txn) => format!("commit {txn}"),
        None => "a commit".to_string(),
    };
    let whole = match whole {
        None => "",
        Some(true) => ", whole",
        Some(false) => ", not whole",
    };
    let used = match commit.used_len {
        0 => String::new(),
        bytes => format!(", {}", size(bytes)),
    };
    format!("{name}: {}{whole}{used}, meta page {}", commit.state, commit.page)
}

/// Whether all that a commit reaches is there; none for a meta page that names none.
fn is_whole(args: &CommitsArgs, stored: &StoredCommit) -> Done<Option<bool>> {
    let Some(txn) = stored.txn.filter(|_| stored.used_len > 0) else { return Ok(None) };
    let open = args.store.keys.set(Options::new().read_only(true).at_commit(txn))?;
    let open = open.open(args.store.file());
    let env = match open {
        Ok(env) => env,
        Err(zubilo::Error::Corrupted { .. }) => return Ok(Some(false)),
        Err(error) => {
            let what = format!("open {} at commit {txn}", args.store.store.display());
            return Err(Failure::store(what, &error));
        }
    };
    let progress = Progress::pages("checking");
    let checked = env.check(&mut |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    });
    match checked {
        Ok(report) => {
            // Meta pages of other commits are no part of this one.
            Ok(Some(report.problems.iter().all(|problem| problem.page.0 < 4)))
        }
        Err(zubilo::Error::Corrupted { .. }) => Ok(Some(false)),
        Err(error) => Err(Failure::store(format!("check commit {txn}"), &error)),
    }
}

/// Asks, then goes back.
fn go_back(args: &CommitsArgs, txn: TxnId) -> Done {
    let shown = args.store.store.display();
    let what = format!("go back to commit {txn} of {shown}");
    if !args.yes {
        if !io::stdin().is_terminal() {
            let cause = "standard input is no terminal, so nobody can be asked";
            return Err(Failure::usage(what, cause).advise("add --yes"));
        }
        if !ask(&format!("Lose all commits of {shown} after {txn}, for ever?"))? {
            to_stderr("zubilo: commits: nothing was changed");
            return Ok(Code::NotFound);
        }
    }
    let options = args.store.keys.set(Options::new().at_commit(txn).discard_newer(true))?;
    let opened = options.open(args.store.file()).and_then(Env::close);
    opened.map_err(|error| Failure::store(what, &error))?;
    let summary = json!({ "txn": txn.0 });
    say(args.store.json, &summary, &format!("commit {txn} is the newest one now"))?;
    Ok(Code::Fine)
}
