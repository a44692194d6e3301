//! A data file in memory: hostile bytes are tried at once, and any of its calls can be made to fail.
//! What lies past its end cannot be touched, as in a map.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use zubilo::platform::{Advice, DataFile, FileId};
use zubilo::{Env, Options};

struct Memory {
    base: *mut u8,
    /// Address space taken for it.
    reserve: usize,
    len: AtomicU64,
    calls: AtomicI64,
    fail_at: AtomicI64,
    fail_for: AtomicI64,
    flushes: AtomicU64,
    writes: AtomicU64,
    /// Changes of bytes or length so far.
    changes: AtomicU64,
    /// As long as it is: a block device.
    fixed: AtomicBool,
}

// SAFETY: the bytes are reached by the engine, which orders its own accesses as for a real file.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `MemoryFile::new` with this length; nobody else unmaps it.
        unsafe { libc::munmap(self.base.cast(), self.reserve) };
    }
}

/// A handle on a file in memory.
#[derive(Clone)]
pub(crate) struct MemoryFile(Arc<Memory>);

impl MemoryFile {
    pub(crate) fn new(bytes: &[u8]) -> MemoryFile {
        MemoryFile::with_reserve(bytes, 256 << 20)
    }

    /// A file that can grow to so many bytes. What is not written takes no memory.
    pub(crate) fn with_reserve(bytes: &[u8], reserve: usize) -> MemoryFile {
        // SAFETY: a fresh private mapping, of which nothing can be touched yet.
        let base = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), reserve, libc::PROT_NONE, flags, -1, 0)
        };
        assert!(base != libc::MAP_FAILED);
        let file = MemoryFile(Arc::new(Memory {
            base: base.cast(),
            reserve,
            len: AtomicU64::new(0),
            calls: AtomicI64::new(0),
            fail_at: AtomicI64::new(i64::MAX),
            fail_for: AtomicI64::new(0),
            flushes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            changes: AtomicU64::new(1),
            fixed: AtomicBool::new(false),
        }));
        file.set_len(bytes.len() as u64);
        // SAFETY: `set_len` made these bytes usable.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), file.0.base, bytes.len()) };
        file
    }

    /// As a block device: its length does not change.
    pub(crate) fn fixed(bytes: &[u8]) -> MemoryFile {
        let file = MemoryFile::with_reserve(bytes, bytes.len());
        file.0.fixed.store(true, Ordering::SeqCst);
        file
    }

    fn set_len(&self, len: u64) {
        let usable = len.next_multiple_of(4096) as usize;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: both ranges lie inside the mapping.
        unsafe {
            assert_eq!(libc::mprotect(self.0.base.cast(), usable, both), 0);
            let rest = self.0.base.add(usable);
            assert_eq!(libc::mprotect(rest.cast(), self.0.reserve - usable, libc::PROT_NONE), 0);
        }
        self.0.len.store(len, Ordering::SeqCst);
        self.0.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The file itself.
    pub(crate) fn data(&self) -> Box<dyn DataFile> {
        Box::new(self.clone())
    }

    /// A store on this file, for one user, on the machine's boot number one.
    pub(crate) fn open(&self, options: Options) -> zubilo::Result<Env> {
        self.open_on_boot(1, options)
    }

    /// The same on another boot: what was not flushed before is not trusted.
    pub(crate) fn open_on_boot(&self, boot: u8, options: Options) -> zubilo::Result<Env> {
        Env::open_parts(Box::new(self.clone()), [boot; 16], options)
    }

    /// As [`open`](Self::open), with the lock file of a store at `path`.
    pub(crate) fn open_beside(&self, path: &Path, options: Options) -> zubilo::Result<Env> {
        Env::open_parts_shared(Box::new(self.clone()), path, [1; 16], options)
    }

    /// Where the map of the file starts, as a number.
    pub(crate) fn base(&self) -> usize {
        self.0.base as usize
    }

    /// Writes other bytes over those that are there, behind the back of the store.
    pub(crate) fn restore(&self, bytes: &[u8]) {
        self.set_len(bytes.len() as u64);
        // SAFETY: `set_len` made these bytes usable; the test has no store open.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.base, bytes.len()) };
    }

    /// Changes bits of a byte behind the back of the store; nobody may be reading.
    pub(crate) fn flip(&self, at: usize, bits: u8) {
        assert!((at as u64) < self.0.len.load(Ordering::SeqCst));
        // SAFETY: the byte lies below the length; the test reads nothing meanwhile.
        unsafe { *self.0.base.add(at) ^= bits };
    }

    /// A copy of all bytes.
    pub(crate) fn image(&self) -> Vec<u8> {
        let len = self.0.len.load(Ordering::SeqCst) as usize;
        // SAFETY: bytes below the length are usable; the test has no transaction open.
        unsafe { std::slice::from_raw_parts(self.0.base, len) }.to_vec()
    }

    /// The calls from the `nth` on (0: the next) fail, as many as `count`.
    pub(crate) fn fail(&self, nth: i64, count: i64) {
        self.0.calls.store(0, Ordering::SeqCst);
        self.0.fail_at.store(nth, Ordering::SeqCst);
        self.0.fail_for.store(count, Ordering::SeqCst);
    }

    /// No call fails from now on; returns whether one did.
    pub(crate) fn heal(&self) -> bool {
        let reached = self.0.calls.load(Ordering::SeqCst) > self.0.fail_at.load(Ordering::SeqCst);
        self.fail(i64::MAX, 0);
        reached
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.0.len.load(Ordering::SeqCst)
    }

    /// Flushes so far.
    pub(crate) fn flushes(&self) -> u64 {
        self.0.flushes.load(Ordering::SeqCst)
    }

    /// Write requests so far: each is one stretch of the file.
    pub(crate) fn writes(&self) -> u64 {
        self.0.writes.load(Ordering::SeqCst)
    }

    fn call(&self) -> io::Result<()> {
        let n = self.0.calls.fetch_add(1, Ordering::SeqCst);
        let first = self.0.fail_at.load(Ordering::SeqCst);
        if n >= first && n - first < self.0.fail_for.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(())
    }
}

// SAFETY: the memory is mapped once, as long as told, and only the engine writes to it.
unsafe impl DataFile for MemoryFile {
    fn base(&self) -> *const u8 {
        self.0.base
    }

    fn reserved(&self) -> u64 {
        self.0.reserve as u64
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len.load(Ordering::SeqCst))
    }

    fn write_at(&self, offset: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.call()?;
        self.0.writes.fetch_add(1, Ordering::SeqCst);
        self.0.changes.fetch_add(1, Ordering::SeqCst);
        let mut at = offset as usize;
        for buf in bufs {
            let len = self.0.len.load(Ordering::SeqCst) as usize;
            assert!(at + buf.len() <= len, "a write of {} bytes at {at} in {len}", buf.len());
            // SAFETY: the range lies below the length, which is usable.
            unsafe { std::ptr::copy_nonoverlapping(buf.as_ptr(), self.0.base.add(at), buf.len()) };
            at += buf.len();
        }
        Ok(())
    }

    fn grow(&self, new_len: u64, _zeroed_written: bool) -> io::Result<()> {
        self.call()?;
        if new_len > self.0.reserve as u64 {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        if new_len > self.0.len.load(Ordering::SeqCst) {
            self.set_len(new_len);
        }
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        self.0.fixed.load(Ordering::SeqCst)
    }

    fn truncate(&self, new_len: u64) -> io::Result<()> {
        self.call()?;
        if !self.is_fixed() && new_len < self.0.len.load(Ordering::SeqCst) {
            self.set_len(new_len);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.call()?;
        self.0.flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.call()
    }

    fn writable(&self) -> Option<*mut u8> {
        None
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) -> io::Result<()> {
        Ok(())
    }

    fn id(&self) -> FileId {
        FileId { device: 0, inode: self.0.base as u64 }
    }

    fn stamp(&self) -> Option<u64> {
        Some(self.0.changes.load(Ordering::SeqCst))
    }

    fn path(&self) -> &Path {
        Path::new("memory")
    }
}
