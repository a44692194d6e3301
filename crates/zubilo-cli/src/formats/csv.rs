//! Comma-separated values: a line of names, then a line a record with the columns `table`, `key` and
//! `value`. Fields are text as it is, or in the encodings that the command line chose; those the names of
//! columns tell (`value:hex`), so that what was written is read without being told.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use csv::{ByteRecord, ErrorKind, ReaderBuilder, Terminator, WriterBuilder};
use zubilo::TableOptions;

use super::{Bad, Entry, Event, Reader, Stop, Writer, unprintable};
use crate::encoding::{Encoding, EncodingArgs, clip, escape};
use crate::failure::{Code, Done, Failure};
use crate::output::Out;

/// How the columns are found and read.
pub(crate) struct Shape {
    pub(crate) encoding: EncodingArgs,
    pub(crate) delimiter: u8,
    /// The first line is a record.
    pub(crate) no_header: bool,
    pub(crate) key_column: OsString,
    pub(crate) value_column: OsString,
    /// The table of records that name none.
    pub(crate) default_table: Vec<u8>,
}

/// Reads records.
pub(crate) struct CsvReader<R> {
    input: csv::Reader<R>,
    shape: Shape,
    record: ByteRecord,
    columns: Option<Columns>,
    line: u64,
}

/// Where the fields stand.
#[derive(Clone, Copy)]
struct Columns {
    table: Option<Column>,
    key: Column,
    value: Column,
    /// How many columns there are.
    count: usize,
}

/// A column and how its fields are written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Column {
    at: usize,
    encoding: Encoding,
}

/// A column's name with the encoding of its fields, which text needs not.
fn told(name: &str, encoding: Encoding) -> String {
    match encoding {
        Encoding::Text => name.to_string(),
        other => format!("{name}:{}", other.name()),
    }
}

impl<R: Read> CsvReader<R> {
    pub(crate) fn new(input: R, shape: Shape) -> CsvReader<R> {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(shape.delimiter);
        let (record, columns) = (ByteRecord::new(), None);
        CsvReader { input: builder.from_reader(input), shape, record, columns, line: 0 }
    }

    fn bad(&self, cause: impl Into<String>) -> Stop {
        Stop::Bad(Bad { line: self.line, cause: cause.into() })
    }

    /// Reads a record; false at the end.
    fn advance(&mut self) -> Result<bool, Stop> {
        match self.input.read_byte_record(&mut self.record) {
            Ok(more) => {
                self.line = self.record.position().map_or(self.line, |p| p.line());
                Ok(more)
            }
            Err(error) => match error.into_kind() {
                ErrorKind::Io(error) => Err(Stop::Io(error)),
                other => Err(self.bad(format!("{other:?}"))),
            },
        }
    }

    /// The columns that the first line names, or that a record without names has.
    fn find_columns(&self) -> Result<Columns, Stop> {
        let count = self.record.len();
        let given = self.shape.encoding;
        let (keys, values) = (given.key_or(Encoding::Text), given.value_or(Encoding::Text));
        if self.shape.no_header {
            let key = |at| Column { at, encoding: keys };
            let value = |at| Column { at, encoding: values };
            let table = Column { at: 0, encoding: Encoding::Text };
            return match count {
                2 => Ok(Columns { table: None, key: key(0), value: value(1), count }),
                3 => Ok(Columns { table: Some(table), key: key(1), value: value(2), count }),
                _ => Err(self.bad(format!(
                    "{count} columns: key and value, or table, key and value expected"
                ))),
            };
        }
        let must = |name: &OsString, encoding| {
            self.column(name.as_bytes(), encoding).ok_or_else(|| {
                let name = escape(name.as_bytes()).into_owned();
                self.bad(format!(
                    "the first line names no column \"{name}\": \
                     use --key-column and --value-column, or --no-header"
                ))
            })
        };
        let key = must(&self.shape.key_column, keys)?;
        let value = must(&self.shape.value_column, values)?;
        let table = self.column(b"table", Encoding::Text);
        let table = table.filter(|table| table.at != key.at && table.at != value.at);
        Ok(Columns { table, key, value, count })
    }

    /// The column with this name, to which it may add how its fields are written.
    fn column(&self, name: &[u8], usual: Encoding) -> Option<Column> {
        let whole = self.record.iter().position(|field| field == name);
        whole.map(|at| Column { at, encoding: usual }).or_else(|| {
            self.record.iter().enumerate().find_map(|(at, field)| {
                let encoding = field.strip_prefix(name)?.strip_prefix(b":")?;
                Some(Column { at, encoding: Encoding::of_name(encoding)? })
            })
        })
    }

    fn decode(&self, Column { at, encoding }: Column, out: &mut Vec<u8>) -> Result<(), Stop> {
        let field = self.record.get(at).unwrap_or_default();
        *out = encoding.decode(field).map_err(|cause| {
            self.bad(format!("column {}, \"{}\": {cause}", at + 1, escape(clip(field))))
        })?;
        Ok(())
    }
}

impl<R: Read> Reader for CsvReader<R> {
    fn next(&mut self, into: &mut Entry) -> Result<Option<Event>, Stop> {
        if !self.advance()? {
            return Ok(None);
        }
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                let columns = self.find_columns()?;
                self.columns = Some(columns);
                if !self.shape.no_header && !self.advance()? {
                    return Ok(None);
                }
                columns
            }
        };
        if self.record.len() != columns.count {
            return Err(self.bad(format!(
                "{} columns, the first line has {}",
                self.record.len(),
                columns.count
            )));
        }
        match columns.table {
            Some(at) => self.decode(at, &mut into.table)?,
            None => into.table.clone_from(&self.shape.default_table),
        }
        self.decode(columns.key, &mut into.key)?;
        self.decode(columns.value, &mut into.value)?;
        Ok(Some(Event::Record))
    }

    fn line(&self) -> u64 {
        self.line
    }
}

/// Writes records.
pub(crate) struct CsvWriter {
    keys: Encoding,
    values: Encoding,
    names: Encoding,
    out: csv::Writer<Out>,
    /// The table's name as a field.
    table: String,
    named: bool,
}

impl CsvWriter {
    /// Writes fields as was asked for, or else as `usual` says.
    pub(crate) fn new(out: Out, given: EncodingArgs, usual: Encoding, delimiter: u8) -> CsvWriter {
        let mut builder = WriterBuilder::new();
        builder.delimiter(delimiter).terminator(Terminator::Any(b'\n'));
        let out = builder.from_writer(out);
        let (keys, values) = (given.key_or(usual), given.value_or(usual));
        // Names are text, or bytes that escapes carry.
        let names = match (keys, values) {
            (Encoding::Text, Encoding::Text) => Encoding::Text,
            _ => Encoding::Escaped,
        };
        CsvWriter { keys, values, names, out, table: String::new(), named: false }
    }

    fn put(&mut self, fields: [&str; 3]) -> Done<()> {
        self.out.write_record(fields).map_err(|error| match error.into_kind() {
            ErrorKind::Io(error) => Failure::output(&error),
            other => Failure::new(Code::Other, "write a line of CSV", format!("{other:?}")),
        })
    }
}

impl Writer for CsvWriter {
    fn table(&mut self, name: &[u8], _: &TableOptions) -> Done<()> {
        if !self.named {
            self.named = true;
            let head = [("table", self.names), ("key", self.keys), ("value", self.values)];
            let [table, key, value] = head.map(|(name, encoding)| told(name, encoding));
            self.put([&table, &key, &value])?;
        }
        self.table = self.names.encode(name).map_err(unprintable)?.into_owned();
        Ok(())
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Done<()> {
        let key = self.keys.encode(key).map_err(unprintable)?;
        let value = self.values.encode(value).map_err(unprintable)?;
        let table = std::mem::take(&mut self.table);
        let done = self.put([&table, &key, &value]);
        self.table = table;
        done
    }

    fn finish(self: Box<Self>) -> Done<()> {
        // The writer gives its inner one back only when all is written.
        match self.out.into_inner() {
            Ok(out) => out.finish(),
            Err(error) => Err(Failure::output(error.error())),
        }
    }

    fn keeps_empty_tables(&self) -> bool {
        false
    }
}
