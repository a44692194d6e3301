//! Real processes killed at any moment: writers and readers in every mode of durability, by SIGKILL.
//!
//! Each writer numbers its commits, and what its tables hold after commit n is a function of n alone.
//! After a commit has returned its number goes into a file that outlives the process; so after
//! each kill it is known what must be found: the acknowledged commit, or the one that was under
//! way, whole. The others must go on: the survivors, the test's own process, and the victims, started
//! again. `ZUBILO_SEED` repeats the choices of a run, `ZUBILO_CASES` sets its rounds.

#[path = "it/common/mod.rs"]
#[allow(dead_code, reason = "shared with the other tests; these need little of it")]
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Rng, any_seed, check, number};
use zubilo::{
    CompactOptions, Durability, Env, Error, Options, ReadTxn, Result, TableOptions, VerifyReads,
    WriteTxn,
};

/// Values in the ring of a writer, records in its set and in its bulk.
const RING: u64 = 40;
const SET: u64 = 60;
const BULK: u64 = 80;
/// Threads of a writer that commits in groups.
const GROUP: u64 = 3;
const WRITERS: u64 = 2;
const READERS: u64 = 2;
/// Nobody waits so long, on a busy machine either.
const PATIENCE: Duration = Duration::from_secs(60);
const DIR: &str = "ZUBILO_KILLS_DIR";
const ROLE: &str = "ZUBILO_KILLS_ROLE";
/// File for what a program found wrong.
const WRONG: &str = "wrong";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weak {
    Sync,
    Logged,
    Lazy,
    NoSync,
}

/// How a writer uses the store.
#[derive(Clone, Copy, Debug)]
struct Mode {
    name: &'static str,
    weak: Weak,
    map: bool,
    group: bool,
}

/// Those without groups first.
const MODES: [Mode; 8] = [
    Mode { name: "sync", weak: Weak::Sync, map: false, group: false },
    Mode { name: "lazy", weak: Weak::Lazy, map: false, group: false },
    Mode { name: "nosync", weak: Weak::NoSync, map: false, group: false },
    Mode { name: "map-nosync", weak: Weak::NoSync, map: true, group: false },
    Mode { name: "log", weak: Weak::Logged, map: false, group: false },
    Mode { name: "group-sync", weak: Weak::Sync, map: false, group: true },
    Mode { name: "group-lazy", weak: Weak::Lazy, map: false, group: true },
    Mode { name: "group-map-nosync", weak: Weak::NoSync, map: true, group: true },
];

impl Mode {
    fn options(self) -> Options {
        let durability = match self.weak {
            Weak::Sync | Weak::Logged => Durability::Sync,
            // Often enough that kills meet checkpoints.
            Weak::Lazy => {
                Durability::Lazy { sync_bytes: 256 << 10, sync_period: Duration::from_millis(10) }
            }
            Weak::NoSync => Durability::NoSync,
        };
        let log = if self.weak == Weak::Logged { 64 << 10 } else { 0 };
        options().durability(durability).writable_map(self.map).redo_log(log)
    }
}

/// Few reader slots, so that leaked ones are missed; little memory, so that large commits spill.
fn options() -> Options {
    Options::new().max_readers(16).dirty_limit(24 << 10).verify_reads(VerifyReads::Always)
}

// ---- what a writer's commit n leaves ----

fn value(writer: u64, n: u64, part: u64) -> Vec<u8> {
    let seed = (writer << 48 ^ n << 16 ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let len =
        if part == 0 && n.is_multiple_of(11) { 20_000 + seed % 9000 } else { 20 + seed % 400 };
    (0..len).map(|i| (seed >> (i % 57)) as u8 ^ i as u8).collect()
}

fn name(kind: &str, writer: u64) -> String {
    format!("{kind}-{writer}")
}

fn ring_key(n: u64) -> [u8; 8] {
    (n % RING).to_be_bytes()
}

/// Commit `n` of a writer; the commits before have been made.
fn apply(txn: &mut WriteTxn, writer: u64, n: u64) -> Result<()> {
    let mut ring = txn.table_or_create(name("ring", writer))?;
    ring.put("last", n.to_be_bytes())?;
    ring.put(ring_key(n), value(writer, n, 0))?;
    let fixed = TableOptions::new().duplicates().fixed_duplicates();
    let mut set = txn.table_or_create_with(name("set", writer), &fixed)?;
    set.insert_value([(n % 5) as u8], n.to_be_bytes())?;
    if n > SET {
        let old = n - SET;
        set.delete_value([(old % 5) as u8], old.to_be_bytes())?;
    }
    if n.is_multiple_of(13) {
        let undone = txn.nested(|txn| {
            txn.drop_table(name("ring", writer))?;
            txn.table_or_create("undone")?.put("k", vec![0; 30_000])?;
            Err::<(), _>(Error::Stopped)
        });
        assert!(matches!(undone, Err(Error::Stopped)));
    }
    if n.is_multiple_of(17) {
        let mut bulk = txn.table_or_create(name("bulk", writer))?;
        if n.is_multiple_of(2) {
            bulk.clear()?;
        } else {
            bulk.delete_range::<&[u8]>(..)?;
        }
        for i in 0..BULK {
            bulk.put(i.to_be_bytes(), value(writer, n, 1 + i))?;
        }
    }
    Ok(())
}

/// The number of a writer's last commit in a snapshot, if the snapshot is what this commit left.
fn verify(read: &ReadTxn, writer: u64) -> std::result::Result<u64, String> {
    let text = |e: Error| format!("writer {writer}: {e}");
    let ring = match read.table(name("ring", writer)) {
        Ok(ring) => ring,
        Err(Error::NoSuchTable { .. }) => return Ok(0),
        Err(error) => return Err(text(error)),
    };
    let bytes = ring.get("last").map_err(text)?.ok_or("no last commit")?;
    let last = u64::from_be_bytes(bytes.try_into().map_err(|_| "last commit without number")?);
    let wrong = |what: &str| Err(format!("writer {writer}, commit {last}: {what}"));
    for n in last.saturating_sub(RING - 1).max(1)..=last {
        if ring.get(ring_key(n)).map_err(text)? != Some(&value(writer, n, 0)[..]) {
            return wrong(&format!("the value of commit {n} is not there"));
        }
    }
    if ring.iter().count() as u64 != last.min(RING) + 1 {
        return wrong("not as many values as commits");
    }
    let set = read.table(name("set", writer)).map_err(text)?;
    for k in 0..5u8 {
        let first = last.saturating_sub(SET - 1).max(1);
        let wanted = (first..=last).filter(|n| n % 5 == u64::from(k)).map(u64::to_be_bytes);
        let found: Result<Vec<_>> = set.get_all([k]).map_err(text)?.collect();
        if !found.map_err(text)?.into_iter().eq(wanted) {
            return wrong("another set of values");
        }
    }
    let bulk = last - last % 17;
    if bulk > 0 {
        let table = read.table(name("bulk", writer)).map_err(text)?;
        let mut found = table.iter();
        for i in 0..BULK {
            let wanted = (i.to_be_bytes(), value(writer, bulk, 1 + i));
            let record = found.next().transpose().map_err(text)?;
            if record != Some((&wanted.0[..], &wanted.1[..])) {
                return wrong(&format!("record {i} of the bulk of commit {bulk}"));
            }
        }
        if found.next().is_some() {
            return wrong("more in the bulk than was put");
        }
    }
    match read.table("undone") {
        Err(Error::NoSuchTable { .. }) => Ok(last),
        _ => wrong("what was undone is there"),
    }
}

/// Numbers of acknowledged commits: they outlive the process, as what is in the kernel does.
struct Acks(File);

impl Acks {
    fn open(dir: &Path) -> Acks {
        let options = File::options().read(true).write(true).create(true).truncate(false).clone();
        Acks(options.open(dir.join("acks")).unwrap())
    }

    fn set(&self, writer: u64, n: u64) {
        self.0.write_all_at(&n.to_le_bytes(), writer * 8).unwrap();
    }

    fn get(&self, writer: u64) -> u64 {
        let mut bytes = [0; 8];
        match self.0.read_exact_at(&mut bytes, writer * 8) {
            Ok(()) => u64::from_le_bytes(bytes),
            Err(_) => 0, // The file ends before: none yet.
        }
    }
}

// ---- the programs that are killed ----

#[test]
#[ignore = "program: run by other tests"]
fn program() {
    let (Some(dir), Ok(role)) = (std::env::var_os(DIR), std::env::var(ROLE)) else { return };
    let mut words = role.split(' ');
    let kind = words.next().unwrap();
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (id, mode, rng) = (number(), MODES[number() as usize], Rng::new(number()));
    let (path, acks) = (Path::new(&dir).join("store"), Acks::open(Path::new(&dir)));
    // Told at once: a kill may come before the process has ended by itself.
    let wrong = Path::new(&dir).join(WRONG);
    std::panic::set_hook(Box::new(move |panic| {
        let _ = std::fs::write(&wrong, panic.to_string());
        eprintln!("{panic}");
    }));
    match kind {
        "reader" => reader(&path, rng),
        _ if mode.group => group_writer(&path, &acks, id, mode),
        _ => writer(&path, &acks, id, mode, rng),
    }
}

fn resume(env: &Env, acks: &Acks, writer: u64) -> u64 {
    let last = verify(&env.read().unwrap(), writer).unwrap();
    let acknowledged = acks.get(writer);
    assert!(
        last == acknowledged || last == acknowledged + 1,
        "writer {writer} finds {last} after {acknowledged} were acknowledged"
    );
    last
}

fn writer(path: &Path, acks: &Acks, id: u64, mode: Mode, mut rng: Rng) {
    let mut env = mode.options().open(path).unwrap();
    let last = resume(&env, acks, id);
    for n in last + 1.. {
        if rng.below(25) == 0 {
            let mut txn = env.write().unwrap();
            apply(&mut txn, id, n + 1).unwrap();
            txn.abort();
        }
        let mut txn = env.write().unwrap();
        apply(&mut txn, id, n).unwrap();
        txn.commit().unwrap();
        acks.set(id, n);
        if mode.weak != Weak::Sync && rng.below(30) == 0 {
            env.sync().unwrap();
        }
        if rng.below(30) == 0 {
            let step = [1, 30 << 10][rng.below(2) as usize];
            let small = CompactOptions::new().step(step, Duration::from_secs(1));
            let mut steps = rng.below(40);
            let stopped = env.compact(&small.pause(Duration::ZERO), &mut |_, _| {
                steps = steps.saturating_sub(1);
                steps > 0
            });
            stopped.unwrap();
        }
        if rng.below(40) == 0 {
            if rng.below(2) == 0 {
                env.close().unwrap();
            } else {
                env.close_without_sync();
            }
            env = mode.options().open(path).unwrap();
            assert_eq!(resume(&env, acks, id), n);
        }
    }
}

fn group_writer(path: &Path, acks: &Acks, id: u64, mode: Mode) {
    let env = mode.options().open(path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..GROUP {
            let (env, id) = (&env, id * GROUP + thread);
            scope.spawn(move || {
                let last = resume(env, acks, id);
                for n in last + 1.. {
                    env.update(|txn| apply(txn, id, n)).unwrap();
                    acks.set(id, n);
                }
            });
        }
    });
}

/// Snapshots must not change while they are held.
fn reader(path: &Path, mut rng: Rng) {
    let env = options().open(path).unwrap();
    let all = |read: &ReadTxn| -> Vec<u64> {
        (0..WRITERS * GROUP).map(|writer| verify(read, writer).unwrap()).collect()
    };
    loop {
        let read = env.read().unwrap();
        let before = all(&read);
        std::thread::sleep(Duration::from_micros(rng.below(20_000)));
        assert_eq!(all(&read), before, "a snapshot changed");
    }
}

// ---- the tests ----

/// A program on its way; killed at the latest when it is forgotten.
struct Process {
    child: Child,
    role: String,
}

impl Process {
    fn start(dir: &Path, role: String) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["program", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(DIR, dir).env(ROLE, &role).stdout(std::process::Stdio::null());
        Process { child: command.spawn().unwrap(), role }
    }

    /// It must have lived until now: these programs only end when they find something wrong.
    fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "{} ended by itself: {status}", self.role);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Dead already, mostly.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a run counted.
#[derive(Default)]
struct Figures {
    rounds: u64,
    killed: [u64; 2],
    commits: u64,
    longest: Duration,
}

/// Ends the test when the process itself is stuck, which no assertion could tell.
struct Watchdog(Arc<Mutex<(Instant, String, bool)>>);

impl Watchdog {
    fn start() -> Watchdog {
        let state = Arc::new(Mutex::new((Instant::now(), String::new(), false)));
        let watched = Arc::clone(&state);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let (beat, what, over) = watched.lock().unwrap().clone();
                if over {
                    break;
                }
                if beat.elapsed() > PATIENCE {
                    eprintln!("stuck: {what}");
                    std::process::abort();
                }
            }
        });
        Watchdog(state)
    }

    fn beat(&self, what: &str) {
        *self.0.lock().unwrap() = (Instant::now(), what.to_string(), false);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.lock().unwrap().2 = true;
    }
}

/// One store and those who use it.
struct Fleet {
    dir: tempfile::TempDir,
    mode: usize,
    /// Each writer has a mode of its own.
    mixed: bool,
    acks: Acks,
    env: Option<Env>,
    /// Writers, then readers.
    processes: Vec<Option<Process>>,
    progress: Vec<(u64, Instant)>,
    own: u64,
}

impl Fleet {
    fn new(mode: usize, mixed: bool) -> Fleet {
        let dir = tempfile::tempdir().unwrap();
        Fleet {
            acks: Acks::open(dir.path()),
            dir,
            mode,
            mixed,
            env: None,
            processes: (0..WRITERS + READERS).map(|_| None).collect(),
            progress: vec![(0, Instant::now()); (WRITERS * GROUP) as usize],
            own: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn identities(&self, process: u64, group: bool) -> std::ops::Range<u64> {
        if group { process * GROUP..(process + 1) * GROUP } else { process..process + 1 }
    }

    fn start_missing(&mut self, rng: &mut Rng) {
        for id in 0..WRITERS + READERS {
            if self.processes[id as usize].is_some() {
                continue;
            }
            let kind = if id < WRITERS { "writer" } else { "reader" };
            let single = MODES.iter().filter(|mode| !mode.group).count() as u64;
            let mode = if self.mixed { rng.below(single) } else { self.mode as u64 };
            let role = format!("{kind} {id} {mode} {}", rng.next());
            self.processes[id as usize] = Some(Process::start(self.dir.path(), role));
        }
        self.progress.iter_mut().for_each(|(_, since)| *since = Instant::now());
    }

    fn kill(&mut self, id: usize, figures: &mut Figures) {
        if let Some(process) = self.processes[id].take() {
            process.kill();
            figures.killed[usize::from(id as u64 >= WRITERS)] += 1;
        }
    }

    /// Everything acknowledged is there, and of the dead at most one commit more.
    fn verify(&mut self, group: bool, what: &str) {
        let ids = if group { WRITERS * GROUP } else { WRITERS };
        let acknowledged: Vec<_> = (0..ids).map(|w| self.acks.get(w)).collect();
        let read = self.env.as_ref().unwrap().read().unwrap();
        for process in 0..WRITERS {
            let dead = self.processes[process as usize].is_none();
            for writer in self.identities(process, group) {
                let known = acknowledged[writer as usize];
                let last = verify(&read, writer).unwrap_or_else(|why| panic!("{what}: {why}"));
                assert!(last >= known, "{what}: writer {writer} lost {known}, has {last}");
                assert!(
                    !dead || last <= known + 1,
                    "{what}: writer {writer} has {last}, not {known}"
                );
                if dead {
                    // It was under way: acknowledged now that it was found.
                    self.acks.set(writer, last);
                }
                let (seen, since) = &mut self.progress[writer as usize];
                if dead || known > *seen {
                    (*seen, *since) = (known, Instant::now());
                }
                assert!(since.elapsed() < PATIENCE, "{what}: writer {writer} waits at {known}");
            }
        }
    }

    /// The test's own commit, beside those of the survivors.
    fn commit(&mut self, what: &str) -> Duration {
        let env = self.env.as_ref().unwrap();
        let start = Instant::now();
        let mut txn = env.write().unwrap();
        let waited = start.elapsed();
        let mut table = txn.table_or_create("own").unwrap();
        let found =
            table.get("n").unwrap().map_or(0, |n| u64::from_be_bytes(n.try_into().unwrap()));
        assert_eq!(found, self.own, "{what}: own commit");
        self.own += 1;
        table.put("n", self.own.to_be_bytes()).unwrap();
        txn.commit().unwrap();
        waited
    }

    /// No program has found anything wrong.
    fn content(&self, what: &str) {
        if let Ok(wrong) = std::fs::read_to_string(self.dir.path().join(WRONG)) {
            panic!("{what}: {wrong}");
        }
    }

    /// No slot belongs to a process that is gone.
    fn readers(&self, what: &str) {
        let env = self.env.as_ref().unwrap();
        env.clean_readers().unwrap();
        let living: Vec<u32> = self.processes.iter().flatten().map(|p| p.child.id()).collect();
        for reader in env.readers() {
            let own = reader.pid == std::process::id();
            assert!(own || living.contains(&reader.pid), "{what}: slot of {} leaked", reader.pid);
        }
    }
}

fn round(fleet: &mut Fleet, rng: &mut Rng, group: bool, what: &str, figures: &mut Figures) {
    fleet.start_missing(rng);
    // From "not even opened" to many commits.
    let longest = if rng.below(3) == 0 { 12_000 } else { 90_000 };
    std::thread::sleep(Duration::from_micros(rng.below(longest)));
    let all = rng.below(8) == 0;
    let victim = rng.below(WRITERS + READERS) as usize;
    for id in 0..fleet.processes.len() {
        if all || id == victim || rng.below(5) == 0 {
            fleet.kill(id, figures);
        }
    }
    if fleet.env.is_none() {
        fleet.env = Some(MODES[fleet.mode].options().open(fleet.path()).unwrap());
    }
    fleet.content(what);
    fleet.verify(group, what);
    figures.longest = figures.longest.max(fleet.commit(what));
    if rng.below(3) == 0 {
        fleet.readers(what);
    }
    if rng.below(4) == 0 {
        check(fleet.env.as_ref().unwrap(), what);
    }
    if rng.below(3) == 0 {
        let env = fleet.env.take().unwrap();
        if rng.below(2) == 0 { env.close().unwrap() } else { env.close_without_sync() }
    }
}

/// Some rounds of killing in one mode; each store lives for some of them.
fn rounds(mode: usize, mixed: bool, rounds: u64, seed: u64) -> Figures {
    let name = if mixed { "mixed" } else { MODES[mode].name };
    let group = MODES[mode].group;
    let mut rng = Rng::new(seed);
    let mut figures = Figures::default();
    let watchdog = Watchdog::start();
    while figures.rounds < rounds {
        let mut fleet = Fleet::new(mode, mixed);
        let era = (rounds - figures.rounds).min(8 + rng.below(50));
        for _ in 0..era {
            let what = format!("seed {seed}, {name}, round {}", figures.rounds);
            watchdog.beat(&what);
            round(&mut fleet, &mut rng, group, &what, &mut figures);
            figures.rounds += 1;
        }
        (0..fleet.processes.len()).for_each(|id| fleet.kill(id, &mut figures));
        let what = format!("seed {seed}, {name}, end of a store");
        fleet.content(&what);
        fleet.env = Some(MODES[mode].options().open(fleet.path()).unwrap());
        fleet.verify(group, &what);
        fleet.readers(&what);
        // A checkpoint of this process holds a slot too.
        let mut left = fleet.env.as_ref().unwrap().readers().into_iter();
        assert!(left.all(|r| r.pid == std::process::id()), "{what}: readers are left");
        check(fleet.env.as_ref().unwrap(), &what);
        let ids = if group { WRITERS * GROUP } else { WRITERS };
        figures.commits += (0..ids).map(|w| fleet.acks.get(w)).sum::<u64>();
    }
    figures
}

fn run(cases: u64) {
    let seed = any_seed();
    static COMMITS: AtomicU64 = AtomicU64::new(0);
    for mode in 0..=MODES.len() {
        let (mode, mixed) = if mode == MODES.len() { (0, true) } else { (mode, false) };
        let start = Instant::now();
        let figures = rounds(mode, mixed, cases, seed.wrapping_add(mode as u64));
        let name = if mixed { "mixed" } else { MODES[mode].name };
        println!(
            "{name}: {} rounds, {} writers and {} readers killed, {} commits acknowledged and \
             found, longest wait for the writer lock {:?}, {:.0?}",
            figures.rounds,
            figures.killed[0],
            figures.killed[1],
            figures.commits,
            figures.longest,
            start.elapsed()
        );
        COMMITS.fetch_add(figures.commits, Ordering::Relaxed);
    }
    assert!(COMMITS.load(Ordering::Relaxed) > 0, "nothing was ever committed");
}

#[test]
fn nothing_acknowledged_is_lost_and_nobody_waits_for_the_dead() {
    run(number("ZUBILO_CASES", 12));
}

#[test]
#[ignore = "long: minutes"]
fn long_kills() {
    run(number("ZUBILO_CASES", 400));
}
