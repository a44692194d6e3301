//! A process is killed before any of its stores to the lock file; another one goes on with the store,
//! uses what it takes for free, and then the power is cut.
//!
//! Kills inside calls of the system are the business of the workloads; these are the moments between
//! the calls. `cargo test --release -p sim --features planted --test stores`.

#![cfg(feature = "planted")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sim::disk::{Call, Effect, Killed, SimDisk};
use sim::image::{Choice, Replay, Start};
use support::Rng;
use zubilo::planted::at_stores;
use zubilo::{Durability, Env, Options};

const RECORDS: u32 = 60;

/// Processes of one running system on one store.
struct Machine {
    disk: SimDisk,
    lock: PathBuf,
    _dir: tempfile::TempDir,
}

fn open(disk: &SimDisk, lock: Option<&Path>, boot: u8, durability: Durability) -> Env {
    let options = Options::new().durability(durability).max_readers(8);
    let data = Box::new(disk.clone());
    match lock {
        Some(lock) => Env::open_parts_shared(data, lock, [boot; 16], options),
        None => Env::open_parts(data, [boot; 16], options),
    }
    .expect("open")
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().expect("directory");
        let lock = dir.path().join("store");
        Machine { disk: SimDisk::new(&[], false), lock, _dir: dir }
    }

    fn process(&self, durability: Durability) -> Env {
        open(&self.disk, Some(&self.lock), 1, durability)
    }

    /// The disk after a power cut now, opened: checked, and which value all records have.
    fn after_power_cut(&self, choice: Choice, seed: u64) -> Result<u8, String> {
        let start = Start::nothing();
        let events = self.disk.events();
        let mut replay = Replay::new(&start, &events);
        while replay.step() {}
        let image = replay.image(choice, 4 * 4096, &mut Rng::new(seed));
        value(&open(&SimDisk::new(&image, false), None, 2, Durability::Sync))
    }
}

fn commit(env: &Env, value: u8) {
    let mut txn = env.write().expect("begin");
    let mut table = txn.table_or_create("t").expect("table");
    for i in 0..RECORDS {
        table.put(i.to_be_bytes(), [value; 100]).expect("put");
    }
    txn.commit().expect("commit");
}

/// The value of all records, after the full check.
fn value(env: &Env) -> Result<u8, String> {
    let report = env.check(&mut |_, _| true).map_err(|e| e.to_string())?;
    if let Some(first) = report.problems.first() {
        let count = report.problems.len();
        return Err(format!("{count} problems, first: page {}: {}", first.page, first.reason));
    }
    let read = env.read().map_err(|e| e.to_string())?;
    let Ok(table) = read.table("t") else { return Ok(0) };
    let values: Vec<u8> = table.iter().map(|r| r.map_or(0, |(_, v)| v[0])).collect();
    match values[..] {
        [first, ..] if values.len() == RECORDS as usize && values.iter().all(|v| *v == first) => {
            Ok(first)
        }
        _ => Err(format!("{values:?}")),
    }
}

/// Runs `work`, whose process is killed before its store number `at`; false if it has fewer.
fn killed(at: u64, work: impl FnOnce()) -> bool {
    let left = Rc::new(Cell::new(at));
    at_stores(Some(Box::new(move || {
        if left.get() == 0 {
            std::panic::resume_unwind(Box::new(Killed));
        }
        left.set(left.get() - 1);
    })));
    let ran = catch_unwind(AssertUnwindSafe(work));
    at_stores(None);
    match ran {
        Ok(()) => false,
        Err(panic) if panic.is::<Killed>() => true,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

const CUTS: [Choice; 6] = [
    Choice::None,
    Choice::All,
    Choice::MetasFirst,
    Choice::MetasLast,
    Choice::Writes,
    Choice::AllButOne,
];

/// What the killed process was doing, and with which durability.
type Deed = (&'static str, Durability, fn(&Env));

const DEEDS: [Deed; 4] = [
    ("durable commit", Durability::Sync, |env| commit(env, 50)),
    ("weak commit", Durability::NoSync, |env| commit(env, 50)),
    ("checkpoint", Durability::NoSync, |env| env.sync().expect("sync")),
    ("commit and checkpoint", Durability::NoSync, |env| {
        commit(env, 50);
        env.sync().expect("sync");
    }),
];

/// All kills of one deed in a store that has come to some point; gives how many there are.
fn every_kill(deed: Deed, before: &[Durability]) -> u64 {
    let (name, durability, work) = deed;
    for at in 0.. {
        for later in [0, 1, 2, 3, 5] {
            let machine = Machine::new();
            let survivor = machine.process(Durability::NoSync);
            let victim = machine.process(durability);
            let mut durable = 0;
            for (i, mode) in before.iter().enumerate() {
                commit(&survivor, 1 + i as u8);
                if *mode == Durability::Sync {
                    survivor.sync().expect("sync");
                    durable = 1 + i as u8;
                }
            }
            let newest = before.len() as u8;
            let place =
                format!("{name} on {before:?}, killed at store {at}, {later} commits after it");
            if !killed(at, || work(&victim)) {
                return at;
            }
            victim.close_without_sync();
            let found = value(&survivor).unwrap_or_else(|why| panic!("{place}: {why}"));
            assert!(found == newest || found == 50, "{place}: {found}");
            for i in 0..later {
                commit(&survivor, 100 + i);
            }
            for (seed, cut) in CUTS.into_iter().enumerate() {
                let found = machine.after_power_cut(cut, seed as u64);
                let found = found.unwrap_or_else(|why| panic!("{place}, {cut:?}: {why}"));
                assert!(found >= durable, "{place}, {cut:?}: {found} of {durable}");
            }
            // Until somebody writes, what the dead one did not publish may still come back.
            commit(&survivor, 200);
            survivor.sync().unwrap_or_else(|why| panic!("{place}: {why}"));
            assert_eq!(machine.after_power_cut(Choice::None, 0), Ok(200), "{place}, after a sync");
        }
    }
    unreachable!()
}

#[test]
fn kills_between_stores_to_the_lock_file() {
    use Durability::{NoSync, Sync};
    for deed in DEEDS {
        let mut kills = 0;
        for before in [&[Sync][..], &[Sync, NoSync], &[Sync, NoSync, NoSync, NoSync, Sync]] {
            kills += every_kill(deed, before);
        }
        println!("{}: {kills} kills", deed.0);
        assert!(kills > 0, "no store in a {}", deed.0);
    }
}

/// Openers that are killed: the first one, which clears the lock file, or one that joins. What the users
/// before left is a durable commit, weak ones, and one that was cut off.
#[test]
fn kills_of_openers() {
    for (joins, read_only) in [(false, false), (false, true), (true, false)] {
        for at in 0.. {
            let machine = Machine::new();
            let user = machine.process(Durability::NoSync);
            commit(&user, 1);
            user.sync().expect("sync");
            commit(&user, 2);
            commit(&user, 3);
            machine.disk.plan(Call::Write, 1, Effect::KillAfter, false);
            let cut_off = catch_unwind(AssertUnwindSafe(|| commit(&user, 4)));
            assert!(cut_off.is_err() && machine.disk.unplan());
            let other = joins.then(|| machine.process(Durability::NoSync));
            user.close_without_sync();
            let place = format!("joins: {joins}, read-only: {read_only}, killed at store {at}");
            let opener = || {
                let options = Options::new().max_readers(8).read_only(read_only);
                let data = Box::new(machine.disk.clone());
                let opened = Env::open_parts_shared(data, &machine.lock, [1; 16], options);
                opened.expect("open").close_without_sync();
            };
            if !killed(at, opener) {
                println!("{place}: the last");
                assert!(at > 0);
                break;
            }
            if let Some(other) = other {
                other.close_without_sync();
            }
            // A real lock goes with its process; this one's was closed by unwinding.
            let next = machine.process(Durability::NoSync);
            let found = value(&next).unwrap_or_else(|why| panic!("{place}: {why}"));
            assert!(found == 3 || found == 4, "{place}: {found}");
            (100..104).for_each(|i| commit(&next, i));
            for (seed, cut) in CUTS.into_iter().enumerate() {
                let found = machine.after_power_cut(cut, seed as u64);
                let found = found.unwrap_or_else(|why| panic!("{place}, {cut:?}: {why}"));
                assert!(found >= 1, "{place}, {cut:?}: {found}");
            }
        }
    }
}
