//! JSON lines: `{"table": T, "key": K, "value": V}` a record, `{"table": T}` a table. Bytes are a
//! string if they are UTF-8, else `{"base64": "..."}`. Numbers are keys of tables that have such; other
//! values are stored as their text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::BufRead;

use serde_json::Value;
use serde_json::value::RawValue;
use zubilo::TableOptions;

use super::{Entry, Event, Lines, Reader, Stop, Writer};
use crate::encoding::{TableEncodings, bytes_of_json, to_json};
use crate::failure::Done;
use crate::output::Out;

/// Reads records.
pub(crate) struct JsonlReader<R> {
    lines: Lines<R>,
    /// The table of records that name none.
    default_table: Vec<u8>,
    /// For numbers.
    encodings: TableEncodings,
}

/// A line's fields, as they stand there.
type Fields<'l> = BTreeMap<String, &'l RawValue>;

impl<R: BufRead> JsonlReader<R> {
    pub(crate) fn new(
        input: R,
        default_table: Vec<u8>,
        encodings: TableEncodings,
    ) -> JsonlReader<R> {
        JsonlReader { lines: Lines::new(input), default_table, encodings }
    }

    fn take(
        default_table: &[u8],
        encodings: &mut TableEncodings,
        fields: &Fields<'_>,
        into: &mut Entry,
    ) -> Result<Event, String> {
        let known = ["table", "key", "value"];
        if let Some(other) = fields.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("unknown field \"{other}\": table, key and value expected"));
        }
        let field = |name: &str| {
            let Some(raw) = fields.get(name) else { return Ok::<_, String>(None) };
            let value: Value = serde_json::from_str(raw.get()).map_err(|e| e.to_string())?;
            let bytes = bytes_of_json(&value).map_err(|cause| format!("{name}: {cause}"))?;
            Ok(Some((bytes.map(Cow::into_owned), raw.get())))
        };
        let neither = |name: &str| format!("{name}: neither a string nor {{\"base64\": \"...\"}}");
        let named = match field("table")? {
            None => false,
            Some((Some(name), _)) => {
                into.table = name;
                true
            }
            Some((None, _)) => return Err(neither("table")),
        };
        if !named {
            into.table = default_table.to_vec();
        }
        match (field("key")?, field("value")?) {
            (Some(key), Some(value)) => {
                let of = encodings.of(&into.table)?;
                into.key = match key {
                    (Some(bytes), _) => bytes,
                    (None, text) if of.key.number().is_some() => {
                        of.key.decode(text.as_bytes()).map_err(|cause| format!("key: {cause}"))?
                    }
                    (None, _) => {
                        let number = "; numbers are keys where the table has such, or with --key";
                        return Err(neither("key") + number);
                    }
                };
                into.value = match value {
                    (Some(bytes), _) => bytes,
                    (None, text) if of.value.number().is_some() => of
                        .value
                        .decode(text.as_bytes())
                        .map_err(|cause| format!("value: {cause}"))?,
                    // Objects, lists and the like are stored as their text.
                    (None, text) => text.as_bytes().to_vec(),
                };
                Ok(Event::Record)
            }
            (None, None) if named => Ok(Event::Table),
            (None, _) => Err("the field \"key\" is missing".into()),
            (Some(_), None) => Err("the field \"value\" is missing".into()),
        }
    }
}

impl<R: BufRead> Reader for JsonlReader<R> {
    fn next(&mut self, into: &mut Entry) -> Result<Option<Event>, Stop> {
        loop {
            if !self.lines.advance()? {
                return Ok(None);
            }
            if !self.lines.line().trim_ascii().is_empty() {
                break;
            }
        }
        let line = self.lines.line();
        let fields: Fields<'_> = match serde_json::from_slice(line) {
            Ok(fields) => fields,
            // A value of another kind is no bad JSON.
            Err(error) if error.is_data() && !line.trim_ascii().starts_with(b"{") => {
                return Err(self.lines.bad("a JSON object expected"));
            }
            Err(error) => {
                let text = error.to_string();
                // The line inside of the line is always the first one.
                let text = text.replace(" at line 1 column ", " at column ");
                return Err(self.lines.bad(format!("bad JSON: {text}")));
            }
        };
        JsonlReader::<R>::take(&self.default_table, &mut self.encodings, &fields, into)
            .map(Some)
            .map_err(|cause| self.lines.bad(cause))
    }

    fn line(&self) -> u64 {
        self.lines.number
    }
}

/// Writes records.
pub(crate) struct JsonlWriter {
    out: Out,
    /// The table's name as JSON.
    table: String,
    line: String,
    /// Values that are JSON objects or lists are written as such.
    as_json: bool,
}

impl JsonlWriter {
    pub(crate) fn new(out: Out) -> JsonlWriter {
        JsonlWriter { out, table: String::new(), line: String::new(), as_json: false }
    }

    /// Values that are JSON objects or lists as such, in place of strings that hold them.
    pub(crate) fn with_json_values(self) -> JsonlWriter {
        JsonlWriter { as_json: true, ..self }
    }
}

/// The text of a value that is a JSON object or list, if it fits in a line and is read as the same
/// bytes again.
fn json_text(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let bare = text.starts_with(['{', '[']) && text.ends_with(['}', ']']);
    if !bare || text.contains(['\n', '\r']) {
        return None;
    }
    let parsed: Value = serde_json::from_str(text).ok()?;
    matches!(bytes_of_json(&parsed), Ok(None)).then_some(text)
}

impl Writer for JsonlWriter {
    fn table(&mut self, name: &[u8], _: &TableOptions) -> Done<()> {
        self.table = to_json(name).to_string();
        self.out.line(&format!("{{\"table\":{}}}", self.table))
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Done<()> {
        use std::fmt::Write;
        self.line.clear();
        let key = to_json(key);
        let value = match json_text(value).filter(|_| self.as_json) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(to_json(value).to_string()),
        };
        // Writing to a string cannot fail.
        let _ = write!(self.line, "{{\"table\":{},\"key\":{key},\"value\":{value}}}", self.table);
        self.out.line(&self.line)
    }

    fn finish(self: Box<Self>) -> Done<()> {
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Encoding, EncodingArgs};
    use crate::formats::Bad;

    #[test]
    fn bad_lines_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let env = zubilo::Options::new().open(dir.path().join("s")).unwrap();
        let given = EncodingArgs::default();
        let cases = [
            ("{", "bad JSON"),
            ("[1]", "object"),
            ("{\"key\":\"a\"}", "\"value\" is missing"),
            ("{\"value\":\"a\"}", "\"key\" is missing"),
            ("{}", "\"key\" is missing"),
            ("{\"key\":\"a\",\"vlaue\":\"b\"}", "vlaue"),
            ("{\"key\":7,\"value\":\"b\"}", "key: neither"),
            ("{\"key\":{\"base64\":\"*\"},\"value\":\"b\"}", "base64"),
        ];
        for (line, cause) in cases {
            let input = format!("{{\"key\":\"k\",\"value\":\"\"}}\n\n{line}\n");
            let encodings = TableEncodings::new(&env, given, None, Encoding::Escaped);
            let mut reader = JsonlReader::new(input.as_bytes(), b"main".to_vec(), encodings);
            let mut entry = Entry::default();
            assert_eq!(reader.next(&mut entry).unwrap(), Some(Event::Record));
            assert_eq!(entry.table, b"main");
            match reader.next(&mut entry) {
                Err(Stop::Bad(Bad { line: 3, cause: found })) => {
                    assert!(found.contains(cause), "{line}: {found}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
