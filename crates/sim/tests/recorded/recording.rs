//! What strace wrote down, as events on one file. A call that was interrupted by another thread's line
//! counts from its start, a flush from its end. Calls that would change the file unseen are errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use support::strace::{Call, thread_and_call};

/// The calls that are recorded: all by which a file's contents, length and name change.
pub(crate) const CALLS: &str = "openat,open,creat,close,lseek,pwrite64,pwritev,pwritev2,write,writev,\
    ftruncate,truncate,fallocate,fdatasync,fsync,msync,sync_file_range,mmap,copy_file_range,sendfile,\
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
    /// A flush of a range that covers what was written there until the event of this number has ended.
    RangeFlushed(u64, u64, usize),
    /// The write of this number has ended, and is on disk.
    WriteFlushed(usize),
    Directory,
    Mark(char, u64),
}

pub(crate) struct Recording {
    store: PathBuf,
    /// It has a name.
    seen: bool,
    files: BTreeMap<i64, PathBuf>,
    /// Maps of the store, by their addresses: where in the file each begins.
    maps: BTreeMap<i64, u64>,
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
            maps: BTreeMap::new(),
            places: BTreeMap::new(),
            open: BTreeMap::new(),
            events: Vec::new(),
        };
        for line in text.lines() {
            let Some((thread, call)) = thread_and_call(line) else { continue };
            recording.line(thread, call);
        }
        recording.events
    }

    fn line(&mut self, thread: &str, call: &str) {
        if let Some(start) = call.strip_suffix("<unfinished ...>") {
            self.began(Call(start));
            self.open.insert(thread.into(), (start.trim_end().into(), self.events.len()));
        } else if let Some((_, rest)) = call.split_once("resumed>") {
            if let Some((start, at)) = self.open.remove(thread) {
                self.ended(Call(&format!("{start}{rest}")), at);
            }
        } else {
            self.began(Call(call));
            self.ended(Call(call), self.events.len());
        }
    }

    fn is_store(&self, fd: i64) -> bool {
        self.files.get(&fd) == Some(&self.store)
    }

    /// Writes count from their start: before they end the disk may have any part of them.
    fn began(&mut self, call: Call<'_>) {
        let Some(fd) = call.descriptor().filter(|fd| self.is_store(*fd)) else { return };
        match call.name() {
            "pwrite64" | "pwritev" | "pwritev2" => {
                self.events.push(Event::Write(call.place(), call.bytes()));
            }
            "write" | "writev" => {
                let (place, bytes) = (self.places.entry(fd).or_default(), call.bytes());
                let from = *place;
                *place += bytes.len() as u64;
                self.events.push(Event::Write(from, bytes));
            }
            "mmap" if !call.0.contains("PROT_WRITE") => {}
            "close" | "lseek" | "ftruncate" | "fallocate" | "fdatasync" | "fsync" => {}
            name => panic!("not foreseen on the data file: {name}"),
        }
    }

    fn ended(&mut self, call: Call<'_>, began: usize) {
        let Some(result) = call.result() else { return };
        let name = call.name();
        if matches!(name, "openat" | "open" | "creat") {
            if let Some(path) = call.paths().into_iter().next().filter(|_| result >= 0) {
                // Opened again by its descriptor.
                let number = path.to_str().and_then(|path| path.strip_prefix("/proc/self/fd/"));
                let again = number.and_then(|fd| self.files.get(&fd.parse().ok()?).cloned());
                let path = again.unwrap_or(path);
                self.seen |= path == self.store;
                self.files.insert(result, path);
                self.places.insert(result, 0);
            }
            return;
        }
        if name.starts_with("rename") || name.starts_with("unlink") {
            let is_ours = result == 0 && call.paths().contains(&self.store);
            assert!(!is_ours, "not foreseen: {name}");
            return;
        }
        if name == "mmap" && call.descriptor().is_some_and(|fd| self.is_store(fd)) {
            let from = call.number(5).expect("a place") as u64;
            self.maps.insert(result, from);
            return;
        }
        if name == "msync" {
            // The newest map that begins before: maps are long, and do not lie over each other.
            let (Some(at), Some(len)) = (call.number(0), call.number(1)) else { return };
            let (start, from) = self.maps.range(..=at).next_back().expect("a map of the store");
            let from = from + (at - start) as u64;
            if result == 0 {
                let to = (from + len as u64).next_multiple_of(4096);
                self.events.push(Event::RangeFlushed(from, to, began));
            }
            return;
        }
        let Some(fd) = call.number(0) else { return };
        let file = self.files.get(&fd).cloned().unwrap_or_default();
        let number = |n| call.number(n).expect("a number") as u64;
        match name {
            "close" => drop(self.files.remove(&fd)),
            "lseek" if result >= 0 => drop(self.places.insert(fd, result as u64)),
            "fdatasync" | "fsync" if self.seen && Some(file.as_path()) == self.store.parent() => {
                self.events.push(Event::Directory);
            }
            "fdatasync" | "fsync" if self.is_store(fd) && result == 0 => {
                self.events.push(Event::FlushEnd(began));
            }
            "pwritev2" if self.is_store(fd) && call.0.contains("RWF_DSYNC") => {
                assert_eq!(result, call.bytes().len() as i64, "not foreseen: a short write");
                self.events.push(Event::WriteFlushed(began - 1));
            }
            "ftruncate" if self.is_store(fd) && result == 0 => {
                self.events.push(Event::Length(number(1)));
            }
            "fallocate" if self.is_store(fd) && result == 0 => {
                assert_eq!(number(1), 0, "not foreseen: a mode of fallocate");
                self.events.push(Event::Grown(number(2) + number(3)));
            }
            "write" if file.ends_with("marks") => {
                let text = String::from_utf8(call.bytes()).expect("a mark");
                let n = text[1..].trim().parse().expect("a number");
                self.events.push(Event::Mark(text.chars().next().expect("a letter"), n));
            }
            _ => {}
        }
    }
}
