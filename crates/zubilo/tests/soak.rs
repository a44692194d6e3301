//! A soak: processes with many threads each work on one store in mixed ways, some are killed, and what
//! they hold must add up in every snapshot.
//!
//! The model is a handful of sums that each transaction keeps: money that only moves between
//! accounts, the number of commits of each thread, and records that come in bulks and go in ranges.
//! Readers, copies and the driver compare all of it; the driver also runs the full check, at intervals
//! and at the end, and knows from a file which commits were acknowledged.
//!
//! `ZUBILO_SEED` repeats the choices (not the timing), `ZUBILO_SOAK_SECONDS` sets how long it runs.

#[path = "it/common/mod.rs"]
#[allow(dead_code, reason = "shared with the other tests; this needs little of it")]
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Rng, any_seed, check, geometry, number};
use zubilo::{
    CompactOptions, Durability, Env, Error, Options, ReadTxn, Result, TableOptions, WriteTxn,
};

const DIR: &str = "ZUBILO_SOAK_DIR";
const ROLE: &str = "ZUBILO_SOAK_ROLE";
const PROCESSES: u64 = 3;
/// Writers of a process: one alone, the others in groups.
const WRITERS: u64 = 3;
const ACCOUNTS: u64 = 300;
const MONEY: u64 = 1_000_000;
/// Records that the bulks of a thread are taken from.
const BULK: u64 = 4000;
/// Nobody gets stuck so long, on a busy machine either.
const PATIENCE: Duration = Duration::from_secs(300);
const MIB: u64 = 1 << 20;

fn options(kind: u64) -> Options {
    let lazy = Durability::Lazy { sync_bytes: MIB, sync_period: Duration::from_millis(20) };
    let durability = match kind % 4 {
        0 => Durability::Sync,
        1 | 2 => lazy,
        _ => Durability::NoSync,
    };
    let geometry = geometry(|g| {
        g.upper = 64 * MIB;
        g.growth = MIB;
        g.shrink = 2 * MIB;
    });
    Options::new()
        .durability(durability)
        .writable_map(kind % 8 >= 6)
        .geometry(geometry)
        .reserve(256 * MIB)
        .max_readers(64)
        .dirty_limit(512 << 10)
}

fn number_of(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
}

fn bulk_value(key: u64) -> Vec<u8> {
    let seed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let len = if key.is_multiple_of(97) { 9000 } else { 20 + seed % 300 };
    (0..len).map(|i| (seed >> (i % 57)) as u8 ^ i as u8).collect()
}

// ---- what a transaction does ----

/// Gives the store its accounts, if nobody has.
fn found(env: &Env) -> Result<()> {
    let mut txn = env.write()?;
    if txn.tables()?.iter().any(|name| name == b"accounts") {
        return Ok(());
    }
    let mut accounts = txn.create_table("accounts", TableOptions::new().counted())?;
    for n in 0..ACCOUNTS {
        accounts.put(n.to_be_bytes(), (MONEY / ACCOUNTS).to_be_bytes())?;
    }
    accounts.put(ACCOUNTS.to_be_bytes(), (MONEY % ACCOUNTS).to_be_bytes())?;
    txn.table_or_create("counters")?;
    txn.table_or_create("sums")?;
    txn.create_table("bulk", TableOptions::new())?;
    txn.create_table("trail", TableOptions::new().fixed_duplicates())?;
    txn.commit().map(drop)
}

fn transfer(txn: &mut WriteTxn, rng: &mut Rng) -> Result<()> {
    let mut accounts = txn.table("accounts")?;
    let (from, to) = (rng.below(ACCOUNTS).to_be_bytes(), rng.below(ACCOUNTS).to_be_bytes());
    let amount = rng.below(number_of(accounts.get(from)?) + 1);
    let left = number_of(accounts.get(from)?) - amount;
    accounts.put(from, left.to_be_bytes())?;
    let more = number_of(accounts.get(to)?) + amount;
    accounts.put(to, more.to_be_bytes())
}

fn add(txn: &mut WriteTxn, table: &str, key: &[u8], by: i64) -> Result<u64> {
    let mut table = txn.table(table)?;
    let sum = number_of(table.get(key)?).wrapping_add_signed(by);
    table.put(key, sum.to_be_bytes())?;
    Ok(sum)
}

/// Records come, or a range of them goes: the sum of their keys and their number are kept.
fn bulk(txn: &mut WriteTxn, writer: u64, rng: &mut Rng) -> Result<()> {
    let mut table = txn.table("bulk")?;
    let start = writer * BULK + rng.below(BULK);
    let end = (writer + 1) * BULK;
    let (mut records, mut keys) = (0i64, 0i64);
    if rng.one_in(3) {
        let stop = start + rng.below(end - start) + 1;
        let range = start.to_be_bytes()..stop.to_be_bytes();
        for record in table.range(range.clone()) {
            keys -= number_of(Some(record?.0)) as i64;
        }
        records -= table.delete_range(range)? as i64;
    } else {
        for key in (start..end).take(rng.below(400) as usize) {
            if table.insert(key.to_be_bytes(), bulk_value(key))? {
                records += 1;
                keys += key as i64;
            }
        }
    }
    add(txn, "sums", b"records", records)?;
    add(txn, "sums", b"keys", keys).map(drop)
}

/// One transaction of a thread; gives the number of its commits.
fn step(txn: &mut WriteTxn, writer: u64, rng: &mut Rng) -> Result<u64> {
    for _ in 0..1 + rng.below(4) {
        transfer(txn, rng)?;
    }
    if rng.one_in(6) {
        bulk(txn, writer, rng)?;
    }
    if rng.one_in(5) {
        // What is undone leaves no trace.
        let undone = txn.nested(|txn| {
            txn.table("accounts")?.delete_range(vec![0; 8]..vec![0, 0, 0, 0, 0, 0, 0, 40])?;
            txn.drop_table("counters")?;
            Err::<(), _>(Error::Stopped)
        });
        assert!(matches!(undone, Err(Error::Stopped | Error::MapFull { .. })), "{undone:?}");
    }
    if rng.one_in(4) {
        txn.nested(|txn| transfer(txn, rng))?;
    }
    let n = add(txn, "counters", &writer.to_be_bytes(), 1)?;
    let mut trail = txn.table("trail")?;
    trail.insert_value(writer.to_be_bytes(), n.to_be_bytes())?;
    if n > 50 {
        trail.delete_value(writer.to_be_bytes(), (n - 50).to_be_bytes())?;
    }
    add(txn, "sums", b"commits", 1)?;
    Ok(n)
}

/// Compares a snapshot with the sums; gives the counters.
fn verify(read: &ReadTxn) -> Result<Vec<u64>> {
    let of = |sum: &[u8]| read.table("sums").and_then(|t| Ok(number_of(t.get(sum)?)));
    let mut money = 0;
    let accounts = read.table("accounts")?;
    for record in accounts.iter() {
        money += number_of(Some(record?.1));
    }
    assert_eq!((accounts.len(), money), (ACCOUNTS + 1, MONEY), "money");
    let counters = read.table("counters")?;
    let trail = read.table("trail")?;
    let mut all = vec![0; (PROCESSES * WRITERS) as usize];
    for record in counters.iter() {
        let (key, n) = record?;
        let n = number_of(Some(n));
        all[number_of(Some(key)) as usize] = n;
        let kept: Vec<u64> =
            trail.get_all(key)?.map(|v| v.map(|v| number_of(Some(v)))).collect::<Result<_>>()?;
        assert_eq!(kept, (n.saturating_sub(50) + 1..=n).collect::<Vec<_>>(), "trail");
    }
    assert_eq!(all.iter().sum::<u64>(), of(b"commits")?, "commits");
    let (mut records, mut keys) = (0, 0);
    for record in read.table("bulk")?.iter() {
        let (key, value) = record?;
        let key = number_of(Some(key));
        assert!(value == bulk_value(key), "a value of the bulk");
        records += 1;
        keys += key;
    }
    assert_eq!((records, keys), (of(b"records")?, of(b"keys")?), "bulk");
    Ok(all)
}

// ---- a process ----

struct Worker<'w> {
    env: &'w Env,
    dir: &'w Path,
    process: u64,
    acks: &'w File,
    stop: &'w AtomicBool,
}

/// What a full store, a full reader table or a race of them may give; others are mistakes.
fn expected(error: &Error) -> bool {
    matches!(error, Error::MapFull { .. } | Error::ReadersFull { .. } | Error::Stopped)
}

impl Worker<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    fn acknowledge(&self, writer: u64, n: u64) {
        self.acks.write_all_at(&n.to_be_bytes(), writer * 8).unwrap();
    }

    /// A transaction of its own each time, and what only the owner of one can do.
    fn writes_alone(&self, mut rng: Rng) {
        let writer = self.process * WRITERS;
        while self.goes_on() {
            let outcome = self.env.write().and_then(|mut txn| {
                if rng.one_in(50) {
                    let new = geometry(|g| {
                        g.upper = (40 + rng.below(60)) * MIB;
                        g.growth = rng.pick(&[MIB / 4, MIB, 4 * MIB]);
                        g.shrink = rng.pick(&[MIB / 2, 2 * MIB, 8 * MIB]);
                    });
                    match txn.set_geometry(new) {
                        Ok(()) | Err(Error::Invalid(_) | Error::MapFull { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                let n = step(&mut txn, writer, &mut rng)?;
                if rng.one_in(20) {
                    txn.abort();
                    return Ok(None);
                }
                txn.commit().map(|_| Some(n))
            });
            match outcome {
                Ok(n) => n.iter().for_each(|n| self.acknowledge(writer, *n)),
                Err(error) => assert!(expected(&error), "{error}"),
            }
            if rng.one_in(60) {
                self.env.sync().unwrap();
            }
            if rng.one_in(10) {
                std::thread::sleep(Duration::from_micros(rng.below(3000)));
            }
        }
    }

    fn writes_in_groups(&self, writer: u64, mut rng: Rng) {
        while self.goes_on() {
            match self.env.update(|txn| step(txn, writer, &mut rng)) {
                Ok(n) => self.acknowledge(writer, n),
                Err(error) => assert!(expected(&error), "{error}"),
            }
            if rng.one_in(8) {
                std::thread::sleep(Duration::from_micros(rng.below(2000)));
            }
        }
    }

    fn reads(&self, long: bool, mut rng: Rng) {
        while self.goes_on() {
            let read = match self.env.read() {
                Ok(read) => read,
                Err(error) => {
                    assert!(expected(&error), "{error}");
                    continue;
                }
            };
            let first = verify(&read).unwrap();
            if long {
                std::thread::sleep(Duration::from_millis(rng.below(400)));
                assert_eq!(verify(&read).unwrap(), first, "a snapshot has changed");
            }
        }
    }

    /// Copies, which are checked as stores of their own.
    fn copies(&self, mut rng: Rng) {
        while self.goes_on() {
            std::thread::sleep(Duration::from_millis(200 + rng.below(1500)));
            let path = self.dir.join(format!("copy-{}", self.process));
            drop(std::fs::remove_file(&path));
            let compact = rng.one_in(2);
            match self.env.copy_to_path(&path, compact, &mut |_, _| self.goes_on()) {
                Ok(_) => {
                    let copy = Options::new().lock_file(false).read_only(true).open(&path).unwrap();
                    verify(&copy.read().unwrap()).unwrap();
                    check(&copy, "a copy");
                }
                Err(error) => assert!(expected(&error), "{error}"),
            }
        }
    }

    /// Compactions, beside those of the other processes; most are stopped on the way.
    fn compacts(&self, mut rng: Rng) {
        while self.goes_on() {
            std::thread::sleep(Duration::from_millis(rng.below(1500)));
            let step = rng.pick(&[1, 60 << 10, MIB]);
            let options = CompactOptions::new()
                .step(step, Duration::from_millis(50))
                .pause(Duration::from_millis(rng.below(3)))
                .fill(rng.pick(&[60, 98, 100]));
            let mut steps = 1 + rng.below(300);
            let done = self.env.compact(&options, &mut |_, _| {
                steps = steps.saturating_sub(1);
                steps > 0 && self.goes_on()
            });
            if let Err(error) = done {
                assert!(expected(&error), "{error}");
            }
        }
    }
}

fn acks(dir: &Path) -> File {
    let path = dir.join("acks");
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// The program of a process: ends when the driver says so, or by a signal.
#[test]
#[ignore = "a process of the soak"]
fn soak_process() {
    let (Some(dir), Ok(role)) = (std::env::var_os(DIR), std::env::var(ROLE)) else { return };
    let dir = PathBuf::from(dir);
    let mut role = role.split(' ').map(|n| n.parse::<u64>().unwrap());
    let (process, mut rng) = (role.next().unwrap(), Rng::new(role.next().unwrap()));
    let env = options(rng.next()).open(dir.join("store")).unwrap();
    let (acks, stop) = (acks(&dir), AtomicBool::new(false));
    let worker = Worker { env: &env, dir: &dir, process, acks: &acks, stop: &stop };
    let worker = &worker;
    std::thread::scope(|scope| {
        let mut fork = || Rng::new(rng.next());
        let (alone, short, long, copies, compacts) = (fork(), fork(), fork(), fork(), fork());
        let mut threads = vec![scope.spawn(move || worker.writes_alone(alone))];
        for n in 1..WRITERS {
            let rng = fork();
            let writer = process * WRITERS + n;
            threads.push(scope.spawn(move || worker.writes_in_groups(writer, rng)));
        }
        threads.push(scope.spawn(move || worker.reads(false, short)));
        threads.push(scope.spawn(move || worker.reads(true, long)));
        threads.push(scope.spawn(move || worker.copies(copies)));
        threads.push(scope.spawn(move || worker.compacts(compacts)));
        // A thread that has found something ends all, so that the driver hears of it.
        while !dir.join("stop").exists() && threads.iter().all(|t| !t.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::SeqCst);
    });
    env.close().unwrap();
}

// ---- the driver ----

struct Fleet {
    dir: tempfile::TempDir,
    env: Env,
    acks: File,
    children: Vec<Option<Child>>,
    progress: Vec<(u64, Instant)>,
    kills: u64,
    looks: u64,
}

impl Fleet {
    fn new(page_size: u32) -> Fleet {
        println!("pages of {page_size}");
        let dir = tempfile::tempdir().unwrap();
        let env = options(0).page_size(page_size).open(dir.path().join("store")).unwrap();
        found(&env).unwrap();
        let identities = (PROCESSES * WRITERS) as usize;
        Fleet {
            env,
            acks: acks(dir.path()),
            dir,
            children: (0..PROCESSES).map(|_| None).collect(),
            progress: vec![(0, Instant::now()); identities],
            kills: 0,
            looks: 0,
        }
    }

    fn start_missing(&mut self, rng: &mut Rng) {
        for (process, child) in self.children.iter_mut().enumerate() {
            if child.is_none() {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["soak_process", "--exact", "--ignored", "--nocapture"]);
                command.env(DIR, self.dir.path());
                command.env(ROLE, format!("{process} {}", rng.next()));
                *child = Some(command.stdout(Stdio::null()).spawn().unwrap());
            }
        }
    }

    fn acknowledged(&self, writer: usize) -> u64 {
        let mut bytes = [0; 8];
        match self.acks.read_exact_at(&mut bytes, writer as u64 * 8) {
            Ok(()) => u64::from_be_bytes(bytes),
            Err(_) => 0,
        }
    }

    /// Sums, acknowledged commits, progress and the full check, beside those who work.
    fn look(&mut self) {
        self.looks += 1;
        let known: Vec<u64> =
            (0..self.progress.len()).map(|writer| self.acknowledged(writer)).collect();
        let counters = verify(&self.env.read().unwrap()).unwrap();
        for (writer, known) in known.into_iter().enumerate() {
            assert!(counters[writer] >= known, "writer {writer} lost {known}: {counters:?}");
            let (seen, since) = &mut self.progress[writer];
            if counters[writer] > *seen {
                (*seen, *since) = (counters[writer], Instant::now());
            }
            assert!(since.elapsed() < PATIENCE, "writer {writer} is stuck at {seen}");
        }
        if self.looks.is_multiple_of(4) {
            check(&self.env, "beside those who work");
        }
        self.env.clean_readers().unwrap();
        for child in self.children.iter_mut().flatten() {
            assert!(child.try_wait().unwrap().is_none(), "a process has ended by itself");
        }
    }

    fn kill(&mut self, process: usize) {
        if let Some(mut child) = self.children[process].take() {
            child.kill().unwrap();
            child.wait().unwrap();
            self.kills += 1;
        }
    }

    fn end(mut self) {
        std::fs::write(self.dir.path().join("stop"), "").unwrap();
        for child in self.children.iter_mut().flatten() {
            assert!(child.wait().unwrap().success(), "a process failed");
        }
        self.children.clear();
        self.look();
        let newest: Vec<u64> = self.progress.iter().map(|(n, _)| *n).collect();
        assert!(self.env.readers().is_empty(), "readers are left: {:?}", self.env.readers());
        check(&self.env, "at the end");
        self.env.clone().close().unwrap();
        let env = options(0).open(self.dir.path().join("store")).unwrap();
        assert_eq!(verify(&env.read().unwrap()).unwrap(), newest);
        check(&env, "after all");
        println!(
            "{} commits, {} kills, {} looks by the driver; file {} KiB, used {} KiB",
            newest.iter().sum::<u64>(),
            self.kills,
            self.looks,
            env.info().unwrap().file_len >> 10,
            env.info().unwrap().used_len >> 10
        );
        assert!(newest.iter().all(|n| *n > 0), "a writer did nothing: {newest:?}");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Ends the test when the driver itself is stuck, which no assertion could tell.
fn watch(beat: &'static AtomicU64) {
    std::thread::spawn(move || {
        let mut last = (0, Instant::now());
        while last.1.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_secs(1));
            let now = beat.load(Ordering::SeqCst);
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        eprintln!("the driver is stuck");
        std::process::abort();
    });
}

fn soak(seconds: u64) {
    static BEAT: AtomicU64 = AtomicU64::new(0);
    watch(&BEAT);
    let seed = any_seed();
    let mut rng = Rng::new(seed);
    let mut fleet = Fleet::new(rng.pick(&[4096, 16384, 65536]));
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        BEAT.fetch_add(1, Ordering::SeqCst);
        fleet.start_missing(&mut rng);
        std::thread::sleep(Duration::from_millis(200 + rng.below(1500)));
        fleet.look();
        if rng.one_in(3) {
            fleet.kill(rng.below(PROCESSES) as usize);
        }
    }
    fleet.start_missing(&mut rng);
    // Each thread must get through once more, those of the killed too.
    std::thread::sleep(Duration::from_secs(2));
    BEAT.fetch_add(1, Ordering::SeqCst);
    fleet.end();
}

#[test]
fn everything_adds_up_in_every_snapshot() {
    soak(number("ZUBILO_SOAK_SECONDS", 10));
}

#[test]
#[ignore = "long: 20 minutes"]
fn long_soak() {
    soak(number("ZUBILO_SOAK_SECONDS", 1200));
}
