//! Branches of history: what commits that are gone have left in the redo log must not pass for commits of the
//! branch that took their place.
//!
//! In `log-branches` a disk acknowledges flushes and does nothing, so that a power cut leaves any choice of records. Its
//! owner may find an older state then, or none. But once a store is open its disk is honest: what is
//! committed from there on comes back, and nothing else does. All records have the same length, so that those of
//! one branch lie where those of another begin. In `log-failed` a commit fails after its record was
//! written: it must not come back.

use std::collections::BTreeMap;

use support::Rng;
use zubilo::{Env, Options, TableOptions};

use crate::disk::{Call, Effect, SimDisk};
use crate::image::{Choice, Replay, Start};
use crate::mistake::Mistake;
use crate::run::{Outcome, Prepare};
use crate::session::Failure;

/// The names of the workloads.
pub const NAMES: [&str; 2] = ["log-branches", "log-failed"];

const KEYS: u64 = 50;

type State = BTreeMap<u32, u64>;

/// A store, and what it must hold.
struct Branch {
    disk: SimDisk,
    env: Env,
    state: State,
}

fn open(content: &[u8], boot: u8, prepare: Prepare<'_>) -> zubilo::Result<(SimDisk, Env)> {
    let disk = SimDisk::new(content, false);
    prepare(&disk);
    let env = Env::open_parts(
        Box::new(disk.clone()),
        [boot; 16],
        Options::new().redo_log(64 << 10).max_readers(4),
    )?;
    Ok((disk, env))
}

/// What the store holds; none if it has no table.
fn found(env: &Env) -> zubilo::Result<Option<State>> {
    env.check(&mut |_, _| true)?.into_result()?;
    let read = env.read()?;
    let Ok(table) = read.table("t") else { return Ok(None) };
    let mut state = State::new();
    for record in table.iter() {
        let (key, value) = record?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        state.insert(number(key) as u32, number(value));
    }
    Ok(Some(state))
}

/// What the disk holds after a power cut now.
fn cut(disk: &SimDisk, choice: Choice, rng: &mut Rng, before: &[u8]) -> Vec<u8> {
    let start = Start { durable: before.to_vec(), exists: !before.is_empty(), ..Start::nothing() };
    let events = disk.events();
    let mut replay = Replay::new(&start, &events);
    while replay.step() {}
    replay.image(choice, 4 * 4096, rng)
}

impl Branch {
    /// A store on an honest disk with a ring, and some records in it.
    fn new(rng: &mut Rng, prepare: Prepare<'_>) -> zubilo::Result<Branch> {
        let (disk, env) = open(&[], 1, prepare)?;
        let mut txn = env.write()?;
        let mut table = txn.create_table("t", TableOptions::new())?;
        let state: State = (0..KEYS as u32).map(|key| (key, 0)).collect();
        for (key, value) in &state {
            table.put(key.to_le_bytes(), value.to_le_bytes())?;
        }
        txn.commit()?;
        let mut branch = Branch { disk, env, state };
        // The first commits are made in pages, until no meta is left from before the log.
        for _ in 0..4 + rng.below(3) {
            branch.commit(rng)?;
        }
        Ok(branch)
    }

    /// A commit of one record; now and then in pages, as a reserved value is in no record of the log.
    fn commit(&mut self, rng: &mut Rng) -> zubilo::Result<()> {
        let (key, value) = (rng.below(KEYS) as u32, rng.next() | 1);
        let mut txn = self.env.write()?;
        if rng.one_in(3) {
            txn.table("t")?.reserve(key.to_le_bytes(), 8)?.copy_from_slice(&value.to_le_bytes());
        } else {
            txn.table("t")?.put(key.to_le_bytes(), value.to_le_bytes())?;
            txn.set_user_words([value; 3])?;
        }
        txn.commit()?;
        self.state.insert(key, value);
        Ok(())
    }
}

/// Runs a workload; one of another name is none.
pub fn run(name: &str, seed: u64, prepare: Prepare<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut rng = Rng::new(seed ^ 0xB7A2);
    let judged = match name {
        "log-branches" => branches(&mut rng, &mut outcome.states, prepare),
        "log-failed" => failed(&mut rng, &mut outcome.states, prepare),
        _ => return outcome,
    };
    let judged = judged.map_err(|error| Failure::Misbehaved(error.to_string()));
    if let Err(failure) = judged.and_then(|judged| judged) {
        outcome.fail(format!("{name} --seed {seed}"), &failure);
    }
    outcome
}

type Judged = zubilo::Result<Result<(), Failure>>;

fn branches(rng: &mut Rng, states: &mut u64, prepare: Prepare<'_>) -> Judged {
    let mut old = Branch::new(rng, prepare)?;
    let honest = cut(&old.disk, Choice::None, rng, &[]);
    // From here on nothing is certain.
    let mut tried = vec![old.state.clone()];
    old.disk.plant(Some(Mistake::NotFlushed));
    for _ in 0..2 + rng.below(4) {
        old.commit(rng)?;
        tried.push(old.state.clone());
    }
    for _ in 0..40 {
        let choice = if rng.one_in(4) { Choice::Sectors } else { Choice::Writes };
        let image = cut(&old.disk, choice, rng, &[]);
        debug_assert!(image.len() >= honest.len());
        // Such a disk may leave no store at all, or one that is damaged.
        let Ok((disk, env)) = open(&image, 2, prepare) else { continue };
        let Ok(Some(state)) = found(&env) else { continue };
        if !tried.contains(&state) {
            continue;
        }
        *states += 1;
        let mut new = Branch { disk, env, state };
        for _ in 0..1 + rng.below(3) {
            new.commit(rng)?;
        }
        let newest = new.env.info()?.newest;
        let image = cut(&new.disk, Choice::None, rng, &image);
        let (_disk, env) = open(&image, 3, prepare)?;
        let there = env.info()?.newest;
        if there != newest || found(&env)?.as_ref() != Some(&new.state) {
            let why = format!("commit {there} of another branch, {newest} was the last");
            return Ok(Err(Failure::Corrupt(why)));
        }
        new.env.close_without_sync();
    }
    Ok(Ok(()))
}

fn failed(rng: &mut Rng, states: &mut u64, prepare: Prepare<'_>) -> Judged {
    for _ in 0..20 {
        let mut branch = Branch::new(rng, prepare)?;
        let before = branch.state.clone();
        let effect = [Effect::Fail(5), Effect::Short(28), Effect::Late(5)][rng.index(3)];
        branch.disk.plan(Call::Write, rng.below(4), effect, false);
        let committed = branch.commit(rng);
        branch.disk.unplan();
        if committed.is_ok() {
            continue;
        }
        *states += 1;
        let image = cut(&branch.disk, Choice::None, rng, &[]);
        let (_disk, env) = open(&image, 2, prepare)?;
        if found(&env)?.as_ref() != Some(&before) {
            return Ok(Err(Failure::Corrupt("a commit that failed is there".into())));
        }
        branch.env.close_without_sync();
    }
    Ok(Ok(()))
}
