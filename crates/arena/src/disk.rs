//! The space that a directory takes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Allocated and apparent bytes of all files below `dir`. Files that vanish meanwhile do not count.
pub(crate) fn usage(dir: &Path) -> (u64, u64) {
    let mut total = (0, 0);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        let (allocated, apparent) = match about.is_dir() {
            true => usage(&entry.path()),
            false => (about.blocks() * 512, about.len()),
        };
        total.0 += allocated;
        total.1 += apparent;
    }
    total
}

/// Bytes that may still be written to the file system of `dir`; as many as there can be if it gives no
/// answer.
pub(crate) fn free(dir: &Path) -> u64 {
    let Ok(path) = std::ffi::CString::new(dir.as_os_str().as_bytes()) else { return u64::MAX };
    // SAFETY: the structure is plain numbers, and the call fills the one that it is given; the path
    // ends with zero.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(path.as_ptr(), &mut about) {
            0 => about.f_bavail.saturating_mul(about.f_frsize),
            _ => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(dir.path().join("below/file"), vec![1; 10_000]).unwrap();
        let (allocated, apparent) = usage(dir.path());
        assert!(apparent == 10_000 && allocated <= 65536, "{allocated} of {apparent}");
        assert!((1..u64::MAX).contains(&free(dir.path())));
        assert_eq!(free(Path::new("/nowhere/at/all")), u64::MAX);
    }
}
