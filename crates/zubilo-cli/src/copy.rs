//! `zubilo copy`: a store of its own from the newest commit, while others go on.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use zubilo::Error;

use crate::failure::{Code, Done, Failure};
use crate::interrupt;
use crate::opening::{CommitArg, ReadArgs};
use crate::output::{Out, Progress, say, size};

/// Options of `copy`.
#[derive(Args, Debug)]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    #[command(flatten)]
    at: CommitArg,
    /// The new file, which must not exist; with - standard output
    to: PathBuf,
    /// Leave out free pages and fill the others
    #[arg(short, long)]
    compact: bool,
}

/// Copies the store.
pub(crate) fn run(args: &CopyArgs) -> Done {
    let to_stdout = args.to.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::usage("copy", "a store is no text for a terminal")
            .advise("redirect standard output or name a file"));
    }
    // Copies verify what they copy; a compact one reads through the store, so that verifies, too.
    let env = args.store.open_verified_at(&args.at)?;
    interrupt::catch()?;
    let progress = Progress::pages("copying");
    let mut step = |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    };
    let copied = if to_stdout {
        let mut out = Out::new();
        let copied = env.copy_to_writer(&mut out, args.compact, &mut step);
        copied.and_then(|txn| out.finish_io().map(|()| txn).map_err(stream_error))
    } else {
        env.copy_to_path(&args.to, args.compact, &mut step)
    };
    drop(progress);
    let txn = copied.map_err(|error| failed(&error))?;
    if to_stdout {
        return Ok(Code::Fine);
    }
    let what = || format!("look at {}", args.to.display());
    let bytes = std::fs::metadata(&args.to).map_err(|e| Failure::io(what(), &e))?.len();
    let summary = json!({
        "txn": txn.0,
        "path": args.to.display().to_string(),
        "bytes": bytes,
        "compact": args.compact,
    });
    let text = format!("commit {txn} copied to {}, {}", args.to.display(), size(bytes));
    say(args.store.json, &summary, &text)?;
    Ok(Code::Fine)
}

fn stream_error(source: io::Error) -> Error {
    Error::Io { op: "write the copy", path: None, source }
}

const EARLIER: &str = "restore the store from an earlier copy";

fn failed(error: &Error) -> Failure {
    let failure = Failure::store("copy the store", error);
    match error {
        Error::Corrupted { .. } => failure.advise(EARLIER),
        _ => failure,
    }
}
