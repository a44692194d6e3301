//! The thread that turns weak commits steady by bytes and time (`Durability::Lazy`).
//!
//! It owns no state of the store: it waits, then asks for a checkpoint. [`Closer`], which only the
//! handles own, ends it when the last handle is dropped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

use super::EnvInner;
use super::checkpoint;
use super::log::Level;
use super::scrub::Scrubber;

/// What commits tell the thread.
pub(crate) struct Flusher {
    bounds: Option<(u64, Duration)>,
    unsynced: AtomicU64,
    state: Mutex<State>,
    wake: Condvar,
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
    Stop,
}

impl Flusher {
    pub(crate) fn new(bounds: Option<(u64, Duration)>) -> Flusher {
        let state = Mutex::new(State::default());
        Flusher { bounds, unsynced: AtomicU64::new(0), state, wake: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A weak commit of `bytes` was made.
    pub(crate) fn committed(&self, bytes: u64) {
        let Some((limit, _)) = self.bounds else { return };
        let before = self.unsynced.fetch_add(bytes, Ordering::Relaxed);
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
                self.unsynced.store(0, Ordering::Relaxed);
                return Turn::Flush;
            }
            state = match due {
                None => self.wake.wait(state).unwrap_or_else(|e| e.into_inner()),
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

    pub(crate) fn start(env: &Arc<EnvInner>) -> Result<Arc<Closer>> {
        let closer = Closer { env: Arc::clone(env), threads: Mutex::default() };
        if let Some((_, period)) = env.flusher.bounds {
            let env = Arc::clone(env);
            let spawned = std::thread::Builder::new()
                .name("zubilo-flusher".into())
                .spawn(move || flush_until_stopped(&env, period));
            closer.lock().push(spawned.map_err(Error::io("start the flusher's thread"))?);
        }
        // Should this fail, dropping the closer ends what runs.
        let scrub = Scrubber::start(env)?;
        closer.lock().extend(scrub);
        Ok(Arc::new(closer))
    }
}

fn flush_until_stopped(env: &EnvInner, period: Duration) {
    while let Turn::Flush = env.flusher.wait(period) {
        match checkpoint::checkpoint(env) {
            Ok(()) => {}
            // It needs a slot to pin the snapshot: once a reader ends there is one.
            Err(Error::ReadersFull { .. }) => env.flusher.again(),
            // Poisons the writer, which reports it at the next commit.
            Err(error) => {
                env.poison();
                env.log(Level::Error, format_args!("a checkpoint failed: {error}"));
            }
        }
    }
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
        if !skip && self.env.check_writable().is_ok() {
            // Dropping cannot report; `Env::close` can.
            let _ = checkpoint::checkpoint(&self.env);
        }
    }
}
