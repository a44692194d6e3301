//! The claim on a data file: who uses it, whichever lock file led them together.
//!
//! A data file can have several names (hard links, mounts of the single file), and so several lock
//! files. Each user therefore locks a byte of the data file, far beyond its end: the place is drawn from
//! the lock file, so that those of one lock file lie together, and whoever finds a lock outside of
//! this range knows that somebody came by another lock file.
//!
//! * Users hold locks for *writing*, and look for such: nobody can place one who may not write the
//!   file, so nobody can keep others out who may merely read it.
//! * The locks belong to an open of their own, which an `exec` closes: programs hand the data file's
//!   descriptor on.
//! * A user that may not write the data file can only place a lock for reading. That one is minded where
//!   the file is seen to have several names, or the lock file lies at a place of its own, or the file was never
//!   claimed by way of this lock file: it may have been renamed under its readers.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::file::{file_system, metadata, open_store};
use super::lock::{END, LockFd, find_lock, try_lock, unlock};
use super::{device, retry, thread_id};
use crate::error::{Error, Result};
use crate::platform::DataFile;

/// Where the locks lie: past the end of any file that the format allows.
const BASE: u64 = 1 << 62;
/// Bytes for the users of one lock file, one for each entry of its table.
const RANGE: u64 = 1 << 16;
/// Two who come at the same moment give way to each other; one who ends holds its lock a little longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The open of the data file that holds this user's claim.
pub(crate) struct Claim {
    fd: LockFd,
    writable: bool,
    /// The file has other names, or is known by one that others do not use.
    odd: bool,
    /// Of a block device: the kernel's claim, if this user has it.
    device: OnceLock<OwnedFd>,
}

impl Claim {
    /// For an open data file; `None` if it is none of the system's. `odd_lock`: its lock file does not
    /// lie where everybody looks for it.
    pub(crate) fn open(data: &dyn DataFile, odd_lock: bool) -> Result<Option<Claim>> {
        if data.descriptor().is_none() {
            return Ok(None);
        }
        let path = data.path();
        let (fd, writable) = match open_store(path, libc::O_RDWR, 0) {
            Err(Error::Io { source, .. }) if is_refused(&source) => {
                (open_store(path, libc::O_RDONLY, 0)?, false)
            }
            opened => (opened?, true),
        };
        let found = metadata(&fd).map_err(Error::io_at("examine the file", path))?;
        use std::os::unix::fs::MetadataExt;
        if data.id() != device::id_of(&found) {
            return Err(Error::Busy(
                "the data file was replaced while it was being opened: try again",
            ));
        }
        let odd = odd_lock || found.nlink() != 1 || is_mounted_alone(&fd);
        Ok(Some(Claim { fd: LockFd::new(fd), writable, odd, device: OnceLock::new() }))
    }

    /// Whether the file lies where several machines can reach it.
    pub(crate) fn is_remote(&self) -> bool {
        // Where the question has no answer the file is as good as local.
        super::lock::is_remote(&self.fd).unwrap_or(false)
    }

    /// Takes the kernel's claim on a block device, unless another user of the same lock file may have it: of a store's
    /// first user, `alone`, nobody may.
    pub(crate) fn take_device(&self, path: &Path, alone: bool) -> Result<()> {
        match device::claim(path, &self.fd)? {
            Some(fd) => {
                let _ = self.device.set(fd);
                Ok(())
            }
            None if alone => Err(Error::Busy(
                "the device is in use: it is mounted, part of another device, or somebody has it open by way of \
                 another node or lock file",
            )),
            None => Ok(()),
        }
    }

    /// Claims the file for user number `index` of the lock file `lock`; with `readers_too` also those of
    /// others are minded who may not write it. False if that could not be
    /// done, because somebody who may read the file has locks there, or the file system has none.
    pub(crate) fn take(
        &self,
        lock: u64,
        index: u32,
        readers_too: bool,
        path: &Path,
    ) -> Result<bool> {
        if self.odd && !self.writable {
            return Err(Error::Busy(
                "the data file has several names, so its readers must be able to claim it, and this \
                 process may not write it: open it by the name that the others use",
            ));
        }
        let failed = |error| Error::io_at("claim the data file", path)(error);
        let start = BASE + (1 + lock % (BASE / RANGE - 2)) * RANGE;
        let (ours, byte) = (start..start + RANGE, start + u64::from(index) % RANGE);
        let started = Instant::now();
        loop {
            // First the own, then the others': of two who come at once at least one sees the other.
            let placed = match try_lock(&self.fd, byte, self.writable) {
                Err(error) if has_no_locks(&error) => return Ok(false),
                placed => placed.map_err(failed)?,
            };
            if !placed && started.elapsed() <= PATIENCE && self.is_claimed(byte).map_err(failed)? {
                // By the user before, whose end gives up its place in the lock file a little earlier.
                std::thread::sleep(Duration::from_micros(500));
                continue;
            }
            if !self.is_claimed_by_others(&ours, self.odd || readers_too).map_err(failed)? {
                return Ok(placed);
            }
            unlock(&self.fd, byte).map_err(failed)?;
            if started.elapsed() > PATIENCE {
                return Err(Error::Busy(
                    "the data file is in use by way of another lock file: it has several names, or \
                     its lock file was deleted, replaced or moved; open it by the name that the \
                     others use, or end them first",
                ));
            }
            std::thread::sleep(Duration::from_micros(500 + 370 * u64::from(thread_id() % 8)));
        }
    }

    /// Whether another holds a lock for writing on the byte.
    fn is_claimed(&self, byte: u64) -> io::Result<bool> {
        Ok(find_lock(&self.fd, byte..byte + 1, false)?.is_some())
    }

    fn is_claimed_by_others(&self, ours: &Range<u64>, readers: bool) -> io::Result<bool> {
        let found = |bytes| Ok::<_, io::Error>(find_lock(&self.fd, bytes, readers)?.is_some());
        Ok(found(BASE..ours.start)? || found(ours.end..END)?)
    }
}

/// No permission to write, whether the file's or the mount's.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::EROFS | libc::ETXTBSY))
}

fn has_no_locks(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Whether the file itself was mounted, and not a folder above it. Older kernels than 5.8 do not say.
fn is_mounted_alone(fd: &OwnedFd) -> bool {
    // SAFETY: all zeros are a value of this plain structure.
    let mut found = unsafe { std::mem::zeroed::<libc::statx>() };
    // SAFETY: the descriptor is open, the name is empty and ends in a zero byte, and the structure
    // outlives the call.
    let asked = retry(|| unsafe {
        let flags = libc::AT_EMPTY_PATH;
        libc::statx(fd.as_raw_fd(), c"".as_ptr(), flags, 0, &raw mut found) as isize
    });
    asked.is_ok() && found.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0
}

/// Before a shared store is opened for reading only. On an overlay the first open for writing copies a
/// file, and who had it open before sees the old one for ever: so that open comes first.
pub(crate) fn prepare_shared_reading(path: &Path) -> Result<()> {
    // What is wrong with the file the open itself will report.
    let Ok(fd) = open_store(path, libc::O_RDONLY, 0) else { return Ok(()) };
    let is_overlay =
        file_system(&fd).is_some_and(|found| found.f_type == libc::OVERLAYFS_SUPER_MAGIC);
    if !is_overlay || super::mount::is_medium_read_only(fd.as_raw_fd()) {
        return Ok(());
    }
    match open_store(path, libc::O_RDWR, 0) {
        Err(Error::Io { source, .. }) if is_refused(&source) => Err(Error::Invalid(
            "the store lies on an overlay file system and may not be written here: whoever writes it \
             works on another copy of the file, so it cannot be shared; if nobody writes it, open it \
             without a lock file",
        )),
        opened => opened.map(drop),
    }
}
