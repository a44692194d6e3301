//! The data file: opening, the map, writing, growing, flushing.
//!
//! The address space is reserved once, beyond the end of the file: pages of a shared map become
//! usable as soon as the file reaches them, so growing never touches the map.

use std::ffi::CString;
use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::UNIX_EPOCH;

use super::{device, offset, os_page_size, retry};
use crate::error::{Error, Result};
use crate::platform::{Advice, DataFile, FileId, OpenFile, WritableMap, home_of};

/// Buffers that one call of the system takes (`IOV_MAX`).
const BUFFERS_PER_CALL: usize = 1024;
/// The reservation is not halved below this.
const SMALLEST_RESERVE: u64 = 64 << 20;
/// Bytes that one call writes. The kernel caches what one call writes in one large folio, and a
/// later write of a page inside it walks the block list of the whole folio: after megabyte writes
/// a transaction of 11 pages cost 67 us of CPU, after these 30.
const CALL_BYTES: usize = 16 << 10;
/// The same with [`OpenFile::large_calls`]. Where each transaction is flushed, those of 11 pages cost as much after these.
const LARGE_CALL_BYTES: usize = 256 << 10;

/// An open data file with its map.
pub(crate) struct File {
    fd: OwnedFd,
    map: Map,
    /// The map is writable.
    writable: bool,
    /// The caller has asked for that, in any case.
    asked: bool,
    /// Bytes that one call writes.
    call_bytes: usize,
    /// Every byte of the file has a block, so that stores through the map cannot fail; found out
    /// before the first.
    backed: OnceLock<bool>,
    path: PathBuf,
    /// Bytes of a block device; none of a file.
    device: Option<u64>,
    id: FileId,
    home: u64,
    /// Offsets below this are known to lie within the process's limit on file sizes.
    permitted: AtomicU64,
    /// Whether a flush has failed; held during each.
    flush_failed: Mutex<bool>,
    /// The same, for those who do not wait for a flush that is under way.
    has_failed: AtomicBool,
    /// The file once more, opened by itself: the kernel reports a failed write to each open once, so that writes
    /// that are flushed by themselves and flushes of the file do not take each other's failures. None where
    /// that cannot be had.
    durable: OnceLock<Option<OwnedFd>>,
    /// And once more for flushes of ranges, for the same reason; one at a time.
    ranges: Mutex<Option<Option<OwnedFd>>>,
}

impl File {
    pub(crate) fn open(path: &Path, how: &OpenFile) -> Result<File> {
        let access = if how.read_only { libc::O_RDONLY } else { libc::O_RDWR };
        let create = if how.create && !how.read_only { libc::O_CREAT } else { 0 };
        let fd = open_store(path, access | create, how.mode)?;
        let found = metadata(&fd).map_err(Error::io_at("examine the file", path))?;
        let device = device::is_device(&found).then(|| device::length(&fd)).transpose();
        let device = device.map_err(Error::io_at("find the length of the device", path))?;
        if device == Some(0) {
            let path = Box::new(path.to_path_buf());
            return Err(Error::NotAStore { path, found: "a device without a medium" });
        }
        let wanted = device.unwrap_or_else(|| round_up(how.reserve.max(found.len()).max(1)));
        let floor = round_up((2 * found.len()).max(SMALLEST_RESERVE)).min(wanted);
        let writable = !how.read_only
            && match how.writable_map {
                WritableMap::No => false,
                // The file system that is found is that of the node.
                WritableMap::WhereSafe if device.is_some() => false,
                WritableMap::WhereSafe => rewrites_in_place(&fd),
                WritableMap::Yes => true,
            };
        let map =
            reserve(&fd, wanted, floor, writable).map_err(Error::io_at("map the file", path))?;
        let path = fs::canonicalize(path).map_err(Error::io_at("resolve the path", path))?;
        let (id, home) = (device::id_of(&found), home(&found));
        Ok(File {
            fd,
            map,
            writable,
            asked: how.writable_map == WritableMap::Yes,
            call_bytes: if how.large_calls { LARGE_CALL_BYTES } else { CALL_BYTES },
            backed: OnceLock::new(),
            path,
            device,
            id,
            home,
            permitted: AtomicU64::new(0),
            flush_failed: Mutex::new(false),
            has_failed: AtomicBool::new(false),
            durable: OnceLock::new(),
            ranges: Mutex::new(None),
        })
    }
}

impl File {
    /// Fails where a write would cross the process's limit on file sizes: there the system would send a
    /// signal whose default is to end the process.
    fn permit(&self, at: u64, bufs: &[IoSlice<'_>]) -> io::Result<()> {
        let total = bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
        let end = at.checked_add(total).ok_or_else(too_large)?;
        if end > self.permitted.load(Ordering::Relaxed) {
            check_size_limit(end)?;
            self.permitted.fetch_max(end, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives every byte of the file a block: a copy of a store may have holes, and a store into a hole
    /// is a signal when the disk is full. False where that cannot be had; then calls are used.
    fn back(&self) -> bool {
        if self.device.is_some() {
            return true;
        }
        let Ok(found) = metadata(&self.fd) else { return false };
        // Asked for more than there is, the file system would allocate all it has before it fails, and
        // leave nothing for others.
        let holes = found.len().saturating_sub(found.blocks().saturating_mul(512));
        if holes > 0 && file_system(&self.fd).is_none_or(|system| holes > room_of(&system) / 2) {
            return false;
        }
        match preallocate(self.fd.as_raw_fd(), 0, found.len()) {
            Ok(()) => true,
            // A file of ext2 or ext3, which cannot be told from ext4: holes or not if the caller has
            // asked for the map.
            Err(error) => self.asked && is_unsupported(&error),
        }
    }
}

// SAFETY: the map is made once for the life of the file and covers its length; nobody else writes it.
unsafe impl DataFile for File {
    fn base(&self) -> *const u8 {
        self.map.base.as_ptr()
    }

    fn reserved(&self) -> u64 {
        self.map.len as u64
    }

    fn len(&self) -> io::Result<u64> {
        match self.device {
            Some(len) => Ok(len),
            None => Ok(metadata(&self.fd)?.len()),
        }
    }

    fn is_fixed(&self) -> bool {
        self.device.is_some()
    }

    fn write_at(&self, at: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.permit(at, bufs)?;
        write_all(self.fd.as_raw_fd(), at, bufs, self.call_bytes)
    }

    fn grow(&self, new_len: u64, zeroed_written: bool) -> io::Result<()> {
        let old_len = self.len()?;
        if new_len <= old_len {
            return Ok(());
        }
        if new_len > self.reserved() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the file would outgrow the address space reserved for it",
            ));
        }
        let fd = self.fd.as_raw_fd();
        allocate(fd, old_len, new_len)
            .and_then(|written| match zeroed_written && !written {
                true => write_zeros(fd, old_len, new_len),
                false => Ok(()),
            })
            .inspect_err(|_| {
                // What was allocated before the disk was full goes back; if even this fails the
                // file is merely longer than anyone asked for.
                let _ = set_len(fd, old_len);
            })
    }

    fn truncate(&self, new_len: u64) -> io::Result<()> {
        if self.is_fixed() || new_len >= self.len()? {
            return Ok(());
        }
        set_len(self.fd.as_raw_fd(), new_len)
    }

    /// One at a time: the kernel reports a failure once for each open file, to whoever asks first.
    /// Another thread's flush that succeeds after it proves nothing.
    fn sync_data(&self) -> io::Result<()> {
        let mut failed = self.flush_failed.lock().unwrap_or_else(|e| e.into_inner());
        if *failed {
            return Err(io::Error::other("an earlier flush of this file has failed"));
        }
        // SAFETY: flushes an open descriptor; no memory is passed.
        let done = retry(|| unsafe { libc::fdatasync(self.fd.as_raw_fd()) } as isize);
        *failed = done.is_err();
        // A write that was to be durable may have failed meanwhile.
        if self.has_failed.fetch_or(*failed, Ordering::SeqCst) {
            done?;
            return Err(io::Error::other("a write beside this flush has failed"));
        }
        done.map(drop)
    }

    fn write_durably(&self, at: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        let Some(fd) = self.durable.get_or_init(|| open_again(&self.fd, libc::O_WRONLY)) else {
            self.write_at(at, bufs)?;
            return self.sync_data();
        };
        if self.has_failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("an earlier flush of this file has failed"));
        }
        self.permit(at, bufs)?;
        write_flushed(fd.as_raw_fd(), at, bufs)
            .inspect_err(|_| self.has_failed.store(true, Ordering::SeqCst))
    }

    fn sync_range(&self, at: u64, len: u64) -> io::Result<()> {
        let mut ranges = self.ranges.lock().unwrap_or_else(|e| e.into_inner());
        if self.has_failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("an earlier flush of this file has failed"));
        }
        let ranges = ranges.get_or_insert_with(|| open_again(&self.fd, libc::O_RDWR));
        // Without a map of the range nothing was flushed, and nothing has failed.
        let mapped = ranges.as_ref().and_then(|fd| RangeMap::new(fd, at, len).ok());
        let Some(range) = mapped else { return self.sync_data() };
        range.flush().inspect_err(|_| self.has_failed.store(true, Ordering::SeqCst))
    }

    fn sync_directory(&self) -> io::Result<()> {
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        let directory = fs::File::open(parent)?;
        // SAFETY: flushes an open descriptor; no memory is passed.
        match retry(|| unsafe { libc::fsync(directory.as_raw_fd()) } as isize) {
            // File systems that have nothing to flush for a directory say so this way.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            done => done.map(drop),
        }
    }

    fn writable(&self) -> Option<*mut u8> {
        let backed = || self.writable && *self.backed.get_or_init(|| self.back());
        backed().then_some(self.map.base.as_ptr())
    }

    fn advise(&self, at: u64, len: u64, advice: Advice) -> io::Result<()> {
        let page = os_page_size() as u64;
        let start = at.min(self.reserved()) / page * page;
        let end = round_up(at.saturating_add(len).min(self.reserved()));
        let how = match advice {
            Advice::Normal => libc::MADV_NORMAL,
            Advice::Random => libc::MADV_RANDOM,
            Advice::WillNeed => libc::MADV_WILLNEED,
            Advice::Populate => libc::MADV_POPULATE_READ,
            Advice::HugePages => libc::MADV_HUGEPAGE,
        };
        if start >= end {
            return Ok(());
        }
        let done = retry(|| {
            // SAFETY: the range lies within our own map, and none of these kinds of advice
            // changes what the memory holds.
            let range = unsafe { self.map.base.as_ptr().add(start as usize) };
            // SAFETY: as above.
            unsafe { libc::madvise(range.cast(), (end - start) as usize, how) as isize }
        });
        match done {
            // A kernel or file system without large pages.
            Err(error)
                if advice == Advice::HugePages && error.raw_os_error() == Some(libc::EINVAL) =>
            {
                Ok(())
            }
            // A kernel before 5.14.
            Err(error)
                if advice == Advice::Populate && error.raw_os_error() == Some(libc::EINVAL) =>
            {
                self.advise(at, len, Advice::WillNeed)
            }
            done => done.map(drop),
        }
    }

    fn resident(&self, at: u64, len: u64) -> io::Result<Vec<bool>> {
        let page = os_page_size() as u64;
        let end = at.saturating_add(len);
        if !at.is_multiple_of(page) || end > self.reserved() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut states = vec![0u8; len.div_ceil(page) as usize];
        retry(|| {
            // SAFETY: the range starts at a page and lies within our own map; the vector has a byte for each
            // of its pages.
            unsafe {
                let range = self.map.base.as_ptr().add(at as usize);
                libc::mincore(range.cast(), len as usize, states.as_mut_ptr()) as isize
            }
        })?;
        // The other bits are reserved.
        Ok(states.into_iter().map(|state| state & 1 == 1).collect())
    }

    fn id(&self) -> FileId {
        self.id
    }

    fn home(&self) -> u64 {
        self.home
    }

    /// Length and time of the last change of anything: programs that restore files set other times back, and
    /// nobody can set this one.
    fn stamp(&self) -> Option<u64> {
        if self.is_fixed() {
            // The node knows nothing of what is written to its device.
            return None;
        }
        let found = metadata(&self.fd).ok()?;
        let (seconds, rest) = (found.ctime() as u64, found.ctime_nsec() as u64);
        Some(home_of(&[found.len(), seconds, rest]))
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn descriptor(&self) -> Option<i32> {
        Some(self.fd.as_raw_fd())
    }
}

/// A map of the file from its start, possibly reaching beyond its end.
struct Map {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the map is plain memory that stays until the drop; who may write to it is the business
// of those who hold the address. Nothing in it belongs to a thread.
unsafe impl Send for Map {}
// SAFETY: as above; the type itself offers only its address.
unsafe impl Sync for Map {}

impl Map {
    fn new(fd: &OwnedFd, size: u64, protection: i32) -> io::Result<Map> {
        let len = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new map at an address of the system's choice replaces nothing of ours; the
        // descriptor is open.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(too_large)?;
        // A core dump of a process need not hold the store. Advice only, so failure is no matter.
        // SAFETY: the range is the map just made; the advice does not change its content.
        unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_DONTDUMP) };
        Ok(Map { base, len })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the one mapped in `new`; addresses inside it were only
        // promised for the life of this value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Maps `wanted` bytes, or as many as the system grants by halving, at least `floor`.
fn reserve(fd: &OwnedFd, wanted: u64, floor: u64, writable: bool) -> io::Result<Map> {
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    let mut size = wanted;
    loop {
        match Map::new(fd, size, protection) {
            Err(error) if size > floor && is_size_refused(&error) => {
                size = round_up((size / 2).max(floor));
            }
            done => return done,
        }
    }
}

/// No address space, a limit on it, or more than the file system's largest file.
fn is_size_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOMEM | libc::EOVERFLOW | libc::EFBIG | libc::EINVAL | libc::EAGAIN)
    ) || error.kind() == io::ErrorKind::OutOfMemory
}

/// Opens a regular file; anything else is refused before it is opened, because opening a device
/// or a pipe can have effects or block.
pub(super) fn open_regular(path: &Path, flags: i32, mode: u32) -> Result<OwnedFd> {
    open_checked(path, flags, mode, refuse_special)
}

/// As [`open_regular`], of a data file: a block device will do.
pub(super) fn open_store(path: &Path, flags: i32, mode: u32) -> Result<OwnedFd> {
    open_checked(path, flags, mode, |path, found| match device::is_device(found) {
        true => Ok(()),
        false => refuse_special(path, found),
    })
}

fn open_checked(
    path: &Path,
    flags: i32,
    mode: u32,
    refuse: impl Fn(&Path, &fs::Metadata) -> Result<()>,
) -> Result<OwnedFd> {
    match fs::metadata(path) {
        Ok(found) => refuse(path, &found)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io_at("open the file", path)(error)),
    }
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Invalid("a path cannot hold a zero byte"))?;
    // Not blocking, should the path have become a pipe since it was looked at.
    let flags = flags | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the name is a string that ends in a zero byte and outlives the call.
    let opened = retry(|| unsafe { libc::open64(name.as_ptr(), flags, mode) } as isize)
        .map_err(Error::io_at("open the file", path))?;
    // SAFETY: the descriptor was opened by the line above and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(opened as RawFd) };
    let found = metadata(&fd).map_err(Error::io_at("examine the file", path))?;
    refuse(path, &found)?;
    Ok(fd)
}

fn refuse_special(path: &Path, found: &fs::Metadata) -> Result<()> {
    let kind = found.file_type();
    let found = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(Error::NotAStore { path: Box::new(path.to_path_buf()), found })
}

/// The status of an open descriptor.
pub(super) fn metadata(fd: &OwnedFd) -> io::Result<fs::Metadata> {
    // SAFETY: the descriptor is open, and ManuallyDrop keeps the borrowed one from being closed.
    let file = std::mem::ManuallyDrop::new(unsafe { fs::File::from_raw_fd(fd.as_raw_fd()) });
    file.metadata()
}

/// A number that a file keeps as long as the system runs, and that no copy of it has. Numbers of deleted
/// files are given to new ones, so the time of birth goes with them; the device's number may differ
/// from mount to mount, so it counts only where there is no such time.
pub(super) fn home(found: &fs::Metadata) -> u64 {
    if device::is_device(found) {
        return device::home(found);
    }
    let born = found.created().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    match born {
        Some(born) => home_of(&[found.ino(), born.as_secs(), u64::from(born.subsec_nanos())]),
        None => home_of(&[found.ino(), found.dev()]),
    }
}

/// Part of a file, mapped so that it can be flushed: nothing is read or written through the map.
struct RangeMap(*mut libc::c_void, usize);

impl RangeMap {
    fn new(fd: &OwnedFd, at: u64, len: u64) -> io::Result<RangeMap> {
        let page = os_page_size() as u64;
        let start = at / page * page;
        let len = usize::try_from(at.saturating_add(len) - start).map_err(|_| too_large())?;
        let (shared, none) = (libc::MAP_SHARED, libc::PROT_NONE);
        // SAFETY: asks for address space of the system's choice.
        let map = unsafe {
            let place = offset(start)?;
            libc::mmap(std::ptr::null_mut(), len, none, shared, fd.as_raw_fd(), place)
        };
        if map == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(RangeMap(map, len))
        }
    }

    fn flush(&self) -> io::Result<()> {
        // SAFETY: the range is the map of this value; what the memory holds does not change.
        retry(|| unsafe { libc::msync(self.0, self.1, libc::MS_SYNC) as isize }).map(drop)
    }
}

impl Drop for RangeMap {
    fn drop(&mut self) {
        // SAFETY: the map of this value, in which nobody has a reference.
        unsafe { libc::munmap(self.0, self.1) };
    }
}

/// Another open of the same file, for writing at least.
fn open_again(fd: &OwnedFd, access: i32) -> Option<OwnedFd> {
    let name = CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    let flags = access | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the name is a string that ends in a zero byte and outlives the call.
    let opened = retry(|| unsafe { libc::open64(name.as_ptr(), flags) } as isize).ok()?;
    // SAFETY: the descriptor was opened by the line above and nobody else knows it.
    let again = unsafe { OwnedFd::from_raw_fd(opened as RawFd) };
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    same(metadata(fd).ok()?, metadata(&again).ok()?).then_some(again)
}

/// Writes all buffers, and returns when they are on disk.
fn write_flushed(fd: RawFd, mut at: u64, mut bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut bufs, 0);
    while !bufs.is_empty() {
        let count = bufs.len().min(BUFFERS_PER_CALL) as i32;
        let place = offset(at)?;
        // SAFETY: `IoSlice` is an `iovec` by its own contract, and the buffers live as long as the slices.
        let write =
            || unsafe { libc::pwritev2(fd, bufs.as_ptr().cast(), count, place, libc::RWF_DSYNC) };
        match retry(write)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                at += written as u64;
                IoSlice::advance_slices(&mut bufs, written);
            }
        }
    }
    Ok(())
}

fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}

/// Fails where writing up to `end` would cross the process's limit on file sizes.
fn check_size_limit(end: u64) -> io::Result<()> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one rlimit to the place it is given.
    retry(|| unsafe { libc::getrlimit64(libc::RLIMIT_FSIZE, &raw mut limit) } as isize)?;
    if limit.rlim_cur != libc::RLIM64_INFINITY && end > limit.rlim_cur {
        return Err(too_large());
    }
    Ok(())
}

fn write_all(
    fd: RawFd,
    mut at: u64,
    bufs: &mut [IoSlice<'_>],
    call_bytes: usize,
) -> io::Result<()> {
    let mut rest = bufs;
    // Empty slices in front would make a complete write look like one that wrote nothing.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let count = buffers_for_call(rest, call_bytes);
        let place = offset(at)?;
        let wrote = retry(|| {
            // SAFETY: IoSlice has the layout of iovec, and the slices borrow their buffers for
            // longer than the call.
            unsafe { libc::pwritev64(fd, rest.as_ptr().cast(), count as i32, place) }
        })?;
        if wrote == 0 && rest[..count].iter().any(|buf| !buf.is_empty()) {
            return Err(io::ErrorKind::WriteZero.into());
        }
        at += wrote as u64;
        if wrote == 0 {
            rest = &mut rest[count..];
        }
        IoSlice::advance_slices(&mut rest, wrote);
    }
    Ok(())
}

/// How many of the buffers one call takes: at least one, and a bounded number of bytes.
fn buffers_for_call(bufs: &[IoSlice<'_>], call_bytes: usize) -> usize {
    let mut bytes = 0;
    let fits = |buf: &&IoSlice<'_>| {
        bytes += buf.len();
        bytes <= call_bytes
    };
    bufs.iter().take(BUFFERS_PER_CALL).take_while(fits).count().max(1)
}

/// Makes the file `to` bytes long with blocks behind `from..to`. True if zeros were written for
/// it, because the file system cannot allocate without.
pub(super) fn allocate(fd: RawFd, from: u64, to: u64) -> io::Result<bool> {
    match preallocate(fd, from, to) {
        Err(error) if is_unsupported(&error) => write_zeros(fd, from, to).map(|()| true),
        done => done.map(|()| false),
    }
}

/// Lets the file system put blocks behind `from..to`; what is there already stays as it is.
fn preallocate(fd: RawFd, from: u64, to: u64) -> io::Result<()> {
    check_size_limit(to)?;
    if from == to {
        return Ok(());
    }
    let (start, len) = (offset(from)?, offset(to - from)?);
    // SAFETY: works on an open descriptor; no memory is passed.
    retry(|| unsafe { libc::fallocate64(fd, 0, start, len) } as isize).map(drop)
}

/// A file system that cannot allocate without writing.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

/// What the system says of the file system that a file is in.
pub(super) fn file_system(fd: &OwnedFd) -> Option<libc::statfs64> {
    // SAFETY: all zeros are a value of this plain structure.
    let mut found = unsafe { std::mem::zeroed::<libc::statfs64>() };
    // SAFETY: the call writes one structure to the place it is given.
    let done = retry(|| unsafe { libc::fstatfs64(fd.as_raw_fd(), &raw mut found) } as isize);
    done.is_ok().then_some(found)
}

/// Bytes that a file system has left.
fn room_of(system: &libc::statfs64) -> u64 {
    system.f_bavail.saturating_mul(u64::try_from(system.f_bsize).unwrap_or(0))
}

/// Whether the file system writes a block where it is. Others (btrfs, ZFS, XFS for a file that was
/// copied by reference) need space for each page that is changed, and a store through a map has no way
/// to say that there is none.
fn rewrites_in_place(fd: &OwnedFd) -> bool {
    file_system(fd)
        .is_some_and(|found| matches!(found.f_type, libc::EXT4_SUPER_MAGIC | libc::TMPFS_MAGIC))
}

fn write_zeros(fd: RawFd, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0u8; usize::try_from(to - from).unwrap_or(usize::MAX).min(CALL_BYTES)];
    let mut at = from;
    while at < to {
        let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(zeros.len());
        write_all(fd, at, &mut [IoSlice::new(&zeros[..len])], CALL_BYTES)?;
        at += len as u64;
    }
    Ok(())
}

fn set_len(fd: RawFd, len: u64) -> io::Result<()> {
    let len = offset(len)?;
    // SAFETY: works on an open descriptor; no memory is passed.
    retry(|| unsafe { libc::ftruncate64(fd, len) } as isize).map(drop)
}

fn round_up(len: u64) -> u64 {
    let page = os_page_size() as u64;
    len.checked_next_multiple_of(page).unwrap_or(u64::MAX / page * page)
}
