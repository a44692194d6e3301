//! Bytes as text and back: how keys, values and names of tables are written on the command line, on
//! the terminal and in files. Every encoding but `text` carries every byte string; `text` refuses
//! what it cannot carry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_PAD_INDIFFERENT};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use zubilo::{Env, Error, KeyOrder, ReadTxn, TableOptions};

use crate::failure::{Done, Failure};
use crate::numbers::{Kind, Number};
use crate::typed::{encodings_of, types_of};

/// Ways to write bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    /// UTF-8 as it is, everything else as \xNN; \\ \n \r \t
    Escaped,
    /// UTF-8 as it is; other bytes are an error
    Text,
    /// Two digits a byte
    Hex,
    /// Base64 with the standard alphabet
    Base64,
    /// A number of one byte; of a table whose order is not integer, like the ones below big-endian
    U8,
    /// A number of two bytes
    U16,
    /// A number of four bytes
    U32,
    /// A number of eight bytes
    U64,
    /// A signed number of one byte, stored so that it sorts, as zubilo-typed does
    I8,
    /// A signed number of two bytes
    I16,
    /// A signed number of four bytes
    I32,
    /// A signed number of eight bytes
    I64,
    /// A float of four bytes, stored so that it sorts
    F32,
    /// A float of eight bytes
    F64,
    /// A number of four bytes in the machine's own order, as integer tables compare it
    U32Native,
    /// A number of eight bytes in the machine's own order
    U64Native,
}

/// The options that choose encodings.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct EncodingArgs {
    /// How keys and values are written, in arguments and in the output [default: escaped; of CSV text]
    #[arg(short, long, value_enum, value_name = "ENC")]
    encoding: Option<Encoding>,
    /// How keys are written, if not as --encoding says: --key u64
    #[arg(
        long,
        visible_alias = "key",
        value_enum,
        value_name = "ENC",
        hide_possible_values = true
    )]
    key_encoding: Option<Encoding>,
    /// How values are written, if not as --encoding says
    #[arg(
        long,
        visible_alias = "value",
        value_enum,
        value_name = "ENC",
        hide_possible_values = true
    )]
    value_encoding: Option<Encoding>,
}

impl EncodingArgs {
    /// Of keys, if nothing was asked for as is `usual`.
    pub(crate) fn key_or(&self, usual: Encoding) -> Encoding {
        self.key_encoding.or(self.encoding).unwrap_or(usual)
    }

    /// Of values, if nothing was asked for as is `usual`.
    pub(crate) fn value_or(&self, usual: Encoding) -> Encoding {
        self.value_encoding.or(self.encoding).unwrap_or(usual)
    }
}

/// How the keys and values of a table are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encodings {
    pub(crate) key: Encoding,
    pub(crate) value: Encoding,
}

impl EncodingArgs {
    /// For one table: as was asked for; else as its order and types imply, else as `usual` says. What the
    /// table that does not exist yet will be is in `new`.
    pub(crate) fn of_table(
        &self,
        read: &ReadTxn,
        name: &[u8],
        new: Option<&TableOptions>,
        usual: Encoding,
    ) -> zubilo::Result<Encodings> {
        let options = match read.table_options(name) {
            Ok(options) => options,
            Err(Error::NoSuchTable { .. }) => new.cloned().unwrap_or_default(),
            Err(error) => return Err(error),
        };
        let types = types_of(read, name)?;
        let (key, value) = types.as_deref().map_or((None, None), encodings_of);
        let first = match read.table(name) {
            Ok(table) => table.first()?,
            // A program's own order.
            Err(_) => None,
        };
        let values = if options.has_duplicates() { options.values() } else { KeyOrder::Bytes };
        let known = |order, known: Option<Encoding>, first: Option<&[u8]>| match (known, order) {
            (None, KeyOrder::Integer) => native(first),
            (known, _) => known.unwrap_or(usual),
        };
        let key = known(options.keys(), key, first.map(|(key, _)| key));
        let value = known(values, value, first.map(|(_, value)| value));
        Ok(Encodings {
            key: self.key_or(key).in_order(options.keys()),
            value: self.value_or(value).in_order(values),
        })
    }
}

/// How the keys and values of each table are written, found out when the table is met.
pub(crate) struct TableEncodings {
    env: Env,
    given: EncodingArgs,
    /// What tables will be that are not there yet.
    new: Option<TableOptions>,
    usual: Encoding,
    known: HashMap<Vec<u8>, Encodings>,
}

impl TableEncodings {
    pub(crate) fn new(
        env: &Env,
        given: EncodingArgs,
        new: Option<TableOptions>,
        usual: Encoding,
    ) -> TableEncodings {
        TableEncodings { env: env.clone(), given, new, usual, known: HashMap::new() }
    }

    pub(crate) fn of(&mut self, table: &[u8]) -> Result<Encodings, String> {
        if let Some(known) = self.known.get(table) {
            return Ok(*known);
        }
        let read = self.env.read();
        let found =
            read.and_then(|read| self.given.of_table(&read, table, self.new.as_ref(), self.usual));
        let found = found.map_err(|error| format!("the table \"{}\": {error}", escape(table)))?;
        self.known.insert(table.to_vec(), found);
        Ok(found)
    }
}

/// Numbers of the width that the first has: all in a table have the same.
fn native(first: Option<&[u8]>) -> Encoding {
    match first.map(<[u8]>::len) {
        None | Some(8) => Encoding::U64Native,
        Some(4) => Encoding::U32Native,
        Some(_) => Encoding::Escaped,
    }
}

impl Encoding {
    /// As the command line and the heads of CSV call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Escaped => "escaped",
            Encoding::Text => "text",
            Encoding::Hex => "hex",
            Encoding::Base64 => "base64",
            Encoding::U8 => "u8",
            Encoding::U16 => "u16",
            Encoding::U32 => "u32",
            Encoding::U64 => "u64",
            Encoding::I8 => "i8",
            Encoding::I16 => "i16",
            Encoding::I32 => "i32",
            Encoding::I64 => "i64",
            Encoding::F32 => "f32",
            Encoding::F64 => "f64",
            Encoding::U32Native => "u32-native",
            Encoding::U64Native => "u64-native",
        }
    }

    /// The number that it writes, if it writes one.
    pub(crate) fn number(self) -> Option<Number> {
        Some(match self {
            Encoding::Escaped | Encoding::Text | Encoding::Hex | Encoding::Base64 => return None,
            Encoding::U8 => Number::new(Kind::Unsigned, 1),
            Encoding::U16 => Number::new(Kind::Unsigned, 2),
            Encoding::U32 => Number::new(Kind::Unsigned, 4),
            Encoding::U64 => Number::new(Kind::Unsigned, 8),
            Encoding::I8 => Number::new(Kind::Signed, 1),
            Encoding::I16 => Number::new(Kind::Signed, 2),
            Encoding::I32 => Number::new(Kind::Signed, 4),
            Encoding::I64 => Number::new(Kind::Signed, 8),
            Encoding::F32 => Number::new(Kind::Float, 4),
            Encoding::F64 => Number::new(Kind::Float, 8),
            Encoding::U32Native => Number::native(4),
            Encoding::U64Native => Number::native(8),
        })
    }

    /// Of a table that compares native numbers, numbers are such.
    fn in_order(self, order: KeyOrder) -> Encoding {
        match (order, self) {
            (KeyOrder::Integer, Encoding::U32) => Encoding::U32Native,
            (KeyOrder::Integer, Encoding::U64) => Encoding::U64Native,
            _ => self,
        }
    }

    pub(crate) fn of_name(name: &[u8]) -> Option<Encoding> {
        Encoding::value_variants().iter().copied().find(|e| e.name().as_bytes() == name)
    }

    /// Writes `bytes` as text.
    pub(crate) fn encode<'b>(self, bytes: &'b [u8]) -> Result<Cow<'b, str>, String> {
        match self {
            Encoding::Escaped => Ok(escape(bytes)),
            Encoding::Text => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| {
                format!(
                    "\"{}\" is not UTF-8: use another --encoding, such as escaped",
                    escape(clip(bytes))
                )
            }),
            Encoding::Hex => Ok(hex(bytes).into()),
            Encoding::Base64 => Ok(STANDARD.encode(bytes).into()),
            number => match number.number().and_then(|n| n.show(bytes)) {
                Some(text) => Ok(text.into()),
                None => Err(format!(
                    "\"{}\" is no {}: it has {} bytes; use another --encoding",
                    escape(clip(bytes)),
                    self.name(),
                    bytes.len()
                )),
            },
        }
    }

    /// Reads what [`Encoding::encode`] wrote.
    pub(crate) fn decode(self, text: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Encoding::Escaped => unescape(text),
            Encoding::Text => Ok(text.to_vec()),
            Encoding::Hex => unhex(text),
            Encoding::Base64 => {
                STANDARD_PAD_INDIFFERENT.decode(text).map_err(|e| format!("bad base64: {e}"))
            }
            number => {
                let text = std::str::from_utf8(text).map_err(|_| "no number".to_string())?;
                number.number().map_or_else(|| Ok(Vec::new()), |n| n.read(text.trim()))
            }
        }
    }

    /// As JSON: a number where it is one, else bytes as [`to_json`] has them.
    pub(crate) fn to_json(self, bytes: &[u8]) -> Value {
        let number = self.number().and_then(|number| number.show(bytes));
        number.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| to_json(bytes))
    }

    /// For a message.
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        let number = self.number().and_then(|number| number.show(bytes));
        number.unwrap_or_else(|| escape(clip(bytes)).into_owned())
    }

    /// Decodes an argument; `what` names it.
    pub(crate) fn argument(self, what: &str, text: &OsStr) -> Done<Vec<u8>> {
        self.decode(text.as_bytes()).map_err(|cause| {
            let given = String::from_utf8_lossy(clip(text.as_bytes())).into_owned();
            let failure = Failure::usage(format!("read {what} \"{given}\""), cause);
            failure.advise(format!(
                "it is read as {}: docs/cli.md describes the encodings",
                self.name()
            ))
        })
    }
}

/// The start of long bytes, for messages.
pub(crate) fn clip(bytes: &[u8]) -> &[u8] {
    bytes.get(..40).unwrap_or(bytes)
}

/// Characters that would move the cursor, hide or turn around what follows.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || c == '\u{feff}'
}

/// UTF-8 as it is, everything else in escapes.
pub(crate) fn escape(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.chars().any(|c| c == '\\' || is_harmful(c))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if is_harmful(c) => push_escapes(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        push_escapes(&mut out, chunk.invalid());
    }
    Cow::Owned(out)
}

fn push_escapes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (value, used) = match rest {
            [b'\\', ..] => (b'\\', 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b't', ..] => (b'\t', 1),
            [b'0', ..] => (0, 1),
            [b'x', high, low, ..] => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => return Err("\\x must be followed by two hex digits".into()),
            },
            _ => return Err("a \\ must be followed by \\, n, r, t, 0 or xNN".into()),
        };
        out.push(value);
        rest = rest.get(used..).unwrap_or_default();
    }
    Ok(out)
}

pub(crate) fn digit(c: u8) -> Option<u8> {
    char::from(c).to_digit(16).map(|d| d as u8)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = |b: &u8| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]];
    bytes.iter().flat_map(digits).collect()
}

pub(crate) fn unhex(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    unhex_into(text, &mut out)?;
    Ok(out)
}

/// Appends the bytes to `out`.
pub(crate) fn unhex_into(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let (pairs, odd) = text.as_chunks::<2>();
    if !odd.is_empty() {
        return Err("an odd number of hex digits".into());
    }
    out.reserve(pairs.len());
    for [high, low] in pairs {
        match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => out.push(high << 4 | low),
            _ => {
                let pair = escape(&[*high, *low]).into_owned();
                return Err(format!("\"{pair}\" is not a pair of hex digits"));
            }
        }
    }
    Ok(())
}

/// Bytes in JSON: a string if they are UTF-8, else `{"base64": "..."}`.
pub(crate) fn to_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// Bytes written in JSON: a string, or `{"base64": "..."}`; none if it is something else.
pub(crate) fn bytes_of_json(value: &Value) -> Result<Option<Cow<'_, [u8]>>, String> {
    match value {
        Value::String(text) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
        Value::Object(object) if object.len() == 1 => match object.get("base64") {
            Some(Value::String(text)) => {
                Encoding::Base64.decode(text.as_bytes()).map(|bytes| Some(Cow::Owned(bytes)))
            }
            Some(_) => Err("an object must be {\"base64\": \"...\"}".into()),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_string_survives() {
        let all: Vec<u8> = (0..=255).collect();
        let samples: [&[u8]; 7] =
            [b"", b"\\", b"a\\x41", "зубило \u{202e}".as_bytes(), &all, b"\xff\xfe\n", b"\\n"];
        for bytes in samples {
            for encoding in [Encoding::Escaped, Encoding::Hex, Encoding::Base64] {
                let text = encoding.encode(bytes).unwrap();
                assert!(!text.chars().any(is_harmful), "{text:?}");
                assert_eq!(encoding.decode(text.as_bytes()).unwrap(), bytes, "{encoding:?}");
            }
            assert_eq!(bytes_of_json(&to_json(bytes)).unwrap().unwrap(), bytes);
        }
        assert_eq!(escape("зуб\t".as_bytes()), "зуб\\t");
        assert!(Encoding::Text.encode(b"\xff").is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [&b"\\"[..], b"\\x4", b"\\xg0", b"\\q"] {
            assert!(unescape(bad).is_err(), "{bad:?}");
        }
        assert!(unhex(b"abc").is_err() && unhex(b"0g").is_err());
        assert!(Encoding::Base64.decode(b"a*bc").is_err());
        for bad in [json!({ "base64": 1 }), json!({ "base64": "*" })] {
            assert!(bytes_of_json(&bad).is_err(), "{bad}");
        }
        for other in [json!(1), json!({}), json!([]), json!({ "base64": "", "more": 1 })] {
            assert!(bytes_of_json(&other).unwrap().is_none(), "{other}");
        }
    }
}
