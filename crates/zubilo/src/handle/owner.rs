//! What only the handles of a store own: its threads, and the queue of group commit. Transactions hold the
//! store itself; so the end of the last handle ends the threads and flushes, while values that are
//! still alive stay readable.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::env::options::Durability;
use crate::env::{EnvInner, checkpoint, flusher};
use crate::error::{Error, Result};
use crate::maintenance::Scrubber;
use crate::platform::{self, Thread};
use crate::txn::WriteTxn;
use crate::txn::group::GroupQueue;

use super::heirs;
use super::later::{Later, Update};

/// Dropped with the last handle: ends the threads, and makes weak commits durable unless asked not
/// to.
pub(super) struct Owner {
    env: Arc<EnvInner>,
    threads: Mutex<Vec<Thread>>,
    pub(super) group: Arc<GroupQueue>,
    later: Arc<Later>,
    pub(super) scrubber: Arc<Scrubber>,
}

impl Owner {
    fn lock(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// For a store that was just opened.
    pub(super) fn start(env: &Arc<EnvInner>) -> Result<Arc<Owner>> {
        let owner = Owner {
            env: Arc::clone(env),
            threads: Mutex::default(),
            group: Arc::default(),
            later: Arc::default(),
            scrubber: Arc::default(),
        };
        if let Durability::Lazy { sync_bytes, sync_period } = env.options.durability
            && !env.options.read_only
        {
            owner.start_flusher((sync_bytes, sync_period))?;
        }
        // Should this fail, dropping the owner ends what runs.
        if let Some(how) = env.options.scrub {
            owner.lock().push(owner.scrubber.start(env, how)?);
        }
        Ok(Arc::new(owner))
    }

    /// Queues a change for the thread that commits such.
    pub(super) fn update_later<T, E, F>(&self, change: F) -> Update<T, E>
    where
        F: FnOnce(&mut WriteTxn) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (update, is_first) = self.later.queue(&self.env, change);
        if is_first {
            let (env, group) = (Arc::clone(&self.env), Arc::clone(&self.group));
            let later = Arc::clone(&self.later);
            match platform::spawn(c"zubilo-update", move || later.work(&env, &group)) {
                Ok(thread) => self.lock().push(thread),
                Err(error) => self.later.fail(&Error::io("start a thread")(error)),
            }
        }
        update
    }

    /// Where durable commits go to the redo log, a thread makes its oldest part needless before it is full.
    pub(super) fn start_redo_flusher(&self) -> Result<()> {
        if self.env.options.durability == Durability::Sync && self.env.redo_max() > 0 {
            // Half of the ring is left for the commits that are made while the flush is under way.
            self.start_flusher((self.env.redo_max() / 2, flusher::REDO_PERIOD))?;
        }
        Ok(())
    }

    /// Starts the flusher's thread; one that there is goes by the new bounds.
    pub(super) fn start_flusher(&self, bounds: (u64, Duration)) -> Result<()> {
        let mut threads = self.lock();
        threads.extend(flusher::start(&self.env, bounds)?);
        Ok(())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.env.is_forked() {
            if self.env.options.reopen_after_fork {
                heirs::end(self);
            }
            return;
        }
        self.env.flusher.stop();
        self.scrubber.stop();
        self.later.stop();
        let threads = std::mem::take(&mut *self.lock());
        threads.into_iter().for_each(Thread::join);
        let skip = self.env.close_without_sync.load(Ordering::SeqCst);
        // First, so that what is committed behind the checkpoint's back is durable by itself.
        self.env.closed.store(!skip, Ordering::SeqCst);
        if !skip && self.env.check_writable().is_ok() {
            // Dropping cannot report; `Env::close` can.
            let _ = checkpoint::checkpoint(&self.env);
        }
    }
}
