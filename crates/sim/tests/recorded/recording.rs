//! What strace wrote down, as events on one file. A call that was interrupted by another thread's line
//! counts from its start, a flush from its end. Calls that would change the file unseen are errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The calls that are recorded: all by which a file's contents, length and name change.
pub(crate) const CALLS: &str = "openat,open,creat,close,lseek,pwrite64,pwritev,pwritev2,write,writev,\
    ftruncate,truncate,fallocate,fdatasync,fsync,sync_file_range,mmap,copy_file_range,sendfile,\
    splice,rename,renameat,renameat2,unlink,unlinkat";

#[derive(Debug)]
pub(crate) enum Event {
    Write(u64, Vec<u8>),
    /// Cut or grown to this length.
    Length(u64),
    /// At least of this length.
    Grown(u64),
    /// A flush that covers what was written until the event of this number has ended.
    FlushEnd(usize),
    Directory,
    Mark(char, u64),
}

/// What a call's quotes hold: `\x41\x42`.
fn unhex(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).map(|x| u8::from_str_radix(x, 16).expect("two digits")).collect()
}

fn quoted(text: &str) -> Vec<Vec<u8>> {
    text.split('"').skip(1).step_by(2).map(unhex).collect()
}

/// Numbers after the bytes of a call.
fn numbers(text: &str) -> Vec<u64> {
    text.trim_start_matches(',').split([',', ')']).map_while(|n| n.trim().parse().ok()).collect()
}

pub(crate) struct Recording {
    store: PathBuf,
    /// It has a name.
    seen: bool,
    files: BTreeMap<i64, PathBuf>,
    /// Where calls without a place write.
    places: BTreeMap<i64, u64>,
    open: BTreeMap<String, (String, usize)>,
    events: Vec<Event>,
}

impl Recording {
    pub(crate) fn read(text: &str, store: &Path) -> Vec<Event> {
        let mut recording = Recording {
            store: store.to_path_buf(),
            seen: false,
            files: BTreeMap::new(),
            places: BTreeMap::new(),
            open: BTreeMap::new(),
            events: Vec::new(),
        };
        for line in text.lines() {
            let Some((thread, call)) = line.split_once(char::is_whitespace) else { continue };
            recording.line(thread, call.trim_start());
        }
        recording.events
    }

    fn line(&mut self, thread: &str, call: &str) {
        if let Some(start) = call.strip_suffix("<unfinished ...>") {
            self.began(start);
            self.open.insert(thread.into(), (start.trim_end().into(), self.events.len()));
        } else if let Some((_, rest)) = call.split_once("resumed>") {
            if let Some((start, at)) = self.open.remove(thread) {
                self.ended(&format!("{start}{rest}"), at);
            }
        } else {
            self.began(call);
            self.ended(call, self.events.len());
        }
    }

    fn is_store(&self, fd: i64) -> bool {
        self.files.get(&fd) == Some(&self.store)
    }

    fn argument(call: &str, n: usize) -> Option<i64> {
        let (_, arguments) = call.split_once('(')?;
        arguments.split([',', ')']).nth(n)?.trim().parse().ok()
    }

    /// Writes count from their start: before they end the disk may have any part of them.
    fn began(&mut self, call: &str) {
        let name = call.split('(').next().unwrap_or_default();
        let at = if name == "mmap" { 4 } else { 0 };
        let Some(fd) = Recording::argument(call, at).filter(|fd| self.is_store(*fd)) else {
            return;
        };
        let behind = |end: char| numbers(call.rsplit(end).next().unwrap_or_default());
        match name {
            "pwrite64" => {
                let place = behind('"')[1];
                self.events.push(Event::Write(place, quoted(call).concat()));
            }
            "pwritev" | "pwritev2" => {
                let place = behind(']')[1];
                self.events.push(Event::Write(place, quoted(call).concat()));
            }
            "write" | "writev" => {
                let (place, bytes) = (self.places.entry(fd).or_default(), quoted(call).concat());
                let from = *place;
                *place += bytes.len() as u64;
                self.events.push(Event::Write(from, bytes));
            }
            "mmap" if !call.contains("PROT_WRITE") => {}
            "close" | "lseek" | "ftruncate" | "fallocate" | "fdatasync" | "fsync" => {}
            _ => panic!("not foreseen on the data file: {name}"),
        }
    }

    fn ended(&mut self, call: &str, at: usize) {
        let Some((_, result)) = call.rsplit_once(" = ") else { return };
        let result: i64 = result.split(' ').next().unwrap_or_default().parse().unwrap_or(-1);
        let name = call.split('(').next().unwrap_or_default();
        if matches!(name, "openat" | "open" | "creat") {
            if let Some(path) = quoted(call).first().filter(|_| result >= 0) {
                let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
                self.seen |= path == self.store;
                self.files.insert(result, path);
                self.places.insert(result, 0);
            }
            return;
        }
        if name.starts_with("rename") || name.starts_with("unlink") {
            let ours = |path: &Vec<u8>| path == self.store.as_os_str().as_encoded_bytes();
            assert!(result != 0 || !quoted(call).iter().any(ours), "not foreseen: {name}");
            return;
        }
        let Some(fd) = Recording::argument(call, 0) else { return };
        let file = self.files.get(&fd).cloned().unwrap_or_default();
        let number = |n| Recording::argument(call, n).expect("a number") as u64;
        match name {
            "close" => drop(self.files.remove(&fd)),
            "lseek" if result >= 0 => drop(self.places.insert(fd, result as u64)),
            "fdatasync" | "fsync" if self.seen && Some(file.as_path()) == self.store.parent() => {
                self.events.push(Event::Directory);
            }
            "fdatasync" | "fsync" if self.is_store(fd) && result == 0 => {
                self.events.push(Event::FlushEnd(at));
            }
            "ftruncate" if self.is_store(fd) && result == 0 => {
                self.events.push(Event::Length(number(1)));
            }
            "fallocate" if self.is_store(fd) && result == 0 => {
                assert_eq!(number(1), 0, "not foreseen: a mode of fallocate");
                self.events.push(Event::Grown(number(2) + number(3)));
            }
            "write" if file.ends_with("marks") => {
                let text = String::from_utf8(quoted(call).concat()).expect("a mark");
                let n = text[1..].trim().parse().expect("a number");
                self.events.push(Event::Mark(text.chars().next().expect("a letter"), n));
            }
            _ => {}
        }
    }
}
