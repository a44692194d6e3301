//! A new file that has another name until all of it is there: so there is a whole one of the name that was asked
//! for, or none. What a killed process leaves behind is called as the file was to be, with `-part` added.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::env::EnvInner;
use crate::error::{Error, Result};
use crate::platform;

use super::{create, flush_directory};

/// A file that is not finished; dropped, it is removed.
pub(super) struct NewFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// The name it is to have.
    to: PathBuf,
    is_named: bool,
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_named {
            // The error that ended the work says more than one of the removal could.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl NewFile {
    /// A new file beside `to`, with no more rights than those of the store's file.
    pub(super) fn create(env: &EnvInner, to: &Path) -> Result<NewFile> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(Error::io_at("create", to)(ErrorKind::AlreadyExists.into()));
        }
        let mut name = OsString::from(to);
        name.push("-part");
        let path = PathBuf::from(name);
        let file = create(env, &path).map_err(Error::io_at("create", &path))?;
        Ok(NewFile { file, path, to: to.to_path_buf(), is_named: false })
    }

    /// Gives the file, which is on disk, its name, if nothing has taken that meanwhile.
    pub(super) fn finish(mut self) -> Result<()> {
        platform::rename_new(&self.path, &self.to).map_err(Error::io_at("create", &self.to))?;
        self.is_named = true;
        flush_directory(&self.to)
    }
}
