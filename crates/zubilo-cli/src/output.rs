//! Standard output, tables for people, sizes, progress bars.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::time::Duration;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle, presets};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::{Done, Failure};

/// Buffered standard output whose errors are failures of the command. To be finished: what is
/// still buffered when it is dropped may be lost without a word.
pub(crate) struct Out {
    inner: BufWriter<StdoutLock<'static>>,
}

impl Out {
    pub(crate) fn new() -> Out {
        Out { inner: BufWriter::with_capacity(128 << 10, io::stdout().lock()) }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Done<()> {
        self.inner.write_all(bytes).map_err(|e| Failure::output(&e))
    }

    pub(crate) fn line(&mut self, line: &str) -> Done<()> {
        self.bytes(line.as_bytes())?;
        self.bytes(b"\n")
    }

    pub(crate) fn json(&mut self, value: &Value) -> Done<()> {
        self.line(&value.to_string())
    }

    pub(crate) fn finish(self) -> Done<()> {
        self.finish_io().map_err(|e| Failure::output(&e))
    }

    pub(crate) fn finish_io(mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Prints one JSON value, or else a text.
pub(crate) fn say(as_json: bool, value: &Value, text: &str) -> Done<()> {
    let mut out = Out::new();
    if as_json {
        out.json(value)?;
    } else if !text.is_empty() {
        out.line(text)?;
    }
    out.finish()
}

/// A line on standard error. Where nobody can read it (a closed pipe, a full device) the exit code
/// still says how it ended; `eprintln!` would panic.
pub(crate) fn to_stderr(line: &str) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// What an operator should know beside the answer: a line on standard error.
pub(crate) fn note(as_json: bool, text: &str) {
    match as_json {
        true => to_stderr(&json!({ "note": text }).to_string()),
        false => to_stderr(&format!("zubilo: note: {text}")),
    }
}

/// "1.50 MiB".
pub(crate) fn size(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

/// "1,234,567".
pub(crate) fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// "1 record", "2 records".
pub(crate) fn records(number: u64) -> String {
    format!("{} record{}", count(number), if number == 1 { "" } else { "s" })
}

/// One line under the head.
const UNDERLINED: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table with a head; columns from `right_from` on hold numbers.
pub(crate) fn table(head: &[&str], right_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(UNDERLINED).set_header(head);
    for (i, column) in table.column_iter_mut().enumerate() {
        if i >= right_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Two columns without lines: names and what they are.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, value) in rows {
        table.add_row([*name, value.as_str()]);
    }
    table.trim_fmt()
}

/// A progress bar on standard error, drawn only if that is a terminal. It goes away at the end.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of a number of pages that is known later.
    pub(crate) fn pages(what: &'static str) -> Progress {
        let style = "{msg} {wide_bar} {human_pos}/{human_len} pages {eta}";
        Progress::new(what, Some(0), style)
    }

    /// Of a number of bytes, where it is known.
    pub(crate) fn bytes(what: &'static str, total: Option<u64>) -> Progress {
        let style = match total {
            Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "{msg} {spinner} {bytes} {bytes_per_sec}",
        };
        Progress::new(what, total, style)
    }

    /// Of a number of records.
    pub(crate) fn records(what: &'static str, total: u64) -> Progress {
        let style = "{msg} {wide_bar} {human_pos}/{human_len} records {eta}";
        Progress::new(what, Some(total), style)
    }

    fn new(what: &'static str, total: Option<u64>, style: &str) -> Progress {
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        // The templates are constants; the default style serves if one were wrong.
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar }
    }

    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// A line for people above the bar.
    pub(crate) fn note(&self, line: &str) {
        self.bar.suspend(|| to_stderr(line));
    }

    pub(crate) fn set_of(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
