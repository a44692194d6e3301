//! Readers that hold pages back when the map is full: the program is asked to do something about them.

use std::ffi::{c_int, c_uint};

use zubilo::ReaderInfo;

use crate::compare::Busy;
use crate::env::{FIRST_TXN, MDB_env, env_of};
use crate::errors::Result;
use crate::guard::{entry, entry_or};
use crate::txn::MDB_txn;

type Hsr = unsafe extern "C" fn(
    *const MDB_env,
    *const MDB_txn,
    libc::pid_t,
    u64,
    u64,
    c_uint,
    usize,
    c_int,
) -> c_int;
type Oom = unsafe extern "C" fn(*mut MDB_env, libc::pid_t, u64, u64, c_uint, usize, c_int) -> c_int;

/// The program's function, of either kind.
#[derive(Clone, Copy)]
pub(crate) enum Slow {
    Hsr(Hsr),
    Oom(Oom),
}

impl Slow {
    fn call(
        self,
        env: *mut MDB_env,
        (txn, busy): (*const MDB_txn, &Busy),
        reader: &ReaderInfo,
        (space, retry): (u64, c_int),
    ) -> c_int {
        let (pid, thread) = (reader.pid as libc::pid_t, reader.thread);
        let gap = c_uint::try_from(reader.lag).unwrap_or(c_uint::MAX);
        let (reads, space) = (reader.txn.0.saturating_sub(FIRST_TXN), space as usize);
        let _called = busy.set();
        // SAFETY: the program gave the function for this.
        unsafe {
            match self {
                Slow::Hsr(hsr) => hsr(env, txn, pid, thread, reads, gap, space, retry),
                Slow::Oom(oom) => oom(env, pid, thread, reads, gap, space, retry),
            }
        }
    }
}

/// Looks for room, so that the changes and `more` bytes fit; false if they do not.
#[cold]
pub(crate) fn make_room(txn: &mut MDB_txn, more: i64) -> Result<bool> {
    let env = txn.env()?;
    let store = &env.opened()?.store;
    if txn.writer()?.raw_held_back() == 0 {
        return Ok(false);
    }
    // The last commit that is on the disk for certain keeps its pages, as a reader does.
    let info = store.info()?;
    if info.steady < info.newest {
        store.sync()?;
    }
    if has_room(txn, more)? {
        return Ok(true);
    }
    match env.slow() {
        Some(slow) => ask(txn, slow, more),
        None => Ok(false),
    }
}

/// Whether there is room with the readers that are there now. Clears the slots of processes that are
/// gone.
fn has_room(txn: &mut MDB_txn, more: i64) -> Result<bool> {
    let writer = txn.writer()?;
    writer.raw_renew_pins()?;
    Ok(writer.raw_room() >= more)
}

/// Has the program see to readers until there is room.
fn ask(txn: &mut MDB_txn, slow: Slow, more: i64) -> Result<bool> {
    let store = &txn.env()?.opened()?.store;
    let (handle, busy) = (txn.env_handle(), txn.busy.clone());
    let writing: (*const MDB_txn, &Busy) = (txn, &busy);
    let mut last = None;
    let mut asked = 0;
    let enough = loop {
        let slowest = store.readers().into_iter().min_by_key(|reader| reader.txn);
        let space = txn.writer()?.raw_held_back();
        let Some(reader) = slowest.filter(|reader| reader.lag > 0 && space > 0) else {
            // The last one may have ended since it was looked for room.
            break has_room(txn, more)?;
        };
        let answer = slow.call(handle, writing, &reader, (space, asked));
        asked += 1;
        last = Some(reader);
        if answer < 0 {
            break has_room(txn, more)?;
        }
        if has_room(txn, more)? {
            break true;
        }
    };
    if let Some(reader) = last {
        let space = txn.writer()?.raw_held_back();
        slow.call(handle, writing, &reader, (space, -asked));
    }
    Ok(enough)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_set_hsr(
    env: *mut MDB_env,
    function: Option<Hsr>,
) -> c_int {
    entry(env, || {
        env_of(env)?.set_slow(function.map(Slow::Hsr));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_get_hsr(env: *const MDB_env) -> Option<Hsr> {
    entry_or((), None, || match env_of(env).ok()?.slow() {
        Some(Slow::Hsr(function)) => Some(function),
        _ => None,
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_set_oomfunc(
    env: *mut MDB_env,
    function: Option<Oom>,
) -> c_int {
    entry(env, || {
        env_of(env)?.set_slow(function.map(Slow::Oom));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_get_oomfunc(env: *mut MDB_env) -> Option<Oom> {
    entry_or((), None, || match env_of(env).ok()?.slow() {
        Some(Slow::Oom(function)) => Some(function),
        _ => None,
    })
}
