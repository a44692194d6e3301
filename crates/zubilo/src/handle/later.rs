//! Changes as futures: a thread of the store gathers them and hands them to the group commit, so that they
//! share a commit with each other and with those who wait in place. The thread is started by the first one,
//! and the last handle ends it once nothing is queued.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use crate::env::EnvInner;
use crate::error::{Error, Result};
use crate::txn::WriteTxn;
use crate::txn::group::{self, GroupQueue};

/// Changes that go into one commit, at most.
const BATCH_MAX: usize = 1024;

/// The queued changes of an open store.
#[derive(Default)]
pub(super) struct Later {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: Vec<Box<dyn Task>>,
    stop: bool,
    /// There is a thread.
    started: bool,
}

/// A queued change.
trait Task: Send {
    /// Runs it in a nested level.
    fn run(&mut self, txn: &mut WriteTxn);
    /// Hands its future what came out, after the commit.
    fn end(self: Box<Self>, commit: Result<(), &Error>);
}

/// What a closure gave, or its panic.
type Outcome<T, E> = std::thread::Result<Result<T, E>>;

enum State<T, E> {
    Waiting(Option<Waker>),
    Ended(Outcome<T, E>),
    Taken,
}

/// The end of a change that [`Env::update_async`](crate::Env::update_async) has queued.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let done: zubilo::Update<()> = env.update_async(|txn| txn.table_or_create("t")?.put("key", "value"));
/// // Any executor can await it; the change is on its way already.
/// drop(done);
/// env.close()?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "nobody hears whether the change succeeds"]
pub struct Update<T, E = Error> {
    state: Arc<Mutex<State<T, E>>>,
    env: Arc<EnvInner>,
}

struct Pending<T, E, F> {
    change: Option<F>,
    outcome: Option<Outcome<T, E>>,
    state: Arc<Mutex<State<T, E>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn end<T, E>(state: &Mutex<State<T, E>>, outcome: Outcome<T, E>) {
    let before = std::mem::replace(&mut *lock(state), State::Ended(outcome));
    // Not under the lock: it is the program's.
    if let State::Waiting(Some(waker)) = before {
        waker.wake();
    }
}

impl<T, E, F> Task for Pending<T, E, F>
where
    F: FnOnce(&mut WriteTxn) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, txn: &mut WriteTxn) {
        let Some(change) = self.change.take() else { return };
        self.outcome = Some(catch_unwind(AssertUnwindSafe(|| txn.try_nested(change))));
    }

    fn end(self: Box<Self>, commit: Result<(), &Error>) {
        let Pending { outcome, state, .. } = *self;
        let outcome = match (outcome, commit) {
            (Some(Ok(Ok(_))), Err(error)) | (None, Err(error)) => {
                Ok(Err(Error::shared(error).into()))
            }
            (Some(outcome), _) => outcome,
            (None, Ok(())) => Ok(Err(Error::TxnBroken.into())),
        };
        end(&state, outcome);
    }
}

impl Later {
    /// Queues a change. True if a thread has to be started for it.
    pub(super) fn queue<T, E, F>(&self, env: &Arc<EnvInner>, change: F) -> (Update<T, E>, bool)
    where
        F: FnOnce(&mut WriteTxn) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let state = Arc::new(Mutex::new(State::Waiting(None)));
        let task = Pending { change: Some(change), outcome: None, state: Arc::clone(&state) };
        let mut queue = lock(&self.queue);
        queue.tasks.push(Box::new(task));
        let is_first = !std::mem::replace(&mut queue.started, true);
        drop(queue);
        self.wake.notify_one();
        (Update { state, env: Arc::clone(env) }, is_first)
    }

    /// There is no thread for what is queued: all of it fails, and a later change tries again.
    pub(super) fn fail(&self, error: &Error) {
        let mut queue = lock(&self.queue);
        queue.started = false;
        let tasks = std::mem::take(&mut queue.tasks);
        drop(queue);
        tasks.into_iter().for_each(|task| task.end(Err(error)));
    }

    /// The thread ends when nothing is queued.
    pub(super) fn stop(&self) {
        lock(&self.queue).stop = true;
        self.wake.notify_one();
    }

    fn take(&self) -> Option<Vec<Box<dyn Task>>> {
        let mut queue = lock(&self.queue);
        loop {
            if !queue.tasks.is_empty() {
                let count = queue.tasks.len().min(BATCH_MAX);
                return Some(queue.tasks.drain(..count).collect());
            }
            if queue.stop {
                return None;
            }
            queue = self.wake.wait(queue).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// What the thread does.
    pub(super) fn work(&self, env: &Arc<EnvInner>, group: &GroupQueue) {
        while let Some(mut batch) = self.take() {
            let all = |txn: &mut WriteTxn| {
                batch.iter_mut().for_each(|task| task.run(txn));
                Ok::<(), Error>(())
            };
            let committed = catch_unwind(AssertUnwindSafe(|| group::update(env, group, all)));
            let committed = committed.unwrap_or_else(|panic: Box<dyn Any + Send>| {
                // Its message is out; dropped it could panic again.
                std::mem::forget(panic);
                Err(Error::TxnBroken)
            });
            for task in batch {
                // A waker, and what a closure held, are the program's.
                let ended = AssertUnwindSafe(|| task.end(committed.as_ref().copied()));
                if let Err(panic) = catch_unwind(ended) {
                    std::mem::forget(panic);
                }
            }
        }
    }
}

impl<T, E> Update<T, E> {
    /// One that has ended already.
    pub(super) fn refused(env: &Arc<EnvInner>, error: E) -> Update<T, E> {
        let state = Arc::new(Mutex::new(State::Ended(Ok(Err(error)))));
        Update { state, env: Arc::clone(env) }
    }
}

impl<T, E: From<Error>> Future for Update<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        // The thread stayed with the parent, perhaps with the lock.
        if let Err(error) = self.env.check_alive() {
            return Poll::Ready(Err(error.into()));
        }
        let mut state = lock(&self.state);
        if let State::Waiting(waker) = &mut *state {
            match waker {
                Some(known) => known.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        let ended = std::mem::replace(&mut *state, State::Taken);
        drop(state);
        match ended {
            State::Ended(Ok(result)) => Poll::Ready(result),
            State::Ended(Err(panic)) => resume_unwind(panic),
            State::Waiting(_) | State::Taken => panic!("a future was polled after its end"),
        }
    }
}
