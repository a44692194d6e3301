//! Crash states as somebody makes them who knows nothing of the engine: a program is run under strace,
//! its calls on the data file are taken from the recording, and replayed up to any moment with any part
//! of what was not flushed. The images are opened like any file, on the boot on which they were made:
//! in a new place, or in that of another image, whose lock file is still there.
//!
//! That this finds nothing says that the calls which really reach the system keep the order that the
//! simulated disk sees. Needs strace and the right to trace; says so where it has not. `ZUBILO_SEED`
//! repeats a choice, `ZUBILO_CASES` sets the states of each mode, `ZUBILO_MODE` chooses one.

mod c;
mod c_life;
mod disk;
mod plan;
mod recording;
mod rust;

use std::io::Write;
use std::path::{Path, PathBuf};

use disk::Disk;
use recording::{CALLS, Event, Recording};
use sim::watch::{beat, watch};
use support::Rng;

const DIR: &str = "ZUBILO_RECORDED_DIR";
const MODE: &str = "ZUBILO_RECORDED_MODE";

/// Notes in the recording what was tried (T), acknowledged (A), durable (D), and copied (C).
pub(crate) struct Marks(std::fs::File);

impl Marks {
    pub(crate) fn say(&mut self, what: char, n: u64) {
        self.0.write_all(format!("{what}{n}\n").as_bytes()).expect("marks");
    }
}

#[test]
#[ignore = "program: run under strace by other tests"]
fn recorded_life() {
    let (Some(dir), Ok(mode)) = (std::env::var_os(DIR), std::env::var(MODE)) else { return };
    let dir = Path::new(&dir);
    let mut marks = Marks(std::fs::File::create(dir.join("marks")).expect("marks"));
    if mode.starts_with("c-") {
        c_life::live(dir, &mode, &mut marks)
    } else {
        rust::live(dir, &mode, &mut marks)
    }
}

/// What is judged: the store of a program, or one of its copies.
#[derive(Clone, Copy, Debug)]
enum Subject {
    Store,
    Copy(u64),
}

/// The events of the store and of the copies.
fn record(mode: &str) -> Option<Vec<(Subject, Vec<Event>)>> {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().canonicalize().expect("a path");
    let out = folder.join("recording");
    let ran = support::strace::command(CALLS, &out)
        .arg(std::env::current_exe().expect("this program"))
        .args(["recorded_life", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIR, &folder)
        .env(MODE, mode)
        .stdout(std::process::Stdio::null())
        .status();
    if !ran.is_ok_and(|status| status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(out).expect("the recording");
    let mut all = vec![(Subject::Store, Recording::read(&text, &folder.join("store")))];
    if mode == "c-sync" {
        for (n, _) in c_life::COPIES {
            let events = Recording::read(&text, &c_life::copy_path(&folder, n));
            all.push((Subject::Copy(n), events));
        }
    }
    Some(all)
}

/// Where images are opened.
struct Places {
    /// Whose lock file stays from image to image.
    used: tempfile::TempDir,
}

impl Places {
    /// Puts an image somewhere; the place lasts as long as the second value.
    fn put(&self, image: &[u8], rng: &mut Rng) -> (PathBuf, Option<tempfile::TempDir>) {
        let used = self.used.path().join("store");
        match rng.below(4) {
            // The same file with other contents.
            0 => std::fs::write(&used, image).expect("the image"),
            // Another file under the same name.
            1 => {
                let new = self.used.path().join("new");
                std::fs::write(&new, image).expect("the image");
                std::fs::rename(&new, &used).expect("the image in its place");
            }
            _ => {
                let fresh = folder();
                let path = fresh.path().join("store");
                std::fs::write(&path, image).expect("the image");
                return (path, Some(fresh));
            }
        }
        (used, None)
    }
}

fn judge(mode: &str, subject: Subject, disk: &Disk, path: &Path, rng: &mut Rng) {
    match subject {
        Subject::Copy(n) => c_life::judge_copy(disk, n, path),
        Subject::Store if mode.starts_with("c-") => {
            c_life::judge(disk, mode, path, rng.one_in(2));
        }
        Subject::Store => rust::judge(disk, mode, path),
    }
}

fn replay(mode: &str, subject: Subject, events: &[Event], states: u64, seed: u64) {
    let writes = events.iter().filter(|e| matches!(e, Event::Write(..))).count();
    let flushes = events.iter().filter(|e| matches!(e, Event::FlushEnd(_))).count();
    assert!(writes > 1 && flushes > 1, "{writes} writes, {flushes} flushes");
    let is_record = |e: &&Event| matches!(e, Event::WriteFlushed(_) | Event::RangeFlushed(..));
    let records = events.iter().filter(is_record).count();
    assert!(mode != "log" || records > 10, "{records} records of the redo log");
    assert!(mode != "lazy-log" || records > 0, "the redo log is not flushed");
    let mut rng = Rng::new(seed);
    let mut disk = Disk::default();
    let places = Places { used: folder() };
    // Where more may be missing there are more states; one for each moment, at least.
    let (mut judged, mut weight, mut passed) = (0, 0, 0);
    for i in 0..events.len() {
        disk.step(events, i);
        weight += 1 + disk.open_writes().min(6);
    }
    disk = Disk::default();
    for i in 0..events.len() {
        disk.step(events, i);
        passed += 1 + disk.open_writes().min(6);
        while judged * (weight as u64) < states * passed as u64 {
            let mut rng = rng.fork();
            judged += 1;
            beat();
            let Some(image) = disk.image(events, &mut rng) else { continue };
            let state = format!(
                "ZUBILO_MODE={mode} ZUBILO_SEED={seed} ZUBILO_CASES={states}: {subject:?}, state \
                 {judged} after call {i}"
            );
            let run = || {
                let (path, _fresh) = places.put(&image, &mut rng);
                judge(mode, subject, &disk, &path, &mut rng);
            };
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            assert!(done.is_ok(), "{state}");
        }
    }
    println!(
        "{mode}, {subject:?}: {writes} writes, {flushes} flushes, {records} of records; {judged} states, all fine"
    );
}

/// In memory where the system has such a place.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

fn replay_mode(mode: &str) {
    if std::env::var("ZUBILO_MODE").is_ok_and(|only| only != mode) {
        return;
    }
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let Some(subjects) = record(mode) else {
        println!("NOT TESTED: strace is not here or may not trace");
        return;
    };
    let (states, seed) = (number("ZUBILO_CASES", 300), number("ZUBILO_SEED", 1));
    for (subject, events) in subjects {
        let _watched = watch(format!("recorded {mode}"));
        replay(mode, subject, &events, states, seed);
    }
}

#[test]
fn states_of_recorded_calls_lose_nothing() {
    rust::MODES.into_iter().for_each(replay_mode);
}

#[test]
fn states_of_recorded_c_programs_lose_nothing() {
    c_life::MODES.into_iter().for_each(|(mode, _)| replay_mode(mode));
}
