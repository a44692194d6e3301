//! `zubilo shell`: a prompt at an open store: tables, records, transactions and snapshots. What can be
//! typed is in `words`; lines come from a terminal with history and completion, or from a file.

mod prompt;
mod session;
mod words;

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use zubilo::{Env, Options};

use crate::failure::{Code, Done, Failure};
use crate::opening::{ReadArgs, TableArg};
use crate::output::Out;

use self::prompt::Prompt;
use self::session::{Next, Session};

/// Options of `shell`.
#[derive(Args, Debug)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    #[command(flatten)]
    table: TableArg,
    /// Open for reading only
    #[arg(long)]
    read_only: bool,
    /// Keep no history of what was typed
    #[arg(long)]
    no_history: bool,
}

/// Takes lines until the end of the input, or `quit`. Where lines come from a file the first that fails
/// ends it.
pub(crate) fn run(args: &ShellArgs) -> Done {
    if args.store.json {
        return Err(Failure::usage(
            "shell",
            "it speaks to people: --json is for the other commands",
        ));
    }
    let env = open(args)?;
    let mut session = Session::new(&env, args.table.name()?)?;
    match io::stdin().is_terminal() {
        true => on_terminal(args, &env, &mut session),
        false => from_file(&mut session),
    }
}

fn open(args: &ShellArgs) -> Done<Env> {
    match args.read_only {
        true => args.store.open_to_read(),
        false => args.store.open_for(Options::new().create(false), "name an existing store"),
    }
}

fn on_terminal(args: &ShellArgs, env: &Env, session: &mut Session<'_>) -> Done {
    let mut prompt = Prompt::new(env, !args.no_history)?;
    println!("{}: type help for the commands", args.store.store.display());
    while let Some(line) = prompt.line(&session.prompt())? {
        let mut out = Out::new();
        let next = session.take(&line, &mut out);
        out.finish()?;
        match next {
            Ok(Next::Line) => {}
            Ok(Next::End) => break,
            Err(failure) => crate::output::to_stderr(&failure.to_string()),
        }
    }
    session.farewell();
    Ok(Code::Fine)
}

fn from_file(session: &mut Session<'_>) -> Done {
    let mut worst = Code::Fine;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|e| Failure::io("read standard input", &e))?;
        let mut out = Out::new();
        let next = session.take(&line, &mut out);
        out.finish()?;
        match next {
            Ok(Next::Line) => {}
            Ok(Next::End) => break,
            // That something is not there is an answer.
            Err(failure) if failure.code == Code::NotFound => {
                crate::output::to_stderr(&failure.to_string());
                worst = Code::NotFound;
            }
            Err(failure) => return Err(failure),
        }
    }
    session.farewell();
    Ok(worst)
}
