//! Limits the memory of this process by a cgroup, so that a store can be larger than memory.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::peers::{Fault, Outcome};

const ROOT: &str = "/sys/fs/cgroup";

/// The cgroup of this process; it is removed with the process that made it or by the driver.
pub(super) struct Fence {
    own: PathBuf,
    root: PathBuf,
}

impl Fence {
    /// What this process and its cache of files take from now on is limited to `bytes`.
    pub(super) fn around(bytes: u64) -> Outcome<Fence> {
        let second = Path::new(ROOT).join("cgroup.controllers").exists();
        let root = Path::new(ROOT).join(if second { "" } else { "memory" });
        let own = root.join(format!("arena-{}", std::process::id()));
        let refused = |what: &Path, error: std::io::Error| {
            Fault::Absent(format!("memory cannot be limited here: {}: {error}", what.display()))
        };
        if second {
            // Fails where it is on already by another way; the limit's own file shows it.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        }
        fs::create_dir(&own).map_err(|e| refused(&own, e))?;
        let fence = Fence { own, root };
        let names = if second {
            ["memory.max", "memory.swap.max"]
        } else {
            ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        };
        let limit = fence.own.join(names[0]);
        fs::write(&limit, bytes.to_string()).map_err(|e| refused(&limit, e))?;
        // There is no such file without swap.
        let _ = fs::write(
            fence.own.join(names[1]),
            if second { "0".into() } else { bytes.to_string() },
        );
        let members = fence.own.join("cgroup.procs");
        fs::write(&members, std::process::id().to_string()).map_err(|e| refused(&members, e))?;
        Ok(fence)
    }
}

/// Removes what a process that was killed has left.
pub(crate) fn release(process: u32) {
    for root in [Path::new(ROOT).to_owned(), Path::new(ROOT).join("memory")] {
        // Most have none, or have removed it themselves.
        let _ = fs::remove_dir(root.join(format!("arena-{process}")));
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // A cgroup can be removed when nobody is in it; one that stays limits nobody.
        let _ = fs::write(self.root.join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.own);
    }
}

/// What the store that was filled had in memory would not count against the limit when it is used again.
pub(super) fn give_memory_back() {
    // SAFETY: the call gives free memory of the allocator to the system; nothing that is used moves.
    unsafe { libc::malloc_trim(0) };
}

/// Takes the files below `dir` out of the kernel's cache: they are read again from the device.
pub(super) fn forget_files(dir: &Path) -> Outcome<()> {
    for entry in fs::read_dir(dir).map_err(Fault::of("read the directory"))? {
        let path = entry.map_err(Fault::of("read the directory"))?.path();
        if path.is_dir() {
            forget_files(&path)?;
            continue;
        }
        let file = fs::File::open(&path).map_err(Fault::of("open a file of the store"))?;
        file.sync_all().map_err(Fault::of("fsync"))?;
        // SAFETY: the descriptor is open; the call touches no memory.
        let code =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if code != 0 {
            return Err(Fault::Failed(format!("posix_fadvise: error {code}")));
        }
    }
    Ok(())
}
