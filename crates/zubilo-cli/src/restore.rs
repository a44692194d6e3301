//! `zubilo restore`: a new store of a full copy and of the changes since.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use zubilo::Error;

use crate::copy::part_of;
use crate::failure::{Code, Done, Failure};
use crate::interrupt::{self, Unfinished};
use crate::opening::StoreArgs;
use crate::output::{Progress, say, size};

/// Options of `restore`.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The copy, which was not compacted; it is only read
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The new store, which must not exist
    new: PathBuf,
    /// What `zubilo copy --since` wrote, in its order; with - standard input
    changes: Vec<PathBuf>,
}

/// Makes the store.
pub(crate) fn run(args: &RestoreArgs) -> Done {
    if args.changes.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Failure::usage("restore", "standard input can be read once only")
            .advise("name - for one of the changes, and files for the others"));
    }
    let mut changes = Vec::new();
    for path in &args.changes {
        let file: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin().lock()),
            false => {
                let failed = |e| Failure::io(format!("read {}", path.display()), &e);
                Box::new(BufReader::new(File::open(path).map_err(failed)?))
            }
        };
        changes.push(file);
    }
    interrupt::catch()?;
    let _unfinished = Unfinished::new([part_of(&args.new)]);
    let progress = Progress::pages("restoring");
    let mut readers: Vec<&mut dyn Read> = Vec::new();
    changes.iter_mut().for_each(|file| readers.push(file));
    let copy = args.store.file();
    let restored = zubilo::restore(&copy, &mut readers, &args.new, &mut |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    });
    drop(progress);
    let txn = restored.map_err(|error| failed(args, &error))?;
    let what = || format!("look at {}", args.new.display());
    let bytes = std::fs::metadata(&args.new).map_err(|e| Failure::io(what(), &e))?.len();
    let path = args.new.display().to_string();
    let summary = json!({ "txn": txn.0, "path": path, "bytes": bytes });
    say(args.store.json, &summary, &format!("commit {txn} restored to {path}, {}", size(bytes)))?;
    Ok(Code::Fine)
}

fn failed(args: &RestoreArgs, error: &Error) -> Failure {
    let failure = Failure::store(format!("restore {}", args.new.display()), error);
    match error {
        Error::Corrupted { .. } => failure.advise("restore from an earlier copy"),
        Error::ForeignChanges { .. } => failure.advise(
            "name the changes in the order in which they were made, each once, all of one history",
        ),
        _ => failure,
    }
}
