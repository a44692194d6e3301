//! Anonymous memory of the process, straight from the system: aligned for large pages, filled with
//! zeros, and refused with an error where an allocator would abort.

use std::io;
use std::ptr::NonNull;

/// Size of a large page on x86-64 and, with 4 KiB base pages, on AArch64.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// A mapping of zeros that nobody else has; unmapped by the drop.
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this value alone; it only hands out its address.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `len` bytes, a multiple of the system's page size. From [`LARGE_PAGE`] on they begin at a
    /// multiple of that and ask for large pages, which the system may refuse in silence.
    pub(crate) fn new(len: usize) -> io::Result<Memory> {
        if len < LARGE_PAGE {
            return Memory::map(len);
        }
        // The system aligns to its small pages: map more and cut both ends.
        let wide = len.checked_add(LARGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let wide = std::mem::ManuallyDrop::new(Memory::map(wide)?);
        let front = wide.base.as_ptr().align_offset(LARGE_PAGE);
        let back = LARGE_PAGE - front;
        // SAFETY: `front` is at most LARGE_PAGE, so all three ranges lie inside the mapping, whose
        // owner is forgotten; the middle one becomes this value's.
        unsafe {
            let base = wide.base.add(front);
            if front > 0 {
                libc::munmap(wide.base.as_ptr().cast(), front);
            }
            if back > 0 {
                libc::munmap(base.as_ptr().add(len).cast(), back);
            }
            libc::madvise(base.as_ptr().cast(), len, libc::MADV_HUGEPAGE);
            Ok(Memory { base, len })
        }
    }

    /// `len` bytes of address space, a multiple of the system's page size, which take memory as they are touched:
    /// small pages, which no core dump has.
    #[cfg(feature = "encryption")]
    pub(crate) fn reserve(len: usize) -> io::Result<Memory> {
        let memory = Memory::map_with(len, libc::MAP_NORESERVE)?;
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
            // SAFETY: the range is the map just made; the advice does not change its content.
            unsafe { libc::madvise(memory.base.as_ptr().cast(), len, advice) };
        }
        Ok(memory)
    }

    fn map(len: usize) -> io::Result<Memory> {
        Memory::map_with(len, 0)
    }

    fn map_with(len: usize, flags: i32) -> io::Result<Memory> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        // SAFETY: a new map at an address of the system's choice replaces nothing of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory { base, len })
    }

    /// Its first byte; all of it is readable and writable.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the one mapped; whoever uses the address keeps this value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
