//! The folder of a demonstration that keeps nothing. It goes with the demonstration: at its end, on
//! Ctrl-C, and if it was killed with the next one.
//!
//! Who owns a folder holds a lock on a file in it. Process numbers do not show it: another container
//! counts its own, and may share the folder for temporary files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::failure::Code;
use crate::output::to_stderr;

/// Folders of demonstrations begin so.
const PREFIX: &str = "zubilo-demo-";
/// Only a folder with this file is one. It appears when it is locked.
const LOCK: &str = "demonstration.lock";
const LOCK_BEFORE: &str = "demonstration.lock-new";

/// The folder of this process.
pub(super) struct Folder {
    dir: TempDir,
    /// Holds the lock.
    _lock: File,
}

/// What Ctrl-C removes.
static OURS: Mutex<Option<PathBuf>> = Mutex::new(None);

impl Folder {
    /// Makes the folder; removes those that killed demonstrations have left.
    pub(super) fn new() -> Result<Folder> {
        ctrlc::set_handler(interrupted).context("cannot listen for Ctrl-C")?;
        let folder = Folder::make().context("cannot make a folder for the store")?;
        remove_leftovers(&std::env::temp_dir(), folder.path());
        Ok(folder)
    }

    fn make() -> io::Result<Folder> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        *OURS.lock().unwrap_or_else(PoisonError::into_inner) = Some(dir.path().to_path_buf());
        let lock = File::create_new(dir.path().join(LOCK_BEFORE))?;
        lock.lock()?;
        fs::rename(dir.path().join(LOCK_BEFORE), dir.path().join(LOCK))?;
        Ok(Folder { dir, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn remove(self) -> Result<()> {
        self.dir.close().context("cannot delete the store")
    }
}

/// Ends the demonstration. Its other processes end when they hear nothing more from this one.
fn interrupted() {
    let removed = match &*OURS.lock().unwrap_or_else(PoisonError::into_inner) {
        // They may be making a file just now.
        Some(dir) => (0..10).any(|_| fs::remove_dir_all(dir).is_ok() || !dir.exists()),
        None => true,
    };
    to_stderr(match removed {
        true => "zubilo: demo: interrupted; the store is deleted",
        false => "zubilo: demo: interrupted; the store could not be deleted",
    });
    std::process::exit(Code::Interrupted as i32);
}

/// Removes what demonstrations of this user left that were killed. What cannot be removed stays.
fn remove_leftovers(temporary: &Path, ours: &Path) {
    let Ok(owner) = fs::metadata(ours).map(|m| m.uid()) else { return };
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let path = entry.path();
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let is_ours = || path.symlink_metadata().is_ok_and(|m| m.is_dir() && m.uid() == owner);
        if named && path != ours && is_ours() && is_left(&path.join(LOCK)) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Whether nobody holds the lock. Nobody takes it later: who makes a folder takes over no other one.
fn is_left(lock: &Path) -> bool {
    let is_file = lock.symlink_metadata().is_ok_and(|m| m.is_file());
    is_file && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
}
