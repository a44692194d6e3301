//! `zubilo copy`: a store of its own from the newest commit, while others go on.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use zubilo::{Env, Error, Options};

use crate::failure::{Code, Done, Failure};
use crate::interrupt;
use crate::opening::ReadArgs;
use crate::output::{Out, Progress, say, size};

/// Options of `copy`.
#[derive(Args, Debug)]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// The new file, which must not exist; with - standard output
    to: PathBuf,
    /// Leave out free pages and fill the others
    #[arg(short, long)]
    compact: bool,
    /// Do not verify what is copied: damage passes into the copy. A compact copy is verified in any case
    #[arg(long, conflicts_with = "compact")]
    no_verify: bool,
}

/// Copies the store.
pub(crate) fn run(args: &CopyArgs) -> Done {
    let to_stdout = args.to.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::usage("copy", "a store is no text for a terminal")
            .advise("redirect standard output or name a file"));
    }
    // A compact copy gets checksums of its own: damage must not pass into it.
    let env = args.store.open_to_read_verified()?;
    interrupt::catch()?;
    if to_stdout && !args.compact && !args.no_verify {
        // What has gone out cannot be taken back.
        verify(&env)?;
    }
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
    if !args.compact && !args.no_verify {
        verify_copy(&args.to)?;
    }
    let what = || format!("look at {}", args.to.display());
    let bytes = std::fs::metadata(&args.to).map_err(|e| Failure::io(what(), &e))?.len();
    let told = json!({
        "txn": txn.0,
        "path": args.to.display().to_string(),
        "bytes": bytes,
        "compact": args.compact,
        "verified": !args.no_verify,
    });
    let text = format!("commit {txn} copied to {}, {}", args.to.display(), size(bytes));
    say(args.store.json, &told, &text)?;
    Ok(Code::Fine)
}

/// Verifies every page of the newest commit.
fn verify(env: &Env) -> Done<()> {
    let progress = Progress::pages("verifying");
    let report = env.check(&mut |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    });
    match report.map_err(|error| failed(&error))?.problems.first() {
        None => Ok(()),
        Some(problem) => {
            let cause = format!("page {} is damaged: {}", problem.page, problem.reason);
            Err(Failure::new(Code::Damaged, "copy the store", cause).advise(EARLIER))
        }
    }
}

/// Verifies the pages that were copied, as they are in the copy; one that holds damage is removed.
fn verify_copy(copy: &Path) -> Done<()> {
    // Nobody else knows of it yet.
    let alone = Options::new().read_only(true).create(false).lock_file(false);
    let opened = alone.open(copy).map_err(|error| failed(&error));
    let verified = opened.and_then(|env| verify(&env));
    if verified.is_err() {
        // Its error says more than one of the removal could.
        let _ = std::fs::remove_file(copy);
    }
    verified
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
