//! Where the files of an environment are.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Data file and lock file of the environment at `path`.
pub(super) fn files(path: &CStr, no_subdir: bool) -> (PathBuf, PathBuf) {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    if no_subdir {
        let mut lock = path.as_os_str().to_owned();
        lock.push("-lock");
        (path.to_path_buf(), lock.into())
    } else {
        (path.join("data.mdb"), path.join("lock.mdb"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_programs_expect() {
        let both = |data: &str, lock: &str| (PathBuf::from(data), PathBuf::from(lock));
        assert_eq!(files(c"db", false), both("db/data.mdb", "db/lock.mdb"));
        assert_eq!(files(c"/a/x.mdb", true), both("/a/x.mdb", "/a/x.mdb-lock"));
    }
}
