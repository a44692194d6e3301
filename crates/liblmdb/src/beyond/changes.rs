//! Incremental copies: what is new since a commit, and stores put together again from them.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use zubilo::TxnId;

use crate::env::{FIRST_TXN, MDB_env, env_of, given_file, put_out};
use crate::errors::{Code, Result};
use crate::guard::entry;

use super::look::{Progress, go_on};

fn path<'p>(name: *const c_char) -> Result<&'p Path> {
    if name.is_null() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract a C string, for the time of the call.
    let name = unsafe { CStr::from_ptr(name) };
    Ok(Path::new(OsStr::from_bytes(name.to_bytes())))
}

/// What the program's number stopped gives that number; else the commit goes where the program wants it.
fn ended(result: zubilo::Result<TxnId>, answer: c_int, txn: *mut u64) -> Result<()> {
    match result {
        Ok(_) if txn.is_null() => Ok(()),
        Ok(id) => put_out(txn, id.0.saturating_sub(FIRST_TXN)),
        Err(_) if answer != 0 => Err(Code(answer)),
        Err(error) => Err(error.into()),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_copy_changes(
    env: *mut MDB_env,
    since: u64,
    to: *const c_char,
    fd: c_int,
    txn: *mut u64,
    progress: Option<Progress>,
    context: *mut c_void,
) -> c_int {
    entry(env, || {
        let store = &env_of(env)?.newest()?.store;
        let since = TxnId(since.saturating_add(FIRST_TXN));
        let mut answer = 0;
        let mut progress = go_on(progress, context, &mut answer);
        let copied = if to.is_null() {
            store.copy_changes_to_writer(since, &mut given_file(fd)?, &mut progress)
        } else {
            store.copy_changes_to_path(since, path(to)?, &mut progress)
        };
        drop(progress);
        ended(copied, answer, txn)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_restore(
    copy: *const c_char,
    changes: *const *const c_char,
    count: usize,
    to: *const c_char,
    txn: *mut u64,
    progress: Option<Progress>,
    context: *mut c_void,
) -> c_int {
    entry((), || {
        if changes.is_null() && count > 0 {
            return Err(Code::EINVAL);
        }
        let mut files = Vec::new();
        for i in 0..count {
            // SAFETY: by the contract there are so many.
            let name = unsafe { changes.add(i).read() };
            let opened = File::open(path(name)?);
            files.push(opened.map_err(|e| Code(e.raw_os_error().unwrap_or(libc::EIO)))?);
        }
        let mut parts: Vec<&mut dyn Read> = files.iter_mut().map(|f| f as &mut dyn Read).collect();
        let mut answer = 0;
        let mut progress = go_on(progress, context, &mut answer);
        let restored = zubilo::restore(path(copy)?, &mut parts, path(to)?, &mut progress);
        drop(progress);
        ended(restored, answer, txn)
    })
}
