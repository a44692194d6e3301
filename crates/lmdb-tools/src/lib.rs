//! The command line tools of LMDB on Zubilo: the same names, options and output formats.
//!
//! They work through the C interface, with the `liblmdb.so.0` that lies beside them, or else the one
//! that the system's loader finds. `api` wraps its functions, `options` reads arguments, the other
//! modules are a tool each.

mod api;
mod copy;
mod drop;
mod dump;
mod load;
mod options;
mod stat;
mod text;

use std::io::{self, Write};
use std::process::ExitCode;

pub use self::copy::copy;
pub use self::drop::drop;
pub use self::dump::dump;
pub use self::load::load;
pub use self::stat::stat;

/// Why a tool ends without having done its work.
pub enum Stop {
    /// Wrong arguments: how it is called.
    Usage(&'static str),
    /// An option that there is not, or without its value: what is wrong, and how it is called.
    Option(String, &'static str),
    /// Nothing more is to be done: the version was asked for.
    Done,
    /// A line for the standard error output.
    Failed(String),
}

type Result<T, E = Stop> = std::result::Result<T, E>;

/// Runs a tool with the arguments of this process.
pub fn run(name: &str, tool: fn(&[String]) -> Result<()>) -> ExitCode {
    let mut arguments = std::env::args_os().map(|argument| argument.into_string());
    let own = arguments.next().and_then(std::result::Result::ok).unwrap_or_else(|| name.into());
    let arguments: Result<Vec<String>, _> = arguments.collect();
    let Ok(arguments) = arguments else {
        to_stderr(&format!("{own}: an argument is not UTF-8"));
        return ExitCode::FAILURE;
    };
    match tool(&arguments) {
        Ok(()) | Err(Stop::Done) => ExitCode::SUCCESS,
        Err(Stop::Usage(usage)) => {
            to_stderr(&format!("usage: {own} {usage}"));
            ExitCode::FAILURE
        }
        Err(Stop::Option(what, usage)) => {
            to_stderr(&format!("{own}: {what}\nusage: {own} {usage}"));
            ExitCode::FAILURE
        }
        Err(Stop::Failed(line)) => {
            to_stderr(&line.replacen("%s", &own, 1));
            ExitCode::FAILURE
        }
    }
}

/// A line on standard error. Where it cannot be written the exit code still says how it ended;
/// `eprintln!` would panic.
fn to_stderr(line: &str) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// The option `-V`: prints the library's version.
fn show_version() -> Stop {
    match api::version().map(|version| writeln!(io::stdout().lock(), "{version}")) {
        Ok(Ok(())) => Stop::Done,
        Ok(Err(error)) => Stop::Failed(format!("%s: {error}")),
        Err(stop) => stop,
    }
}
