//! A session of a store on a simulated file, from an open to whatever ends it, beside its model.
//!
//! Each commit is announced to the disk's log before and acknowledged after, so that the judge
//! knows at each event what must and what may be found. Readers are held open over many commits;
//! when they end, they must still see what they saw.

mod between;
mod change;
mod compact;
pub mod faults;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use zubilo::{Env, Error, ReadTxn};

use crate::disk::{Call, Effect, Killed, Mark, SimDisk};
use crate::model::{History, State, compare};
use crate::plan::{Mode, Plan, Twist};
use crate::watch::beat;
use support::Rng;

use between::{between_processes, interleaved};
use change::change;
use faults::with_fault;

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
    /// Last commit acknowledged as durable.
    pub durable: u64,
    /// Boot id of the system.
    pub boot: u8,
    /// The power was cut before, or nothing was there.
    pub fresh: bool,
}

/// A running session.
pub struct Session {
    plan: Plan,
    disk: SimDisk,
    env: Option<Env>,
    mode: Mode,
    /// The other process, if there are two, and its lock file.
    other: Option<(Env, Mode)>,
    lock_file: Option<Arc<LockFile>>,
    boot: u8,
    /// Last commit acknowledged as durable before this session.
    durable: u64,
    history: History,
    /// The newest commit, and what it left.
    newest: u64,
    now: Arc<State>,
    readers: Vec<(ReadTxn, Arc<State>)>,
    rng: Rng,
    /// A flush failed; nothing can be acknowledged any more.
    poisoned: bool,
}

/// A session that hooks of the disk can get at.
pub type Shared = Arc<Mutex<Session>>;

fn lock(session: &Shared) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(|e| e.into_inner())
}

impl Session {
    /// Opens the store on `disk` and judges what is found there.
    pub fn begin(
        plan: &Plan,
        disk: &SimDisk,
        expect: Expect,
        history: History,
        rng: Rng,
    ) -> Result<Session, Failure> {
        let lock_file = plan.lock_file.then(LockFile::new);
        Session::open(plan, disk, lock_file, expect, history, rng).map_err(|e| match e {
            StepError::Failed(failure) => failure,
            StepError::Refused(error) => Failure::Corrupt(format!("open: {error}")),
        })
    }

    fn open(
        plan: &Plan,
        disk: &SimDisk,
        lock_file: Option<Arc<LockFile>>,
        expect: Expect,
        mut history: History,
        rng: Rng,
    ) -> Result<Session, StepError> {
        let mut rng = rng;
        let mut open = |mode| {
            let plan = switched(plan, &mut rng);
            open_env(&plan, disk, lock_file.as_deref(), expect.boot, mode)
        };
        let env = open(plan.mode)?;
        let other =
            if plan.twist.two_processes() { Some((open(Mode::Sync)?, Mode::Sync)) } else { None };
        let read = env.read().map_err(corrupt("read"))?;
        let txn = read.id().0;
        if txn < expect.floor {
            let why = format!("commit {txn} found, {} wanted", expect.floor);
            return Err(Failure::Lost(why).into());
        }
        if txn > expect.ceiling.max(1) {
            return Err(Failure::Corrupt(format!("commit {txn} was never tried")).into());
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
        let session = Session {
            plan: plan.clone(),
            disk: disk.clone(),
            env: Some(env),
            mode: plan.mode,
            other,
            lock_file,
            boot: expect.boot,
            durable: expect.durable,
            history,
            newest: txn,
            now,
            readers: Vec::new(),
            rng,
            poisoned: false,
        };
        session.check()?;
        Ok(session)
    }

    fn open_env(&mut self, mode: Mode) -> zubilo::Result<Env> {
        let plan = switched(&self.plan, &mut self.rng);
        open_env(&plan, &self.disk, self.lock_file.as_deref(), self.boot, mode)
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
        } else if self.plan.compact_one_in > 0 && self.rng.one_in(self.plan.compact_one_in) {
            self.compact()
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
        self.mode = match self.rng.index(2) {
            0 => Mode::Sync,
            _ if self.plan.mode == Mode::Lazy => [Mode::Lazy, Mode::NoSync][self.rng.index(2)],
            _ => Mode::NoSync,
        };
        self.env = Some(self.open_env(self.mode).map_err(corrupt("reopen"))?);
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
            let opened = self.open_env(self.mode);
            self.env = Some(opened.map_err(corrupt("open after a killed open"))?);
        }
        let read = self.env().read().map_err(corrupt("read"))?;
        self.now = self.history.matches(&read).map_err(Failure::Corrupt)?;
        self.newest = read.id().0;
        self.disk.mark(Mark::Ack(self.newest));
        Ok(())
    }
}

/// The workload with the log that one open asks for.
fn switched(plan: &Plan, rng: &mut Rng) -> Plan {
    let redo = match plan.switches {
        true => [0, 64 << 10, plan.redo][rng.index(3)],
        false => plan.redo,
    };
    Plan { redo, ..plan.clone() }
}

fn open_env(
    plan: &Plan,
    disk: &SimDisk,
    lock_file: Option<&LockFile>,
    boot: u8,
    mode: Mode,
) -> zubilo::Result<Env> {
    let (data, options) = (Box::new(disk.clone()), plan.options(mode));
    let boot = if plan.boot_hidden { 0 } else { boot };
    match lock_file {
        None => Env::open_parts(data, [boot; 16], options),
        Some(lock) => Env::open_parts_shared(data, &lock.0, [boot; 16], options),
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

/// Runs `steps` steps; stops early once nothing more can be acknowledged.
pub fn advance(session: &Shared, steps: u64) -> Result<(), Failure> {
    for _ in 0..steps {
        beat();
        step(session)?;
        if lock(session).poisoned {
            break;
        }
    }
    let session = lock(session);
    for (read, state) in &session.readers {
        compare(read, state).map_err(|why| Failure::Corrupt(format!("a held reader: {why}")))?;
    }
    session.compare()?;
    if session.poisoned { Ok(()) } else { session.check() }
}

/// Ends the session as a killed process would.
pub fn end(session: &Shared) {
    let mut session = lock(session);
    session.readers.clear();
    session.disk.set_hook(None);
    if let Some(env) = session.env.take() {
        env.close_without_sync();
    }
    if let Some((env, _)) = session.other.take() {
        env.close_without_sync();
    }
    session.lock_file = None;
}

fn step(session: &Shared) -> Result<(), Failure> {
    let (twist, strange) = {
        let mut session = lock(session);
        (session.plan.twist, session.rng.one_in(3))
    };
    if !strange {
        return lock(session).ordinary().map_err(StepError::unexpected);
    }
    let hostile = twist == Twist::Hostile && lock(session).rng.one_in(2);
    match twist {
        Twist::Plain => lock(session).ordinary().map_err(StepError::unexpected),
        Twist::Reopens => lock(session).reopen(),
        Twist::Faults => with_fault(&mut lock(session)),
        Twist::Interleaved => interleaved(session).map_err(StepError::unexpected),
        Twist::Kills => with_kill(session, Inner::Ordinary),
        Twist::Processes => {
            if lock(session).rng.one_in(2) {
                with_kill(session, Inner::BetweenProcesses)
            } else {
                between_processes(session).map_err(StepError::unexpected)
            }
        }
        #[cfg(feature = "planted")]
        Twist::Stores => lock(session).with_kill_at_store(),
        Twist::Hostile => {
            with_kill(session, if hostile { Inner::Interleaved } else { Inner::Ordinary })
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
fn with_kill(session: &Shared, inner: Inner) -> Result<(), Failure> {
    let disk = {
        let mut session = lock(session);
        let effect = if session.rng.one_in(2) { Effect::KillBefore } else { Effect::KillAfter };
        let after = session.rng.below(8);
        session.disk.plan(Call::Any, after, effect, false);
        session.disk.clone()
    };
    let ran = catch_unwind(AssertUnwindSafe(|| match inner {
        Inner::Ordinary => lock(session).ordinary(),
        Inner::Interleaved => interleaved(session),
        Inner::BetweenProcesses => between_processes(session),
    }));
    disk.unplan();
    disk.set_hook(None);
    match ran {
        Ok(result) => result.map_err(StepError::unexpected),
        Err(panic) if panic.is::<Killed>() => lock(session).look_around(),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(feature = "planted")]
impl Session {
    /// A step of a process that is killed between two stores to the lock file. The other one goes on
    /// for a while, or a new one comes at once.
    fn with_kill_at_store(&mut self) -> Result<(), Failure> {
        if self.rng.one_in(2) {
            self.swap();
        }
        let mut left = self.rng.below(45);
        zubilo::planted::at_stores(Some(Box::new(move || {
            if left == 0 {
                std::panic::resume_unwind(Box::new(Killed));
            }
            left -= 1;
        })));
        let ran = catch_unwind(AssertUnwindSafe(|| self.ordinary()));
        zubilo::planted::at_stores(None);
        match ran {
            Ok(result) => return result.map_err(StepError::unexpected),
            Err(panic) if panic.is::<Killed>() => {}
            Err(panic) => std::panic::resume_unwind(panic),
        }
        // Its transactions, slots and entry of the table go with it.
        self.readers.clear();
        self.env.take().expect("open").close_without_sync();
        let (survivor, mode) = self.other.take().expect("two processes");
        let dead = std::mem::replace(&mut self.mode, mode);
        self.env = Some(survivor);
        let mut went_on = self.look_around();
        for _ in 0..self.rng.below(4) {
            went_on = went_on.and_then(|()| self.ordinary().map_err(StepError::unexpected));
        }
        self.other = Some((self.open_env(dead).map_err(corrupt("join after a kill"))?, dead));
        went_on
    }
}

/// The lock file of a simulated store; the real one of a path that is used for nothing else.
struct LockFile(PathBuf);

impl LockFile {
    fn new() -> Arc<LockFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("zubilo-sim-{}-{number}", std::process::id());
        Arc::new(LockFile(std::env::temp_dir().join(name)))
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
