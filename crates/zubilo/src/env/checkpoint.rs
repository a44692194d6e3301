//! A checkpoint: the newest weak commit becomes steady, while readers and the writer go on.
//!
//! 1. Under the meta lock: copy the newest meta; its slot says *flushing*, which pins its pages.
//! 2. Flush: all pages of that commit and of those before it are on disk.
//! 3. Under the meta lock: write the copy as a steady meta, in place if a newer commit was made
//!    meanwhile, else into a slot that no anchor needs; the slot is pending, which pins the pages too.
//! 4. Flush: the steady meta is on disk.
//! 5. Under the meta lock: if the slot still holds it, this commit is the steady point now; only
//!    then does the pin of the one before go.
//!
//! One commit at a time is on this way: whoever finds one begun, by another process that may be dead,
//! brings that to its end first. So pins need no place of their own that could be full.
//!
//! A writer that is in the middle of a transaction is not waited for: the meta lock is held for
//! the writes of metas only.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::planted::{Bug, has};
use crate::shared::Shared;

use super::log::Level;
use super::meta::{Meta, Trust};
use super::metas::{self, Pending, Place, SlotState};
use super::{EnvInner, adopt, facade, prepared};

/// The meta lock, released on drop.
pub(crate) struct MetaLock<'a>(&'a Shared);

impl<'a> MetaLock<'a> {
    pub(crate) fn take(shared: &'a Shared) -> Result<MetaLock<'a>> {
        shared.lock_meta()?;
        Ok(MetaLock(shared))
    }
}

impl Drop for MetaLock<'_> {
    fn drop(&mut self) {
        self.0.unlock_meta();
    }
}

/// The writer lock, released on drop unless it is kept.
pub(crate) struct WriterLock<'a>(Option<&'a Shared>);

impl<'a> WriterLock<'a> {
    /// Takes the lock; none when it is not to be waited for and taken.
    pub(crate) fn take(shared: &'a Shared, wait: bool) -> Result<Option<WriterLock<'a>>> {
        let locked = if wait { Some(shared.lock_writer()?) } else { shared.try_lock_writer()? };
        Ok(locked.map(|_| WriterLock(Some(shared))))
    }

    /// The same; where it was taken already, the time that the wait took.
    pub(crate) fn take_timed(
        shared: &'a Shared,
        wait: bool,
    ) -> Result<Option<(WriterLock<'a>, Option<Duration>)>> {
        let start = (wait && shared.is_writer_locked()).then(Instant::now);
        let lock = WriterLock::take(shared, wait)?;
        Ok(lock.map(|lock| (lock, start.map(|start| start.elapsed()))))
    }

    /// Leaves the lock taken; somebody else will release it.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for WriterLock<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.unlock_writer();
        }
    }
}

thread_local! {
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// True in a thread that is in the middle of a checkpoint: a callback of the caller's runs there.
pub(crate) fn is_at_work() -> bool {
    AT_WORK.get()
}

/// Makes the commit that is newest now durable; returns when it is, or was already.
pub(crate) fn checkpoint(env: &EnvInner) -> Result<()> {
    struct AtWork;
    impl Drop for AtWork {
        fn drop(&mut self) {
            AT_WORK.set(false);
        }
    }
    AT_WORK.set(true);
    let _at_work = AtWork;
    let _span = facade::span(env, "checkpoint");
    if env.options.read_only {
        return Err(Error::ReadOnly);
    }
    let _turn = env.checkpoint_turn();
    if adopt::is_behind(env)? {
        // What was committed here is part of what others have committed since.
        return flush(env);
    }
    let target = env.shared.newest();
    while env.steady() < target {
        env.check_writable()?;
        attempt(env)?;
    }
    // All is durable; a file that stays too long is no reason to fail.
    let _ = if env.is_sync() { Ok(()) } else { cut_tail(env, false) };
    Ok(())
}

/// Weak commits leave a free tail alone; it can go now, unless a writer is at work. With `all` of it,
/// however short it is.
pub(crate) fn cut_tail(env: &EnvInner, all: bool) -> Result<()> {
    let Some(_writer) = WriterLock::take(&env.shared, false)? else { return Ok(()) };
    let meta = {
        let _lock = MetaLock::take(&env.shared)?;
        metas::load(env.data.as_ref(), &env.shared, env.shift)?
    };
    env.cut_tail(&meta.geometry, meta.end, all)
}

fn attempt(env: &EnvInner) -> Result<()> {
    let (meta, arrived) = capture(env)?;
    let txn = meta.txn;
    flush(env)?;
    let slot = {
        let _lock = MetaLock::take(&env.shared)?;
        metas::settle(&env.shared, &arrived);
        let place = || metas::place_steady(env.data.as_ref(), &env.shared, txn, env.shift);
        let slot = match place() {
            Place::Full => {
                free_slot(env)?;
                match place() {
                    Place::Write(slot) => write(env, slot, &meta)?,
                    Place::Written(slot) => slot,
                    Place::Ended | Place::Full => return Ok(()),
                }
            }
            Place::Write(slot) => write(env, slot, &meta)?,
            Place::Written(slot) => slot,
            // Made steady meanwhile, or given up with a process whose write failed.
            Place::Ended => return Ok(()),
        };
        if has(Bug::SteadyTooEarly) {
            metas::settle(&env.shared, &[(slot, txn)]);
        }
        slot
    };
    flush(env)?;
    let _lock = MetaLock::take(&env.shared)?;
    metas::settle(&env.shared, &[(slot, txn)]);
    Ok(())
}

/// Writes a meta into its slot, which is pending, and stays so if this fails: the part that was
/// written may be a whole meta, as its end is mostly zeros.
fn write(env: &EnvInner, slot: usize, meta: &Meta) -> Result<usize> {
    let written = metas::write(env.data.as_ref(), &env.shared, slot, meta);
    if written.is_err() && has(Bug::FailedMetaForgotten) {
        metas::set_slot(&env.shared, slot, 0, SlotState::Weak);
    }
    written.map(|()| slot)
}

/// A slot for the next meta. The caller holds the meta lock.
pub(crate) fn free_slot(env: &EnvInner) -> Result<usize> {
    if let Some(slot) = metas::victim(&env.shared) {
        return Ok(slot);
    }
    // What killed processes began is brought to an end; then only the last of it is needed.
    let arrived = metas::arrived(env.data.as_ref(), &env.shared, env.shift);
    flush(env)?;
    metas::settle(&env.shared, &arrived);
    metas::victim(&env.shared)
        .ok_or(Error::Corrupted { page: PageNo(0), reason: "the lock file calls all metas needed" })
}

/// The meta of the commit to make steady, in its steady form, with its snapshot pinned; and what the
/// flush that follows makes steady besides.
fn capture(env: &EnvInner) -> Result<(Meta, Vec<Pending>)> {
    let _lock = MetaLock::take(&env.shared)?;
    let mut meta = metas::begin_checkpoint(env.data.as_ref(), &env.shared, env.shift)?;
    meta.trust = Trust::Steady;
    meta.digest = 0;
    meta.opening = env.opening();
    let arrived = metas::arrived(env.data.as_ref(), &env.shared, env.shift);
    Ok((meta, arrived))
}

/// Wipes what was not published, on disk too. The caller holds the writer lock and has written no
/// page yet. Where a transaction is prepared nobody writes: an error.
pub(crate) fn wipe_unpublished(env: &EnvInner) -> Result<()> {
    let lock = MetaLock::take(&env.shared)?;
    if !metas::has_unpublished(&env.shared) {
        return Ok(());
    }
    prepared::refuse(env)?;
    let wiped = metas::wipe_unpublished(env.data.as_ref(), &env.shared, env.shift)?;
    drop(lock);
    if wiped.is_empty() {
        return Ok(());
    }
    flush(env)?;
    let _lock = MetaLock::take(&env.shared)?;
    metas::forget(&env.shared, &wiped);
    env.shared.forget_poison();
    Ok(())
}

/// Flushes the data file; a failure poisons the writer, because nobody knows what was lost.
pub(crate) fn flush(env: &EnvInner) -> Result<()> {
    let start = Instant::now();
    let flushed = env.data.sync_data().map_err(|source| {
        env.poison();
        env.log(Level::Error, format_args!("a flush failed, nothing more is committed: {source}"));
        Error::io_at("flush", env.data.path())(source)
    });
    env.count_flush(start);
    facade::flush(env, start);
    flushed
}
