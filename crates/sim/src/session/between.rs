//! Steps in which one thing happens in the middle of another: checkpoints in commits, commits in
//! checkpoints, of one process or of two.

use std::sync::{Arc, Mutex};

use zubilo::Error;

use crate::disk::{Call, Mark};
use crate::plan::Mode;

use super::{Failure, Session, Shared, StepError, corrupt, lock};

/// A checkpoint with commits between its calls, or a commit with a checkpoint between its. Neither
/// from inside a flush to another one: of these a process has one at a time.
pub(super) fn interleaved(session: &Shared) -> Result<(), StepError> {
    let (env, disk, kind, mut after) = {
        let mut session = lock(session);
        // Clears away what a killed writer left, which takes a flush.
        drop(session.env().write()?);
        let kind = session.rng.below(3);
        (session.env(), session.disk.clone(), kind, session.rng.below(4))
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
        let mut session = lock(session);
        let mode = session.mode;
        if kind == 2 {
            session.switch(Mode::Sync)?;
        }
        let done = session.transaction();
        disk.set_hook(None);
        session.switch(mode)?;
        return done;
    }
    if lock(session).mode == Mode::Sync {
        return lock(session).ordinary();
    }
    let newest = env.read()?.id().0;
    let inside: Arc<Mutex<Result<(), StepError>>> = Arc::new(Mutex::new(Ok(())));
    let (cell, seen) = (Arc::clone(session), Arc::clone(&inside));
    let hook = move |call| {
        if call == Call::Sync {
            let mut session = lock(&cell);
            for _ in 0..session.rng.below(4) {
                if let Err(error) = session.transaction() {
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
pub(super) fn between_processes(session: &Shared) -> Result<(), StepError> {
    let (disk, commits, mut after) = {
        let mut session = lock(session);
        if session.rng.one_in(2) {
            session.swap();
        }
        (session.disk.clone(), session.rng.one_in(2), session.rng.below(5))
    };
    if commits {
        let mut session = lock(session);
        let other = session.other.as_ref().expect("two processes").0.clone();
        disk.set_hook(Some(Box::new(move |_| {
            if after == 0 {
                let _ = other.sync();
            }
            after = after.wrapping_sub(1);
        })));
        let done = session.transaction();
        disk.set_hook(None);
        return done;
    }
    let env = lock(session).env();
    let newest = env.read()?.id().0;
    let inside: Arc<Mutex<Result<(), StepError>>> = Arc::new(Mutex::new(Ok(())));
    let (cell, seen) = (Arc::clone(session), Arc::clone(&inside));
    lock(session).swap();
    disk.set_hook(Some(Box::new(move |_| {
        let mut session = lock(&cell);
        for _ in 0..session.rng.below(4) {
            let done = if session.rng.one_in(3) { session.sync() } else { session.transaction() };
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

impl Session {
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
        let env = self.open_env(mode).map_err(corrupt("reopen"))?;
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
