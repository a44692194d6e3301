//! Group commit: closures of many threads share one commit.
//!
//! A thread puts its closure into the queue. If no leader is at work it becomes the leader: it
//! begins the write transaction, takes all that is queued, runs each closure in a nested level,
//! commits once and hands out the results. The others wait for theirs. While the leader waits for
//! the disk the queue fills, and the next leader finds a batch.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::env::EnvInner;
use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex, MutexGuard};

use super::WriteTxn;

#[cfg(all(test, loom))]
mod model;

/// Closures a leader takes at most, so that no commit grows without bound.
const BATCH_MAX: usize = 1024;

/// Longest wait for closures that are likely to come: a fraction of a flush.
const GATHER_MAX: Duration = Duration::from_micros(50);

/// The closures of an open store that wait for a commit.
#[derive(Default)]
pub(crate) struct GroupQueue {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Ticket>,
    leading: bool,
    /// Closures that the last leader found: so many are likely to come again.
    expected: usize,
}

/// A queued closure, by addresses on its thread's stack: the job, and whether it has ended. The second
/// lies beside the job, not in it, because its owner looks at it while a leader changes the job.
#[derive(Clone, Copy)]
struct Ticket {
    job: *mut (dyn Job + 'static),
    ended: *const AtomicBool,
}

// SAFETY: the job's owner waits until the leader has marked it ended, and only the leader touches
// the job until then; what the job holds is `Send` by the bounds of `update`.
unsafe impl Send for Ticket {}

/// What the leader does with a closure.
trait Job {
    /// Runs the closure in a nested level.
    fn run(&mut self, txn: &mut WriteTxn);
    /// The commit is over. Called under the queue's lock: nothing of the program's may run or be dropped.
    fn end(&mut self, commit: Result<(), Arc<Error>>);
}

enum Stage<T, E, F> {
    Waiting(F),
    Running,
    Ran(Result<T, E>),
    Panicked(Box<dyn Any + Send>),
}

/// A closure and what became of it. What is the program's in here (closure, value, panic) is dropped by
/// its owner alone, when no lock is held: its `Drop` may use the store, or panic.
struct Pending<T, E, F> {
    stage: Stage<T, E, F>,
    /// How the commit ended.
    commit: Option<Result<(), Arc<Error>>>,
}

impl<T, E: From<Error>, F: FnOnce(&mut WriteTxn) -> Result<T, E>> Job for Pending<T, E, F> {
    fn run(&mut self, txn: &mut WriteTxn) {
        let Stage::Waiting(change) = std::mem::replace(&mut self.stage, Stage::Running) else {
            return;
        };
        // A panic undoes the nested level (`nested` sees to it) and goes on in its own thread.
        let result = catch_unwind(AssertUnwindSafe(|| txn.try_nested(change)));
        self.stage = match result {
            Ok(result) => Stage::Ran(result),
            Err(panic) => Stage::Panicked(panic),
        };
    }

    fn end(&mut self, commit: Result<(), Arc<Error>>) {
        self.commit = Some(commit);
    }
}

impl<T, E: From<Error>, F> Pending<T, E, F> {
    /// What the owner learns.
    fn outcome(self) -> Result<T, E> {
        match (self.stage, self.commit) {
            (Stage::Panicked(panic), _) => std::panic::resume_unwind(panic),
            (Stage::Ran(Err(error)), _) => Err(error),
            (Stage::Ran(Ok(value)), Some(Ok(()))) => Ok(value),
            (_, Some(Err(error))) => Err(Error::shared(&error).into()),
            (_, Some(Ok(())) | None) => Err(Error::TxnBroken.into()),
        }
    }
}

impl GroupQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Moves what is queued to the leader.
    fn take(&self, batch: &mut Vec<Ticket>) {
        let mut state = self.lock();
        let count = state.waiting.len().min(BATCH_MAX);
        batch.extend(state.waiting.drain(..count));
        state.expected = count;
    }
}

/// Runs `change` as part of a group commit; see [`crate::Env::update`].
pub(crate) fn update<T, E, F>(env: &Arc<EnvInner>, queue: &GroupQueue, change: F) -> Result<T, E>
where
    F: FnOnce(&mut WriteTxn) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    env.check_writable()?;
    // A thread in a write transaction (a closure of a group is in one) would wait for itself.
    env.shared.refuse_writer()?;
    let mut job = Pending { stage: Stage::Waiting(change), commit: None };
    let pointer: *mut (dyn Job + '_) = &mut job;
    // SAFETY: only the lifetime is changed. The pointer is used by a leader before `ended` is
    // true, and this function does not return (nor unwind) before that.
    let job_address =
        unsafe { std::mem::transmute::<*mut (dyn Job + '_), *mut (dyn Job + 'static)>(pointer) };
    let ended = AtomicBool::new(false);
    let ticket = Ticket { job: job_address, ended: &raw const ended };
    wait_or_lead(queue, ticket, |batch| lead(env, queue, batch));
    job.outcome()
}

/// Returns when the job of `ticket` has ended; whoever finds no leader is one, and calls `lead`.
fn wait_or_lead(
    queue: &GroupQueue,
    ticket: Ticket,
    lead: impl Fn(&mut Vec<Ticket>) -> Result<(), Arc<Error>>,
) {
    let mut state = queue.lock();
    state.waiting.push(ticket);
    loop {
        // SAFETY: the caller's own flag. Leaders set it under the queue's lock, which is held.
        if unsafe { &*ticket.ended }.load(Ordering::Acquire) {
            return;
        }
        if state.leading {
            state = queue.done.wait(state).unwrap_or_else(|e| e.into_inner());
            continue;
        }
        state.leading = true;
        drop(state);
        let mut batch = Vec::new();
        let led = catch_unwind(AssertUnwindSafe(|| lead(&mut batch)));
        let (outcome, panic) = match led {
            Ok(outcome) => (outcome, None),
            Err(panic) => (Err(Arc::new(Error::TxnBroken)), Some(panic)),
        };
        state = queue.lock();
        for ticket in batch {
            let outcome = outcome.as_ref().copied().map_err(Arc::clone);
            // SAFETY: this is the leader of a job that has not ended; its owner waits for the
            // lock that is held here.
            unsafe {
                (*ticket.job).end(outcome);
                (*ticket.ended).store(true, Ordering::Release);
            }
        }
        state.leading = false;
        queue.done.notify_all();
        if panic.is_some() {
            // Nobody may keep an address on this stack.
            state.waiting.retain(|t| !std::ptr::eq(t.ended, ticket.ended));
        }
        drop(state);
        // Not before: the error may hold one of a program's data file.
        drop(outcome);
        if let Some(panic) = panic {
            std::panic::resume_unwind(panic);
        }
        state = queue.lock();
    }
}

/// Lets the threads that shared the last commit queue their next closures: they were woken just
/// now, and a leader that does not wait for them pays a whole flush for its own closure alone. A
/// single thread never waits.
fn gather(queue: &GroupQueue) {
    let start = Instant::now();
    loop {
        let state = queue.lock();
        if state.waiting.len() >= state.expected || start.elapsed() >= GATHER_MAX {
            return;
        }
        drop(state);
        std::thread::yield_now();
    }
}

/// Runs and commits what is queued once the writer lock is had; `batch` says what that was.
fn lead(
    env: &Arc<EnvInner>,
    queue: &GroupQueue,
    batch: &mut Vec<Ticket>,
) -> Result<(), Arc<Error>> {
    if env.is_sync() {
        gather(queue);
    }
    let txn = WriteTxn::begin(env, true);
    queue.take(batch);
    let mut txn = match txn {
        // Not on the stack: a program may run coroutines whose stacks are moved away while they wait, and
        // one of its closures may have handed the transaction's address to others.
        Ok(Some(txn)) => Box::new(txn),
        Ok(None) => return Err(Arc::new(Error::Busy("the writer lock is taken"))),
        Err(error) => return Err(Arc::new(error)),
    };
    for ticket in &*batch {
        // SAFETY: taken out of the queue by this leader alone; the owner waits for `ended`.
        unsafe { (*ticket.job).run(&mut txn) };
    }
    txn.commit().map(drop).map_err(Arc::new)
}
