//! `zubilo readers`: who reads, and how far behind.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use zubilo::{Options, ReaderInfo};

use crate::failure::{Code, Doing, Done};
use crate::opening::ReadArgs;
use crate::output::{Out, count, size, table};

/// Options of `readers`.
#[derive(Args, Debug)]
pub(crate) struct ReadersArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// First remove the readers of processes that are gone. Writers do so by themselves when such a reader
    /// holds pages back
    #[arg(long)]
    clean: bool,
}

/// Lists the readers of all processes; exit code 1 if there is none.
pub(crate) fn run(args: &ReadersArgs) -> Done {
    let cleaned = match args.clean {
        true => Some(clean(args)?),
        false => None,
    };
    let env = args.store.open_to_report()?;
    // Before this command reads: it is not one of the readers that are of interest.
    let info = env.info().doing("read the figures")?;
    let space = env.space().doing("read the free-space log")?;
    let held = space.retired_pages.saturating_mul(info.page_size as u64);
    let held_by = |txn| {
        let by = space.held_back.iter().filter(|held| held.txn == txn);
        by.map(|held| held.pages * info.page_size as u64).sum()
    };
    let mut readers: Vec<(ReaderInfo, u64)> =
        info.readers.iter().map(|reader| (reader.clone(), held_by(reader.txn))).collect();
    readers.sort_by_key(|(reader, _)| reader.txn);
    let mut out = Out::new();
    if args.store.json {
        let list: Vec<_> = readers.iter().map(|(reader, held)| to_value(reader, *held)).collect();
        out.json(&json!({
            "readers": list,
            "max_readers": info.max_readers,
            "newest": info.newest.0,
            "held_bytes": held,
            "cleaned": cleaned,
        }))?;
    } else {
        if let Some(cleaned) = cleaned {
            let plural = if cleaned == 1 { "" } else { "s" };
            out.line(&format!("{cleaned} reader{plural} of dead processes removed"))?;
        }
        if !readers.is_empty() {
            out.line(&show(&readers))?;
        }
        let slots = format!("{} of {} slots", count(readers.len() as u64), info.max_readers);
        out.line(&format!("{slots}; {} held back by them or the last flush", size(held)))?;
    }
    out.finish()?;
    Ok(if readers.is_empty() { Code::NotFound } else { Code::Fine })
}

/// Dead readers can be removed by who has the store open for writing.
fn clean(args: &ReadersArgs) -> Done<u32> {
    let env = args.store.open_for(Options::new().create(false), "name an existing store")?;
    env.clean_readers().doing("remove dead readers")
}

/// What a process is called, where the system says.
pub(crate) fn program(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(crate::encoding::escape(name.trim_ascii_end()).into_owned())
}

/// A reader and the bytes that its snapshot holds back by itself.
pub(crate) fn to_value(reader: &ReaderInfo, held: u64) -> Value {
    json!({
        "pid": reader.pid,
        "program": program(reader.pid),
        "thread": reader.thread,
        "txn": reader.txn.0,
        "lag": reader.lag,
        "behind_ms": milliseconds(reader.behind),
        "age_ms": milliseconds(reader.age),
        "held_bytes": held,
        "parked": reader.is_parked,
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn show(readers: &[(ReaderInfo, u64)]) -> String {
    let names = [
        "process",
        "program",
        "thread",
        "snapshot",
        "commits behind",
        "for",
        "holds back",
        "state",
    ];
    let mut shown = table(&names, 2);
    for (reader, held) in readers {
        shown.add_row([
            reader.pid.to_string(),
            program(reader.pid).unwrap_or_else(|| "?".into()),
            reader.thread.to_string(),
            reader.txn.to_string(),
            count(reader.lag),
            format!("{:.1} s", reader.behind.as_secs_f64()),
            size(*held),
            if reader.is_parked { "parked" } else { "reading" }.into(),
        ]);
    }
    shown.trim_fmt()
}
