//! `zubilo completions` and `zubilo man`: what shells and `man` want, made from the definition of the
//! command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::{Code, Done, Failure};
use crate::output::{Out, say};

/// Options of `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Options of `man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder for the pages, one for each command; it is made if it is missing. Without it the page
    /// of the whole command goes to standard output
    folder: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "zubilo", &mut script);
    let mut out = Out::new();
    out.bytes(&script)?;
    out.finish()?;
    Ok(Code::Fine)
}

/// Prints the manual page, or writes those of all commands.
pub(crate) fn man(args: &ManArgs) -> Done {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let made = clap_mangen::Man::new(crate::Cli::command()).render(&mut page);
        made.map_err(|e| Failure::io("make the page", &e))?;
        let mut out = Out::new();
        out.bytes(&page)?;
        out.finish()?;
        return Ok(Code::Fine);
    };
    let failed = |e| Failure::io(format!("write the pages into {}", folder.display()), &e);
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(crate::Cli::command(), folder).map_err(failed)?;
    say(false, &serde_json::Value::Null, &format!("pages written into {}", folder.display()))?;
    Ok(Code::Fine)
}
