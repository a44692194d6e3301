//! Lines from a terminal: history over sessions, completion of commands and tables.

use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use zubilo::Env;

use crate::encoding::escape;
use crate::failure::{Code, Done, Failure};

use super::words::COMMANDS;

/// Completes commands, and tables after those that take one.
struct Help {
    env: Env,
}

impl Help {
    fn candidates(&self, line: &str) -> Vec<String> {
        let Some((command, rest)) = line.split_once(char::is_whitespace) else {
            return COMMANDS.iter().map(|(name, ..)| format!("{name} ")).collect();
        };
        match command {
            "use" | "drop" if !rest.contains(char::is_whitespace) => self.tables(),
            "key" | "value" => {
                ["escaped", "text", "hex", "base64", "u32", "u64", "i64", "f64", "json"]
                    .map(str::to_string)
                    .into()
            }
            _ => Vec::new(),
        }
    }

    fn tables(&self) -> Vec<String> {
        let names = self.env.read().and_then(|read| read.tables()).unwrap_or_default();
        let shown = names.iter().map(|name| escape(name).into_owned());
        shown.map(|name| if name.contains(' ') { format!("\"{name}\"") } else { name }).collect()
    }
}

impl Completer for Help {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..pos).unwrap_or(line);
        let start = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = typed.get(start..).unwrap_or_default();
        let mut found = self.candidates(typed);
        found.retain(|candidate| candidate.starts_with(word));
        let pair = |text: String| Pair { display: text.trim_end().to_string(), replacement: text };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Hinter for Help {
    type Hint = String;
}

impl Highlighter for Help {}
impl Validator for Help {}
impl Helper for Help {}

/// The terminal.
pub(super) struct Prompt {
    editor: Editor<Help, DefaultHistory>,
    history: Option<PathBuf>,
}

/// Where the history is kept, if there is a home.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("zubilo").join("history"))
}

fn failed(error: &ReadlineError) -> Failure {
    Failure::new(Code::Other, "read from the terminal", error.to_string())
}

impl Prompt {
    pub(super) fn new(env: &Env, keep: bool) -> Done<Prompt> {
        let mut editor = Editor::new().map_err(|e| failed(&e))?;
        editor.set_helper(Some(Help { env: env.clone() }));
        let history = history().filter(|_| keep);
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        Ok(Prompt { editor, history })
    }

    /// The next line; none at the end of the input. Ctrl-C takes back what was typed.
    pub(super) fn line(&mut self, prompt: &str) -> Done<Option<String>> {
        loop {
            match self.editor.readline(prompt) {
                Ok(line) => {
                    // A line that cannot be remembered is no reason not to do it.
                    let _ = self.editor.add_history_entry(&line);
                    return Ok(Some(line));
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(failed(&error)),
            }
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        let Some(path) = &self.history else { return };
        if let Some(folder) = path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        // Not important enough for a message.
        let _ = self.editor.save_history(path);
    }
}
