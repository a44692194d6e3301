//! `mdb_load`: tables from text, as `mdb_dump` writes it, or from plain pairs of lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use support::lmdb::{self, Env, Failed, Setup, Txn};

use crate::api::{TABLE_FLAGS, describe, failed, open, reason, trust_order};
use crate::options::Options;
use crate::text::{Format, read_line};
use crate::{Result, Stop, show_version, to_stderr};

const USAGE: &str = "[-V] [-a] [-f input] [-n] [-s name] [-N] [-T] dbpath";
/// Records in a transaction.
const BATCH: usize = 100;

/// Lines with their numbers.
struct Input {
    lines: Box<dyn BufRead>,
    number: u64,
    line: Vec<u8>,
}

/// What stands before the records of a table.
#[derive(Default)]
struct Header {
    print: bool,
    name: Option<Vec<u8>>,
    map_size: usize,
    max_readers: u32,
    flags: u32,
}

impl Input {
    /// The next line without its end; false at the end of the input.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        if self.lines.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        Ok(true)
    }

    fn wrong(&self, what: impl std::fmt::Display) -> Stop {
        Stop::Failed(format!("%s: line {}: {what}", self.number))
    }

    /// Reads up to the first record; none at the end of the input.
    fn header(&mut self) -> Result<Option<Header>> {
        let mut header = Header::default();
        while self.next()? {
            let line = String::from_utf8_lossy(&self.line).into_owned();
            if line == "HEADER=END" {
                return Ok(Some(header));
            }
            let Some((word, value)) = line.split_once('=') else {
                return Err(self.wrong("unexpected format"));
            };
            // A name is bytes; the rest is ASCII.
            if word == "database" {
                header.name = self.line.get(word.len() + 1..).map(<[u8]>::to_vec);
                continue;
            }
            self.take(&mut header, word, value)?;
        }
        Ok(None)
    }

    /// Takes a line of a header over.
    fn take(&self, header: &mut Header, word: &str, value: &str) -> Result<()> {
        let invalid = || self.wrong(format!("invalid {word} {value}"));
        match (word, value) {
            ("VERSION", _) if value.parse::<u32>().is_ok_and(|version| version > 3) => {
                return Err(self.wrong(format!("unsupported VERSION {value}")));
            }
            // Where the map of the dumped environment lay does not matter.
            ("VERSION" | "mapaddr" | "duplicates" | "db_pagesize", _) => {}
            ("format", "print") => header.print = true,
            ("format", "bytevalue") => header.print = false,
            ("format", _) => return Err(self.wrong(format!("unsupported FORMAT {value}"))),
            ("type", "btree") => {}
            ("type", _) => return Err(self.wrong(format!("unsupported type {value}"))),
            ("mapsize", _) => header.map_size = value.parse().map_err(|_| invalid())?,
            ("maxreaders", _) => header.max_readers = value.parse().map_err(|_| invalid())?,
            _ => match TABLE_FLAGS.iter().find(|(_, name)| *name == word) {
                Some((flag, _)) if value != "0" => header.flags |= flag,
                Some(_) => {}
                None => to_stderr(&format!(
                    "mdb_load: line {}: unrecognized keyword ignored: {word}",
                    self.number
                )),
            },
        }
        Ok(())
    }

    /// The bytes of the next line of data; none at the end of the table.
    fn data(&mut self, format: Format, plain: bool) -> Result<Option<Vec<u8>>> {
        if !self.next()? {
            return if plain { Ok(None) } else { Err(self.wrong("unexpected end of input")) };
        }
        let line = match (plain, self.line.split_first()) {
            (true, _) => &self.line[..],
            (false, Some((b' ', line))) => line,
            (false, _) if self.line == b"DATA=END" => return Ok(None),
            _ => return Err(self.wrong("unexpected end of input")),
        };
        match read_line(format, line) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(self.wrong("unexpected end of input")),
        }
    }
}

/// How records are stored.
#[derive(Clone, Copy)]
struct Mode {
    plain: bool,
    append: bool,
    flags: u32,
}

/// Stores up to a batch of records; false when the table has no more.
fn batch(
    input: &mut Input,
    txn: &Txn<'_>,
    (dbi, format): (u32, Format),
    mode: Mode,
    last: &mut Option<Vec<u8>>,
) -> Result<bool> {
    let mut cursor = txn.cursor(dbi)?;
    for _ in 0..BATCH {
        let Some(key) = input.data(format, mode.plain)? else { return Ok(false) };
        let Some(value) = input.data(format, mode.plain)? else {
            return Err(input.wrong("failed to read key value"));
        };
        let mut flags = mode.flags;
        if mode.append {
            let same = last.as_ref() == Some(&key);
            flags |= if same { lmdb::MDB_APPENDDUP } else { lmdb::MDB_APPEND };
        }
        match cursor.put(&key, &value, flags) {
            Ok(()) => {}
            Err(Failed { code: lmdb::MDB_KEYEXIST, .. }) if mode.flags != 0 => {}
            Err(Failed { code, .. }) => {
                let what = format!("mdb_cursor_put failed, error {code} {}", describe(code));
                return Err(input.wrong(what));
            }
        }
        if mode.append {
            *last = Some(key);
        }
    }
    Ok(true)
}

fn table(
    input: &mut Input,
    env: &Env,
    header: &Header,
    name: Option<&[u8]>,
    mode: Mode,
) -> Result<()> {
    let format = if mode.plain || header.print { Format::Print } else { Format::Hex };
    let name = name.or(header.name.as_deref());
    let mut last = None;
    let mut more = true;
    let mut first = true;
    while more {
        let txn = env.begin(0)?;
        let opened = txn.table(name, header.flags | lmdb::MDB_CREATE);
        let dbi = opened.map_err(|code| failed("mdb_dbi_open", code))?;
        if mode.append && first {
            trust_order(&txn, dbi, header.flags & lmdb::MDB_DUPSORT != 0)
                .map_err(|code| failed("mdb_set_compare", code))?;
        }
        first = false;
        more = batch(input, &txn, (dbi, format), mode, &mut last)?;
        let done = txn.commit();
        done.map_err(|code| input.wrong(format!("txn_commit: {}", describe(code.code))))?;
    }
    Ok(())
}

/// Runs the tool.
pub fn load(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, "af:ns:NQTV", USAGE)?;
    if options.has('V') {
        return Err(show_version());
    }
    let path = options.path(USAGE)?;
    let lines: Box<dyn BufRead> =
        match options.value('f') {
            Some(file) => Box::new(BufReader::new(File::open(file).map_err(|error| {
                Stop::Failed(format!("%s: {file}: reopen: {}", reason(&error)))
            })?)),
            None => Box::new(io::stdin().lock()),
        };
    let mut input = Input { lines, number: 0, line: Vec::new() };
    let flags = if options.has('N') { lmdb::MDB_NOOVERWRITE | lmdb::MDB_NODUPDATA } else { 0 };
    let mode = Mode { plain: options.has('T'), append: options.has('a'), flags };
    let mut header = if mode.plain { Some(Header::default()) } else { input.header()? };
    let Some(start) = &header else { return Err(input.wrong("unexpected end of input")) };
    let quick = options.has('Q');
    let setup = Setup {
        map_size: start.map_size,
        max_readers: start.max_readers,
        max_dbs: 2,
        flags: if options.has('n') { lmdb::MDB_NOSUBDIR } else { 0 }
            | if quick { lmdb::MDB_NOSYNC } else { 0 },
        mode: 0o664,
    };
    let env = open(path, setup)?.map_err(|code| failed("mdb_env_open", code))?;
    while let Some(found) = &header {
        table(&mut input, &env, found, options.value('s').map(str::as_bytes), mode)?;
        header = if mode.plain { None } else { input.header()? };
    }
    if quick {
        env.sync()?;
    }
    Ok(())
}
