//! Copies of a store in use.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use crate::abi::{self, CP_COMPACT};
use crate::errors::{Code, Result};
use crate::guard::entry;

use super::{MDB_env, env_of, names};

/// Gets pages done and in all; stops the copy by giving false.
type Progress<'p> = &'p mut dyn FnMut(u64, u64) -> bool;

pub(crate) fn copy_to(
    env: &MDB_env,
    path: *const c_char,
    flags: c_uint,
    progress: Progress<'_>,
) -> Result<()> {
    if path.is_null() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract a C string.
    let path = unsafe { CStr::from_ptr(path) };
    let data = names::data_file(path, env.has(abi::env::NOSUBDIR));
    let compact = flags & CP_COMPACT != 0;
    env.newest()?.store.copy_to_path(data, compact, progress)?;
    Ok(())
}

/// A descriptor of the program's; it stays open.
pub(crate) struct Out(ManuallyDrop<File>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file behind a descriptor of the program's.
pub(crate) fn given_file(fd: c_int) -> Result<Out> {
    if fd < 0 {
        return Err(Code(libc::EBADF));
    }
    // SAFETY: a descriptor that the program has open; it is not closed here.
    Ok(Out(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })))
}

pub(crate) fn copy_fd(
    env: &MDB_env,
    fd: c_int,
    flags: c_uint,
    progress: Progress<'_>,
) -> Result<()> {
    let mut out = given_file(fd)?;
    let compact = flags & CP_COMPACT != 0;
    env.newest()?.store.copy_to_writer(&mut out, compact, progress)?;
    Ok(())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_copy(env: *mut MDB_env, path: *const c_char) -> c_int {
    entry(env, || copy_to(env_of(env)?, path, 0, &mut |_, _| true))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_copy2(
    env: *mut MDB_env,
    path: *const c_char,
    flags: c_uint,
) -> c_int {
    entry(env, || copy_to(env_of(env)?, path, flags, &mut |_, _| true))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_copyfd(env: *mut MDB_env, fd: c_int) -> c_int {
    entry(env, || copy_fd(env_of(env)?, fd, 0, &mut |_, _| true))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_env_copyfd2(
    env: *mut MDB_env,
    fd: c_int,
    flags: c_uint,
) -> c_int {
    entry(env, || copy_fd(env_of(env)?, fd, flags, &mut |_, _| true))
}
