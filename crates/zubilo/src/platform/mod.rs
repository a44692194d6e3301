//! What the store needs from the operating system: the data file with its memory map, the
//! primitives under the lock file, memory, and facts about processes. One folder per system; this file is
//! the facade and knows none of them.
//!
//! Invariants:
//! * A map is never moved and never made smaller while its [`DataFile`] lives, so addresses
//!   derived from [`DataFile::base`] stay good for that long.
//! * Bytes below the file's length are backed by allocated blocks ([`DataFile::grow`]): a full
//!   disk is an error code of a call, never a fault in the map.
//! * Interrupted calls are repeated here; no caller sees `EINTR`.
//!
//! Together with the view of shared memory in `shared/region.rs` this is where `unsafe` lives.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::error::{Error, Result};

mod per_process;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
compile_error!("Zubilo runs on Linux so far: add a folder beside platform/linux");

/// What tests of the crate and integration tests need of other processes.
#[cfg(test)]
#[path = "../../tests/it/common/process.rs"]
#[allow(dead_code, reason = "each test binary needs a part of it")]
pub(crate) mod testing;

pub(crate) use per_process::PerProcess;
pub(crate) use system::{
    Claim, LARGE_PAGE, LockFile, Memory, Process, SharedMap, Thread, is_thread_gone, wait_while,
    wake_one,
};

/// Which file this is, whatever path led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device that holds the file.
    pub device: u64,
    /// The file's number on that device.
    pub inode: u64,
}

/// A file's [`DataFile::home`] from what names it.
fn home_of(words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    XxHash3_64::oneshot(&bytes).max(1)
}

/// How a range of the map will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// No particular order: the system's own read-ahead.
    Normal,
    /// Single pages in no order: no read-ahead.
    Random,
    /// Soon: start reading it now.
    WillNeed,
    /// Now: read it and map it before the call returns. Where the system cannot, as `WillNeed`. The range
    /// must lie inside the file.
    Populate,
    /// Large pages where the system can; asked for in vain without an error.
    HugePages,
}

/// The store's file and its map. The engine sees nothing else of the file system, so that a
/// simulated file can replace it.
///
/// # Safety
/// The engine reads through [`base`](Self::base) without asking again: as long as the value lives, the
/// address stays, [`reserved`](Self::reserved) bytes from it belong to this file, those below the length
/// that [`len`](Self::len), [`grow`](Self::grow) and [`truncate`](Self::truncate) have returned can be read,
/// and what they hold changes only by [`write_at`](Self::write_at) and through
/// [`writable`](Self::writable), which is the same memory or none. Where there is a
/// [`decryption`](Self::decryption), pages after the metas are there once it has made them readable, and
/// change in memory when it does so again, after they were written.
pub unsafe trait DataFile: Send + Sync {
    /// Start of the read-only shared map; never moves. Bytes at and beyond [`len`](Self::len)
    /// must not be touched: the system answers with a signal.
    fn base(&self) -> *const u8;

    /// Where the metas are mapped as the file holds them: [`base`](Self::base), unless the file is encrypted.
    fn metas_base(&self) -> *const u8 {
        self.base()
    }

    /// What makes the pages of an encrypted file readable; none for other files.
    fn decryption(&self) -> Option<Arc<dyn Decryption>> {
        None
    }

    /// Bytes of address space reserved at [`base`](Self::base): the file can grow this long.
    fn reserved(&self) -> u64;

    /// Length of the file.
    fn len(&self) -> io::Result<u64>;

    /// True when the file holds nothing yet.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The length cannot change: [`grow`](Self::grow) up to it and [`truncate`](Self::truncate) do nothing, and what is
    /// there need not be zeros. So of a block device.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Writes all buffers one after the other from `offset` on, or fails. The slices are
    /// consumed: on return they point at the part not written.
    fn write_at(&self, offset: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// Writes whole pages for a purpose, which only an encrypted file keeps.
    fn write_pages_at(
        &self,
        offset: u64,
        bufs: &mut [IoSlice<'_>],
        _purpose: Purpose,
    ) -> io::Result<()> {
        self.write_at(offset, bufs)
    }

    /// Makes the file `new_len` bytes long with all its blocks really allocated; does nothing if
    /// it is that long already. With `zeroed_written` the new part is also written once, because
    /// a later write into a never-written extent costs a journal commit with its flush.
    /// After an error the file has its old length.
    fn grow(&self, new_len: u64, zeroed_written: bool) -> io::Result<()>;

    /// Cuts the file to `new_len` bytes; does nothing if it is not longer.
    fn truncate(&self, new_len: u64) -> io::Result<()>;

    /// Makes everything written so far durable, and the length with it. After a failure all later
    /// calls fail, and those that were under way in other threads: nobody knows what was lost.
    fn sync_data(&self) -> io::Result<()>;

    /// Writes as [`write_at`](Self::write_at), and makes what it wrote durable, if not more. The file must have
    /// the bytes already. A failure is that of a flush.
    fn write_durably(&self, offset: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.write_at(offset, bufs)?;
        self.sync_data()
    }

    /// Makes durable what was written to a range, if not more. Nothing in it may depend on a length that the file has
    /// not had since a flush. Failures are as those of [`sync_data`](Self::sync_data).
    fn sync_range(&self, _offset: u64, _len: u64) -> io::Result<()> {
        self.sync_data()
    }

    /// Makes the entry of this file in its directory durable.
    fn sync_directory(&self) -> io::Result<()>;

    /// The base, if pages may be stored through the map: it was opened so, and no store can fail for
    /// want of space. To be asked by the writer only, before each group of stores that has to come
    /// after those before it.
    fn writable(&self) -> Option<*mut u8>;

    /// Advises the system how a range of the map will be used. The range is cut to the reserved
    /// part and widened to whole pages.
    fn advise(&self, offset: u64, len: u64, advice: Advice) -> io::Result<()>;

    /// Of each page of the system in a range inside the file, whether it is in memory. The range starts at
    /// a page.
    fn resident(&self, _offset: u64, _len: u64) -> io::Result<Vec<bool>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Which file this is.
    fn id(&self) -> FileId;

    /// A number that this file keeps as long as the system runs, and that no copy of it has. Not zero.
    fn home(&self) -> u64 {
        let FileId { device, inode } = self.id();
        home_of(&[device, inode])
    }

    /// A number that changes with every change of the file's bytes or length, whoever makes it: as far as the
    /// system reports, and often with other changes too. Not zero. `None` if nothing is known.
    fn stamp(&self) -> Option<u64> {
        None
    }

    /// Where it was found, without symbolic links.
    fn path(&self) -> &Path;

    /// The system's number for the open file, where there is one.
    fn descriptor(&self) -> Option<i32> {
        None
    }
}

/// What a page of an encrypted file was written for. It is read for nothing else: who chooses the bytes of a value
/// cannot have them read as a page of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// A page of a tree.
    Tree = 1,
    /// A part of a large value.
    Value = 2,
    /// A part of the free-space log.
    Log = 3,
}

/// What reads an encrypted file.
pub trait Decryption: Send + Sync {
    /// Makes pages readable at [`DataFile::base`], from the first to the last of so many. Fails with the number
    /// of the first one that nobody with the key has written in this place and, if one is named, for this purpose.
    /// The caller pins a snapshot in which they are in use.
    fn decrypt(&self, first: u64, count: u64, purpose: Option<Purpose>) -> Result<(), u64>;

    /// The same, from what the file has now, also of pages that are readable already.
    fn decrypt_again(&self, first: u64, count: u64, purpose: Option<Purpose>) -> Result<(), u64>;

    /// What proves that somebody with the key has written `meta`.
    fn authenticator(&self, meta: &[u8]) -> [u8; 32];

    /// Of a checksum over what is encrypted a number that says nothing to those without the key.
    fn blinded(&self, checksum: u64) -> u64;
}

/// How [`open_data`] opens a file.
#[derive(Clone, Copy, Debug)]
pub struct OpenFile {
    /// Open for reading only.
    pub read_only: bool,
    /// Create the file if it is missing; ignored with `read_only`.
    pub create: bool,
    /// Permissions of a created file, before the process's mask.
    pub mode: u32,
    /// Bytes of address space wanted; less is reserved where the system refuses.
    pub reserve: u64,
    /// Map the file for writing too; ignored with `read_only`.
    pub writable_map: WritableMap,
    /// Hand much to the kernel in one call: a flush follows, beside which what small writes cost later
    /// is little.
    pub large_calls: bool,
}

/// Whether a file is mapped for writing too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritableMap {
    /// Pages are written by system calls.
    No,
    /// Where the file system writes blocks that a file has got in their place: there a store
    /// through the map cannot fail for want of space.
    WhereSafe,
    /// In any case.
    Yes,
}

/// Opens a file and maps it. The flag is true if the file holds nothing yet, be it that it was
/// created by this call. Anything but a regular file or a block device is refused with
/// [`NotAStore`](crate::Error::NotAStore).
pub fn open_data(path: &Path, how: &OpenFile) -> Result<(Box<dyn DataFile>, bool)> {
    watch_forks();
    let file = system::File::open(path, how)?;
    let empty = file.is_empty().map_err(Error::io_at("read the length", path))?;
    Ok((Box::new(file), empty))
}

/// To be called before a store that others may write is opened for reading only: an error where they
/// would write another file.
pub(crate) fn prepare_shared_reading(path: &Path) -> Result<()> {
    system::prepare_shared_reading(path)
}

/// Whether nobody can write the file of an open descriptor, by whatever mount. In doubt false.
pub(crate) fn is_medium_read_only(descriptor: i32) -> bool {
    system::is_medium_read_only(descriptor)
}

/// Gives a file a name that nothing has yet; an error if something has it.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    system::rename_new(from, to)
}

/// Names this run of the system: two equal values mean that no restart lies between. Zeros if
/// unknown, which equal nothing: compare with [`same_boot`].
pub fn boot_id() -> [u8; 16] {
    system::boot_id()
}

/// Whether two boot ids are known and equal.
pub fn same_boot(a: &[u8; 16], b: &[u8; 16]) -> bool {
    a == b && *a != [0; 16]
}

/// A number that differs in a forked child from its parent's. Counting starts with the first
/// [`open_data`] or opened shared region of the process. A relaxed load.
#[inline]
pub fn fork_generation() -> u32 {
    system::fork_generation()
}

/// Starts counting forks; called before anything is opened that a child must not use.
pub(crate) fn watch_forks() {
    system::watch_forks();
}

/// When a process was started, in the system's clock ticks since it came up: with the process id
/// it names a process uniquely within one boot. `None` if there is none or it is hidden.
pub fn process_start_time(pid: u32) -> Option<u64> {
    system::process_start_time(pid)
}

/// Size of a page of the memory map.
pub fn os_page_size() -> usize {
    system::os_page_size()
}

/// Bytes of memory that this process may use, the kernel's cache of its files included; a large
/// number if unknown.
pub(crate) fn memory_limit() -> u64 {
    system::memory_limit()
}

/// Bytes of memory that this process may take for itself.
pub(crate) fn private_memory_limit(memory: u64) -> u64 {
    system::private_memory_limit(memory)
}

/// The calling thread's number in the system.
pub(crate) fn thread_id() -> u32 {
    system::thread_id()
}

/// Starts a thread of the store; the name has 15 bytes at most. It gets no signals: these are none of its
/// business.
pub(crate) fn spawn(
    name: &std::ffi::CStr,
    job: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    system::without_signals(|| system::spawn(name, job))
}

/// Has `last` run when the program ends in order (`exit`, the end of `main`), or when the library is
/// unloaded; also in forked children. It must not unwind.
pub(crate) fn at_exit(last: extern "C" fn()) {
    system::at_exit(last);
}

/// Nanoseconds of a clock that never goes back, as a number: the standard library's cost several times as much to
/// subtract and add up.
pub(crate) fn clock_ns() -> u64 {
    system::clock_ns()
}

/// Milliseconds of a clock that never goes back; coarse and therefore cheap.
pub(crate) fn coarse_ms() -> u64 {
    system::coarse_ms()
}
