//! A block device in the place of a data file: its length is fixed, all its blocks are there, and it has no time of
//! birth or change.
//!
//! Locks on bytes belong to the node below `/dev` and not to the device, which may have several nodes. What
//! belongs to the device is the kernel's exclusive claim (`O_EXCL`), which a mounted file system has too: the first user
//! of a store takes it, so that neither who mounts the device nor who comes by another lock file gets in beside it.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::retry;
use crate::error::{Error, Result};
use crate::platform::{FileId, home_of};

/// Whether this is a block device.
pub(super) fn is_device(found: &fs::Metadata) -> bool {
    found.file_type().is_block_device()
}

/// Bytes of a device: whole pages of the system. Its status says nothing of that.
pub(super) fn length(fd: &OwnedFd) -> io::Result<u64> {
    // SAFETY: moves the place of an open descriptor, at which nobody reads or writes; no memory is passed.
    let end = retry(|| unsafe { libc::lseek64(fd.as_raw_fd(), 0, libc::SEEK_END) } as isize)?;
    Ok(end as u64 & !(super::os_page_size() as u64 - 1))
}

/// Which device or file this is, whatever node led to it.
pub(super) fn id_of(found: &fs::Metadata) -> FileId {
    match is_device(found) {
        // No file system has this number.
        true => FileId { device: u64::MAX, inode: found.rdev() },
        false => FileId { device: found.dev(), inode: found.ino() },
    }
}

/// As that of a file: a device keeps it as long as it is attached. The next one of the same number has
/// another sequence number, on kernels that count them (5.15).
pub(super) fn home(found: &fs::Metadata) -> u64 {
    let (major, minor) = (libc::major(found.rdev()), libc::minor(found.rdev()));
    let sequence = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/diskseq"));
    let sequence = sequence.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    home_of(&[u64::MAX, found.rdev(), sequence])
}

/// The kernel's claim on the device at `path`, held while the descriptor is open; `None` if somebody has it.
pub(super) fn claim(path: &Path, mine: &OwnedFd) -> Result<Option<OwnedFd>> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Invalid("a path cannot hold a zero byte"))?;
    let flags = libc::O_RDONLY | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the name is a string that ends in a zero byte and outlives the call.
    let opened = match retry(|| unsafe { libc::open64(name.as_ptr(), flags) } as isize) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Ok(None),
        opened => opened.map_err(Error::io_at("claim the device", path))?,
    };
    // SAFETY: the descriptor was opened by the line above and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(opened as RawFd) };
    let rdev = |fd: &OwnedFd| super::file::metadata(fd).map(|found| found.rdev());
    match (rdev(&fd), rdev(mine)) {
        (Ok(one), Ok(other)) if one == other => Ok(Some(fd)),
        _ => Err(Error::Busy("the device was replaced while it was being opened: try again")),
    }
}
