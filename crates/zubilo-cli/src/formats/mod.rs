//! The formats of `load` and `dump`. A reader gives tables and records one by one from a stream, a
//! writer takes them; neither holds more than one record.

mod csv;
mod jsonl;
mod text;

use std::io::{self, BufRead};
use std::path::Path;

use clap::ValueEnum;
use zubilo::TableOptions;

pub(crate) use self::csv::{CsvReader, CsvWriter, Shape as CsvShape};
pub(crate) use self::jsonl::{JsonlReader, JsonlWriter};
pub(crate) use self::text::{Store, TextReader, TextWriter};

use crate::failure::{Code, Done, Failure};

/// Formats by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The format of `mdb_dump`: hex digits
    Bytevalue,
    /// The format of `mdb_dump -p`: printable characters as they are
    Print,
    /// Comma-separated: table, key, value
    Csv,
    /// One JSON object a line
    Jsonl,
}

impl Format {
    /// The format that a file's name implies; `mdb_dump`'s if it implies none.
    pub(crate) fn of_file(path: &Path) -> Format {
        match path.extension().and_then(|e| e.to_str()) {
            Some("csv") => Format::Csv,
            Some("jsonl" | "ndjson") => Format::Jsonl,
            _ => Format::Bytevalue,
        }
    }
}

/// What a reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A table, which may have no records.
    Table,
    /// A record of `Entry::table`.
    Record,
}

/// What a reader fills; used again for every record.
#[derive(Default, Debug)]
pub(crate) struct Entry {
    pub(crate) table: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// What is fixed about the table; none if the format does not say.
    pub(crate) options: Option<TableOptions>,
}

/// What is wrong with the input, and where.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) line: u64,
    pub(crate) cause: String,
}

/// Why a reader stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    Bad(Bad),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

/// A stream of tables and records.
pub(crate) trait Reader {
    /// The next table or record; none at the end.
    fn next(&mut self, into: &mut Entry) -> Result<Option<Event>, Stop>;

    /// The line where the last event began.
    fn line(&self) -> u64;
}

/// Takes tables and records.
pub(crate) trait Writer {
    /// Before the records of a table.
    fn table(&mut self, name: &[u8], options: &TableOptions) -> Done<()>;

    /// A record of the table named last.
    fn record(&mut self, key: &[u8], value: &[u8]) -> Done<()>;

    /// After the records of a table.
    fn table_end(&mut self) -> Done<()> {
        Ok(())
    }

    /// At the end of all: what is still buffered goes out.
    fn finish(self: Box<Self>) -> Done<()>;

    /// Whether a table without records leaves a trace in this format.
    fn keeps_empty_tables(&self) -> bool {
        true
    }

    /// Whether the format records orders and duplicates of tables.
    fn keeps_options(&self) -> bool {
        false
    }
}

/// The failure of a record that the format cannot carry.
fn unprintable(cause: String) -> Failure {
    Failure::new(Code::Other, "dump", cause)
}

/// Lines of the input, counted.
struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Lines<R> {
        Lines { input, buffer: Vec::new(), number: 0 }
    }

    /// Reads the next line; false at the end. [`Lines::line`] gives it without its end.
    fn advance(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let read = self.input.read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        Ok(true)
    }

    fn line(&self) -> &[u8] {
        &self.buffer
    }

    fn bad(&self, cause: impl Into<String>) -> Stop {
        Stop::Bad(Bad { line: self.number, cause: cause.into() })
    }
}
