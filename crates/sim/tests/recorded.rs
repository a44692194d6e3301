//! Crash states as somebody makes them who knows nothing of the engine: a program is run under strace,
//! its calls on the data file are taken from the recording, and replayed up to any moment with any part
//! of what was not flushed. The images are opened like any file, on the boot on which they were made.
//!
//! That this finds nothing says that the calls which really reach the system keep the order that the
//! simulated disk sees. Needs strace and the right to trace; says so where it has not. `ZUBILO_SEED`
//! repeats a choice, `ZUBILO_CASES` sets the states of each mode.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sim::rng::Rng;
use sim::watch::{beat, watch};
use zubilo::{Durability, Env, Error, Options, TableOptions, WriteTxn};

const DIR: &str = "ZUBILO_RECORDED_DIR";
const MODE: &str = "ZUBILO_RECORDED_MODE";
const MODES: [&str; 4] = ["sync", "lazy", "nosync", "c"];
const COMMITS: u64 = 70;
const RING: u64 = 30;
const SECTOR: usize = 512;
const METAS: u64 = 4 * 4096;

// ---- the program that is recorded ----

fn options(mode: &str) -> Options {
    let durability = match mode {
        "sync" | "c" => Durability::Sync,
        "lazy" => Durability::Lazy { sync_bytes: 64 << 10, sync_period: Duration::from_millis(20) },
        _ => Durability::NoSync,
    };
    Options::new().durability(durability).dirty_limit(100 << 10)
}

fn value(n: u64) -> Vec<u8> {
    let seed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let len = if n.is_multiple_of(9) { 30_000 } else { 10 + seed % 700 };
    (0..len).map(|i| (seed >> (i % 57)) as u8 ^ i as u8).collect()
}

/// What the tables hold after commit `n`, of those named by the key.
fn expected(n: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    for k in 1..=n {
        all.insert((k % RING).to_be_bytes().to_vec(), value(k));
        if k.is_multiple_of(14) {
            (0..150u64).for_each(|i| {
                all.insert([b"bulk".as_slice(), &i.to_be_bytes()].concat(), value(k + i * 9 + 1));
            });
        }
        if k.is_multiple_of(17) {
            all.retain(|key, _| !key.starts_with(b"bulk"));
        }
    }
    all.insert(b"last".to_vec(), n.to_be_bytes().to_vec());
    all
}

fn apply(txn: &mut WriteTxn, n: u64) -> zubilo::Result<()> {
    let mut table = txn.table_or_create("t")?;
    table.put((n % RING).to_be_bytes(), value(n))?;
    table.put("last", n.to_be_bytes())?;
    if n.is_multiple_of(14) {
        for i in 0..150u64 {
            table.put([b"bulk".as_slice(), &i.to_be_bytes()].concat(), value(n + i * 9 + 1))?;
        }
    }
    if n.is_multiple_of(17) {
        table.delete_range(&b"bulk"[..]..&b"bulm"[..])?;
    }
    if n.is_multiple_of(5) {
        let undone = txn.nested(|txn| {
            txn.create_table("undone", TableOptions::new())?.put("k", vec![1; 9000])?;
            Err::<(), _>(Error::Stopped)
        });
        assert!(undone.is_err());
    }
    Ok(())
}

/// Tells the recording what was tried, acknowledged, and durable.
struct Marks(std::fs::File);

impl Marks {
    fn say(&mut self, what: char, n: u64) {
        self.0.write_all(format!("{what}{n}\n").as_bytes()).expect("marks");
    }
}

fn live(dir: &Path, mode: &str) {
    let mut marks = Marks(std::fs::File::create(dir.join("marks")).expect("marks"));
    if mode == "c" {
        return c::live(&dir.join("store"), &mut marks);
    }
    let env = options(mode).open(dir.join("store")).expect("open");
    let mut rng = Rng::new(5);
    for n in 1..=COMMITS {
        marks.say('T', n);
        let held = rng.one_in(4).then(|| env.read().expect("read"));
        let mut txn = env.write().expect("write");
        apply(&mut txn, n).expect("change");
        txn.commit().expect("commit");
        marks.say(if mode == "sync" { 'D' } else { 'A' }, n);
        if mode != "sync" && rng.one_in(8) {
            env.sync().expect("sync");
            marks.say('D', n);
        }
        drop(held);
    }
    env.close().expect("close");
    marks.say('D', COMMITS);
}

/// The same through the C interface.
mod c {
    use std::ffi::{CString, c_char, c_int, c_uint, c_void};
    use std::path::Path;
    use std::ptr::null_mut;

    use super::{COMMITS, Marks, RING, value};
    use liblmdb_linked as _;

    #[repr(C)]
    struct Val(usize, *const c_void);

    unsafe extern "C" {
        fn mdb_env_create(env: *mut *mut c_void) -> c_int;
        fn mdb_env_open(env: *mut c_void, path: *const c_char, flags: c_uint, m: c_uint) -> c_int;
        fn mdb_env_set_mapsize(env: *mut c_void, size: usize) -> c_int;
        fn mdb_env_set_maxdbs(env: *mut c_void, dbs: c_uint) -> c_int;
        fn mdb_env_close(env: *mut c_void);
        fn mdb_txn_begin(e: *mut c_void, p: *mut c_void, f: c_uint, t: *mut *mut c_void) -> c_int;
        fn mdb_txn_commit(txn: *mut c_void) -> c_int;
        fn mdb_dbi_open(t: *mut c_void, name: *const c_char, f: c_uint, d: *mut c_uint) -> c_int;
        fn mdb_put(t: *mut c_void, d: c_uint, k: *mut Val, v: *mut Val, f: c_uint) -> c_int;
        fn mdb_del(t: *mut c_void, d: c_uint, k: *mut Val, v: *mut Val) -> c_int;
    }

    const NOSUBDIR: c_uint = 0x4000;
    const CREATE: c_uint = 0x4_0000;

    fn val(bytes: &[u8]) -> Val {
        Val(bytes.len(), bytes.as_ptr().cast())
    }

    pub(super) fn live(path: &Path, marks: &mut Marks) {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("a path");
        let mut env = null_mut();
        // SAFETY: as the interface demands; all handles and values outlive the calls.
        unsafe {
            assert_eq!(mdb_env_create(&mut env), 0);
            assert_eq!(mdb_env_set_mapsize(env, 64 << 20), 0);
            assert_eq!(mdb_env_set_maxdbs(env, 4), 0);
            assert_eq!(mdb_env_open(env, path.as_ptr(), NOSUBDIR, 0o644), 0);
            for n in 1..=COMMITS {
                marks.say('T', n);
                let (mut txn, mut dbi) = (null_mut(), 0);
                assert_eq!(mdb_txn_begin(env, null_mut(), 0, &mut txn), 0);
                assert_eq!(mdb_dbi_open(txn, c"t".as_ptr(), CREATE, &mut dbi), 0);
                let put = |key: &[u8], value: &[u8]| {
                    assert_eq!(mdb_put(txn, dbi, &mut val(key), &mut val(value), 0), 0);
                };
                put(&(n % RING).to_be_bytes(), &value(n));
                put(b"last", &n.to_be_bytes());
                for i in 0..150u64 {
                    let key = [b"bulk".as_slice(), &i.to_be_bytes()].concat();
                    if n.is_multiple_of(14) {
                        put(&key, &value(n + i * 9 + 1));
                    }
                    if n.is_multiple_of(17) {
                        mdb_del(txn, dbi, &mut val(&key), null_mut());
                    }
                }
                assert_eq!(mdb_txn_commit(txn), 0);
                marks.say('D', n);
            }
            mdb_env_close(env);
        }
    }
}

#[test]
#[ignore = "program: run under strace by other tests"]
fn recorded_life() {
    if let (Some(dir), Ok(mode)) = (std::env::var_os(DIR), std::env::var(MODE)) {
        live(Path::new(&dir), &mode);
    }
}

// ---- the recording ----

#[derive(Debug)]
enum Event {
    Write(u64, Vec<u8>),
    Length(u64),
    /// A flush began, and covers what was written until then; it ended at its `FlushEnd`.
    Flush,
    FlushEnd(usize),
    Directory,
    Mark(char, u64),
}

/// What stands in a call's quotes: `\x41\x42`.
fn unhex(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).map(|x| u8::from_str_radix(x, 16).expect("two digits")).collect()
}

fn quoted(text: &str) -> Vec<Vec<u8>> {
    text.split('"').skip(1).step_by(2).map(unhex).collect()
}

/// Reads a recording; a call that was interrupted by another thread's line counts from its start, a
/// flush from its end.
struct Recording {
    store: PathBuf,
    files: BTreeMap<i64, PathBuf>,
    open: BTreeMap<String, (String, usize)>,
    events: Vec<Event>,
}

impl Recording {
    fn read(text: &str, store: &Path) -> Vec<Event> {
        let (files, open, events) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut recording = Recording { store: store.to_path_buf(), files, open, events };
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

    fn descriptor(call: &str) -> Option<i64> {
        let (_, arguments) = call.split_once('(')?;
        arguments.split([',', ')', ' ']).next()?.parse().ok()
    }

    /// Writes count from their start: before they end the disk may have any part of them.
    fn began(&mut self, call: &str) {
        let Some(fd) = Recording::descriptor(call) else { return };
        if !self.is_store(fd) {
            return;
        }
        let name = call.split('(').next().unwrap_or_default();
        let numbers = |text: &str| -> Vec<u64> {
            text.split([',', ')']).map_while(|n| n.trim().parse().ok()).collect()
        };
        match name {
            "pwrite64" => {
                let behind = call.rsplit('"').next().unwrap_or_default();
                let numbers = numbers(behind.trim_start_matches(','));
                let bytes = quoted(call).concat();
                self.events.push(Event::Write(numbers[1], bytes));
            }
            "pwritev" | "pwritev2" => {
                let behind = call.rsplit(']').next().unwrap_or_default();
                let numbers = numbers(behind.trim_start_matches(','));
                self.events.push(Event::Write(numbers[1], quoted(call).concat()));
            }
            "fdatasync" | "fsync" => self.events.push(Event::Flush),
            "write" | "writev" | "sync_file_range" => panic!("not foreseen: {name}"),
            _ => {}
        }
    }

    fn ended(&mut self, call: &str, at: usize) {
        let Some((_, result)) = call.rsplit_once(" = ") else { return };
        let result: i64 = result.split(' ').next().unwrap_or_default().parse().unwrap_or(-1);
        let name = call.split('(').next().unwrap_or_default();
        if matches!(name, "openat" | "open" | "creat") {
            if let Some(path) = quoted(call).first().filter(|_| result >= 0) {
                let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
                self.files.insert(result, path);
            }
            return;
        }
        let Some(fd) = Recording::descriptor(call) else { return };
        let file = self.files.get(&fd).cloned().unwrap_or_default();
        let arguments: Vec<&str> = call.split([',', ')']).map(str::trim).collect();
        match name {
            "close" => drop(self.files.remove(&fd)),
            "fdatasync" | "fsync" if Some(file.as_path()) == self.store.parent() => {
                self.events.push(Event::Directory);
            }
            "fdatasync" | "fsync" if self.is_store(fd) && result == 0 => {
                self.events.push(Event::FlushEnd(at));
            }
            "ftruncate" if self.is_store(fd) && result == 0 => {
                self.events.push(Event::Length(arguments[1].parse().expect("a length")));
            }
            "fallocate" if self.is_store(fd) && result == 0 => {
                let end = [2, 3].map(|i| arguments[i].parse::<u64>().expect("a number"));
                self.events.push(Event::Length(end[0] + end[1]));
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

fn record(mode: &str) -> Option<Vec<Event>> {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().canonicalize().expect("a path");
    let out = folder.join("recording");
    let calls = "openat,open,creat,close,pwrite64,pwritev,pwritev2,write,writev,ftruncate,fallocate,\
        fdatasync,fsync,sync_file_range";
    let ran = Command::new("strace")
        .args(["-f", "-qq", "-v", "-xx", "-s", "100000000", "-e", &format!("trace={calls}"), "-o"])
        .arg(&out)
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
    Some(Recording::read(&text, &folder.join("store")))
}

// ---- its crash states ----

/// A disk at a moment of the recording.
#[derive(Default)]
struct Disk {
    durable: Vec<u8>,
    exists: bool,
    /// Events not known to be on disk.
    pending: Vec<usize>,
    tried: u64,
    floor: u64,
}

impl Disk {
    fn step(&mut self, events: &[Event], i: usize) {
        match &events[i] {
            Event::Write(..) | Event::Length(_) => self.pending.push(i),
            Event::FlushEnd(began) => {
                let began = *began;
                let done: Vec<usize> = self.pending.extract_if(.., |p| *p < began).collect();
                done.into_iter().for_each(|p| put(&mut self.durable, &events[p], |_| true));
            }
            Event::Flush => {}
            Event::Directory => self.exists = true,
            Event::Mark('T', n) => self.tried = *n,
            Event::Mark('D', n) => self.floor = *n,
            Event::Mark(..) => {}
        }
    }

    fn image(&self, events: &[Event], rng: &mut Rng) -> Vec<u8> {
        if !self.exists && rng.one_in(4) {
            return Vec::new();
        }
        let mut image = self.durable.clone();
        let kind = rng.below(8);
        let chosen = rng.below(self.pending.len().max(1) as u64) as usize;
        for (n, &p) in self.pending.iter().enumerate() {
            let is_meta = matches!(&events[p], Event::Write(at, _) if *at < METAS);
            let whole = match kind {
                0 => true,
                1 => false,
                2 => n != chosen,
                3 => n == chosen,
                4 => is_meta,
                5 => !is_meta,
                6 => rng.one_in(2),
                _ => {
                    put(&mut image, &events[p], |_| rng.one_in(2));
                    continue;
                }
            };
            if whole {
                put(&mut image, &events[p], |_| true);
            }
        }
        image
    }
}

fn put(image: &mut Vec<u8>, event: &Event, mut sector: impl FnMut(usize) -> bool) {
    match event {
        Event::Length(len) => image.resize(*len as usize, 0),
        Event::Write(at, bytes) => {
            for (i, part) in bytes.chunks(SECTOR).enumerate().filter(|(i, _)| sector(*i)) {
                let at = *at as usize + i * SECTOR;
                image.resize(image.len().max(at + part.len()), 0);
                image[at..at + part.len()].copy_from_slice(part);
            }
        }
        _ => {}
    }
}

/// The newest commit, of which all is there and nothing else.
fn newest(env: &Env) -> u64 {
    let read = env.read().expect("read");
    if read.tables().expect("tables").is_empty() {
        return 0;
    }
    let table = read.table("t").expect("the table");
    let all: BTreeMap<_, _> =
        table.iter().map(|r| r.map(|(k, v)| (k.to_vec(), v.to_vec())).expect("a record")).collect();
    let last = all.get(&b"last"[..]).expect("the number");
    let n = u64::from_be_bytes(last.as_slice().try_into().expect("eight bytes"));
    assert!(all == expected(n), "commit {n} is not what it was");
    n
}

fn sound(env: &Env) {
    let report = env.check(&mut |_, _| true).expect("check");
    assert!(report.is_ok(), "{:?}", report.problems);
}

fn judge(disk: &Disk, image: &[u8], mode: &str, path: &Path) {
    std::fs::write(path, image).expect("the image");
    let env = options(mode).open(path).expect("an image of the disk opens");
    let found = newest(&env);
    assert!((disk.floor..=disk.tried).contains(&found), "{found}: {}..{}", disk.floor, disk.tried);
    sound(&env);
    if found < COMMITS {
        let mut txn = env.write().expect("write");
        apply(&mut txn, found + 1).expect("change");
        txn.commit().expect("commit");
    }
    env.close().expect("close");
    let env = options(mode).open(path).expect("it opens again");
    assert_eq!(newest(&env), (found + 1).min(COMMITS));
    sound(&env);
}

fn replay(mode: &str, states: u64, seed: u64) {
    let Some(events) = record(mode) else {
        println!("left out: strace is not here or may not trace");
        return;
    };
    let writes = events.iter().filter(|e| matches!(e, Event::Write(..))).count();
    let flushes = events.iter().filter(|e| matches!(e, Event::FlushEnd(_))).count();
    assert!(writes as u64 > COMMITS && flushes > 3, "{writes} writes, {flushes} flushes");
    let mut rng = Rng::new(seed);
    let mut disk = Disk::default();
    let mut judged = 0;
    for i in 0..events.len() {
        disk.step(&events, i);
        let share = states / events.len() as u64 + 1;
        let wanted = if states >= events.len() as u64 { share } else { 1 };
        for _ in 0..wanted {
            if judged * events.len() as u64 >= states * (i as u64 + 1) {
                break;
            }
            let mut rng = rng.fork();
            let image = disk.image(&events, &mut rng);
            let folder = folder();
            let state = format!("{mode}: ZUBILO_SEED={seed}, state {judged} after call {i}");
            let judge = || judge(&disk, &image, mode, &folder.path().join("store"));
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(judge));
            assert!(done.is_ok(), "{state}");
            beat();
            judged += 1;
        }
    }
    println!("{mode}: {writes} writes, {flushes} flushes recorded; {judged} states, all fine");
}

/// In memory where the system has such a place.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

#[test]
fn states_of_recorded_calls_lose_nothing() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    for mode in MODES {
        let _watched = watch(format!("recorded {mode}"));
        replay(mode, number("ZUBILO_CASES", 300), number("ZUBILO_SEED", 1));
    }
}
