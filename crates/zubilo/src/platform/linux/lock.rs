//! The primitives of the lock file: open-file-description locks on single bytes, a shared
//! writable map, robust process-shared mutexes.
//!
//! Locks of this kind belong to the open file description, not to the process: two opens in one
//! process exclude each other, closing another descriptor of the file releases nothing, and a
//! forked child that closes its copy releases nothing of its parent's. The map holds on to the
//! description as well, so the locks go only when descriptor and map are both gone everywhere.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::NonNull;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::file::{allocate, file_system, home, metadata, open_regular};
use super::{offset, retry};
use crate::error::Result;

/// The open lock file.
pub(crate) struct LockFile {
    fd: OwnedFd,
}

impl LockFile {
    pub(crate) fn open(path: &Path, mode: u32) -> Result<LockFile> {
        let mode = without_strangers(mode) | 0o600;
        let fd = open_regular(path, libc::O_RDWR | libc::O_CREAT, mode)?;
        let file = LockFile { fd };
        // The process's mask may have taken a permission to write, and an older version gave more.
        file.shut_out_strangers();
        Ok(file)
    }

    /// Takes the permission to read from those who may not write: by a lock for reading they could keep
    /// everybody out for ever. Only the owner can; where that is somebody else it stays as it is.
    fn shut_out_strangers(&self) {
        let Ok(found) = metadata(&self.fd) else { return };
        let mode = found.mode() & 0o7777;
        let wanted = without_strangers(mode);
        if wanted != mode {
            // SAFETY: changes the mode of an open descriptor; no memory is passed.
            let _ = retry(|| unsafe { libc::fchmod(self.fd.as_raw_fd(), wanted) } as isize);
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

// SAFETY: the map is plain memory that lives until the drop; it is only accessed through atomics
// and mutexes.
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

/// How a mutex was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// From an owner that had unlocked it.
    Clean,
    /// From an owner that died while holding it; the mutex was made usable again.
    OwnerDied,
}

/// A robust process-shared mutex that lives in memory of others, at a fixed place of a shared
/// region. A handle: it owns nothing and is made anew for each call.
///
/// It is of the normal kind. The error-checking kind compares thread numbers, and these repeat in
/// different pid namespaces: the first threads of two containers would take each other's lock for
/// their own.
#[derive(Clone, Copy)]
pub(crate) struct RobustMutex<'a> {
    place: NonNull<libc::pthread_mutex_t>,
    region: std::marker::PhantomData<&'a ()>,
}

impl<'a> RobustMutex<'a> {
    /// Bytes kept for one.
    pub(crate) const ROOM: usize = 64;

    /// The mutex at `place`.
    ///
    /// # Safety
    /// `place` is valid for `ROOM` bytes during `'a`, aligned to 8, and these bytes are accessed
    /// only through this type. Before any other method, `initialise` has run on them once, by
    /// whichever process.
    pub(crate) unsafe fn at(place: NonNull<u8>) -> RobustMutex<'a> {
        const { assert!(size_of::<libc::pthread_mutex_t>() <= Self::ROOM) };
        const { assert!(align_of::<libc::pthread_mutex_t>() <= 8) };
        RobustMutex { place: place.cast(), region: std::marker::PhantomData }
    }

    /// Makes the memory an unlocked mutex. Nobody else may use it meanwhile.
    pub(crate) fn initialise(self) -> io::Result<()> {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialised by the first call, used by the following ones
        // and destroyed by the last; the place is valid by the contract of `at`.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes))?;
            let done =
                check(libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED))
                    .and_then(|()| {
                        check(libc::pthread_mutexattr_setrobust(
                            attributes,
                            libc::PTHREAD_MUTEX_ROBUST,
                        ))
                    })
                    .and_then(|()| {
                        check(libc::pthread_mutex_init(self.place.as_ptr(), attributes))
                    });
            libc::pthread_mutexattr_destroy(attributes);
            done
        }
    }

    /// Waits for the mutex.
    pub(crate) fn lock(self) -> io::Result<Locked> {
        // SAFETY: an initialised mutex at a valid place, by the contract of `at`.
        self.obtained(unsafe { libc::pthread_mutex_lock(self.place.as_ptr()) })
    }

    /// Waits for the mutex so long; otherwise `None`. A change of the system's clock may change the time.
    pub(crate) fn lock_within(self, time: Duration) -> io::Result<Option<Locked>> {
        if let Some(locked) = self.try_lock()? {
            return Ok(Some(locked));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let until = now + time;
        let until = libc::timespec {
            tv_sec: until.as_secs() as libc::time_t,
            tv_nsec: until.subsec_nanos().into(),
        };
        // SAFETY: as in `lock`; the time is read during the call.
        match unsafe { libc::pthread_mutex_timedlock(self.place.as_ptr(), &raw const until) } {
            libc::ETIMEDOUT => Ok(None),
            code => self.obtained(code).map(Some),
        }
    }

    /// Takes the mutex if it is free.
    pub(crate) fn try_lock(self) -> io::Result<Option<Locked>> {
        // SAFETY: as in `lock`.
        match unsafe { libc::pthread_mutex_trylock(self.place.as_ptr()) } {
            libc::EBUSY => Ok(None),
            code => self.obtained(code).map(Some),
        }
    }

    fn obtained(self, code: i32) -> io::Result<Locked> {
        if code != libc::EOWNERDEAD {
            return check(code).map(|()| Locked::Clean);
        }
        // Should we die before this call, the next one finds the owner dead again.
        // SAFETY: we hold the mutex and it is in the state that the call is made for.
        check(unsafe { libc::pthread_mutex_consistent(self.place.as_ptr()) })?;
        Ok(Locked::OwnerDied)
    }

    /// Gives the mutex back. Fails unless the calling thread holds it.
    pub(crate) fn unlock(self) -> io::Result<()> {
        // SAFETY: as in `lock`; a robust mutex refuses a thread that is not its owner.
        check(unsafe { libc::pthread_mutex_unlock(self.place.as_ptr()) })
    }
}

/// The pthread functions return their error.
fn check(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}
