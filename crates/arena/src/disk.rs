//! The space that a directory takes.

use std::fs;
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
