//! `zubilo chk`: every page of the newest commit and the account of all pages.

use clap::Args;
use serde_json::{Value, json};
use zubilo::{CheckReport, Error, PROBLEMS_MAX, Problem, TxnId};

use crate::encoding::{escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt;
use crate::opening::{CommitArg, ReadArgs, untrusted_text};
use crate::output::{Out, Progress, count, pairs, records};

/// Options of `chk`.
#[derive(Args, Debug)]
pub(crate) struct ChkArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    #[command(flatten)]
    at: CommitArg,
    /// Print nothing if all is well
    #[arg(short, long)]
    quiet: bool,
    /// Also fail if the file holds a newer commit that is not trusted
    #[arg(long)]
    strict: bool,
}

/// Checks the store while others use it.
pub(crate) fn run(args: &ChkArgs) -> Done {
    let env = args.store.open_to_report_at(&args.at)?;
    let untrusted = env.info().doing("read the figures")?.untrusted;
    // Whoever has chosen an older commit knows that there are newer ones.
    let untrusted = untrusted.filter(|_| args.at.commit.is_none());
    interrupt::catch()?;
    let progress = Progress::pages("checking");
    let checked = env.check(&mut |done, all| {
        progress.set_of(done, all);
        !interrupt::came()
    });
    drop(progress);
    let report = checked.map_err(|error| failed(args, &error))?;
    let is_ok = report.is_ok() && !(args.strict && untrusted.is_some());
    let code = if is_ok { Code::Fine } else { Code::Damaged };
    match print(args, &report, untrusted, is_ok) {
        // A damaged store stays damaged when nobody listens.
        Err(failure) if failure.pipe => Ok(code),
        printed => printed.map(|()| code),
    }
}

fn failed(args: &ChkArgs, error: &Error) -> Failure {
    let failure = Failure::store(format!("check {}", args.store.store.display()), error);
    match error {
        Error::Corrupted { .. } => failure.advise(RESTORE),
        _ => failure,
    }
}

const RESTORE: &str = "restore from a copy, or try `zubilo salvage`";

fn print(args: &ChkArgs, report: &CheckReport, untrusted: Option<TxnId>, is_ok: bool) -> Done<()> {
    let mut out = Out::new();
    if args.store.json {
        let mut json = to_value(report);
        json["untrusted"] = untrusted.map(|txn| txn.0).into();
        out.json(&json)?;
    } else if !args.quiet || !is_ok || untrusted.is_some() {
        for problem in &report.problems {
            out.line(&show_problem(problem))?;
        }
        out.line(&show(report))?;
        if let Some(txn) = untrusted {
            out.line(&format!("note: {}", untrusted_text(txn)))?;
        }
    }
    out.finish()
}

fn to_value(report: &CheckReport) -> Value {
    let problem = |p: &Problem| {
        json!({
            "page": p.page.0,
            "table": p.table.as_deref().map(to_json),
            "reason": p.reason,
        })
    };
    json!({
        "ok": report.is_ok(),
        "txn": report.txn.0,
        "tables": report.tables,
        "entries": report.entries,
        "pages": report.pages,
        "leaf_pages": report.leaf_pages,
        "branch_pages": report.branch_pages,
        "run_pages": report.run_pages,
        "free_space_log_pages": report.free_space_log_pages,
        "redo_log_pages": report.redo_log_pages,
        "free_pages": report.free_pages,
        "retired_pages": report.retired_pages,
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
    })
}

fn show_problem(problem: &Problem) -> String {
    let place = match problem.table.as_deref() {
        None => String::new(),
        Some([]) => ", table of tables".to_string(),
        Some(name) => format!(", table \"{}\"", escape(name)),
    };
    format!("page {}{place}: {}", problem.page, problem.reason)
}

fn show(report: &CheckReport) -> String {
    let verdict = match report.problems.len() {
        0 => "all is well".to_string(),
        1 => format!("1 problem; {RESTORE}"),
        n => {
            let more = if n >= PROBLEMS_MAX { " or more" } else { "" };
            format!("{}{more} problems; {RESTORE}", count(n as u64))
        }
    };
    let redo_log = match report.redo_log_pages {
        0 => String::new(),
        pages => format!("{} of the redo log, ", count(pages)),
    };
    let pages = format!(
        "{}: 4 metas, {} leaves, {} branches, {} of large values, {} of the free-space log, {redo_log}{} free, {} held back",
        count(report.pages),
        count(report.leaf_pages),
        count(report.branch_pages),
        count(report.run_pages),
        count(report.free_space_log_pages),
        count(report.free_pages),
        count(report.retired_pages),
    );
    pairs(&[
        ("commit", report.txn.to_string()),
        ("tables", format!("{} with {}", count(report.tables), records(report.entries))),
        ("pages", pages),
        ("result", verdict),
    ])
}
