//! Two-phase commits: the power is cut, or the process killed, between any two steps of preparing, deciding and what comes
//! after.
//!
//! Before the transaction is prepared the store is as it was, with it or without. From then on until somebody decides, it
//! waits: nobody may write, and either decision must be possible, and give just the store that it names. Once a
//! decision was made by a call that has returned, nothing else is found. In between both are right. The
//! decisions that are tried on what a crash has left are cut off, too.

use std::collections::BTreeMap;

use support::Rng;
use zubilo::{Durability, Env, Error, Geometry, Options, PreparedId, TxnId};

use crate::disk::SimDisk;
use crate::image::{Choice, Replay, Start};
use crate::run::{Outcome, Prepare};
use crate::session::Failure;

/// The names of the workloads.
pub const NAMES: [&str; 2] = ["prepared", "prepared-weak"];

const METAS_END: u64 = 4 * 4096;
const TAG: &[u8] = b"the order 4711 of the customer 12, in stock and in the accounts!";
/// States of a life that are judged.
const STATES: u64 = 60;

type State = BTreeMap<Vec<u8>, Vec<u8>>;
type Judged = zubilo::Result<Result<(), Failure>>;

fn open(content: &[u8], boot: u8, weak: bool) -> zubilo::Result<(SimDisk, Env)> {
    let disk = SimDisk::new(content, false);
    let env = open_on(&disk, boot, weak)?;
    Ok((disk, env))
}

fn open_on(disk: &SimDisk, boot: u8, weak: bool) -> zubilo::Result<Env> {
    let durability = if weak { Durability::NoSync } else { Durability::Sync };
    let mut geometry = Geometry::default();
    (geometry.growth, geometry.shrink) = (64 << 10, 64 << 10);
    let options = Options::new().durability(durability).geometry(geometry).max_readers(4);
    Env::open_parts(Box::new(disk.clone()), [boot; 16], options)
}

/// Some changes in a transaction; `many` of them make the file grow.
fn change(
    txn: &mut zubilo::WriteTxn,
    state: &mut State,
    many: bool,
    rng: &mut Rng,
) -> zubilo::Result<()> {
    let mut table = txn.table_or_create("t")?;
    table.put("always", rng.bytes(8).as_slice())?;
    state.insert(b"always".to_vec(), table.get("always")?.unwrap_or_default().to_vec());
    for _ in 0..1 + rng.below(if many { 60 } else { 10 }) {
        let key = format!("{:03}", rng.below(90)).into_bytes();
        if rng.one_in(4) {
            table.delete(&key)?;
            state.remove(&key);
        } else {
            let len = if many && rng.one_in(4) { 20_000 } else { rng.below(200) as usize };
            let value = rng.bytes(len);
            table.put(&key, &value)?;
            state.insert(key, value);
        }
    }
    Ok(())
}

fn commit(env: &Env, state: &mut State, rng: &mut Rng) -> zubilo::Result<()> {
    let mut txn = env.write()?;
    change(&mut txn, state, false, rng)?;
    txn.commit().map(drop)
}

/// What the store holds.
fn found(env: &Env) -> zubilo::Result<State> {
    env.check(&mut |_, _| true)?.into_result()?;
    let read = env.read()?;
    let Ok(table) = read.table("t") else { return Ok(State::new()) };
    table.iter().map(|r| r.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

/// Prepares a transaction and takes it back; its number is the next one's.
fn given_up(env: &Env, base: &State, rng: &mut Rng) -> zubilo::Result<(TxnId, PreparedId)> {
    let (mut txn, mut state) = (env.write()?, base.clone());
    change(&mut txn, &mut state, false, rng)?;
    let waiting = txn.prepare("given up")?;
    let which = (waiting.txn(), waiting.id());
    waiting.roll_back()?;
    Ok(which)
}

fn is_unknown<T>(decided: &zubilo::Result<T>) -> bool {
    matches!(decided, Err(Error::NotPrepared))
}

/// A session, and at which of its calls to the disk what had begun or was done.
struct Life {
    disk: SimDisk,
    weak: bool,
    txn: TxnId,
    id: PreparedId,
    base: State,
    after: State,
    begun: usize,
    prepared: usize,
    deciding: usize,
    decided: usize,
    /// What the decision was.
    commits: bool,
    /// What was committed after it.
    later: Vec<State>,
}

impl Life {
    fn live(
        weak: bool,
        rng: &mut Rng,
        prepare: Prepare<'_>,
    ) -> zubilo::Result<Result<Life, Failure>> {
        let disk = SimDisk::new(&[], false);
        prepare(&disk);
        let env = open_on(&disk, 1, weak)?;
        let mut base = State::new();
        for _ in 0..2 + rng.below(8) {
            commit(&env, &mut base, rng)?;
        }
        let at = || disk.events().len();
        let stale = if rng.one_in(2) { Some(given_up(&env, &base, rng)?) } else { None };
        let begun = at();
        let (mut txn, mut after) = (env.write()?, base.clone());
        change(&mut txn, &mut after, rng.one_in(2), rng)?;
        let waiting = txn.prepare(TAG)?;
        let (id, txn) = (waiting.id(), waiting.txn());
        let prepared = at();
        if let Some((number, id)) = stale {
            assert_eq!(number, txn, "a number that was rolled back is used again");
            if !is_unknown(&env.commit_prepared(id)) || !is_unknown(&env.roll_back_prepared(id)) {
                env.close_without_sync();
                return Ok(Err(Failure::Misbehaved(
                    "decided about one that was rolled back".into(),
                )));
            }
        }
        // A tail that looks free may be cut by this.
        env.sync()?;
        let deciding = at();
        let commits = rng.one_in(2);
        // The one that prepared it decides, or another one who has found it.
        match (rng.one_in(2), commits) {
            (true, true) => waiting.commit().map(drop)?,
            (true, false) => waiting.roll_back()?,
            (false, true) => drop(env.commit_prepared(id)?),
            (false, false) => env.roll_back_prepared(id)?,
        }
        let decided = at();
        let mut state = if commits { after.clone() } else { base.clone() };
        let mut later = vec![state.clone()];
        for _ in 0..rng.below(3) {
            commit(&env, &mut state, rng)?;
            later.push(state.clone());
        }
        env.close_without_sync();
        Ok(Ok(Life {
            disk,
            weak,
            txn,
            id,
            base,
            after,
            begun,
            prepared,
            deciding,
            decided,
            commits,
            later,
        }))
    }

    /// Judges what is there after a crash at call number `at`.
    fn judge(&self, image: &[u8], boot: u8, at: usize, rng: &mut Rng) -> Judged {
        let corrupt = |what: String| Ok(Err(Failure::Corrupt(what)));
        let lost = |what: String| Ok(Err(Failure::Lost(what)));
        let (_disk, env) = open(image, boot, self.weak)?;
        let (newest, state) = (env.info()?.newest, found(&env)?);
        let Some(waiting) = env.prepared()? else {
            let may_be_gone = at < self.prepared || at > self.deciding;
            if !may_be_gone {
                return lost("the prepared transaction is gone".into());
            }
            let committed =
                newest >= self.txn && (state == self.after || self.later.contains(&state));
            let as_before =
                newest < self.txn && (state == self.base || self.weak && at < self.prepared);
            let fits = match at {
                at if at < self.prepared => as_before,
                at if at < self.decided && self.commits => committed,
                at if at < self.decided => as_before,
                // Weak commits that followed may be gone, the decision not.
                _ if self.commits => committed,
                _ => as_before || self.later.contains(&state),
            };
            return if fits {
                Ok(Ok(()))
            } else {
                corrupt(format!("commit {newest}, undecided at {at}"))
            };
        };
        let may_wait = (self.begun..self.decided).contains(&at);
        let is_it = waiting.txn == self.txn
            && waiting.id == self.id
            && waiting.tag == TAG
            && newest.0 + 1 == self.txn.0;
        if !may_wait || !is_it || state != self.base {
            return corrupt(format!("{waiting:?} waits on commit {newest}"));
        }
        if !matches!(env.write().map(drop), Err(Error::Prepared { txn }) if txn == self.txn) {
            return Ok(Err(Failure::Misbehaved(
                "a transaction began while one was prepared".into(),
            )));
        }
        drop(env);
        for commits in [true, false] {
            if let Err(failure) = self.decide(image, boot, commits, rng)? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// Decides about what waits there, with a power cut somewhere in between, and goes on after it.
    fn decide(&self, image: &[u8], boot: u8, commits: bool, rng: &mut Rng) -> Judged {
        let (disk, env) = open(image, boot, self.weak)?;
        match commits {
            true => drop(env.commit_prepared(self.id)?),
            false => env.roll_back_prepared(self.id)?,
        }
        let decided = disk.events().len();
        let mut state = if commits { self.after.clone() } else { self.base.clone() };
        let exact = state.clone();
        if found(&env)? != state || env.prepared()?.is_some() {
            return Ok(Err(Failure::Corrupt(format!(
                "decided to commit: {commits}, and it is not"
            ))));
        }
        for _ in 0..3 {
            commit(&env, &mut state, rng)?;
        }
        if found(&env)? != state {
            return Ok(Err(Failure::Corrupt("what followed the decision is not there".into())));
        }
        env.close_without_sync();
        let start = Start { durable: image.to_vec(), exists: true, ..Start::nothing() };
        let events = disk.events();
        let mut replay = Replay::new(&start, &events);
        for _ in 0..rng.below(decided as u64 + 1) {
            replay.step();
        }
        let (_disk, env) = open(&cut(&replay, rng).0, boot + 1, self.weak)?;
        let (state, waits) = (found(&env)?, env.prepared()?.is_some());
        let fits = if waits { state == self.base } else { state == exact };
        if !fits || waits && replay.position() >= decided {
            return Ok(Err(Failure::Lost(format!("decided to commit: {commits}, waits: {waits}"))));
        }
        Ok(Ok(()))
    }
}

/// What a crash now leaves, and whether the system goes on.
fn cut(replay: &Replay<'_>, rng: &mut Rng) -> (Vec<u8>, bool) {
    let choice = match Choice::random(rng) {
        // The directory was flushed long ago.
        Choice::Absent => Choice::Sectors,
        choice => choice,
    };
    (replay.image(choice, METAS_END, rng), choice.is_kill())
}

/// Runs a workload; one of another name is none.
pub fn run(name: &str, seed: u64, prepare: Prepare<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    if !NAMES.contains(&name) {
        return outcome;
    }
    let mut rng = Rng::new(seed ^ 0x2FC0);
    let judged = lives(name == "prepared-weak", &mut rng, &mut outcome.states, prepare);
    let judged = judged.map_err(|error| Failure::Corrupt(error.to_string()));
    if let Err(failure) = judged.and_then(|judged| judged) {
        outcome.fail(format!("{name} --seed {seed}"), &failure);
    }
    outcome
}

fn lives(weak: bool, rng: &mut Rng, states: &mut u64, prepare: Prepare<'_>) -> Judged {
    let life = match Life::live(weak, rng, prepare)? {
        Ok(life) => life,
        Err(failure) => return Ok(Err(failure)),
    };
    let events = life.disk.events();
    let start = Start::nothing();
    let mut replay = Replay::new(&start, &events);
    while replay.position() + 1 < life.begun {
        replay.step();
    }
    let each = STATES.div_ceil((events.len() - life.begun) as u64 + 1);
    while replay.step() {
        for _ in 0..each {
            let (image, goes_on) = cut(&replay, rng);
            let judged = life.judge(&image, if goes_on { 1 } else { 2 }, replay.position(), rng)?;
            if judged.is_err() {
                return Ok(judged);
            }
            *states += 1;
        }
    }
    Ok(Ok(()))
}
