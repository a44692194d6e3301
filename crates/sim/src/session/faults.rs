//! Steps in which a call fails: a clear error, old data readable, and the store goes on unless it was
//! a flush that failed. Then it says that it must be reopened, and goes on after that.

use zubilo::Error;

use crate::disk::{Call, Effect, Event, Mark, SimDisk};
use crate::image::{Choice, Replay, Start};
use crate::model::History;
use crate::plan::Plan;
use crate::run::Outcome;
use crate::watch::{beat, watch};
use support::Rng;

use super::{Expect, Failure, LockFile, Session, StepError};

/// A call that fails.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What kind of call.
    pub call: Call,
    /// Calls of this kind before it.
    pub after: u64,
    /// What it does instead.
    pub effect: Effect,
    /// Later ones fail too, as on a full disk, until there is room again.
    pub stays: bool,
}

fn is_clear(error: &Error) -> bool {
    matches!(error, Error::Io { .. } | Error::Poisoned { .. } | Error::MapFull { .. })
}

/// A step in which a call fails.
pub(super) fn with_fault(session: &mut Session) -> Result<(), Failure> {
    const CALLS: [Call; 5] = [Call::Write, Call::Write, Call::Grow, Call::Truncate, Call::Sync];
    let call = CALLS[session.rng.index(CALLS.len())];
    let code = if session.rng.one_in(2) { libc::ENOSPC } else { libc::EIO };
    let effect = match call {
        Call::Write if session.rng.one_in(2) => Effect::Short(code),
        _ => Effect::Fail(code),
    };
    let (after, stays) = (session.rng.below(4), session.rng.one_in(3));
    session.disk.plan(call, after, effect, stays);
    let result = session.ordinary();
    session.disk.unplan();
    match result {
        Ok(()) => Ok(()),
        Err(StepError::Refused(error)) if is_clear(&error) => session.recover(call),
        Err(other) => Err(other.unexpected()),
    }
}

impl Session {
    /// After a call failed, and when calls no longer fail.
    fn recover(&mut self, call: Call) -> Result<(), Failure> {
        self.look_around()?;
        self.compare()?;
        if call == Call::Sync {
            return self.recover_from_flush();
        }
        self.check()?;
        self.transaction().map_err(|e| match e.unexpected() {
            Failure::Misbehaved(why) => {
                Failure::Misbehaved(format!("after a failed {call:?}: {why}"))
            }
            other => other,
        })
    }

    /// A flush failed: nothing more is acknowledged until the store was closed by all.
    fn recover_from_flush(&mut self) -> Result<(), Failure> {
        self.poisoned = true;
        let refused = |done, what: &str| match done {
            Err(StepError::Refused(Error::Poisoned { .. })) => Ok(()),
            Err(StepError::Failed(failure)) => Err(failure),
            Err(StepError::Refused(e)) => {
                Err(Failure::Misbehaved(format!("{what} after a failed flush: {e}")))
            }
            Ok(()) => Err(Failure::Misbehaved(format!("a {what} after a failed flush"))),
        };
        refused(self.transaction(), "transaction")?;
        if self.lock_file.is_none() {
            return Ok(());
        }
        self.reopen_poisoned()
    }

    /// Closes the store and opens it on the same boot: what the flush did not reach may be seen in
    /// the kernel's cache, and must not be trusted.
    fn reopen_poisoned(&mut self) -> Result<(), Failure> {
        self.readers.clear();
        self.env = None;
        self.disk.closed();
        let durable = self.disk.events().iter().fold(self.durable, |last, event| match **event {
            Event::Mark(Mark::Durable(txn)) => last.max(txn),
            _ => last,
        });
        let ceiling = self.history.newest();
        let expect = Expect { floor: durable, ceiling, durable, boot: self.boot, fresh: true };
        let rng = self.rng.fork();
        let lock_file = self.lock_file.clone();
        let plan = Plan { mode: self.mode, ..self.plan.clone() };
        let next = Session::open(&plan, &self.disk, lock_file, expect, self.history.clone(), rng);
        *self = next.map_err(|e| match e {
            StepError::Failed(failure) => failure,
            StepError::Refused(e) => {
                Failure::Corrupt(format!("open after a flush that failed: {e}"))
            }
        })?;
        if self.rng.one_in(2) {
            // Nobody wrote: what was not trusted must not be trusted the next time either.
            self.reopen()?;
        }
        self.transaction().map_err(StepError::unexpected)
    }
}

/// Sessions with one fault, and judges the disk after a power cut at the end.
pub fn endure(plan: &Plan, seed: u64, steps: u64, fault: &Fault) -> Result<(), Failure> {
    let disk = SimDisk::new(&[], plan.writable);
    let mut rng = Rng::new(seed);
    disk.plan(fault.call, fault.after, fault.effect, fault.stays);
    let mut session = open_with_fault(plan, &disk, rng.fork())?;
    let mut failing = 0;
    for _ in 0..steps {
        beat();
        let done = session.ordinary();
        match done {
            Ok(()) => {}
            Err(StepError::Refused(error)) if is_clear(&error) => {
                failing += 1;
                if fault.stays && failing < 3 && fault.call != Call::Sync {
                    session.look_around()?;
                    session.compare()?;
                    continue;
                }
                disk.unplan();
                session.recover(fault.call)?;
            }
            Err(other) => return Err(other.unexpected()),
        }
    }
    if !fault.stays && !disk.unplan() {
        return Err(Failure::Misbehaved("the call did not come".into()));
    }
    disk.unplan();
    session.readers.clear();
    session.compare()?;
    session.check()?;
    let boot = session.boot + 1;
    session.env = None;
    power_cuts(plan, &disk, boot, &mut rng)
}

fn open_with_fault(plan: &Plan, disk: &SimDisk, mut rng: Rng) -> Result<Session, Failure> {
    let expect = Expect { floor: 0, ceiling: 1, durable: 0, boot: 1, fresh: true };
    let lock_file = plan.lock_file.then(LockFile::new);
    let mut open =
        || Session::open(plan, disk, lock_file.clone(), expect, History::new(), rng.fork());
    match open() {
        Ok(session) => return Ok(session),
        Err(StepError::Refused(error)) if is_clear(&error) => {}
        Err(other) => return Err(other.unexpected()),
    }
    disk.unplan();
    disk.closed();
    open().map_err(StepError::unexpected)
}

fn power_cuts(plan: &Plan, disk: &SimDisk, boot: u8, rng: &mut Rng) -> Result<(), Failure> {
    let events = disk.events();
    let start = Start::nothing();
    let mut replay = Replay::new(&start, &events);
    while replay.step() {}
    let durable = replay.durable_txn;
    for choice in [Choice::None, Choice::All, Choice::Writes, Choice::Sectors, Choice::MetasLast] {
        let image = replay.image(choice, 4 * u64::from(plan.page_size), rng);
        let expect =
            Expect { floor: durable, ceiling: replay.attempted, durable, boot, fresh: true };
        let disk = SimDisk::new(&image, plan.writable);
        let named = |failure| match failure {
            Failure::Lost(why) => Failure::Lost(format!("{choice:?}: {why}")),
            Failure::Corrupt(why) => Failure::Corrupt(format!("{choice:?}: {why}")),
            Failure::Misbehaved(why) => Failure::Misbehaved(format!("{choice:?}: {why}")),
        };
        let history = replay.history.clone();
        let mut session =
            Session::begin(plan, &disk, expect, history, rng.fork()).map_err(named)?;
        session.transaction().map_err(StepError::unexpected).map_err(named)?;
    }
    Ok(())
}

/// Errors that a call of this kind may give.
fn effects(call: Call) -> &'static [Effect] {
    match call {
        Call::Write => {
            &[Effect::Late(libc::EIO), Effect::Fail(libc::ENOSPC), Effect::Short(libc::EDQUOT)]
        }
        Call::Grow => &[Effect::Fail(libc::ENOSPC), Effect::Fail(libc::EDQUOT)],
        Call::Sync => &[Effect::Fail(libc::EIO), Effect::Fail(libc::ENOSPC)],
        _ => &[Effect::Fail(libc::EIO)],
    }
}

/// Lets each call of each kind of a session fail, once and for longer; a state is such a session.
pub fn each_call(plan: &Plan, seed: u64, steps: u64) -> Outcome {
    let _watched = watch(format!("{} --faults --seed {seed}", plan.name));
    let plan = Plan { lock_file: true, ..plan.clone() };
    let mut outcome = Outcome::default();
    let counted = SimDisk::new(&[], plan.writable);
    let ran = open_with_fault(&plan, &counted, Rng::new(seed).fork()).and_then(|mut session| {
        (0..steps).try_for_each(|_| session.ordinary().map_err(StepError::unexpected))?;
        Ok(session)
    });
    // Not those of the close, which comes after all that is judged.
    let mut calls = Vec::new();
    let ran = ran.map(|_session| {
        const KINDS: [Call; 5] =
            [Call::Write, Call::Grow, Call::Truncate, Call::Sync, Call::SyncDirectory];
        calls.extend(KINDS.map(|call| (call, counted.calls(call))));
    });
    if let Err(failure) = ran {
        outcome.fail(format!("{} --seed {seed} without a fault", plan.name), &failure);
        return outcome;
    }
    for (call, count) in calls {
        for after in 0..count {
            for (&effect, stays) in effects(call).iter().flat_map(|e| [(e, false), (e, true)]) {
                let fault = Fault { call, after, effect, stays };
                outcome.states += 1;
                if let Err(failure) = endure(&plan, seed, steps, &fault) {
                    outcome.fail(format!("{} --seed {seed} {fault:?}", plan.name), &failure);
                }
            }
        }
    }
    outcome
}
