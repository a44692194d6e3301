//! `zubilo compact`: the store made smaller in its place, while others go on.

use clap::Args;
use serde_json::json;
use zubilo::{CompactOptions, CompactReport, Error};

use crate::encoding::{escape, to_json};
use crate::failure::{Code, Done, Failure};
use crate::interrupt;
use crate::opening::{StoreArgs, WriteArgs};
use crate::output::{Progress, count, say, size, to_stderr};

/// Options of `compact`.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    write: WriteArgs,
    /// How full pages are to become: 100 for a store that will only be read, less for one whose records
    /// will grow
    #[arg(long, default_value_t = 98, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(50..=100))]
    fill: u8,
}

/// Compacts the store.
pub(crate) fn run(args: &CompactArgs) -> Done {
    let env = args.store.open_to_write()?;
    // Somebody who writes for minutes is reported now, not waited for in each step.
    args.write.begin(&env)?.abort();
    interrupt::catch()?;
    let progress = Progress::pages("compacting");
    let compacted = env.compact(&CompactOptions::new().fill(args.fill), &mut |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    });
    drop(progress);
    let report = compacted.map_err(|error| failed(&error))?;
    for name in &report.left_alone {
        to_stderr(&format!(
            "zubilo: compact: table \"{}\" is in a caller's order and was left alone",
            escape(name)
        ));
    }
    let summary = json!({
        "finished": report.finished,
        "file_before": report.file_before,
        "file_after": report.file_after,
        "used_before": report.used_before,
        "used_after": report.used_after,
        "commits": report.commits,
        "pages_saved": report.pages_saved,
        "pages_moved": report.pages_moved,
        "held_bytes": report.held,
        "held_by": report.held_by.as_ref().map(|r| json!({ "pid": r.pid, "txn": r.txn.0 })),
        "left_alone": report.left_alone.iter().map(|name| to_json(name)).collect::<Vec<_>>(),
    });
    say(args.store.json, &summary, &text(&report))?;
    Ok(if interrupt::came() { Code::Interrupted } else { Code::Fine })
}

fn text(report: &CompactReport) -> String {
    let (before, after) = (size(report.file_before), size(report.file_after));
    let mut text = format!("{before} before, {after} after");
    if report.commits == 0 {
        text.push_str(match report.file_after < report.file_before {
            true => "; the free end was cut off, there was nothing else to do",
            false => "; there was nothing to do",
        });
    } else {
        let (saved, moved) = (count(report.pages_saved), count(report.pages_moved));
        text.push_str(&format!("; {saved} pages saved, {moved} moved, {} commits", report.commits));
    }
    if let Some(reader) = &report.held_by {
        let held = size(report.held);
        text.push_str(&format!("\n{held} are held by a reader of process {}", reader.pid));
    }
    if !report.finished {
        text.push_str("\nnot finished; what was done stays");
    }
    text
}

fn failed(error: &Error) -> Failure {
    let failure = Failure::store("compact the store", error);
    match error {
        Error::Corrupted { .. } => failure.advise("restore the store from an earlier copy"),
        _ => failure,
    }
}
