//! A life of a store on a simulated file, from an open to whatever ends it, beside its model.
//!
//! Each commit is announced to the disk's log before and acknowledged after, so that the judge
//! knows at each event what must and what may be found. Readers are held open over many commits;
//! when they end, they must still see what they saw.

use std::collections::btree_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use zubilo::{Env, Error, ReadTxn, WriteTxn};

use crate::disk::{Call, Effect, Killed, Mark, SimDisk};
use crate::model::{History, State, compare};
use crate::plan::{Mode, Plan, Shape, Twist};
use crate::rng::Rng;
use crate::watch::beat;

/// What the judge found wrong.
#[derive(Clone, Debug)]
pub enum Failure {
    /// An acknowledged commit is gone.
    Lost(String),
    /// The store does not open, holds what no commit left, or its account of pages is wrong.
    Corrupt(String),
    /// A call gave an answer that it must not give.
    Misbehaved(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Lost(what) => write!(f, "lost: {what}"),
            Failure::Corrupt(what) => write!(f, "corrupt: {what}"),
            Failure::Misbehaved(what) => write!(f, "misbehaved: {what}"),
        }
    }
}

fn corrupt(what: &'static str) -> impl Fn(Error) -> Failure {
    move |error| Failure::Corrupt(format!("{what}: {error}"))
}

/// What may be found at an open.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    /// No older commit.
    pub floor: u64,
    /// No newer one.
    pub ceiling: u64,
    /// Boot id of the system.
    pub boot: u8,
    /// The power was cut before, or nothing was there.
    pub fresh: bool,
}

/// A running life.
pub struct Life {
    plan: Plan,
    disk: SimDisk,
    env: Option<Env>,
    mode: Mode,
    /// The other process, if there are two, and its lock file.
    other: Option<(Env, Mode)>,
    lock_file: Option<LockFile>,
    boot: u8,
    history: History,
    /// The newest commit, and what it left.
    newest: u64,
    now: Arc<State>,
    readers: Vec<(ReadTxn, Arc<State>)>,
    rng: Rng,
    /// A flush failed; nothing can be acknowledged any more.
    poisoned: bool,
}

/// A life that hooks of the disk can get at.
pub type Shared = Arc<Mutex<Life>>;

fn lock(life: &Shared) -> MutexGuard<'_, Life> {
    life.lock().unwrap_or_else(|e| e.into_inner())
}

impl Life {
    /// Opens the store on `disk` and judges what is found there.
    pub fn begin(
        plan: &Plan,
        disk: &SimDisk,
        expect: Expect,
        mut history: History,
        rng: Rng,
    ) -> Result<Life, Failure> {
        let boot = [expect.boot; 16];
        let lock_file = (plan.twist == Twist::Processes).then(LockFile::new);
        let open = |mode| match &lock_file {
            None => Env::open_parts(Box::new(disk.clone()), boot, plan.options(mode)),
            Some(lock) => {
                let data = Box::new(disk.clone());
                Env::open_parts_shared(data, &lock.0, boot, plan.options(mode))
            }
        };
        let env = open(plan.mode).map_err(corrupt("open"))?;
        let other = match &lock_file {
            None => None,
            Some(_) => Some((open(Mode::Sync).map_err(corrupt("join"))?, Mode::Sync)),
        };
        let read = env.read().map_err(corrupt("read"))?;
        let txn = read.id().0;
        if txn < expect.floor {
            return Err(Failure::Lost(format!("commit {txn} found, {} wanted", expect.floor)));
        }
        if txn > expect.ceiling.max(1) {
            return Err(Failure::Corrupt(format!("commit {txn} was never tried")));
        }
        let now = history.matches(&read).map_err(Failure::Corrupt)?;
        drop(read);
        if expect.fresh {
            history.cut(txn);
            disk.mark(Mark::Cut(txn));
        }
        disk.mark(Mark::Attempt(txn, Arc::clone(&now)));
        disk.mark(Mark::Ack(txn));
        if txn == 1 {
            disk.mark(Mark::Durable(1));
        }
        let life = Life {
            plan: plan.clone(),
            disk: disk.clone(),
            env: Some(env),
            mode: plan.mode,
            other,
            lock_file,
            boot: expect.boot,
            history,
            newest: txn,
            now,
            readers: Vec::new(),
            rng,
            poisoned: false,
        };
        life.check()?;
        Ok(life)
    }

    fn env(&self) -> Env {
        self.env.clone().expect("open")
    }

    /// The full check of the store.
    pub fn check(&self) -> Result<(), Failure> {
        let report = self.env().check(&mut |_, _| true).map_err(corrupt("check"))?;
        match report.problems.first() {
            None => Ok(()),
            Some(first) => Err(Failure::Corrupt(format!(
                "check: {} problems, first: page {}: {}",
                report.problems.len(),
                first.page,
                first.reason
            ))),
        }
    }

    /// Compares what readers see now with the model.
    pub fn compare(&self) -> Result<(), Failure> {
        let read = self.env().read().map_err(corrupt("read"))?;
        compare(&read, &self.now)
            .map_err(|why| Failure::Corrupt(format!("commit {}: {why}", read.id())))
    }

    /// One transaction.
    fn transaction(&mut self) -> Result<(), StepError> {
        let env = self.env();
        let mut txn = env.write()?;
        if txn.id().0 != self.newest + 1 {
            // What a killed process had written whole was taken over.
            self.look_around()?;
        }
        let mut state = (*self.now).clone();
        change(&mut txn, &mut state, &mut self.rng, &self.plan.shape, 0)?;
        if self.rng.one_in(12) {
            return Ok(());
        }
        let id = txn.id().0;
        let state = Arc::new(state);
        self.history.add(id, Arc::clone(&state));
        self.disk.mark(Mark::Attempt(id, Arc::clone(&state)));
        let got = txn.commit()?.0;
        if got != id {
            self.history.cut(got);
            if *state != *self.now {
                return Err(Failure::Misbehaved("changes were taken for none".into()).into());
            }
            return Ok(());
        }
        if self.poisoned {
            return Err(Failure::Misbehaved("acknowledged after a failed flush".into()).into());
        }
        self.history.settle(id);
        self.newest = id;
        self.now = state;
        self.disk.mark(Mark::Ack(id));
        if self.mode == Mode::Sync {
            self.disk.mark(Mark::Durable(id));
        }
        Ok(())
    }

    fn found(&self) -> Result<u64, Failure> {
        Ok(self.env().read().map_err(corrupt("read"))?.id().0)
    }

    fn sync(&mut self) -> Result<(), StepError> {
        let newest = self.found()?;
        self.env().sync()?;
        self.disk.mark(Mark::Durable(newest));
        Ok(())
    }

    fn turn_readers(&mut self) -> Result<(), Failure> {
        if self.rng.one_in(6) && self.readers.len() < 4 {
            let read = self.env().read().map_err(corrupt("read"))?;
            self.readers.push((read, Arc::clone(&self.now)));
        }
        if self.rng.one_in(8) && !self.readers.is_empty() {
            let at = self.rng.index(self.readers.len());
            let (read, state) = self.readers.swap_remove(at);
            compare(&read, &state)
                .map_err(|why| Failure::Corrupt(format!("a held reader, {}: {why}", read.id())))?;
        }
        Ok(())
    }

    /// The other process goes on.
    fn swap(&mut self) {
        if let (Some((env, mode)), Some(mine)) = (&mut self.other, &mut self.env) {
            std::mem::swap(env, mine);
            std::mem::swap(mode, &mut self.mode);
        }
    }

    /// A transaction or a checkpoint, by chance.
    fn ordinary(&mut self) -> Result<(), StepError> {
        if self.rng.one_in(3) {
            self.swap();
        }
        self.turn_readers()?;
        if self.plan.sync_one_in > 0 && self.rng.one_in(self.plan.sync_one_in) {
            self.sync()
        } else {
            self.transaction()
        }
    }

    /// Closes the store, in order or as if killed, and opens it again on the same boot.
    fn reopen(&mut self) -> Result<(), Failure> {
        self.readers.clear();
        let newest = self.found()?;
        let env = self.env.take().expect("open");
        if self.rng.one_in(2) {
            env.close_without_sync();
        } else {
            env.close().map_err(|e| Failure::Misbehaved(format!("close: {e}")))?;
            self.disk.mark(Mark::Durable(newest));
        }
        self.mode = if self.rng.one_in(2) { Mode::Sync } else { Mode::NoSync };
        let options = self.plan.options(self.mode);
        let env = Env::open_parts(Box::new(self.disk.clone()), [self.boot; 16], options)
            .map_err(corrupt("reopen"))?;
        self.env = Some(env);
        let found = self.found()?;
        if found != newest {
            return Err(Failure::Lost(format!("{found} after a restart, was {newest}")));
        }
        self.compare()?;
        self.check()
    }

    /// After a process was killed or a call failed: what do the others see?
    fn look_around(&mut self) -> Result<(), Failure> {
        if self.env.is_none() {
            let options = self.plan.options(self.mode);
            let env = Env::open_parts(Box::new(self.disk.clone()), [self.boot; 16], options)
                .map_err(corrupt("open after a killed open"))?;
            self.env = Some(env);
        }
        let read = self.env().read().map_err(corrupt("read"))?;
        self.now = self.history.matches(&read).map_err(Failure::Corrupt)?;
        self.newest = read.id().0;
        self.disk.mark(Mark::Ack(self.newest));
        Ok(())
    }
}

/// Why a step did not succeed.
enum StepError {
    Failed(Failure),
    Refused(Error),
}

impl From<Error> for StepError {
    fn from(error: Error) -> StepError {
        StepError::Refused(error)
    }
}

impl From<Failure> for StepError {
    fn from(failure: Failure) -> StepError {
        StepError::Failed(failure)
    }
}

impl StepError {
    /// Where nothing was made to fail, a refusal is a failure.
    fn unexpected(self) -> Failure {
        match self {
            StepError::Failed(failure) => failure,
            StepError::Refused(error) => Failure::Misbehaved(error.to_string()),
        }
    }
}

/// Lives `steps` steps; stops early once nothing more can be acknowledged.
pub fn live(life: &Shared, steps: u64) -> Result<(), Failure> {
    for _ in 0..steps {
        beat();
        step(life)?;
        if lock(life).poisoned {
            break;
        }
    }
    let life = lock(life);
    for (read, state) in &life.readers {
        compare(read, state).map_err(|why| Failure::Corrupt(format!("a held reader: {why}")))?;
    }
    life.compare()?;
    if life.poisoned { Ok(()) } else { life.check() }
}

/// Ends the life as a killed process would.
pub fn end(life: &Shared) {
    let mut life = lock(life);
    life.readers.clear();
    life.disk.set_hook(None);
    if let Some(env) = life.env.take() {
        env.close_without_sync();
    }
    if let Some((env, _)) = life.other.take() {
        env.close_without_sync();
    }
    life.lock_file = None;
}

fn step(life: &Shared) -> Result<(), Failure> {
    let (twist, strange) = {
        let mut life = lock(life);
        (life.plan.twist, life.rng.one_in(3))
    };
    if !strange {
        return lock(life).ordinary().map_err(StepError::unexpected);
    }
    let hostile = twist == Twist::Hostile && lock(life).rng.one_in(2);
    match twist {
        Twist::Plain => lock(life).ordinary().map_err(StepError::unexpected),
        Twist::Reopens => lock(life).reopen(),
        Twist::Faults => with_fault(&mut lock(life)),
        Twist::Interleaved => interleaved(life).map_err(StepError::unexpected),
        Twist::Kills => with_kill(life, Inner::Ordinary),
        Twist::Processes => {
            if lock(life).rng.one_in(2) {
                with_kill(life, Inner::BetweenProcesses)
            } else {
                between_processes(life).map_err(StepError::unexpected)
            }
        }
        Twist::Hostile => {
            with_kill(life, if hostile { Inner::Interleaved } else { Inner::Ordinary })
        }
    }
}

/// What a killed process was doing.
#[derive(Clone, Copy)]
enum Inner {
    Ordinary,
    Interleaved,
    BetweenProcesses,
}

/// A step in which one process is killed while the others go on.
fn with_kill(life: &Shared, inner: Inner) -> Result<(), Failure> {
    let disk = {
        let mut life = lock(life);
        let effect = if life.rng.one_in(2) { Effect::KillBefore } else { Effect::KillAfter };
        let after = life.rng.below(8);
        life.disk.plan(Call::Any, after, effect, false);
        life.disk.clone()
    };
    let ran = catch_unwind(AssertUnwindSafe(|| match inner {
        Inner::Ordinary => lock(life).ordinary(),
        Inner::Interleaved => interleaved(life),
        Inner::BetweenProcesses => between_processes(life),
    }));
    disk.unplan();
    disk.set_hook(None);
    match ran {
        Ok(result) => result.map_err(StepError::unexpected),
        Err(panic) if panic.is::<Killed>() => lock(life).look_around(),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A checkpoint with commits between its calls, or a commit with a checkpoint between its. Neither
/// from inside a flush to another one: of these a process has one at a time.
fn interleaved(life: &Shared) -> Result<(), StepError> {
    let (env, disk, kind, mut after) = {
        let mut life = lock(life);
        // Clears away what a killed writer left, which takes a flush.
        drop(life.env().write()?);
        let kind = life.rng.below(3);
        (life.env(), life.disk.clone(), kind, life.rng.below(4))
    };
    if kind > 0 {
        // In the middle of a commit; refused where the commit holds what it needs.
        let hook = move |call| {
            if after == 0 && call != Call::Sync {
                let _ = env.sync();
            }
            after = after.wrapping_sub(1);
        };
        disk.set_hook(Some(Box::new(hook)));
        let mut life = lock(life);
        let mode = life.mode;
        if kind == 2 {
            life.switch(Mode::Sync)?;
        }
        let done = life.transaction();
        disk.set_hook(None);
        life.switch(mode)?;
        return done;
    }
    if lock(life).mode == Mode::Sync {
        return lock(life).ordinary();
    }
    let newest = env.read()?.id().0;
    let inside: Arc<Mutex<Result<(), StepError>>> = Arc::new(Mutex::new(Ok(())));
    let (cell, seen) = (Arc::clone(life), Arc::clone(&inside));
    let hook = move |call| {
        if call == Call::Sync {
            let mut life = lock(&cell);
            for _ in 0..life.rng.below(4) {
                if let Err(error) = life.transaction() {
                    *seen.lock().unwrap_or_else(|e| e.into_inner()) = Err(error);
                }
            }
        }
    };
    disk.set_hook(Some(Box::new(hook)));
    let synced = env.sync();
    disk.set_hook(None);
    std::mem::replace(&mut *inside.lock().unwrap_or_else(|e| e.into_inner()), Ok(()))?;
    synced?;
    disk.mark(Mark::Durable(newest));
    Ok(())
}

/// Where one process is refused because the other holds a lock, which it would wait for if both
/// were not one thread.
fn unless_busy(result: Result<(), StepError>) -> Result<(), StepError> {
    match result {
        Err(StepError::Refused(Error::Busy(_))) => Ok(()),
        other => other,
    }
}

/// A transaction or a checkpoint of one process, with what the other does between its calls.
fn between_processes(life: &Shared) -> Result<(), StepError> {
    let (disk, commits, mut after) = {
        let mut life = lock(life);
        if life.rng.one_in(2) {
            life.swap();
        }
        (life.disk.clone(), life.rng.one_in(2), life.rng.below(5))
    };
    if commits {
        let mut life = lock(life);
        let other = life.other.as_ref().expect("two processes").0.clone();
        disk.set_hook(Some(Box::new(move |_| {
            if after == 0 {
                let _ = other.sync();
            }
            after = after.wrapping_sub(1);
        })));
        let done = life.transaction();
        disk.set_hook(None);
        return done;
    }
    let env = lock(life).env();
    let newest = env.read()?.id().0;
    let inside: Arc<Mutex<Result<(), StepError>>> = Arc::new(Mutex::new(Ok(())));
    let (cell, seen) = (Arc::clone(life), Arc::clone(&inside));
    lock(life).swap();
    disk.set_hook(Some(Box::new(move |_| {
        let mut life = lock(&cell);
        for _ in 0..life.rng.below(4) {
            let done = if life.rng.one_in(3) { life.sync() } else { life.transaction() };
            if let Err(error) = unless_busy(done) {
                *seen.lock().unwrap_or_else(|e| e.into_inner()) = Err(error);
            }
        }
    })));
    let synced = env.sync();
    disk.set_hook(None);
    std::mem::replace(&mut *inside.lock().unwrap_or_else(|e| e.into_inner()), Ok(()))?;
    match synced {
        Ok(()) => disk.mark(Mark::Durable(newest)),
        Err(error) => unless_busy(Err(error.into()))?,
    }
    Ok(())
}

/// The lock file of a simulated store; the real one of a path that is used for nothing else.
struct LockFile(PathBuf);

impl LockFile {
    fn new() -> LockFile {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("zubilo-sim-{}-{number}", std::process::id());
        LockFile(std::env::temp_dir().join(name))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let mut name = self.0.clone().into_os_string();
        name.push("-lock");
        // It is only litter.
        let _ = std::fs::remove_file(name);
    }
}

impl Life {
    /// Goes on with another durability, after a restart without a flush.
    fn switch(&mut self, mode: Mode) -> Result<(), Failure> {
        if self.mode == mode {
            return Ok(());
        }
        self.readers.clear();
        let newest = self.found()?;
        // Hooks hold a handle of the old store, which must not be used beside the new one.
        self.disk.set_hook(None);
        self.env.take().expect("open").close_without_sync();
        let options = self.plan.options(mode);
        let env = Env::open_parts(Box::new(self.disk.clone()), [self.boot; 16], options)
            .map_err(corrupt("reopen"))?;
        let hooked = env.clone();
        let mut after = self.rng.below(4);
        self.disk.set_hook((mode == Mode::Sync).then(|| {
            Box::new(move |call| {
                if after == 0 && call != Call::Sync {
                    let _ = hooked.sync();
                }
                after = after.wrapping_sub(1);
            }) as _
        }));
        self.env = Some(env);
        self.mode = mode;
        let found = self.found()?;
        if found < newest {
            return Err(Failure::Lost(format!("{found} after a restart, was {newest}")));
        }
        // A commit whose process was killed before it published may be found now.
        self.look_around()
    }
}

/// A step in which a call fails: a clear error, old data readable, and the store goes on unless it
/// was a flush that failed.
fn with_fault(life: &mut Life) -> Result<(), Failure> {
    const CALLS: [Call; 5] = [Call::Write, Call::Write, Call::Grow, Call::Truncate, Call::Sync];
    let call = CALLS[life.rng.index(CALLS.len())];
    let code = if life.rng.one_in(2) { libc::ENOSPC } else { libc::EIO };
    let effect = match call {
        Call::Write if life.rng.one_in(2) => Effect::Short(code),
        _ => Effect::Fail(code),
    };
    let after = life.rng.below(4);
    let stays = life.rng.one_in(3);
    life.disk.plan(call, after, effect, stays);
    let result = life.ordinary();
    life.disk.unplan();
    match result {
        Ok(()) => return Ok(()),
        Err(StepError::Refused(Error::Io { .. } | Error::Poisoned | Error::MapFull { .. })) => {}
        Err(other) => return Err(other.unexpected()),
    }
    life.look_around()?;
    life.compare()?;
    if call == Call::Sync {
        life.poisoned = true;
        return match life.transaction() {
            Err(StepError::Refused(Error::Poisoned)) => Ok(()),
            Err(StepError::Failed(failure)) => Err(failure),
            Err(StepError::Refused(e)) => {
                Err(Failure::Misbehaved(format!("after a failed flush: {e}")))
            }
            Ok(()) => Err(Failure::Misbehaved("a transaction after a failed flush".into())),
        };
    }
    life.check()?;
    life.transaction().map_err(|e| match e.unexpected() {
        Failure::Misbehaved(why) => Failure::Misbehaved(format!("after a failed {call:?}: {why}")),
        other => other,
    })
}

fn value(rng: &mut Rng, shape: &Shape) -> Vec<u8> {
    let large = shape.large_one_in > 0 && rng.one_in(shape.large_one_in);
    let len = if large { rng.below(shape.large) } else { rng.below(shape.value) };
    let mut value = Vec::with_capacity(len as usize + 8);
    while value.len() < len as usize {
        value.extend_from_slice(&rng.number().to_le_bytes());
    }
    value.truncate(len as usize);
    value
}

fn key(rng: &mut Rng, shape: &Shape) -> Vec<u8> {
    format!("key-{:06}", rng.below(shape.keys)).into_bytes()
}

fn table_name(rng: &mut Rng, shape: &Shape) -> Vec<u8> {
    format!("table-{}", rng.below(shape.tables)).into_bytes()
}

/// Makes changes in a transaction and in the model.
fn change(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    depth: u32,
) -> zubilo::Result<()> {
    // Mostly few changes, sometimes all that the shape allows.
    let most = if rng.one_in(3) { shape.changes } else { 1 + shape.changes / 3 };
    for _ in 0..1 + rng.below(most) {
        let name = table_name(rng, shape);
        if shape.tables_one_in > 0 && rng.one_in(shape.tables_one_in) {
            change_tables(txn, state, rng, shape, name)?;
        } else if shape.nested_one_in > 0 && depth < 3 && rng.one_in(shape.nested_one_in) {
            nested(txn, state, rng, shape, depth)?;
        } else {
            change_record(txn, state, rng, shape, name)?;
        }
    }
    Ok(())
}

fn nested(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    depth: u32,
) -> zubilo::Result<()> {
    let keep = rng.one_in(2);
    let mut inner = state.clone();
    let few = Shape { changes: shape.changes.min(40), ..*shape };
    let done = txn.nested(|txn| {
        change(txn, &mut inner, rng, &few, depth + 1)?;
        if keep { Ok(()) } else { Err(Error::Stopped) }
    });
    match done {
        Ok(()) => *state = inner,
        Err(Error::Stopped) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn change_tables(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    name: Vec<u8>,
) -> zubilo::Result<()> {
    if let Entry::Vacant(place) = state.entry(name.clone()) {
        txn.create_table(&name, zubilo::TableOptions::new())?;
        place.insert(Arc::default());
        return Ok(());
    }
    match rng.below(3) {
        0 => {
            txn.drop_table(&name)?;
            state.remove(&name);
        }
        1 => {
            let to = table_name(rng, shape);
            if !state.contains_key(&to) {
                txn.rename_table(&name, &to)?;
                let table = state.remove(&name).unwrap_or_default();
                state.insert(to, table);
            }
        }
        _ => {
            txn.table(&name)?.clear()?;
            state.insert(name, Arc::default());
        }
    }
    Ok(())
}

fn change_record(
    txn: &mut WriteTxn,
    state: &mut State,
    rng: &mut Rng,
    shape: &Shape,
    name: Vec<u8>,
) -> zubilo::Result<()> {
    let mut table = txn.table_or_create(&name)?;
    let model = Arc::make_mut(state.entry(name).or_default());
    let key = key(rng, shape);
    if shape.ranges_one_in > 0 && rng.one_in(shape.ranges_one_in) {
        let mut to = key.clone();
        to.extend_from_slice(b"~");
        to[8] = b'9';
        table.delete_range(key.as_slice()..to.as_slice())?;
        model.retain(|k, _| *k < key || *k >= to);
    } else if rng.one_in(4) {
        table.delete(&key)?;
        model.remove(&key);
    } else {
        let value = value(rng, shape);
        table.put(&key, &value)?;
        model.insert(key, value.into());
    }
    Ok(())
}
