//! The table of readers, as text.

use std::ffi::{CStr, CString, c_int, c_void};

use crate::abi::{self, MDB_msg_func};
use crate::errors::Code;
use crate::guard::entry;

use super::info::FIRST_TXN;
use super::{MDB_env, Opened, env_of, put_out};

/// The environment, if it is open and has a table of readers.
fn with_readers(env: &MDB_env) -> Result<Option<&Opened>, Code> {
    match env.opened.get() {
        Some(_) if !env.has(abi::env::NOLOCK) => env.opened().map(Some),
        _ => Ok(None),
    }
}

/// The lines of the list.
fn lines(env: &MDB_env) -> Result<Vec<CString>, Code> {
    let Some(opened) = with_readers(env)? else {
        return Ok(vec![c"(no reader locks)\n".into()]);
    };
    let readers = opened.store.raw_readers();
    if readers.is_empty() {
        return Ok(vec![c"(no active readers)\n".into()]);
    }
    let mut lines = vec![c"    pid     thread     txnid\n".into()];
    for (pid, thread, txn) in readers {
        let txn = txn.map_or("-".into(), |txn| txn.saturating_sub(FIRST_TXN).to_string());
        let line = format!("{pid:10} {thread:x} {txn}\n");
        lines.push(CString::new(line).unwrap_or_default());
    }
    Ok(lines)
}

/// Hands the lines to a function until it gives a negative number, which is then the result.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_reader_list(
    env: *mut MDB_env,
    function: Option<MDB_msg_func>,
    context: *mut c_void,
) -> c_int {
    let mut answer = 0;
    let done = entry(env, || {
        let function = function.ok_or(Code::EINVAL)?;
        let call = |line: &CStr| {
            // SAFETY: the program gave function and context for this.
            unsafe { function(line.as_ptr(), context) }
        };
        for line in lines(env_of(env)?)? {
            answer = call(&line);
            if answer < 0 {
                break;
            }
        }
        Ok(())
    });
    // LMDB fails with -1 where there is nothing to list from.
    match done {
        0 => answer,
        code if code == Code::EINVAL.0 => -1,
        code => code,
    }
}

/// Frees the slots of readers whose processes are gone.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_reader_check(env: *mut MDB_env, dead: *mut c_int) -> c_int {
    entry(env, || {
        let env = env_of(env)?;
        let found = match with_readers(env)? {
            Some(opened) => opened.store.clean_readers()?,
            None => 0,
        };
        if dead.is_null() { Ok(()) } else { put_out(dead, found as c_int) }
    })
}
