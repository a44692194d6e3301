//! Power cuts during a conversion. The system calls of a conversion are recorded by strace, and replayed
//! up to each of them on a disk that knows files and names: of what was not flushed any part may be
//! there, of files in sectors, of a folder's names in any choice. Each state is judged: under the name is
//! the old file, byte for byte, or the new store, whole, and then the old file under its second name.
//!
//! Needs strace and the right to trace. `ZUBILO_SEED` repeats a run.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use support::strace::{self, Call};
use support::{Rng, rng};

use crate::place::Place;

/// All calls by which files, their lengths and names change; those that are not foreseen fail the test.
const CALLS: &str = "openat,open,creat,close,lseek,pwrite64,pwritev,pwritev2,write,writev,ftruncate,\
    truncate,fallocate,fdatasync,fsync,mmap,copy_file_range,sendfile,splice,link,linkat,rename,renameat,\
    renameat2,unlink,unlinkat,symlink,symlinkat,dup,dup2,dup3,sync,syncfs";
const SECTOR: usize = 512;
const FOLDER: usize = usize::MAX;

/// The files of the folder are numbered in the order in which they appear.
#[derive(Clone, Debug)]
enum Event {
    Write(usize, u64, Vec<u8>),
    Length(usize, u64),
    Grown(usize, u64),
    Flush(usize),
    /// Names that lead to another file, or to none, from now on.
    Names(Vec<(String, Option<usize>)>),
}

/// What strace wrote down, as events in the folder.
struct Recording<'f> {
    folder: &'f Path,
    names: BTreeMap<String, usize>,
    files: usize,
    /// Open files, and where calls without a place write.
    open: BTreeMap<i64, (usize, u64)>,
    events: Vec<Event>,
}

impl Recording<'_> {
    fn name(&self, path: &Path) -> Option<String> {
        let here = path.parent() == Some(self.folder);
        let name = here.then(|| path.file_name().and_then(OsStr::to_str)).flatten()?;
        // What it holds is void after the restart.
        (name != "lock.mdb").then(|| name.into())
    }

    fn opened(&mut self, call: Call<'_>, fd: i64) {
        let Some(path) = call.paths().into_iter().next() else { return };
        if path == self.folder {
            self.open.insert(fd, (FOLDER, 0));
            return;
        }
        let Some(name) = self.name(&path) else { return };
        let file = match self.names.get(&name) {
            Some(file) => *file,
            None => {
                self.files += 1;
                let new = self.files - 1;
                self.rename(vec![(name, Some(new))]);
                new
            }
        };
        if call.0.contains("O_TRUNC") {
            self.events.push(Event::Length(file, 0));
        }
        self.open.insert(fd, (file, 0));
    }

    fn rename(&mut self, names: Vec<(String, Option<usize>)>) {
        for (name, file) in &names {
            match file {
                Some(file) => self.names.insert(name.clone(), *file),
                None => self.names.remove(name),
            };
        }
        self.events.push(Event::Names(names));
    }

    fn line(&mut self, call: Call<'_>) {
        let Some(result) = call.result().filter(|result| *result >= 0) else { return };
        let what = call.name();
        match what {
            "openat" | "open" | "creat" => return self.opened(call, result),
            "link" | "linkat" | "rename" | "renameat" | "renameat2" | "unlink" | "unlinkat" => {
                let names: Vec<_> =
                    call.paths().iter().filter_map(|path| self.name(path)).collect();
                let file = |name: &String| self.names.get(name).copied();
                let changed = match (what, &names[..]) {
                    (_, []) => return,
                    ("link" | "linkat", [old, new]) => vec![(new.clone(), file(old))],
                    ("unlink" | "unlinkat", [name]) => vec![(name.clone(), None)],
                    (_, [old, new]) => vec![(new.clone(), file(old)), (old.clone(), None)],
                    _ => panic!("not foreseen: {}", call.0),
                };
                return self.rename(changed);
            }
            "symlink" | "symlinkat" | "sync" | "syncfs" | "truncate" => {
                panic!("not foreseen: {}", call.0)
            }
            _ => {}
        }
        let Some(fd) = call.descriptor() else { return };
        let Some(&(file, place)) = self.open.get(&fd) else { return };
        match what {
            "close" => drop(self.open.remove(&fd)),
            "lseek" => drop(self.open.insert(fd, (file, result as u64))),
            "fsync" | "fdatasync" => self.events.push(Event::Flush(file)),
            "pwrite64" | "pwritev" | "pwritev2" => {
                self.events.push(Event::Write(file, call.place(), call.bytes()));
            }
            "write" | "writev" => {
                self.open.insert(fd, (file, place + result as u64));
                self.events.push(Event::Write(file, place, call.bytes()));
            }
            "ftruncate" => {
                self.events.push(Event::Length(file, call.number(1).expect("a length") as u64));
            }
            "fallocate" if call.number(1) == Some(0) => {
                let end = call.number(2).zip(call.number(3)).map(|(from, len)| from + len);
                self.events.push(Event::Grown(file, end.expect("an end") as u64));
            }
            "mmap" if !call.0.contains("PROT_WRITE") || call.0.contains("MAP_PRIVATE") => {}
            _ => panic!("not foreseen: {}", call.0),
        }
    }
}

/// The events of a conversion.
fn record(place: &Place) -> Option<Vec<Event>> {
    let folder = place.folder();
    let out = folder.join("../recording");
    let opener = place.opener(Some("1"), 0);
    let mut strace = strace::command(CALLS, &out);
    strace.arg(opener.get_program()).args(opener.get_args());
    strace.envs(opener.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if !strace.output().is_ok_and(|output| output.status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(out).expect("the recording");
    assert!(!text.contains("<unfinished"), "the program has more than one thread");
    let names = BTreeMap::from([("data.mdb".to_owned(), 0)]);
    let open = BTreeMap::new();
    let mut recording = Recording { folder: &folder, names, files: 1, open, events: Vec::new() };
    for (_, call) in text.lines().filter_map(strace::thread_and_call) {
        recording.line(Call(call));
    }
    Some(recording.events)
}

/// A disk at a moment of the recording.
#[derive(Clone, Default)]
struct Disk {
    files: Vec<Vec<u8>>,
    names: BTreeMap<String, usize>,
    /// What is not known to be on it.
    pending: Vec<Event>,
}

/// What it may hold after a power cut.
#[derive(Clone, Hash)]
struct Image {
    files: Vec<Vec<u8>>,
    names: BTreeMap<String, usize>,
}

fn of(event: &Event) -> usize {
    match event {
        Event::Write(file, ..) | Event::Length(file, _) | Event::Grown(file, _) => *file,
        Event::Flush(file) => *file,
        Event::Names(_) => FOLDER,
    }
}

/// Does an event, of a write the sectors that are chosen, of names those.
fn put(
    (files, names): (&mut Vec<Vec<u8>>, &mut BTreeMap<String, usize>),
    event: &Event,
    mut chosen: impl FnMut() -> bool,
) {
    if let Event::Names(changed) = event {
        for (name, file) in changed {
            match file {
                _ if !chosen() => None,
                Some(file) => names.insert(name.clone(), *file),
                None => names.remove(name),
            };
        }
        return;
    }
    files.resize(files.len().max(of(event) + 1), Vec::new());
    let file = &mut files[of(event)];
    match event {
        Event::Length(_, len) => file.resize(*len as usize, 0),
        Event::Grown(_, len) => file.resize(file.len().max(*len as usize), 0),
        Event::Write(_, at, bytes) => {
            for (i, part) in bytes.chunks(SECTOR).enumerate() {
                let at = *at as usize + i * SECTOR;
                if chosen() {
                    file.resize(file.len().max(at + part.len()), 0);
                    file[at..at + part.len()].copy_from_slice(part);
                }
            }
        }
        _ => {}
    }
}

impl Disk {
    fn new(old: &[u8]) -> Disk {
        let names = BTreeMap::from([("data.mdb".to_owned(), 0)]);
        Disk { files: vec![old.to_vec()], names, pending: Vec::new() }
    }

    fn step(&mut self, event: &Event) {
        let Event::Flush(file) = event else { return self.pending.push(event.clone()) };
        let done: Vec<_> = self.pending.extract_if(.., |event| of(event) == *file).collect();
        done.iter().for_each(|event| put((&mut self.files, &mut self.names), event, || true));
    }

    /// One of the states; by the last digit of `kind` 0 all is there, 1 nothing, 2 all names, 3 all but names,
    /// else a random choice of calls, from 7 on also within calls.
    fn image(&self, kind: usize, rng: &mut Rng) -> Image {
        let kind = kind % 10;
        let mut image = Image { files: self.files.clone(), names: self.names.clone() };
        for event in &self.pending {
            let is_name = matches!(event, Event::Names(_));
            let whole = match kind {
                0 => true,
                1 => false,
                2 => is_name,
                3 => !is_name,
                _ => rng.one_in(2),
            };
            let torn = kind >= 7;
            put((&mut image.files, &mut image.names), event, || {
                if torn { rng.one_in(2) } else { whole }
            });
        }
        image
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Old,
    New,
}

/// What a program finds after the power cut. Panics where it is neither.
fn judge(place: &Place, image: &Image) -> Found {
    for name in place.names() {
        std::fs::remove_file(place.folder().join(name)).expect("it can go");
    }
    let mut first: BTreeMap<usize, &String> = BTreeMap::new();
    for (name, file) in &image.names {
        let path = place.folder().join(name);
        match first.get(file) {
            Some(other) => std::fs::hard_link(place.folder().join(other), path).expect("a name"),
            None => {
                let bytes = image.files.get(*file).map_or(&[][..], |bytes| bytes);
                std::fs::write(path, bytes).expect("the image");
                first.insert(*file, name);
            }
        }
    }
    let now = std::fs::read(place.data()).expect("something is there under the name");
    if now == place.bytes {
        let said = place.open(Some("1"), 0);
        assert_eq!(said.code, 0, "the old file is converted again: {said:?}");
        place.assert_converted();
        return Found::Old;
    }
    let kept = std::fs::read(place.kept()).expect("the old file has its second name");
    assert!(kept == place.bytes, "the old file is not what it was");
    let said = place.open(None, 0);
    assert_eq!(said.code, 0, "the new store opens: {said:?}");
    place.assert_holds();
    Found::New
}

/// Judges states at each moment; which kinds were found, how many states, or what is wrong with one.
fn replay(
    place: &Place,
    events: &[Event],
    rng: &mut Rng,
) -> Result<(BTreeSet<Found>, usize), String> {
    let (mut found, mut seen) = (BTreeSet::new(), HashSet::new());
    let mut disk = Disk::new(&place.bytes);
    for (i, event) in events.iter().enumerate() {
        disk.step(event);
        for kind in 0..40 {
            let image = disk.image(kind, rng);
            let mut hasher = DefaultHasher::new();
            // What no name leads to is not there.
            let named: Vec<_> = image.names.iter().map(|(n, f)| (n, image.files.get(*f))).collect();
            named.hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                continue;
            }
            let judged = catch_unwind(AssertUnwindSafe(|| judge(place, &image)));
            found.insert(judged.map_err(|_| format!("state {kind} after event {i}"))?);
        }
    }
    Ok((found, seen.len()))
}

#[test]
fn after_a_power_cut_the_file_is_the_old_one_or_the_new_one() {
    let mut rng = rng();
    let place = Place::small();
    let Some(events) = record(&place) else {
        eprintln!("NOT TESTED: strace is not here or may not trace");
        return;
    };
    let flushes = events.iter().filter(|event| matches!(event, Event::Flush(_))).count();
    assert!(flushes > 4 && events.len() > 20, "{} events, {flushes} flushes", events.len());
    let (found, states) = replay(&place, &events, &mut rng).unwrap();
    assert_eq!(found, BTreeSet::from([Found::Old, Found::New]));
    println!(
        "{} events recorded, {flushes} of them flushes; {states} states, all fine",
        events.len()
    );
    // Without its flushes, of the file or of the folder, a conversion would not stand this.
    for left_out in [FOLDER, 1] {
        let kept = |event: &&Event| !matches!(event, Event::Flush(file) if *file == left_out);
        let fewer: Vec<_> = events.iter().filter(kept).cloned().collect();
        assert!(fewer.len() < events.len());
        let tried = (0..5).any(|_| replay(&place, &fewer, &mut rng).is_err());
        assert!(tried, "flushes of {left_out} are not needed");
    }
}
