//! The text format of `mdb_dump` and `mdb_load`: a header and pairs of lines for each table.
//!
//! ```text
//! VERSION=3
//! format=bytevalue          or print
//! database=name             left out for the unnamed database
//! type=btree
//! HEADER=END
//!  6b6579                   a space and the key
//!  76616c7565               a space and the value
//! DATA=END
//! ```
//!
//! In `print` a byte outside of printable ASCII, and the backslash, is `\` and two hex digits. Some
//! releases of `mdb_dump` leave the backslash alone, so it is never written bare here: `\5c` means
//! the same to all. A name that fits no line is escaped, and exact in a line `name_hex=`.
//! What LMDB's tables do not have is in `align=` and `counted=`, only where a table has it.
//! `mdb_load` passes over these three words.

use std::io::BufRead;

use zubilo::{KeyOrder, TableOptions};

use super::{Entry, Event, Lines, Reader, Stop, Writer};
use crate::encoding::{Encoding, clip, digit, escape, hex, unhex, unhex_into};
use crate::failure::Done;
use crate::output::Out;

/// Reads both forms of the format.
pub(crate) struct TextReader<R> {
    lines: Lines<R>,
    /// The table of sections without a name.
    default_table: Vec<u8>,
    /// In the data of a section.
    section: Option<Section>,
    begun: u64,
}

#[derive(Clone, Copy, Default)]
struct Section {
    print: bool,
}

/// What a header says.
#[derive(Default)]
struct Header {
    section: Section,
    name: Option<Vec<u8>>,
    exact_name: Option<Vec<u8>>,
    flags: Flags,
}

/// What a header says about the table, by LMDB's names.
#[derive(Default)]
struct Flags {
    reversekey: bool,
    integerkey: bool,
    dupsort: bool,
    dupfixed: bool,
    integerdup: bool,
    reversedup: bool,
    /// Not LMDB's: to how many bytes values are aligned, and whether records are counted.
    align: Option<u8>,
    counted: bool,
}

impl Flags {
    /// The options of a table that sorts so.
    fn options(&self) -> TableOptions {
        // Where two orders are named: of keys the first wins in LMDB, of values the second.
        let keys = match (self.reversekey, self.integerkey) {
            (true, _) => KeyOrder::Reversed,
            (false, true) => KeyOrder::Integer,
            (false, false) => KeyOrder::Bytes,
        };
        let options = TableOptions::new().key_order(keys).align_values(self.align.unwrap_or(1));
        let options = if self.counted { options.counted() } else { options };
        if !self.dupsort {
            return options;
        }
        let values = match (self.reversedup, self.integerdup) {
            (_, true) => KeyOrder::Integer,
            (true, false) => KeyOrder::Reversed,
            (false, false) => KeyOrder::Bytes,
        };
        let options = options.value_order(values);
        if self.dupfixed { options.fixed_duplicates() } else { options }
    }
}

impl<R: BufRead> TextReader<R> {
    pub(crate) fn new(input: R, default_table: Vec<u8>) -> TextReader<R> {
        TextReader { lines: Lines::new(input), default_table, section: None, begun: 0 }
    }

    /// Reads a header; none at the end of the input.
    fn header(&mut self) -> Result<Option<Header>, Stop> {
        loop {
            if !self.lines.advance()? {
                return Ok(None);
            }
            if !self.lines.line().is_empty() {
                break;
            }
        }
        self.begun = self.lines.number;
        if !self.lines.line().starts_with(b"VERSION=") {
            return Err(self.lines.bad(
                "\"VERSION=3\" expected: this is no dump of mdb_dump or zubilo; \
                 for other formats use --format",
            ));
        }
        let mut header = Header::default();
        loop {
            let line = self.lines.line();
            if line == b"HEADER=END" {
                return Ok(Some(header));
            }
            let Some(equals) = line.iter().position(|b| *b == b'=') else {
                let line = escape(clip(line)).into_owned();
                return Err(self.lines.bad(format!("\"{line}\" is no line of a header")));
            };
            let (word, value) = (&line[..equals], &line[equals + 1..]);
            header.field(word, value).map_err(|cause| self.lines.bad(cause))?;
            if !self.lines.advance()? {
                return Err(self.lines.bad("the input ends inside a header"));
            }
        }
    }

    fn begin(&mut self, header: Header, into: &mut Entry) {
        let name = header.exact_name.or(header.name);
        into.table = name.unwrap_or_else(|| self.default_table.clone());
        into.options = Some(header.flags.options());
        self.section = Some(header.section);
    }

    /// Decodes the current line, which must be data.
    fn data(&self, section: Section, out: &mut Vec<u8>) -> Result<(), Stop> {
        out.clear();
        let decoded = match self.lines.line().split_first() {
            Some((b' ', text)) if section.print => unprint(text, out),
            Some((b' ', text)) => unhex_into(text, out),
            _ => {
                let line = escape(clip(self.lines.line())).into_owned();
                Err(format!("data (starting with a space) or DATA=END expected, not \"{line}\""))
            }
        };
        decoded.map_err(|cause| self.lines.bad(cause))
    }

    fn record(&mut self, section: Section, into: &mut Entry) -> Result<Event, Stop> {
        self.begun = self.lines.number;
        self.data(section, &mut into.key)?;
        if !self.lines.advance()? || self.lines.line() == b"DATA=END" {
            return Err(self.lines.bad("the value of the last key is missing"));
        }
        self.data(section, &mut into.value)?;
        Ok(Event::Record)
    }
}

impl<R: BufRead> Reader for TextReader<R> {
    fn next(&mut self, into: &mut Entry) -> Result<Option<Event>, Stop> {
        let Some(section) = self.section else {
            let Some(header) = self.header()? else { return Ok(None) };
            self.begin(header, into);
            return Ok(Some(Event::Table));
        };
        if !self.lines.advance()? {
            return Err(self.lines.bad("the input ends without DATA=END: it was cut off"));
        }
        if self.lines.line() == b"DATA=END" {
            self.section = None;
            return self.next(into);
        }
        self.record(section, into).map(Some)
    }

    fn line(&self) -> u64 {
        self.begun
    }
}

impl Header {
    /// Takes in a line. Words that say nothing about the records are passed over.
    fn field(&mut self, word: &[u8], value: &[u8]) -> Result<(), String> {
        let is_on = value == b"1";
        match word {
            b"VERSION" => match std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()) {
                Some(0..=3u64) => {}
                _ => return Err(format!("version {} is unknown, 3 expected", shown(value))),
            },
            b"format" => match value {
                b"bytevalue" => self.section.print = false,
                b"print" => self.section.print = true,
                _ => {
                    return Err(format!("format {}: bytevalue or print expected", shown(value)));
                }
            },
            b"type" if value != b"btree" => {
                return Err(format!("type {}: only btree can be loaded", shown(value)));
            }
            b"database" => self.name = Some(value.to_vec()),
            b"name_hex" => self.exact_name = Some(unhex(value)?),
            b"reversekey" => self.flags.reversekey = is_on,
            b"integerkey" => self.flags.integerkey = is_on,
            b"dupsort" => self.flags.dupsort = is_on,
            b"dupfixed" => self.flags.dupfixed = is_on,
            b"integerdup" => self.flags.integerdup = is_on,
            b"reversedup" => self.flags.reversedup = is_on,
            b"align" => match std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()) {
                Some(bytes @ (1 | 2 | 4 | 8 | 16)) => self.flags.align = Some(bytes),
                _ => return Err(format!("align {}: 1, 2, 4, 8 or 16 expected", shown(value))),
            },
            b"counted" => self.flags.counted = is_on,
            _ => {}
        }
        Ok(())
    }
}

fn shown(value: &[u8]) -> String {
    format!("\"{}\"", escape(clip(value)))
}

fn unprint(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        if let [b'\\', behind @ ..] = rest {
            out.push(b'\\');
            rest = behind;
            continue;
        }
        let pair = match rest {
            [high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let Some((high, low)) = pair else {
            return Err(
                "a \\ must be followed by \\ or two hex digits; some releases of mdb_dump -p \
                        write it bare: dump without -p"
                    .into(),
            );
        };
        out.push(high << 4 | low);
        rest = rest.get(2..).unwrap_or_default();
    }
    Ok(())
}

/// What the header says to `mdb_load` about the store it makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    /// Bytes that the records take here.
    pub(crate) used_bytes: u64,
    pub(crate) max_readers: u32,
}

/// Writes the format.
pub(crate) struct TextWriter {
    out: Out,
    print: bool,
    store: Store,
    /// The table that is written without a name.
    unnamed: Option<Vec<u8>>,
    /// Words of this project are left out.
    for_lmdb: bool,
    buffer: Vec<u8>,
}

/// The flags of a table, by LMDB's names.
fn flags(options: &TableOptions) -> [(&'static str, bool); 6] {
    let many = options.has_duplicates();
    [
        ("reversekey", options.keys() == KeyOrder::Reversed),
        ("dupsort", many),
        ("integerkey", options.keys() == KeyOrder::Integer),
        ("dupfixed", many && options.has_fixed_values()),
        ("integerdup", many && options.values() == KeyOrder::Integer),
        ("reversedup", many && options.values() == KeyOrder::Reversed),
    ]
}

/// Room for the differences between the two stores' layouts: `mdb_load` cannot grow its map.
const MAP_FACTOR: u64 = 4;
const MAP_LEAST: u64 = 16 << 20;

impl TextWriter {
    pub(crate) fn new(out: Out, print: bool, store: Store) -> TextWriter {
        TextWriter { out, print, store, unnamed: None, for_lmdb: false, buffer: Vec::new() }
    }

    /// Writes what LMDB knows and nothing else, and a table as the unnamed one.
    pub(crate) fn for_lmdb(mut self, unnamed: &[u8]) -> TextWriter {
        self.unnamed = Some(unnamed.to_vec());
        self.for_lmdb = true;
        self
    }

    fn name(&mut self, name: &[u8]) -> Done<()> {
        if self.unnamed.as_deref() == Some(name) {
            return Ok(());
        }
        if name.iter().any(|b| matches!(b, 0 | b'\n' | b'\r')) {
            // Escapes carry every name.
            let escaped = Encoding::Escaped.encode(name).unwrap_or_default();
            self.out.line(&format!("database={escaped}"))?;
            return self.out.line(&format!("name_hex={}", hex(name)));
        }
        self.out.bytes(b"database=")?;
        self.out.bytes(name)?;
        self.out.bytes(b"\n")
    }

    fn data(&mut self, bytes: &[u8]) -> Done<()> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.buffer.clear();
        self.buffer.push(b' ');
        for &byte in bytes {
            let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
            if !self.print {
                self.buffer.extend_from_slice(&digits);
            } else if (byte == b' ' || byte.is_ascii_graphic()) && byte != b'\\' {
                self.buffer.push(byte);
            } else {
                self.buffer.extend_from_slice(&[b'\\', digits[0], digits[1]]);
            }
        }
        self.buffer.push(b'\n');
        self.out.bytes(&self.buffer)
    }
}

impl Writer for TextWriter {
    fn table(&mut self, name: &[u8], options: &TableOptions) -> Done<()> {
        let Store { used_bytes, max_readers } = self.store;
        let map = used_bytes.saturating_mul(MAP_FACTOR).max(MAP_LEAST);
        let map = map.min(i64::MAX as u64).next_multiple_of(1 << 20);
        self.out.line("VERSION=3")?;
        self.out.line(if self.print { "format=print" } else { "format=bytevalue" })?;
        self.name(name)?;
        self.out.line(&format!("type=btree\nmapsize={map}\nmaxreaders={max_readers}"))?;
        for (flag, is_on) in flags(options) {
            if is_on {
                self.out.line(&format!("{flag}=1"))?;
            }
        }
        if !self.for_lmdb && options.alignment() > 1 {
            self.out.line(&format!("align={}", options.alignment()))?;
        }
        if !self.for_lmdb && options.is_counted() {
            self.out.line("counted=1")?;
        }
        self.out.line("HEADER=END")
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Done<()> {
        self.data(key)?;
        self.data(value)
    }

    fn keeps_options(&self) -> bool {
        true
    }

    fn table_end(&mut self) -> Done<()> {
        self.out.line("DATA=END")
    }

    fn finish(self: Box<Self>) -> Done<()> {
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Bad;

    fn bad(input: &str) -> (u64, String) {
        let mut reader = TextReader::new(input.as_bytes(), b"main".to_vec());
        let mut entry = Entry::default();
        loop {
            match reader.next(&mut entry) {
                Ok(Some(_)) => {}
                Err(Stop::Bad(Bad { line, cause })) => return (line, cause),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn bad_input_is_named_by_line_and_cause() {
        let head = "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n";
        let cases = [
            ("hello\n", 1, "VERSION=3"),
            ("VERSION=4\nHEADER=END\n", 1, "version"),
            ("VERSION=3\nformat=csv\n", 2, "format"),
            ("VERSION=3\ntype=hash\n", 2, "type"),
            ("VERSION=3\nalign=3\n", 2, "align"),
            ("VERSION=3\nalign=\n", 2, "align"),
            ("VERSION=3\nnonsense\n", 2, "header"),
            ("VERSION=3\n", 1, "ends inside"),
            (&format!("{head} a\n"), 5, "value of the last key"),
            (&format!("{head} a\nDATA=END\n"), 6, "value of the last key"),
            (&format!("{head} a\n b\n"), 6, "cut off"),
            (&format!("{head} a\nb\n"), 6, "space"),
            (&format!("{head} a\\4\n b\n"), 5, "hex digits"),
            ("VERSION=3\nHEADER=END\n 616\n 62\n", 3, "odd"),
            ("VERSION=3\nHEADER=END\n 6x\n 62\n", 3, "hex digits"),
        ];
        for (input, line, cause) in cases {
            let found = bad(input);
            assert_eq!(found.0, line, "{input:?}: {found:?}");
            assert!(found.1.contains(cause), "{input:?}: {found:?}");
        }
    }

    #[test]
    fn the_header_says_how_a_table_sorts() {
        let input = "VERSION=3\ndupsort=1\nintegerkey=1\nreversedup=1\nreversekey=0\nHEADER=END\nDATA=END\n\
                     VERSION=3\ndatabase=b\nHEADER=END\nDATA=END\n";
        let mut reader = TextReader::new(input.as_bytes(), b"main".to_vec());
        let mut entry = Entry::default();
        assert_eq!(reader.next(&mut entry).unwrap(), Some(Event::Table));
        let on = |options: &TableOptions| -> Vec<_> {
            flags(options).into_iter().filter(|flag| flag.1).map(|flag| flag.0).collect()
        };
        assert_eq!(on(entry.options.as_ref().unwrap()), ["dupsort", "integerkey", "reversedup"]);
        assert_eq!(reader.next(&mut entry).unwrap(), Some(Event::Table));
        assert!(on(entry.options.as_ref().unwrap()).is_empty());
        assert_eq!(reader.next(&mut entry).unwrap(), None);
    }
}
