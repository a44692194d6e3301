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
use zubilo::planted::{Bug, at_stores, plant};
use zubilo::{Durability, Env, Error, Options, Prepared, WriteTxn};

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
        self.found_after_power_cut(choice, seed).map(|(value, _)| value)
    }

    /// The same, and whether a transaction waits for its decision.
    fn found_after_power_cut(&self, choice: Choice, seed: u64) -> Result<(u8, bool), String> {
        let env = self.opened_after_power_cut(usize::MAX, choice, seed);
        let waits = env.prepared().map_err(|e| e.to_string())?.is_some();
        Ok((value(&env)?, waits))
    }

    /// The store as a power cut after so many calls leaves it.
    fn opened_after_power_cut(&self, calls: usize, choice: Choice, seed: u64) -> Env {
        let start = Start::nothing();
        let events = self.disk.events();
        let mut replay = Replay::new(&start, &events);
        while replay.position() < calls && replay.step() {}
        let image = replay.image(choice, 4 * 4096, &mut Rng::new(seed));
        open(&SimDisk::new(&image, false), None, 2, Durability::Sync)
    }

    /// Cuts the power at each moment since the disk had so many calls. A transaction may come back then, if nothing that
    /// was decided about it is on disk; but all of it.
    fn judge_cuts_since(&self, calls: usize, place: &str) {
        for at in calls..=self.disk.events().len() {
            for (seed, cut) in CUTS.into_iter().enumerate() {
                let place = format!("{place}, power cut at {at}, {cut:?}");
                let env = self.opened_after_power_cut(at, cut, seed as u64);
                let found = value(&env).unwrap_or_else(|why| panic!("{place}: {why}"));
                let waiting = env.prepared().unwrap_or_else(|why| panic!("{place}: {why}"));
                let Some(waiting) = waiting else { continue };
                assert_eq!(found, 1, "{place}");
                env.commit_prepared(waiting.id).unwrap_or_else(|why| panic!("{place}: {why}"));
                assert_eq!(value(&env), Ok(50), "{place}: what came back");
            }
        }
    }
}

fn change(env: &Env, value: u8) -> WriteTxn {
    let mut txn = env.write().expect("begin");
    let mut table = txn.table_or_create("t").expect("table");
    for i in 0..RECORDS {
        table.put(i.to_be_bytes(), [value; 100]).expect("put");
    }
    txn
}

fn commit(env: &Env, value: u8) {
    change(env, value).commit().expect("commit");
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

fn prepare(env: &Env) -> Prepared {
    change(env, 50).prepare("a tag").expect("prepare")
}

/// What a process does with a prepared transaction.
type Decision = (&'static str, fn(Prepared) -> zubilo::Result<()>);

const DECISIONS: [Decision; 3] = [
    ("none", |waiting| {
        drop(waiting);
        Ok(())
    }),
    ("commit", |waiting| waiting.commit().map(drop)),
    ("roll back", Prepared::roll_back),
];

/// Where a process that prepares and decides is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// Before that store to the lock file.
    Store(u64),
    /// Before or after that call to the disk.
    Call(u64, Effect),
}

/// Whether there was such a moment.
fn killed_at(moment: Moment, disk: &SimDisk, work: impl FnOnce()) -> bool {
    match moment {
        Moment::Store(at) => killed(at, work),
        Moment::Call(at, effect) => {
            disk.plan(Call::Any, at, effect, false);
            let ended = catch_unwind(AssertUnwindSafe(work)).is_err();
            disk.unplan();
            ended
        }
    }
}

/// A process is killed when it prepares, or decides; gives how often one was found that waits. Others that have the store open all the time,
/// or open it then, decide about what they find, or just go on; then the power is cut.
fn every_kill_of_a_decision(decision: Decision, kind: fn(u64) -> Moment) -> [u64; 2] {
    let mut found_waiting = [0; 2];
    for at in 0.. {
        for case in 0..8 {
            let (commits, stays, later) = (case % 2 == 0, case / 2 % 2 == 0, case / 4);
            let machine = Machine::new();
            let victim = machine.process(Durability::NoSync);
            commit(&victim, 1);
            victim.sync().expect("sync");
            let survivor = stays.then(|| machine.process(Durability::NoSync));
            let place = format!("{}, {:?}, case {case}", decision.0, kind(at));
            let work = || decision.1(prepare(&victim)).expect("decide");
            if !killed_at(kind(at), &machine.disk, work) {
                return found_waiting;
            }
            victim.close_without_sync();
            let survivor = survivor.unwrap_or_else(|| machine.process(Durability::NoSync));
            let found = value(&survivor).unwrap_or_else(|why| panic!("{place}: {why}"));
            let waiting = survivor.prepared().unwrap_or_else(|why| panic!("{place}: {why}"));
            found_waiting[usize::from(waiting.is_some())] += 1;
            let now = match &waiting {
                None if found == 50 && decision.0 == "commit" => 50,
                None => 1,
                Some(waiting) => {
                    let refused = survivor.write().map(drop);
                    assert!(matches!(refused, Err(Error::Prepared { .. })), "{place}");
                    match commits {
                        true => survivor.commit_prepared(waiting.id).map(drop),
                        false => survivor.roll_back_prepared(waiting.id),
                    }
                    .unwrap_or_else(|why| panic!("{place}: {why}"));
                    if commits { 50 } else { 1 }
                }
            };
            assert_eq!(value(&survivor), Ok(now), "{place}");
            let calls = machine.disk.events().len();
            for i in 0..later * 2 {
                commit(&survivor, 100 + i);
            }
            machine.judge_cuts_since(calls, &place);
            for (seed, cut) in CUTS.into_iter().enumerate() {
                let after = machine.found_after_power_cut(cut, seed as u64);
                let (found, waits) = after.unwrap_or_else(|why| panic!("{place}, {cut:?}: {why}"));
                let is_decided = waiting.is_some() || later > 0;
                assert!(!(waits && is_decided), "{place}, {cut:?}: it is back");
                let fits = found == now || found >= 100 || !is_decided && [1, 50].contains(&found);
                assert!(fits, "{place}, {cut:?}: {found} instead of {now}");
            }
            commit(&survivor, 200);
            survivor.sync().unwrap_or_else(|why| panic!("{place}: {why}"));
            let after = machine.found_after_power_cut(Choice::None, 0);
            assert_eq!(after, Ok((200, false)), "{place}, after a sync");
        }
    }
    unreachable!()
}

#[test]
fn kills_of_those_who_decide_about_prepared_transactions() {
    let kinds: [fn(u64) -> Moment; 3] = [
        Moment::Store,
        |at| Moment::Call(at, Effect::KillBefore),
        |at| Moment::Call(at, Effect::KillAfter),
    ];
    for decision in DECISIONS {
        for (i, kind) in kinds.into_iter().enumerate() {
            let [gone, waits] = every_kill_of_a_decision(decision, kind);
            println!("{}, kind {i}: {waits} of {} found it waiting", decision.0, gone + waits);
            assert!(gone > 0 && (waits > 0 || decision.0 == "none"), "{}", decision.0);
        }
    }
}

/// Each call to the disk fails, in preparing and in either decision. Then all processes end, and others open the
/// store on the same boot, with its lock file: first one that only reads, or one that writes. Then the power is cut.
/// A process whose call to the disk fails.
struct Failing {
    decision: Decision,
    call: Call,
    at: u64,
    case: u8,
}

impl Failing {
    /// Prepares and decides with one call that fails. Then all processes end, and others open the store on the same
    /// boot, with its lock file: first one that only reads, or one that writes. In the end the power is cut. Gives
    /// whether there was such a call.
    fn run(&self) -> bool {
        let case = self.case;
        let (commits, reads_first) = (case & 1 == 0, case & 2 == 0);
        let (later, late) = (case / 4 % 2, case >= 8);
        let place = format!("{}, {:?} {}, case {case}", self.decision.0, self.call, self.at);
        let machine = Machine::new();
        let env = machine.process(Durability::NoSync);
        commit(&env, 1);
        env.sync().expect("sync");
        let effect = if late { Effect::Late(libc::EIO) } else { Effect::Fail(libc::EIO) };
        machine.disk.plan(self.call, self.at, effect, self.call == Call::Sync);
        let prepared = change(&env, 50).prepare("a tag");
        let is_prepared = prepared.is_ok();
        let done = prepared.and_then(self.decision.1).is_ok();
        let failed = machine.disk.unplan();
        env.close_without_sync();
        machine.disk.closed();
        // Whoever opens it finds the same, however often.
        let open = |read_only| {
            let options = Options::new().max_readers(8).durability(Durability::NoSync);
            let data = Box::new(machine.disk.clone());
            let options = options.read_only(read_only);
            let opened = Env::open_parts_shared(data, &machine.lock, [1; 16], options);
            opened.unwrap_or_else(|why| panic!("{place}, read-only {read_only}: {why}"))
        };
        let look = |env: &Env| {
            let waiting = env.prepared().unwrap_or_else(|why| panic!("{place}: {why}"));
            (waiting, value(env).unwrap_or_else(|why| panic!("{place}: {why}")))
        };
        let first = open(reads_first);
        let (waiting, found) = look(&first);
        first.close_without_sync();
        let env = open(false);
        assert_eq!(look(&env), (waiting.clone(), found), "{place}: the second look");
        let fits = match (is_prepared, done, self.decision.0) {
            (false, ..) | (_, true, "roll back") => waiting.is_none() && found == 1,
            (_, true, "commit") => waiting.is_none() && found == 50,
            (_, true, _) => waiting.is_some() && found == 1,
            (_, false, "commit") => waiting.is_some() == (found == 1),
            (_, false, _) => found == 1,
        };
        assert!(fits, "{place}: {found}, {waiting:?}");
        let now = match &waiting {
            None => found,
            Some(waiting) => {
                match commits {
                    true => env.commit_prepared(waiting.id).map(drop),
                    false => env.roll_back_prepared(waiting.id),
                }
                .unwrap_or_else(|why| panic!("{place}: {why}"));
                if commits { 50 } else { 1 }
            }
        };
        let calls = machine.disk.events().len();
        (0..later * 2).for_each(|i| commit(&env, 100 + i));
        machine.judge_cuts_since(calls, &place);
        for (seed, cut) in CUTS.into_iter().enumerate() {
            let after = machine.found_after_power_cut(cut, seed as u64);
            let (found, waits) = after.unwrap_or_else(|why| panic!("{place}, {cut:?}: {why}"));
            let is_decided = waiting.is_some() || later > 0;
            assert!(!(waits && is_decided), "{place}, {cut:?}: it is back");
            let fits = found == now || found >= 100 || !is_decided && [1, 50].contains(&found);
            assert!(fits, "{place}, {cut:?}: {found} instead of {now}");
        }
        failed
    }
}

/// Each call of one kind fails once; gives how many there are.
fn every_failure_of_a_decision(decision: Decision, call: Call) -> u64 {
    let fails = |at: &u64| {
        let failed = (0..16).map(|case| Failing { decision, call, at: *at, case }.run());
        failed.fold(false, |any, failed| any | failed)
    };
    (0..).take_while(fails).count() as u64
}

#[test]
fn failures_of_those_who_decide_about_prepared_transactions() {
    for decision in DECISIONS {
        for call in [Call::Sync, Call::Write] {
            let failures = every_failure_of_a_decision(decision, call);
            println!("{}: {failures} times a {call:?} failed", decision.0);
            assert!(failures > 0, "{}: no {call:?} has failed", decision.0);
        }
    }
}

/// The judges above find what was wrong once.
#[test]
fn planted_bugs_of_wiped_metas_are_found() {
    let [_, commit, roll_back] = DECISIONS;
    let is_found = |bug: Bug, work: &dyn Fn() -> u64| {
        plant(Some(bug));
        let found = catch_unwind(AssertUnwindSafe(work)).is_err();
        plant(None);
        assert!(found, "{bug:?} was not found");
    };
    let kill_after = |at| Moment::Call(at, Effect::KillAfter);
    is_found(Bug::RollBackTrusted, &|| every_kill_of_a_decision(roll_back, kill_after)[0]);
    is_found(Bug::WipeTrusted, &|| every_failure_of_a_decision(roll_back, Call::Sync));
    is_found(Bug::PreparedNumberSpared, &|| every_failure_of_a_decision(commit, Call::Sync));
    is_found(Bug::FailedPreparedStays, &|| every_failure_of_a_decision(commit, Call::Write));
}
