//! What has been typed so far: the table, how bytes are written, the open transaction or snapshot; and what
//! each command does.

use serde_json::Value;
use zubilo::{Env, Error, Iter, ReadTable, ReadTxn, WriteTxn};

use crate::encoding::{Encoding, EncodingArgs, escape};
use crate::failure::{Code, Doing, Done, Failure};
use crate::output::{Out, count, records, size, table, to_stderr};

use super::words::{COMMANDS, split};

/// Records that are shown if nobody says how many.
const SHOWN: u64 = 20;

/// How values are written.
#[derive(Clone, Copy, PartialEq)]
enum View {
    Bytes(Encoding),
    /// As JSON, in several lines; else in escapes.
    Json,
}

/// Whether more is to come.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Line,
    End,
}

/// A shell at work.
pub(super) struct Session<'e> {
    env: &'e Env,
    table: Vec<u8>,
    key: Encoding,
    value: View,
    txn: Option<WriteTxn>,
    snapshot: Option<ReadTxn>,
}

fn usage(cause: impl Into<String>) -> Failure {
    Failure::usage("shell", cause)
}

impl<'e> Session<'e> {
    pub(super) fn new(env: &'e Env, table: Vec<u8>) -> Done<Session<'e>> {
        let (key, value) = (Encoding::Escaped, View::Bytes(Encoding::Escaped));
        let mut session = Session { env, table, key, value, txn: None, snapshot: None };
        session.look_at_table()?;
        Ok(session)
    }

    pub(super) fn prompt(&self) -> String {
        let state = match (&self.txn, &self.snapshot) {
            (Some(txn), _) => format!(" (commit {})", txn.id()),
            (None, Some(read)) => format!(" (snapshot {})", read.id()),
            (None, None) => String::new(),
        };
        format!("{}{state}> ", escape(&self.table))
    }

    /// What the user should know at the end.
    pub(super) fn farewell(&mut self) {
        if self.txn.take().is_some() {
            to_stderr("the transaction was not committed: nothing of it was kept");
        }
    }

    /// Does what a line says.
    pub(super) fn take(&mut self, line: &str, out: &mut Out) -> Done<Next> {
        let words = split(line).map_err(usage)?;
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let Some((command, arguments)) = words.split_first() else { return Ok(Next::Line) };
        match (*command, arguments) {
            ("quit" | "exit", []) => return Ok(Next::End),
            ("help", _) => help(out)?,
            ("tables", []) => self.tables(out)?,
            ("use", [name]) => self.take_table(name)?,
            ("get", [key]) => self.get(key, out)?,
            ("put", [key, value]) => self.put(key, value)?,
            ("del", [key]) => self.del(key)?,
            ("scan", arguments) => self.scan(arguments, out)?,
            ("from", [key]) => self.from(key, SHOWN, out)?,
            ("from", [key, n]) => self.from(key, number(n)?, out)?,
            ("first", []) => self.show(None, SHOWN, false, out)?,
            ("first", [n]) => self.show(None, number(n)?, false, out)?,
            ("last", []) => self.show(None, SHOWN, true, out)?,
            ("last", [n]) => self.show(None, number(n)?, true, out)?,
            ("count", []) => {
                let len = self.reading(|table| Ok(table.len()), |table| Ok(table.len()))?;
                out.line(&records(len))?;
            }
            ("count", [prefix]) => self.count(prefix, out)?,
            ("create", [name]) => self.create(name)?,
            ("drop", [name]) => self.drop_table(name)?,
            ("begin", []) => self.begin()?,
            ("commit", []) => self.commit(out)?,
            ("abort", []) => {
                self.txn.take().ok_or_else(|| usage("no transaction is open"))?.abort();
            }
            ("snapshot", []) => self.snapshot = Some(self.env.read().doing("begin to read")?),
            ("release", []) => {
                drop(self.snapshot.take().ok_or_else(|| usage("no snapshot is held"))?);
            }
            ("key", [view]) => self.key = encoding(view)?,
            ("value", ["json"]) => self.value = View::Json,
            ("value", [view]) => self.value = View::Bytes(encoding(view)?),
            ("stat", []) => self.stat(out)?,
            (other, _) => return Err(unknown(other)),
        }
        Ok(Next::Line)
    }

    // ---- tables ----

    /// Numbers are written as numbers where the table says that they are.
    fn look_at_table(&mut self) -> Done<()> {
        let read = self.env.read().doing("begin to read")?;
        let known = EncodingArgs::default().of_table(&read, &self.table, None, Encoding::Escaped);
        let known = known.doing(&format!("open {}", self.shown()))?;
        self.key = known.key;
        self.value = View::Bytes(known.value);
        Ok(())
    }

    fn shown(&self) -> String {
        format!("the table \"{}\"", escape(&self.table))
    }

    fn take_table(&mut self, name: &str) -> Done<()> {
        self.table = Encoding::Escaped.argument("the table", name.as_ref())?;
        self.look_at_table()?;
        self.reading(|_| Ok(()), |_| Ok(()))
    }

    fn tables(&mut self, out: &mut Out) -> Done<()> {
        let mut rows = table(&["table", "records"], 1);
        let what = "list the tables";
        let names = match (&self.txn, &self.snapshot) {
            (Some(txn), _) => txn.tables().doing(what)?,
            (None, Some(read)) => read.tables().doing(what)?,
            (None, None) => self.env.read().and_then(|read| read.tables()).doing(what)?,
        };
        for name in names {
            let stats = match (&mut self.txn, &self.snapshot) {
                (Some(txn), _) => txn.table_stats(&name),
                (None, Some(read)) => read.table_stats(&name),
                (None, None) => self.env.read().and_then(|read| read.table_stats(&name)),
            };
            let stats = stats.doing(&format!("open the table \"{}\"", escape(&name)))?;
            rows.add_row([escape(&name).into_owned(), count(stats.entries)]);
        }
        out.line(&rows.trim_fmt())
    }

    fn create(&mut self, name: &str) -> Done<()> {
        let name = Encoding::Escaped.argument("the table", name.as_ref())?;
        let what = format!("make the table \"{}\"", escape(&name));
        self.writing(|txn| txn.create_table(&name, Default::default()).map(drop).doing(&what))?;
        self.table = name;
        (self.key, self.value) = (Encoding::Escaped, View::Bytes(Encoding::Escaped));
        Ok(())
    }

    fn drop_table(&mut self, name: &str) -> Done<()> {
        let name = Encoding::Escaped.argument("the table", name.as_ref())?;
        let what = format!("drop the table \"{}\"", escape(&name));
        self.writing(|txn| txn.drop_table(&name).doing(&what))
    }

    // ---- transactions ----

    fn begin(&mut self) -> Done<()> {
        if self.txn.is_some() {
            return Err(usage("a transaction is open already"));
        }
        if self.snapshot.is_some() {
            return Err(usage("a snapshot is held: release it first"));
        }
        match self.env.try_write().doing("begin to write")? {
            Some(txn) => self.txn = Some(txn),
            None => {
                let cause = "another process is writing";
                return Err(Failure::new(Code::Other, "begin to write", cause)
                    .advise("try again when it has committed"));
            }
        }
        Ok(())
    }

    fn commit(&mut self, out: &mut Out) -> Done<()> {
        let txn = self.txn.take().ok_or_else(|| usage("no transaction is open"))?;
        let commit = txn.commit().doing("commit")?;
        out.line(&format!("commit {commit}"))
    }

    /// Changes something, in the open transaction or in one of its own.
    fn writing<T>(&mut self, change: impl FnOnce(&mut WriteTxn) -> Done<T>) -> Done<T> {
        if let Some(txn) = &mut self.txn {
            return change(txn);
        }
        self.begin()?;
        let Some(mut txn) = self.txn.take() else { return Err(usage("no transaction is open")) };
        let done = change(&mut txn)?;
        txn.commit().doing("commit")?;
        Ok(done)
    }

    /// Reads the table: as the open transaction has it, as the snapshot, or as it is now.
    fn reading<T>(
        &mut self,
        read: impl FnOnce(&ReadTable<'_>) -> Done<T>,
        written: impl FnOnce(&zubilo::WriteTable<'_>) -> Done<T>,
    ) -> Done<T> {
        let what = format!("open {}", self.shown());
        if let Some(txn) = &mut self.txn {
            return written(&txn.table(&self.table).doing(&what)?);
        }
        if let Some(snapshot) = &self.snapshot {
            return read(&snapshot.table(&self.table).doing(&what)?);
        }
        let now = self.env.read().doing("begin to read")?;
        read(&now.table(&self.table).doing(&what)?)
    }

    // ---- records ----

    fn key_of(&self, word: &str) -> Done<Vec<u8>> {
        self.key.argument("the key", word.as_ref())
    }

    fn value_of(&self, word: &str) -> Done<Vec<u8>> {
        match self.value {
            View::Bytes(encoding) => encoding.argument("the value", word.as_ref()),
            View::Json => match serde_json::from_str::<Value>(word) {
                Ok(_) => Ok(word.as_bytes().to_vec()),
                Err(error) => Err(usage(format!("the value is no JSON: {error}"))),
            },
        }
    }

    fn get(&mut self, word: &str, out: &mut Out) -> Done<()> {
        let key = self.key_of(word)?;
        let what = format!("read the key \"{word}\" of {}", self.shown());
        let all = |values: zubilo::ValueIter<'_>| {
            values.map(|v| v.map(<[u8]>::to_vec)).collect::<zubilo::Result<Vec<_>>>()
        };
        let values = self.reading(
            |table| table.get_all(&key).and_then(all).doing(&what),
            |table| table.get_all(&key).and_then(all).doing(&what),
        )?;
        if values.is_empty() {
            return Err(Failure::new(Code::NotFound, what, "no such key"));
        }
        for value in values {
            out.line(&self.show_value(&value))?;
        }
        Ok(())
    }

    fn put(&mut self, key: &str, value: &str) -> Done<()> {
        let (word, key, value) = (key, self.key_of(key)?, self.value_of(value)?);
        let what = format!("store the key \"{word}\" in {}", self.shown());
        let name = self.table.clone();
        self.writing(|txn| {
            let mut table = txn.table(&name).doing(&what)?;
            match table.options().has_duplicates() {
                true => table.insert_value(&key, &value).map(drop).doing(&what),
                false => table.put(&key, &value).doing(&what),
            }
        })
    }

    fn del(&mut self, word: &str) -> Done<()> {
        let key = self.key_of(word)?;
        let what = format!("delete the key \"{word}\" of {}", self.shown());
        let name = self.table.clone();
        let there = self.writing(|txn| txn.table(&name).doing(&what)?.delete(&key).doing(&what))?;
        match there {
            true => Ok(()),
            false => Err(Failure::new(Code::NotFound, what, "no such key")),
        }
    }

    fn scan(&mut self, arguments: &[&str], out: &mut Out) -> Done<()> {
        match arguments {
            [] => self.show(None, SHOWN, false, out),
            [prefix] => {
                let prefix = self.key_of(prefix)?;
                self.show(Some(Start::Prefix(prefix)), SHOWN, false, out)
            }
            [prefix, n] => {
                let prefix = self.key_of(prefix)?;
                self.show(Some(Start::Prefix(prefix)), number(n)?, false, out)
            }
            _ => Err(usage("scan [PREFIX] [N]; quotes hold words together")),
        }
    }

    fn from(&mut self, key: &str, most: u64, out: &mut Out) -> Done<()> {
        let key = self.key_of(key)?;
        self.show(Some(Start::From(key)), most, false, out)
    }

    fn count(&mut self, prefix: &str, out: &mut Out) -> Done<()> {
        let prefix = self.key_of(prefix)?;
        let what = format!("read {}", self.shown());
        let counted =
            |mut found: Iter<'_>| found.try_fold(0, |sum, r| r.map(|_| sum + 1)).doing(&what);
        let number = self.reading(
            |table| counted(table.prefix(&prefix)),
            |table| counted(table.prefix(&prefix)),
        )?;
        out.line(&records(number))
    }

    fn show(&mut self, start: Option<Start>, most: u64, back: bool, out: &mut Out) -> Done<()> {
        let what = format!("read {}", self.shown());
        let some = |found: Iter<'_>| take(found, most, back).doing(&what);
        let (found, more) = self.reading(
            |table| match &start {
                None => some(table.iter()),
                Some(Start::Prefix(prefix)) => some(table.prefix(prefix)),
                Some(Start::From(key)) => some(table.range(key.as_slice()..)),
            },
            |table| match &start {
                None => some(table.iter()),
                Some(Start::Prefix(prefix)) => some(table.prefix(prefix)),
                Some(Start::From(key)) => some(table.range(key.as_slice()..)),
            },
        )?;
        if found.is_empty() {
            return Err(Failure::new(Code::NotFound, what, "no records there"));
        }
        for (key, value) in &found {
            let value = self.show_value(value);
            let between = if value.contains('\n') { "\n" } else { "\t" };
            out.line(&format!("{}{between}{value}", show(self.key, key)))?;
        }
        match more {
            true => out.line("..."),
            false => Ok(()),
        }
    }

    fn show_value(&self, value: &[u8]) -> String {
        match self.value {
            View::Bytes(encoding) => show(encoding, value),
            View::Json => {
                let parsed = serde_json::from_slice::<Value>(value);
                let text = parsed.and_then(|value| serde_json::to_string_pretty(&value));
                text.unwrap_or_else(|_| escape(value).into_owned())
            }
        }
    }

    fn stat(&mut self, out: &mut Out) -> Done<()> {
        let info = self.env.info().doing("read the figures")?;
        out.line(&format!(
            "commit {}, {} in pages of {}, {} readers",
            info.newest,
            size(info.file_len),
            size(info.page_size as u64),
            info.readers.len()
        ))?;
        let (stats, options) = self.reading(
            |table| Ok((table.stats(), table.options())),
            |table| Ok((table.stats(), table.options())),
        )?;
        let described = match crate::layout::describe(&options) {
            text if text.is_empty() => text,
            text => format!(", {text}"),
        };
        let pages = stats.leaf_pages + stats.branch_pages + stats.run_pages;
        let size = size(pages * info.page_size as u64);
        out.line(&format!("{}: {}, {size}{described}", self.shown(), records(stats.entries)))
    }
}

/// Where to begin.
enum Start {
    Prefix(Vec<u8>),
    From(Vec<u8>),
}

/// Bytes as they were asked for; what cannot be written so in escapes.
fn show(encoding: Encoding, bytes: &[u8]) -> String {
    encoding.encode(bytes).map_or_else(
        |_| escape(bytes).into_owned(),
        |text| match encoding {
            // It may move the cursor.
            Encoding::Text => escape(bytes).into_owned(),
            _ => text.into_owned(),
        },
    )
}

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Some records, and whether there are more. From the end they come the last one first.
fn take(mut found: Iter<'_>, most: u64, back: bool) -> Result<(Records, bool), Error> {
    let mut records = Records::new();
    loop {
        let next = if back { found.next_back() } else { found.next() };
        let Some(record) = next else { return Ok((records, false)) };
        if records.len() as u64 == most {
            return Ok((records, true));
        }
        let (key, value) = record?;
        records.push((key.to_vec(), value.to_vec()));
    }
}

fn number(word: &str) -> Done<u64> {
    word.parse().map_err(|_| usage(format!("\"{word}\" is no number")))
}

fn encoding(name: &str) -> Done<Encoding> {
    Encoding::of_name(name.as_bytes()).ok_or_else(|| usage(format!("there is no view \"{name}\"")))
}

fn unknown(command: &str) -> Failure {
    let known = COMMANDS.iter().find(|(name, ..)| *name == command);
    match known {
        Some((name, arguments, _)) => usage(format!("it is: {name} {arguments}")),
        None => usage(format!("there is no command \"{command}\"")).advise("help lists them"),
    }
}

fn help(out: &mut Out) -> Done<()> {
    for (name, arguments, what) in COMMANDS {
        out.line(&format!("  {:<22} {what}", format!("{name} {arguments}")))?;
    }
    out.line("Keys and values are in escapes (\\n, \\xNN) unless key or value say otherwise; quotes hold words together.")
}
