//! `zubilo copy`: a store of its own from the newest commit, while others go on.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use zubilo::{Env, Error, TxnId};

use crate::failure::{Code, Done, Failure};
use crate::interrupt::{self, Unfinished};
use crate::keys::NewKeyArgs;
use crate::opening::{CommitArg, ReadArgs, mode_like};
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
    #[command(flatten)]
    key: NewKeyArgs,
    /// Experimental: only the changes since this commit, of which there is a copy
    #[arg(long, value_name = "COMMIT", hide = true, conflicts_with_all = ["compact", "commit"])]
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
        Some(since) => changes_to_path(&env, &args.store.file(), since, &args.to, &mut step),
        None => match &like {
            Some(like) => env.copy_to_path_as(&args.to, args.compact, like, &mut step),
            None => env.copy_to_path(&args.to, args.compact, &mut step),
        },
    };
    drop(progress);
    let txn = copied.map_err(|error| failed(&error))?;
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

/// Writes changes to a new file, all or nothing, with no more rights than those of the store's.
fn changes_to_path(
    env: &Env,
    store: &Path,
    since: TxnId,
    to: &Path,
    step: &mut dyn FnMut(u64, u64) -> bool,
) -> zubilo::Result<TxnId> {
    let failed = |op| {
        let path = Some(Box::new(to.to_path_buf()));
        move |source| Error::Io { op, path, source }
    };
    let mode = std::fs::metadata(store).map_or(0o600, |store| mode_like(&store));
    let file = File::options().write(true).create_new(true).mode(mode).open(to);
    let file = file.map_err(failed("create"))?;
    let _unfinished = Unfinished::new([to.to_path_buf()]);
    let mut out = BufWriter::new(&file);
    let copied = env.copy_changes_to_writer(since, &mut out, step).and_then(|txn| {
        drop(out);
        file.sync_all().map_err(failed("flush"))?;
        Ok(txn)
    });
    if copied.is_err() {
        // The error that ended the work says more than one of the removal could.
        let _ = std::fs::remove_file(to);
    }
    copied
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
