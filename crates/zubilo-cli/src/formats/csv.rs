//! Comma-separated values: a line of names, then a line a record with the columns `table`, `key` and
//! `value`. Fields are text as it is, or in the encodings that the command line chose; those the names of
//! columns name it (`value:hex`), so that an export can be read back without options.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use csv::{ByteRecord, ErrorKind, ReaderBuilder, Terminator, WriterBuilder};
use serde_json::Value;
use zubilo::TableOptions;

use super::{Bad, Entry, Event, Reader, Stop, Writer, unprintable};
use crate::encoding::{Encoding, EncodingArgs, Encodings, TableEncodings, clip, escape};
use crate::failure::{Code, Done, Failure};
use crate::output::Out;

/// How the columns are found and read.
pub(crate) struct Shape {
    pub(crate) encodings: TableEncodings,
    pub(crate) delimiter: u8,
    /// The first line is a record.
    pub(crate) no_header: bool,
    pub(crate) key_column: OsString,
    /// The columns that the value is made of; none: the column `value`, or else all others.
    pub(crate) value_columns: Vec<OsString>,
    /// The table of records that name none.
    pub(crate) default_table: Vec<u8>,
}

/// Reads records.
pub(crate) struct CsvReader<R> {
    input: csv::Reader<R>,
    shape: Shape,
    record: ByteRecord,
    columns: Option<Rc<Columns>>,
    line: u64,
}

/// Where the fields stand.
struct Columns {
    table: Option<Column>,
    key: Column,
    value: Fields,
    /// How many columns there are.
    count: usize,
}

/// What a value is made of.
enum Fields {
    One(Column),
    /// A JSON object of these columns, by name.
    Object(Vec<(String, usize)>),
}

/// A column and how its fields are written, if the first line says so.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Column {
    at: usize,
    encoding: Option<Encoding>,
}

/// A column's name with the encoding of its fields, which text needs not.
fn title(name: &str, encoding: Encoding) -> String {
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
        if self.shape.no_header {
            let column = |at| Column { at, encoding: None };
            let value = |at| Fields::One(column(at));
            return match count {
                2 => Ok(Columns { table: None, key: column(0), value: value(1), count }),
                3 => Ok(Columns { table: Some(column(0)), key: column(1), value: value(2), count }),
                _ => Err(self.bad(format!(
                    "{count} columns: key and value, or table, key and value expected"
                ))),
            };
        }
        let key = self.must_find(&self.shape.key_column, "--key-column, or --no-header")?;
        let table = self.find(b"table").filter(|table| table.at != key.at);
        let others = |at: &usize| *at != key.at && table.is_none_or(|table| *at != table.at);
        let named = |at: usize| (escape(self.field(at)).into_owned(), at);
        let value = match self.shape.value_columns.as_slice() {
            [] => match self.find(b"value").filter(|value| others(&value.at)) {
                Some(value) => Fields::One(value),
                None => Fields::Object((0..count).filter(others).map(named).collect()),
            },
            [one] => Fields::One(self.must_find(one, "--value-column")?),
            many => {
                let found = many.iter().map(|name| self.must_find(name, "--value-column"));
                let found = found.collect::<Result<Vec<_>, Stop>>()?;
                Fields::Object(found.iter().map(|column| named(column.at)).collect())
            }
        };
        if let Fields::One(value) = &value
            && table.is_some_and(|table| table.at == value.at)
        {
            return Ok(Columns { table: None, key, value: Fields::One(*value), count });
        }
        Ok(Columns { table, key, value, count })
    }

    fn must_find(&self, name: &OsString, how: &str) -> Result<Column, Stop> {
        self.find(name.as_bytes()).ok_or_else(|| {
            let name = escape(name.as_bytes()).into_owned();
            let there: Vec<_> =
                self.record.iter().take(20).map(|field| escape(clip(field))).collect();
            let there = there.join(", ");
            self.bad(format!("the first line names no column \"{name}\", but {there}: use {how}"))
        })
    }

    /// The column with this name, to which it may add how its fields are written.
    fn find(&self, name: &[u8]) -> Option<Column> {
        let whole = self.record.iter().position(|field| field == name);
        whole.map(|at| Column { at, encoding: None }).or_else(|| {
            self.record.iter().enumerate().find_map(|(at, field)| {
                let encoding = field.strip_prefix(name)?.strip_prefix(b":")?;
                Some(Column { at, encoding: Some(Encoding::of_name(encoding)?) })
            })
        })
    }

    fn field(&self, at: usize) -> &[u8] {
        self.record.get(at).unwrap_or_default()
    }

    fn decode(
        &self,
        Column { at, encoding }: Column,
        usual: Encoding,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let field = self.field(at);
        *out = encoding.unwrap_or(usual).decode(field).map_err(|cause| {
            self.bad(format!("column {}, \"{}\": {cause}", at + 1, escape(clip(field))))
        })?;
        Ok(())
    }

    /// A JSON object of some fields, in the order of the columns. What is no UTF-8 has no place in one.
    fn object(&self, columns: &[(String, usize)], out: &mut Vec<u8>) -> Result<(), Stop> {
        out.clear();
        out.push(b'{');
        for (i, (name, at)) in columns.iter().enumerate() {
            let field = self.field(*at);
            let text = std::str::from_utf8(field).map_err(|_| {
                let shown = escape(clip(field));
                self.bad(format!("column {}, \"{shown}\": not UTF-8, no text for JSON", at + 1))
            })?;
            if i > 0 {
                out.push(b',');
            }
            let pair = format!("{}:{}", Value::from(name.as_str()), Value::from(text));
            out.extend_from_slice(pair.as_bytes());
        }
        out.push(b'}');
        Ok(())
    }
}

impl<R: Read> Reader for CsvReader<R> {
    fn next(&mut self, into: &mut Entry) -> Result<Option<Event>, Stop> {
        if !self.advance()? {
            return Ok(None);
        }
        let columns = match &self.columns {
            Some(columns) => Rc::clone(columns),
            None => {
                let columns = Rc::new(self.find_columns()?);
                self.columns = Some(Rc::clone(&columns));
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
            Some(table) => self.decode(table, Encoding::Text, &mut into.table)?,
            None => into.table.clone_from(&self.shape.default_table),
        }
        let of = self.shape.encodings.of(&into.table).map_err(|cause| self.bad(cause))?;
        self.decode(columns.key, of.key, &mut into.key)?;
        match &columns.value {
            Fields::One(column) => self.decode(*column, of.value, &mut into.value)?,
            Fields::Object(columns) => self.object(columns, &mut into.value)?,
        }
        Ok(Some(Event::Record))
    }

    fn line(&self) -> u64 {
        self.line
    }
}

/// Writes records.
pub(crate) struct CsvWriter {
    /// What was asked for, or is usual.
    usual: Encodings,
    /// What follows from the tables themselves.
    known: BTreeMap<Vec<u8>, Encodings>,
    names: Encoding,
    out: csv::Writer<Out>,
    /// The fields of values that are JSON objects, in place of the column `value`.
    columns: Vec<String>,
    /// There is one table only, so it needs no column.
    nameless: bool,
    /// The table's name as a field, and how its records are written.
    table: String,
    now: Encodings,
    named: bool,
}

impl CsvWriter {
    /// Writes fields as was asked for, or else as `usual` says.
    pub(crate) fn new(out: Out, given: EncodingArgs, usual: Encoding, delimiter: u8) -> CsvWriter {
        let mut builder = WriterBuilder::new();
        builder.delimiter(delimiter).terminator(Terminator::Any(b'\n'));
        let out = builder.from_writer(out);
        let usual = Encodings { key: given.key_or(usual), value: given.value_or(usual) };
        // Names are text, or bytes that escapes carry.
        let names = match (usual.key, usual.value) {
            (Encoding::Text, Encoding::Text) => Encoding::Text,
            _ => Encoding::Escaped,
        };
        CsvWriter {
            usual,
            known: BTreeMap::new(),
            names,
            out,
            columns: Vec::new(),
            nameless: false,
            table: String::new(),
            now: usual,
            named: false,
        }
    }

    /// Some tables are written as their own types imply, which `load` finds out in the same way.
    pub(crate) fn with_known(self, known: BTreeMap<Vec<u8>, Encodings>) -> CsvWriter {
        CsvWriter { known, ..self }
    }

    /// Values are JSON objects, whose fields become columns.
    pub(crate) fn with_columns(self, columns: Vec<String>, nameless: bool) -> CsvWriter {
        CsvWriter { nameless: nameless && !columns.is_empty(), columns, ..self }
    }

    fn put(&mut self, fields: &[&str]) -> Done<()> {
        let fields = fields.get(usize::from(self.nameless)..).unwrap_or_default();
        self.out.write_record(fields).map_err(|error| match error.into_kind() {
            ErrorKind::Io(error) => Failure::output(&error),
            other => Failure::new(Code::Other, "write a line of CSV", format!("{other:?}")),
        })
    }

    fn head(&mut self) -> Done<()> {
        let (table, key) = (title("table", self.names), title("key", self.usual.key));
        let value = title("value", self.usual.value);
        let columns = std::mem::take(&mut self.columns);
        let mut head = vec![table.as_str(), key.as_str()];
        match columns.is_empty() {
            true => head.push(&value),
            false => head.extend(columns.iter().map(String::as_str)),
        }
        let done = self.put(&head);
        self.columns = columns;
        done
    }
}

/// The fields of a JSON object in columns: texts as they are, other things as JSON, nothing as nothing.
fn fields_of(value: &[u8], columns: &[String]) -> Result<Vec<String>, String> {
    let shown = || format!("the value \"{}\"", escape(clip(value)));
    let parsed: Value =
        serde_json::from_slice(value).map_err(|e| format!("{} is no JSON: {e}", shown()))?;
    let Value::Object(object) = parsed else {
        return Err(format!("{} is no JSON object, which --columns needs", shown()));
    };
    let field = |name: &String| match object.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    Ok(columns.iter().map(field).collect())
}

impl Writer for CsvWriter {
    fn table(&mut self, name: &[u8], _: &TableOptions) -> Done<()> {
        if !self.named {
            self.named = true;
            self.head()?;
        }
        self.table = self.names.encode(name).map_err(unprintable)?.into_owned();
        self.now = self.known.get(name).copied().unwrap_or(self.usual);
        Ok(())
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Done<()> {
        let key = self.now.key.encode(key).map_err(unprintable)?;
        let table = std::mem::take(&mut self.table);
        let done = match self.columns.is_empty() {
            true => {
                let value = self.now.value.encode(value).map_err(unprintable)?;
                self.put(&[&table, &key, &value])
            }
            false => {
                let fields = fields_of(value, &self.columns).map_err(unprintable)?;
                let mut line = vec![table.as_str(), &key];
                line.extend(fields.iter().map(String::as_str));
                self.put(&line)
            }
        };
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
