//! Linux: `file` is the data file and its map, `claim` its locks, `device` what is different where it is a block device, `mount` whether anybody can write it, `lock` the primitives of the lock file, `futex` sleeping on a word of it,
//! `memory` anonymous memory, `limit` how much of it there may be, `process` facts about processes, `thread` threads of the store. Every call that can be interrupted goes through [`retry`].

mod claim;
mod device;
mod file;
mod futex;
mod limit;
mod lock;
mod memory;
mod mount;
mod process;
#[cfg(test)]
mod tests;
mod thread;

use std::ffi::CString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use claim::{Claim, prepare_shared_reading};
pub(crate) use file::File;
pub(crate) use futex::{wait_while, wake_one};
pub(crate) use limit::{memory_limit, private_memory_limit};
pub(crate) use lock::{LockFile, SharedMap};
pub(crate) use memory::{LARGE_PAGE, Memory};
pub(crate) use mount::is_medium_read_only;
pub(crate) use process::{
    Process, boot_id, clock_ns, coarse_ms, fork_generation, is_thread_gone, process_start_time,
    thread_id, watch_forks, without_signals,
};
pub(crate) use thread::{Thread, spawn};

/// Size of a page of the memory map.
pub(crate) fn os_page_size() -> usize {
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Has `last` run when the program ends in order.
pub(crate) fn at_exit(last: extern "C" fn()) {
    // SAFETY: registers a function, which stays as long as this library is loaded: it is run before
    // that goes. For want of memory it is not registered; then the program ends without it.
    unsafe { libc::atexit(last) };
}

/// Gives a file a name that nothing has yet, in one step where the file system can.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
    let (old, new) = (name(from)?, name(to)?);
    let here = libc::AT_FDCWD;
    let renamed = retry(|| {
        let (old, new) = (old.as_ptr(), new.as_ptr());
        // SAFETY: both names end with a zero and outlive the call, which only reads them.
        unsafe {
            libc::syscall(libc::SYS_renameat2, here, old, here, new, libc::RENAME_NOREPLACE)
                as isize
        }
    });
    match renamed {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
            // A file system that cannot, or a system that knows no such call: two names for a moment.
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        renamed => renamed.map(drop),
    }
}

/// What a small file of the system says.
fn small_file(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    read_small(fs::File::open(path).ok()?)
}

/// All of a small file of the system. An open reads several: as few calls as can be.
fn read_small(mut file: fs::File) -> Option<Vec<u8>> {
    let (mut bytes, mut len) = (vec![0; 4096], 0);
    loop {
        let more = file.read(bytes.get_mut(len..)?).ok()?;
        len += more;
        // Such files give all that fits: what is shorter is the whole.
        if len < bytes.len() {
            bytes.truncate(len);
            return Some(bytes);
        }
        bytes.resize(2 * len, 0);
    }
}

/// Repeats a call while a signal handler interrupts it; a negative result becomes an error.
fn retry(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        if let Ok(done) = usize::try_from(call()) {
            return Ok(done);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A length or offset as the system takes it.
fn offset(value: u64) -> io::Result<libc::off64_t> {
    libc::off64_t::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}
