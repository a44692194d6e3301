//! The thread that turns weak commits steady by bytes and time (`Durability::Lazy`).
//!
//! It owns no state of the store: it waits, then asks for a checkpoint. The end of the last handle ends
//! it. Of a handle that is never dropped, such as one
//! in a static, the end of the program in order (`exit`, the end of `main`) makes what is left durable.
//! Now and then the thread looks for weak commits of other processes that nobody has flushed: their
//! writer may have been killed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::platform::{self, PerProcess, Thread};
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

use super::EnvInner;
use super::checkpoint;
use super::log::Level;

#[cfg(all(test, loom))]
mod model;

/// What commits hand to the thread.
pub(crate) struct Flusher {
    /// Bytes that wake the thread; 0 while there is none.
    limit: AtomicU64,
    unsynced: AtomicU64,
    state: Mutex<State>,
    wake: Condvar,
    /// A checkpoint of the thread has failed, and none succeeded since.
    failed: AtomicBool,
    /// Processes write in turns of which the store knows nothing: the thread leaves its work to the next
    /// writer here, whose turn it is.
    in_turns: AtomicBool,
    /// There is work that it has left.
    left: AtomicBool,
}

#[derive(Default)]
struct State {
    /// How long a commit waits at most.
    period: Duration,
    /// When the oldest commit that is not steady was made.
    oldest: Option<Instant>,
    full: bool,
    stop: bool,
}

/// What the thread does next.
enum Turn {
    Flush,
    /// Nothing was committed here for a while.
    Look,
    Stop,
}

/// Commits that are durable by their records in the redo log have their pages on disk after this time at the latest.
pub(crate) const REDO_PERIOD: Duration = Duration::from_secs(60);

/// A thread without work looks around this often at most.
const LOOK_MIN: Duration = Duration::from_millis(100);

impl Flusher {
    pub(crate) fn new() -> Flusher {
        let state = Mutex::new(State::default());
        Flusher {
            limit: AtomicU64::new(0),
            unsynced: AtomicU64::new(0),
            state,
            wake: Condvar::new(),
            failed: AtomicBool::new(false),
            in_turns: AtomicBool::new(false),
            left: AtomicBool::new(false),
        }
    }

    /// From now on the thread writes nothing by itself.
    pub(crate) fn leave_to_writers(&self) {
        self.in_turns.store(true, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Bytes of commits that wake the thread.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// From now on the thread goes by these bounds. True if there was none before.
    fn set_bounds(&self, (limit, period): (u64, Duration)) -> bool {
        self.lock().period = period;
        let before = self.limit.swap(limit.max(1), Ordering::SeqCst);
        // What waits may be due already.
        self.wake.notify_one();
        before == 0
    }

    /// A weak commit of `bytes` was made.
    pub(crate) fn committed(&self, bytes: u64) {
        let limit = self.limit();
        if limit == 0 {
            return;
        }
        // Released, as the commit was published before: who sets the sum back sees that commit.
        let before = self.unsynced.fetch_add(bytes, Ordering::AcqRel);
        // The thread sleeps until the period ends; it is woken for the first and the last byte.
        let is_full = before.saturating_add(bytes) >= limit;
        if before == 0 || before < limit && is_full {
            let mut state = self.lock();
            state.oldest.get_or_insert_with(Instant::now);
            state.full |= is_full;
            self.wake.notify_one();
        }
    }

    fn wait(&self) -> Turn {
        let mut state = self.lock();
        loop {
            if state.stop {
                return Turn::Stop;
            }
            let period = state.period;
            let due = state.oldest.map(|t| period.saturating_sub(t.elapsed()));
            if state.full || due.is_some_and(|d| d.is_zero()) {
                state.full = false;
                state.oldest = None;
                self.unsynced.swap(0, Ordering::AcqRel);
                return Turn::Flush;
            }
            state = match due {
                None => {
                    let (state, waited) = self
                        .wake
                        .wait_timeout(state, period.max(LOOK_MIN))
                        .unwrap_or_else(|e| e.into_inner());
                    if waited.timed_out() && !state.stop && !state.full && state.oldest.is_none() {
                        return Turn::Look;
                    }
                    state
                }
                Some(due) => {
                    self.wake.wait_timeout(state, due).unwrap_or_else(|e| e.into_inner()).0
                }
            };
        }
    }

    /// To be tried once more after the period.
    fn again(&self) {
        self.lock().oldest.get_or_insert_with(Instant::now);
    }

    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_all();
    }
}

/// Starts the thread of a store; one that it has goes by the new bounds.
pub(crate) fn start(env: &Arc<EnvInner>, bounds: (u64, Duration)) -> Result<Option<Thread>> {
    if !env.flusher.set_bounds(bounds) {
        return Ok(None);
    }
    let own = Arc::clone(env);
    let spawned = platform::spawn(c"zubilo-flusher", move || flush_until_stopped(&own));
    let thread = spawned.map_err(|error| {
        env.flusher.limit.store(0, Ordering::SeqCst);
        Error::io("start the flusher's thread")(error)
    })?;
    remember(env);
    Ok(Some(thread))
}

/// The stores of this process that have a flusher.
#[derive(Default)]
struct Remembered {
    stores: Vec<Weak<EnvInner>>,
    /// The end of the program will look here.
    is_registered: bool,
}

fn remembered() -> std::sync::MutexGuard<'static, Remembered> {
    static LAZY: PerProcess<std::sync::Mutex<Remembered>> = PerProcess::new();
    LAZY.get().lock().unwrap_or_else(|e| e.into_inner())
}

/// At its end in order the program flushes what no dropped handle has.
fn remember(env: &Arc<EnvInner>) {
    let mut known = remembered();
    if !std::mem::replace(&mut known.is_registered, true) {
        // In a child for the second time, if the parent has done so; then it finds nothing more to do.
        platform::at_exit(flush_at_exit);
    }
    known.stores.retain(|env| env.strong_count() > 0);
    known.stores.push(Arc::downgrade(env));
}

extern "C" fn flush_at_exit() {
    // A callback that ends the program in the middle of a checkpoint would wait for itself.
    if checkpoint::is_at_work() {
        return;
    }
    let known: Vec<_> = remembered().stores.iter().filter_map(Weak::upgrade).collect();
    for env in known {
        let skip = env.close_without_sync.load(Ordering::SeqCst) || env.check_writable().is_err();
        if !skip && env.steady() < env.shared.newest() {
            // Nobody is left to hear of a failure; nor may a panic go on from here.
            drop(catch_unwind(AssertUnwindSafe(|| checkpoint::checkpoint(&env))));
        }
    }
}

/// What the thread knows of the redo log.
#[derive(Default)]
struct RingTurns {
    /// The newest commit whose record it has flushed.
    flushed: u64,
    /// Since when the ring alone was flushed, and no page.
    since: Option<Instant>,
}

impl RingTurns {
    /// Makes the newest commit durable: by its record, as long as that will do.
    fn make_durable(&mut self, env: &EnvInner) -> Result<()> {
        let newest = env.shared.newest();
        let is_old = self.since.is_some_and(|since| since.elapsed() >= REDO_PERIOD);
        if !is_old && (newest == self.flushed || env.flush_ring()?) {
            self.flushed = newest;
            self.since.get_or_insert_with(Instant::now);
            return Ok(());
        }
        self.since = None;
        checkpoint::checkpoint(env)
    }
}

fn flush_until_stopped(env: &EnvInner) {
    // What was newest at the last look, and the last failure that was reported.
    let (mut seen, mut reported) = (0, String::new());
    let mut ring = RingTurns::default();
    loop {
        match env.flusher.wait() {
            Turn::Stop => return,
            _ if env.flusher.in_turns.load(Ordering::SeqCst) => {
                env.flusher.left.store(true, Ordering::SeqCst);
                continue;
            }
            Turn::Flush => {}
            // Of those who commit elsewhere each sees to its own commits while it lives.
            Turn::Look => {
                let left = seen > env.steady();
                seen = env.shared.newest();
                if !left || env.is_poisoned() {
                    continue;
                }
            }
        }
        match ring.make_durable(env) {
            Ok(()) => {
                if env.flusher.failed.swap(false, Ordering::SeqCst) {
                    env.log(Level::Warn, format_args!("checkpoints succeed again"));
                }
            }
            // A failed flush has poisoned the store. Of anything else writers hear: the bounds on
            // what a power cut takes do not hold until a checkpoint succeeds.
            Err(error) => {
                let what = error.to_string();
                // Once, not with each attempt.
                if !env.flusher.failed.swap(true, Ordering::SeqCst) || what != reported {
                    let bounds = "commits are not made durable in time";
                    env.log(Level::Error, format_args!("a checkpoint failed, {bounds}: {what}"));
                    reported = what;
                }
                env.flusher.again();
            }
        }
    }
}

/// For those who want to write: if the thread could not make commits durable, or has left that to them,
/// tries it here, and gives the error if it still cannot be done.
pub(crate) fn make_up(env: &EnvInner) -> Result<()> {
    if env.flusher.left.swap(false, Ordering::SeqCst) | env.flusher.failed.load(Ordering::SeqCst) {
        checkpoint::checkpoint(env)?;
        env.flusher.failed.store(false, Ordering::SeqCst);
    }
    Ok(())
}
