//! Where the files of an environment are. The lock file is where the engine has it by default, so that
//! programs in C and in Rust meet in one.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Data file of the environment at `path`.
pub(super) fn data_file(path: &CStr, no_subdir: bool) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    if no_subdir { path.to_path_buf() } else { path.join("data.mdb") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zubilo::Options;

    #[test]
    fn names_are_those_that_programs_expect() {
        let files = |path: &CStr, no_subdir| {
            let data = data_file(path, no_subdir);
            (Options::default_lock_path(&data), data)
        };
        let both = |data: &str, lock: &str| (PathBuf::from(lock), PathBuf::from(data));
        assert_eq!(files(c"db", false), both("db/data.mdb", "db/lock.mdb"));
        assert_eq!(files(c"/a/x.mdb", true), both("/a/x.mdb", "/a/x.mdb-lock"));
    }
}
