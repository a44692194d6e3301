//! The thread that turns weak commits steady by bytes and time (`Durability::Lazy`).
//!
//! It owns no state of the store: it waits, then asks for a checkpoint. [`Closer`], which only the
//! handles own, ends it when the last handle is dropped. Of a handle that is never dropped, such as one
//! in a static, the end of the program in order (`exit`, the end of `main`) makes what is left durable.
//! Now and then the thread looks for weak commits of other processes that nobody has flushed: their
//! writer may have been killed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::platform;
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

use super::EnvInner;
use super::checkpoint;
use super::log::Level;
use super::scrub::Scrubber;

#[cfg(all(test, loom))]
mod model;

/// What commits tell the thread.
pub(crate) struct Flusher {
    /// Set once there is a thread.
    bounds: OnceLock<(u64, Duration)>,
    unsynced: AtomicU64,
    state: Mutex<State>,
    wake: Condvar,
    /// A checkpoint of the thread has failed, and none succeeded since.
    failed: AtomicBool,
}

#[derive(Default)]
struct State {
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

/// A thread without work looks around this often at most.
const LOOK_MIN: Duration = Duration::from_millis(100);

impl Flusher {
    pub(crate) fn new() -> Flusher {
        let state = Mutex::new(State::default());
        Flusher {
            bounds: OnceLock::new(),
            unsynced: AtomicU64::new(0),
            state,
            wake: Condvar::new(),
            failed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A weak commit of `bytes` was made.
    pub(crate) fn committed(&self, bytes: u64) {
        let Some(&(limit, _)) = self.bounds.get() else { return };
        // Released, as the commit was published before: who sets the sum back sees that commit.
        let before = self.unsynced.fetch_add(bytes, Ordering::AcqRel);
        // The thread sleeps until the period ends; it is woken for the first and the last byte.
        if before == 0 || (before < limit && before + bytes >= limit) {
            let mut state = self.lock();
            state.oldest.get_or_insert_with(Instant::now);
            state.full |= before + bytes >= limit;
            self.wake.notify_one();
        }
    }

    fn wait(&self, period: Duration) -> Turn {
        let mut state = self.lock();
        loop {
            if state.stop {
                return Turn::Stop;
            }
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

    fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_all();
    }
}

/// Dropped with the last handle: ends the threads, and makes weak commits durable unless told not
/// to.
pub(crate) struct Closer {
    env: Arc<EnvInner>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Closer {
    fn lock(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// For a new store; with bounds, commits are lazy from the start.
    pub(crate) fn start(
        env: &Arc<EnvInner>,
        bounds: Option<(u64, Duration)>,
    ) -> Result<Arc<Closer>> {
        let closer = Closer { env: Arc::clone(env), threads: Mutex::default() };
        if let Some(bounds) = bounds {
            closer.start_flusher(bounds)?;
        }
        // Should this fail, dropping the closer ends what runs.
        let scrub = Scrubber::start(env)?;
        closer.lock().extend(scrub);
        Ok(Arc::new(closer))
    }

    /// Starts the flusher's thread unless there is one.
    pub(crate) fn start_flusher(&self, bounds: (u64, Duration)) -> Result<()> {
        let mut threads = self.lock();
        if self.env.flusher.bounds.get().is_some() {
            return Ok(());
        }
        let env = Arc::clone(&self.env);
        // Signals of the program are none of this thread's business.
        let spawned = platform::without_signals(|| {
            std::thread::Builder::new()
                .name("zubilo-flusher".into())
                .spawn(move || flush_until_stopped(&env, bounds.1))
        });
        threads.push(spawned.map_err(Error::io("start the flusher's thread"))?);
        self.env.flusher.bounds.get_or_init(|| bounds);
        remember(&self.env);
        Ok(())
    }
}

/// The stores of this process that have a flusher.
fn remembered() -> std::sync::MutexGuard<'static, Vec<Weak<EnvInner>>> {
    static LAZY: std::sync::Mutex<Vec<Weak<EnvInner>>> = std::sync::Mutex::new(Vec::new());
    LAZY.lock().unwrap_or_else(|e| e.into_inner())
}

/// At its end in order the program flushes what no dropped handle has.
fn remember(env: &Arc<EnvInner>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| platform::at_exit(flush_at_exit));
    let mut known = remembered();
    known.retain(|env| env.strong_count() > 0);
    known.push(Arc::downgrade(env));
}

extern "C" fn flush_at_exit() {
    // A callback that ends the program in the middle of a checkpoint would wait for itself.
    if checkpoint::is_at_work() {
        return;
    }
    let known: Vec<_> = remembered().iter().filter_map(Weak::upgrade).collect();
    for env in known {
        let skip = env.close_without_sync.load(Ordering::SeqCst) || env.check_writable().is_err();
        if !skip && env.steady() < env.shared.newest() {
            // Nobody is left to hear of a failure; nor may a panic go on from here.
            drop(catch_unwind(AssertUnwindSafe(|| checkpoint::checkpoint(&env))));
        }
    }
}

fn flush_until_stopped(env: &EnvInner, period: Duration) {
    // What was newest at the last look, and what was told of a failure last.
    let (mut seen, mut told) = (0, String::new());
    loop {
        match env.flusher.wait(period) {
            Turn::Stop => return,
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
        match checkpoint::checkpoint(env) {
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
                if !env.flusher.failed.swap(true, Ordering::SeqCst) || what != told {
                    let bounds = "commits are not made durable in time";
                    env.log(Level::Error, format_args!("a checkpoint failed, {bounds}: {what}"));
                    told = what;
                }
                env.flusher.again();
            }
        }
    }
}

/// For those who want to write: if the thread could not make commits durable, tries it here, and gives
/// the error if it still cannot be done.
pub(crate) fn make_up(env: &EnvInner) -> Result<()> {
    if env.flusher.failed.load(Ordering::SeqCst) {
        checkpoint::checkpoint(env)?;
        env.flusher.failed.store(false, Ordering::SeqCst);
    }
    Ok(())
}

impl Drop for Closer {
    fn drop(&mut self) {
        if self.env.is_forked() {
            return;
        }
        self.env.flusher.stop();
        self.env.scrubber.stop();
        let threads = std::mem::take(&mut *self.lock());
        for thread in threads {
            // A panic of the thread has been reported by its own message.
            let _ = thread.join();
        }
        let skip = self.env.close_without_sync.load(Ordering::SeqCst);
        // First, so that what is committed behind the checkpoint's back is durable by itself.
        self.env.closed.store(!skip, Ordering::SeqCst);
        if !skip && self.env.check_writable().is_ok() {
            // Dropping cannot report; `Env::close` can.
            let _ = checkpoint::checkpoint(&self.env);
        }
    }
}
