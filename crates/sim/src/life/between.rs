//! Steps in which one thing happens in the middle of another: checkpoints in commits, commits in
//! checkpoints, of one process or of two.

use std::sync::{Arc, Mutex};

use zubilo::Error;

use crate::disk::{Call, Mark};
use crate::plan::Mode;

use super::{Failure, Life, Shared, StepError, corrupt, lock};

/// A checkpoint with commits between its calls, or a commit with a checkpoint between its. Neither
/// from inside a flush to another one: of these a process has one at a time.
pub(super) fn interleaved(life: &Shared) -> Result<(), StepError> {
    let (env, disk, kind, mut after) = {
        let mut life = lock(life);
        // Clears away what a killed writer left, which takes a flush.
        drop(life.env().write()?);
        let kind = life.rng.below(3);
        (life.env(), life.disk.clone(), kind, life.rng.below(4))
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
        let mut life = lock(life);
        let mode = life.mode;
        if kind == 2 {
            life.switch(Mode::Sync)?;
        }
        let done = life.transaction();
        disk.set_hook(None);
        life.switch(mode)?;
        return done;
    }
    if lock(life).mode == Mode::Sync {
        return lock(life).ordinary();
    }
    let newest = env.read()?.id().0;
    let inside: Arc<Mutex<Result<(), StepError>>> = Arc::new(Mutex::new(Ok(())));
    let (cell, seen) = (Arc::clone(life), Arc::clone(&inside));
    let hook = move |call| {
        if call == Call::Sync {
            let mut life = lock(&cell);
            for _ in 0..life.rng.below(4) {
                if let Err(error) = life.transaction() {
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
pub(super) fn between_processes(life: &Shared) -> Result<(), StepError> {
    let (disk, commits, mut after) = {
        let mut life = lock(life);
        if life.rng.one_in(2) {
            life.swap();
        }
        (life.disk.clone(), life.rng.one_in(2), life.rng.below(5))
    };
    if commits {
        let mut life = lock(life);
        let other = life.other.as_ref().expect("two processes").0.clone();
        disk.set_hook(Some(Box::new(move |_| {
            if after == 0 {
                let _ = other.sync();
            }
            after = after.wrapping_sub(1);
        })));
        let done = life.transaction();
        disk.set_hook(None);
        return done;
    }
    let env = lock(life).env();
    let newest = env.read()?.id().0;
    let inside: Arc<Mutex<Result<(), StepError>>> = Arc::new(Mutex::new(Ok(())));
    let (cell, seen) = (Arc::clone(life), Arc::clone(&inside));
    lock(life).swap();
    disk.set_hook(Some(Box::new(move |_| {
        let mut life = lock(&cell);
        for _ in 0..life.rng.below(4) {
            let done = if life.rng.one_in(3) { life.sync() } else { life.transaction() };
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

impl Life {
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
