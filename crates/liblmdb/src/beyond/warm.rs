//! What of a store is in memory, and bringing it there before it is needed.

use std::ffi::{c_int, c_void};

use zubilo::WarmUp;

use crate::abi::{MDB_dbi, MDB_val};
use crate::dbi::Table;
use crate::env::{MDB_env, env_of, put_out};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, Work, live};

use super::look::{Progress, go_on};
use super::tables::range;

fn how(wait: c_int) -> WarmUp {
    if wait == 0 { WarmUp::ReadAhead } else { WarmUp::Wait }
}

/// What the program's number stopped gives that number.
fn ended(result: zubilo::Result<u64>, answer: c_int) -> Result<()> {
    match (result, answer) {
        (Ok(_), _) => Ok(()),
        (Err(_), answer) if answer != 0 => Err(Code(answer)),
        (Err(error), _) => Err(error.into()),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_warm_up(
    env: *mut MDB_env,
    wait: c_int,
    progress: Option<Progress>,
    context: *mut c_void,
) -> c_int {
    entry(env, || {
        let mut answer = 0;
        let store = &env_of(env)?.newest()?.store;
        let warmed = store.warm_up(how(wait), &mut go_on(progress, context, &mut answer));
        ended(warmed, answer)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_warm_up_range(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    from: *const MDB_val,
    to: *const MDB_val,
    wait: c_int,
    progress: Option<Progress>,
    context: *mut c_void,
) -> c_int {
    entry(txn, || {
        let this = live(txn)?;
        this.table(dbi)?;
        let known = this.slots.get(dbi as usize).and_then(|slot| slot.known());
        let (Work::Read(read), Some(Table::Read(table))) = (&this.work, known) else {
            return Err(Code::EINVAL);
        };
        let mut answer = 0;
        let store = &this.env()?.opened()?.store;
        let mut progress = go_on(progress, context, &mut answer);
        let warmed = store.raw_warm_up(read, table, range(from, to)?, how(wait), &mut progress);
        drop(progress);
        ended(warmed, answer)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_residency(
    env: *mut MDB_env,
    pages: *mut u64,
    resident: *mut u64,
) -> c_int {
    entry(env, || {
        let found = env_of(env)?.newest()?.store.residency(&mut |_, _| {})?;
        put_out(pages, found.pages)?;
        put_out(resident, found.resident)
    })
}
