//! `zubilo copy`: a store of its own from the newest commit, while others go on.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use zubilo::{Env, Error, TxnId};

use crate::failure::{Code, Done, Failure};
use crate::interrupt::{self, Unfinished};
use crate::keys::NewKeyArgs;
use crate::opening::{CommitArg, ReadArgs};
use crate::output::{Out, Progress, note, say, size};

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
    #[command(flatten)]
    key: NewKeyArgs,
    /// Only the changes since this commit, of which there is a copy: `zubilo restore` puts them together
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["compact", "commit"])]
    since: Option<u64>,
}

/// Copies the store.
pub(crate) fn run(args: &CopyArgs) -> Done {
    let to_stdout = args.to.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::usage("copy", "a store is no text for a terminal")
            .advise("redirect standard output or name a file"));
    }
    let like = args.key.options()?;
    // Copies verify what they copy; a compact one reads through the store, so that verifies, too.
    let env = args.store.open_verified_at(&args.at)?;
    interrupt::catch()?;
    let progress = Progress::pages("copying");
    let mut step = |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    };
    let copied = match args.since.map(TxnId) {
        _ if to_stdout => {
            let mut out = Out::new();
            let copied = match args.since.map(TxnId) {
                Some(since) => env.copy_changes_to_writer(since, &mut out, &mut step),
                None => match &like {
                    Some(like) => env.copy_to_writer_as(&mut out, args.compact, like, &mut step),
                    None => env.copy_to_writer(&mut out, args.compact, &mut step),
                },
            };
            copied.and_then(|txn| out.finish_io().map(|()| txn).map_err(stream_error))
        }
        Some(since) => {
            let _unfinished = Unfinished::new([part_of(&args.to)]);
            env.copy_changes_to_path(since, &args.to, &mut step)
        }
        None => match &like {
            Some(like) => env.copy_to_path_as(&args.to, args.compact, like, &mut step),
            None => env.copy_to_path(&args.to, args.compact, &mut step),
        },
    };
    drop(progress);
    let txn = copied.map_err(|error| failed(&error))?;
    if let Some(since) = args.since {
        note_changes(args, &env, since, txn, to_stdout)?;
    }
    if to_stdout {
        return Ok(Code::Fine);
    }
    let what = || format!("look at {}", args.to.display());
    let bytes = std::fs::metadata(&args.to).map_err(|e| Failure::io(what(), &e))?.len();
    let mut summary = json!({
        "txn": txn.0,
        "path": args.to.display().to_string(),
        "bytes": bytes,
        "compact": args.compact,
    });
    let what = match args.since {
        Some(since) => {
            summary["since"] = since.into();
            format!("changes from commit {since} to {txn}")
        }
        None => format!("commit {txn}"),
    };
    let text = format!("{what} copied to {}, {}", args.to.display(), size(bytes));
    say(args.store.json, &summary, &text)?;
    Ok(Code::Fine)
}

/// What a file or stream of changes is called until it is whole.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    let mut part = path.to_path_buf().into_os_string();
    part.push("-part");
    PathBuf::from(part)
}

/// Says what the next changes go on from, where standard output cannot, and what may become of a commit that is not
/// on disk.
fn note_changes(args: &CopyArgs, env: &Env, since: u64, txn: TxnId, to_stdout: bool) -> Done<()> {
    if to_stdout {
        let text =
            format!("changes from commit {since} to {txn}; the next are those --since {txn}");
        note(args.store.json, &text);
    }
    let info = env.info().map_err(|error| Failure::store("look at the store", &error))?;
    if info.steady < txn {
        let text = format!(
            "commit {txn} is not on disk in the store yet: if a power cut takes it back, later changes do not fit"
        );
        note(args.store.json, &text);
    }
    Ok(())
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
