//! JSON lines: `{"table": T, "key": K, "value": V}` a record, `{"table": T}` a table. Bytes are a
//! string if they are UTF-8, else `{"base64": "..."}`.

use std::io::BufRead;

use serde_json::{Map, Value};
use zubilo::TableOptions;

use super::{Entry, Event, Lines, Reader, Stop, Writer};
use crate::encoding::{from_json, to_json};
use crate::failure::Done;
use crate::output::Out;

/// Reads records.
pub(crate) struct JsonlReader<R> {
    lines: Lines<R>,
    /// The table of records that name none.
    default_table: Vec<u8>,
}

impl<R: BufRead> JsonlReader<R> {
    pub(crate) fn new(input: R, default_table: Vec<u8>) -> JsonlReader<R> {
        JsonlReader { lines: Lines::new(input), default_table }
    }

    fn take(&self, object: &Map<String, Value>, into: &mut Entry) -> Result<Event, String> {
        let known = ["table", "key", "value"];
        if let Some(other) = object.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("unknown field \"{other}\": table, key and value expected"));
        }
        let fill = |name: &str, out: &mut Vec<u8>| match object.get(name) {
            None => Ok(false),
            Some(value) => {
                let bytes = from_json(value).map_err(|cause| format!("{name}: {cause}"))?;
                out.clear();
                out.extend_from_slice(&bytes);
                Ok::<_, String>(true)
            }
        };
        let named = fill("table", &mut into.table)?;
        if !named {
            into.table.clone_from(&self.default_table);
        }
        match (fill("key", &mut into.key)?, fill("value", &mut into.value)?) {
            (true, true) => Ok(Event::Record),
            (false, false) if named => Ok(Event::Table),
            (false, _) => Err("the field \"key\" is missing".into()),
            (true, false) => Err("the field \"value\" is missing".into()),
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
        let value: Value = match serde_json::from_slice(self.lines.line()) {
            Ok(value) => value,
            Err(error) => {
                let text = error.to_string();
                // The line inside of the line is always the first one.
                let text = text.replace(" at line 1 column ", " at column ");
                return Err(self.lines.bad(format!("bad JSON: {text}")));
            }
        };
        let Value::Object(object) = value else {
            return Err(self.lines.bad("a JSON object expected"));
        };
        self.take(&object, into).map(Some).map_err(|cause| self.lines.bad(cause))
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
}

impl JsonlWriter {
    pub(crate) fn new(out: Out) -> JsonlWriter {
        JsonlWriter { out, table: String::new(), line: String::new() }
    }
}

impl Writer for JsonlWriter {
    fn table(&mut self, name: &[u8], _: &TableOptions) -> Done<()> {
        self.table = to_json(name).to_string();
        self.out.line(&format!("{{\"table\":{}}}", self.table))
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Done<()> {
        use std::fmt::Write;
        self.line.clear();
        let (key, value) = (to_json(key), to_json(value));
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
    use crate::formats::Bad;

    #[test]
    fn bad_lines_are_named() {
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
            let mut reader = JsonlReader::new(input.as_bytes(), b"main".to_vec());
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
