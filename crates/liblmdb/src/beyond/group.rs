//! Group commit: changes of many threads in one transaction, with one flush.

use std::ffi::{c_int, c_void};

use zubilo::{Error, WriteTxn};

use crate::env::{MDB_env, env_of};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, run_lent, write_in_turn};

type Change = unsafe extern "C" fn(*mut MDB_txn, *mut c_void) -> c_int;

/// The program's pointers, which it has allowed to be used in another thread while it waits.
struct Call {
    env: *mut MDB_env,
    change: Change,
    context: *mut c_void,
}

// SAFETY: by the contract of `zubilo_update` the function may run in another thread.
unsafe impl Send for Call {}

impl Call {
    fn run(&self, txn: *mut MDB_txn) -> c_int {
        // SAFETY: the program gave function and context for this.
        unsafe { (self.change)(txn, self.context) }
    }
}

fn update(env: *mut MDB_env, call: Call) -> Result<()> {
    let opened = env_of(env)?.opened()?;
    let mut refused = 0;
    let code_out = &mut refused;
    let change = move |writer: &mut WriteTxn| {
        // Whole, not its fields: it is what may go to another thread.
        let call = &call;
        let code = run_lent(call.env, writer, |txn| call.run(txn));
        match code {
            0 => Ok(()),
            code => {
                *code_out = code;
                Err(Error::Stopped)
            }
        }
    };
    let result = write_in_turn(opened, || opened.store.update(change))?;
    match (result, refused) {
        (Ok(()), _) => Ok(()),
        (Err(_), code) if code != 0 => Err(Code(code)),
        (Err(error), _) => Err(error.into()),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_update(
    env: *mut MDB_env,
    change: Option<Change>,
    context: *mut c_void,
) -> c_int {
    entry(env, || {
        let change = change.ok_or(Code::EINVAL)?;
        update(env, Call { env, change, context })
    })
}
