//! The primitives of the lock file: open-file-description locks on single bytes, a shared
//! writable map.
//!
//! Locks of this kind belong to the open file description, not to the process: two opens in one
//! process exclude each other, closing another descriptor of the file releases nothing, and a
//! forked child that closes its copy releases nothing of its parent's.
//!
//! By themselves the locks go only when all descriptors and maps of the description are gone, also
//! those of a forked child, which every start of another program is for a moment. So the process that
//! opened the file gives them up by a call of its own; only those of a killed process wait for its
//! children.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::NonNull;

use super::file::{allocate, file_system, home, metadata, open_regular};
use super::{fork_generation, offset, retry};
use crate::error::Result;

/// A descriptor that locks hang on. The process that opened it gives them up at its end.
pub(super) struct LockFd {
    fd: OwnedFd,
    /// The process that opened it: fork generation, and number for want of a handler in a raw `clone`.
    owner: (u32, u32),
}

impl LockFd {
    pub(super) fn new(fd: OwnedFd) -> LockFd {
        LockFd { fd, owner: LockFd::this_process() }
    }

    fn this_process() -> (u32, u32) {
        (fork_generation(), std::process::id())
    }
}

impl std::ops::Deref for LockFd {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

impl Drop for LockFd {
    fn drop(&mut self) {
        if self.owner == LockFd::this_process() {
            // If this fails the close does it, as soon as no child has a copy.
            let _ = control(&self.fd, libc::F_OFD_SETLK, libc::F_UNLCK, 0..END);
        }
    }
}

/// The open lock file.
pub(crate) struct LockFile {
    fd: LockFd,
}

impl LockFile {
    pub(crate) fn open(path: &Path, mode: u32) -> Result<LockFile> {
        let mode = without_strangers(mode) | 0o600;
        let fd = open_regular(path, libc::O_RDWR | libc::O_CREAT, mode)?;
        Ok(LockFile { fd: LockFd::new(fd) })
    }

    /// Takes the permission to read from those who may not write: by a lock for reading they could keep
    /// everybody out for ever. The process's mask may have taken a permission to write, and an older version
    /// gave more. Only the owner can; where that is somebody else it stays as it is.
    pub(crate) fn shut_out_strangers(&self) {
        let Ok(found) = metadata(&self.fd) else { return };
        let mode = found.mode() & 0o7777;
        let wanted = without_strangers(mode);
        if wanted != mode {
            // SAFETY: changes the mode of an open descriptor; no memory is passed.
            let _ = retry(|| unsafe { libc::fchmod(self.fd.as_raw_fd(), wanted) } as isize);
        }
    }

    /// A lock file that cannot be written, with a lock for reading on all of it: whoever may write it some day
    /// can neither be the first nor register while this value lives. `None` if there is none, or it may not
    /// be read.
    pub(crate) fn closed_to_writers(path: &Path) -> io::Result<Option<LockFile>> {
        let Ok(fd) = open_regular(path, libc::O_RDONLY, 0) else { return Ok(None) };
        let fd = LockFd::new(fd);
        match control(&fd, libc::F_OFD_SETLK, libc::F_RDLCK, 0..END) {
            Ok(_) => Ok(Some(LockFile { fd })),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(metadata(&self.fd)?.len())
    }

    /// Makes the file at least `len` bytes long, with blocks behind them, so that no access to
    /// the map can fail for want of space. Never shrinks it: a stray map would fault.
    pub(crate) fn allocate(&self, len: u64) -> io::Result<()> {
        let old = self.len()?;
        if old < len {
            allocate(self.fd.as_raw_fd(), old, len)?;
        }
        Ok(())
    }

    /// Reads words from the start of the file; what lies beyond its end stays zero.
    pub(crate) fn read_words<const N: usize>(&self) -> io::Result<[u64; N]> {
        let mut words = [0u64; N];
        let size = size_of_val(&words);
        retry(|| {
            // SAFETY: the buffer is valid for `size` bytes and any bytes make valid words.
            unsafe { libc::pread64(self.fd.as_raw_fd(), words.as_mut_ptr().cast(), size, 0) }
        })?;
        Ok(words)
    }

    /// Tries to lock a byte; converts a lock already held. False if another holds it.
    pub(crate) fn try_lock(&self, byte: u64, exclusive: bool) -> io::Result<bool> {
        try_lock(&self.fd, byte, exclusive)
    }

    pub(crate) fn unlock(&self, byte: u64) -> io::Result<()> {
        unlock(&self.fd, byte)
    }

    /// Whether another open file description holds a lock on one of the bytes.
    pub(crate) fn is_locked(&self, bytes: Range<u64>) -> io::Result<bool> {
        Ok(find_lock(&self.fd, bytes, true)?.is_some())
    }

    /// Whether the file lies where several machines can reach it: there a map is not coherent
    /// between them.
    pub(crate) fn is_remote(&self) -> io::Result<bool> {
        is_remote(&self.fd)
    }

    /// A number that this file keeps as long as the system runs, and that no copy of it has. Not zero.
    pub(crate) fn home(&self) -> io::Result<u64> {
        Ok(home(&metadata(&self.fd)?))
    }

    /// Maps the first `len` bytes, readable and writable, shared.
    pub(crate) fn map(&self, len: usize) -> io::Result<SharedMap> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // All of it will be written to: one call instead of a fault for each page.
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new map at an address of the system's choice replaces nothing of ours.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), len, protection, flags, self.fd.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(base.cast()) {
            Some(base) => Ok(SharedMap { base, len }),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }
}

/// A mode in which nobody may read who may not write.
fn without_strangers(mode: u32) -> u32 {
    mode & !0o444 | (mode & 0o222) << 1
}

/// Tries to lock a byte; converts a lock already held. False if another open file description holds it.
pub(super) fn try_lock(fd: &OwnedFd, byte: u64, exclusive: bool) -> io::Result<bool> {
    let kind = if exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
    match control(fd, libc::F_OFD_SETLK, kind, byte..byte + 1) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Gives up the lock on a byte.
pub(super) fn unlock(fd: &OwnedFd, byte: u64) -> io::Result<()> {
    control(fd, libc::F_OFD_SETLK, libc::F_UNLCK, byte..byte + 1).map(drop)
}

/// A range that another open file description holds a lock on, if there is one among the bytes; with
/// `readers`, also a lock for reading.
pub(super) fn find_lock(
    fd: &OwnedFd,
    bytes: Range<u64>,
    readers: bool,
) -> io::Result<Option<Range<u64>>> {
    let kind = if readers { libc::F_WRLCK } else { libc::F_RDLCK };
    let found = control(fd, libc::F_OFD_GETLK, kind, bytes)?;
    if i32::from(found.l_type) == libc::F_UNLCK {
        return Ok(None);
    }
    let start = u64::try_from(found.l_start).unwrap_or(0);
    // A length of zero is all that follows.
    let end = match u64::try_from(found.l_len) {
        Ok(len) if len > 0 => start + len,
        _ => END,
    };
    Ok(Some(start..end))
}

/// Above all offsets that can be locked.
pub(super) const END: u64 = i64::MAX as u64;

fn control(fd: &OwnedFd, command: i32, kind: i32, bytes: Range<u64>) -> io::Result<libc::flock64> {
    // SAFETY: all-zero bytes are a valid flock64, and the pid must be zero for these commands.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = offset(bytes.start)?;
    lock.l_len = offset(bytes.end - bytes.start)?;
    retry(|| {
        // SAFETY: the descriptor is open and the structure outlives the call.
        unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) as isize }
    })?;
    Ok(lock)
}

/// Whether a file lies where several machines can reach it. File systems in user space cannot be told
/// apart and are not among them.
pub(super) fn is_remote(fd: &OwnedFd) -> io::Result<bool> {
    /// From linux/magic.h, and from coreutils' list for those outside of the kernel.
    const REMOTE: [u32; 25] = [
        0x6969,      // NFS
        0x6E66_7364, // its server's own
        0x517B,      // SMB
        0xFF53_4D42, // CIFS
        0xFE53_4D42, // SMB2
        0x5346_414F, // AFS
        0x6B41_4653, // AFS, the other
        0x00C3_6400, // Ceph
        0x7375_7245, // Coda
        0x564C,      // NCP
        0x0102_1997, // 9P
        0x0116_1970, // GFS2
        0x7461_636F, // OCFS2
        0x0BD0_0BD0, // Lustre
        0x4750_4653, // GPFS
        0x1983_0326, // BeeGFS
        0xAAD7_AAEA, // PanFS
        0x2003_0528, // OrangeFS
        0xBEEF_DEAD, // StorNext
        0x6163_6673, // Oracle ACFS
        0x0131_11A8, // IBRIX
        0x786F_4256, // VirtualBox
        0xBACB_ACBC, // VMware
        0x7C7C_6673, // Parallels
        0x5346_314D, // M1FS
    ];
    // The width of the field differs between processors; the numbers fit 32 bits.
    let found = file_system(fd).ok_or_else(io::Error::last_os_error)?;
    Ok(REMOTE.contains(&(found.f_type as u32)))
}

/// The mapped lock file, page-aligned.
pub(crate) struct SharedMap {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the map is plain memory that lives until the drop; it is only accessed through atomics.
unsafe impl Send for SharedMap {}
// SAFETY: as above.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the one mapped; references into it borrow this value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
