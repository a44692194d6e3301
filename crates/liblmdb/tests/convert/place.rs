//! A folder with an environment of the original, and programs that open it on our library.

use std::ffi::c_uint;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::common::{self, ours};
use crate::old::{self, NOSUBDIR, Table};

/// The program `opener`, and the folder with our library under the name that programs ask for.
fn built() -> &'static (TempDir, PathBuf) {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["liblmdb.so.0", "liblmdb.so"] {
            std::fs::copy(common::library(), dir.path().join(name)).expect("the library");
        }
        let crate_ = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = dir.path().join("opener");
        let mut cc = Command::new("gcc");
        cc.args(["-std=c11", "-Wall", "-Werror", "-o"]).arg(&program);
        cc.arg(crate_.join("tests/c/opener.c")).arg("-I").arg(crate_.join("include"));
        cc.arg("-L").arg(dir.path()).arg("-llmdb");
        assert!(cc.status().expect("gcc runs").success());
        (dir, program)
    })
}

/// What a program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Said {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {text}", output.status);
        let code = String::from_utf8_lossy(&output.stdout).trim().parse();
        Said { code: code.expect("a number"), text }
    }
}

pub(crate) struct Place {
    dir: TempDir,
    pub(crate) tables: Vec<Table>,
    /// The old data file.
    pub(crate) bytes: Vec<u8>,
    /// Of the environment.
    pub(crate) flags: c_uint,
}

impl Place {
    /// With these tables, as the original writes them.
    pub(crate) fn new(tables: Vec<Table>, flags: c_uint) -> Place {
        let dir = tempfile::tempdir().expect("a directory");
        let mut place = Place { dir, tables, bytes: Vec::new(), flags };
        std::fs::create_dir(place.folder()).expect("a directory");
        old::write(&place.env(), flags, &place.tables);
        place.bytes = std::fs::read(place.data()).expect("the old file");
        place
    }

    /// A few records: a conversion of few steps.
    pub(crate) fn small() -> Place {
        let record = |n: u8| (vec![b'k', n], vec![n; if n == 7 { 9000 } else { 20 }]);
        let tables = vec![
            Table::new("", 0, (0..9).map(record).collect()),
            Table::new("many", old::DUPSORT, (0..9).map(|n| (vec![1], vec![n])).collect()),
            Table::new("backkeys", 0, (0..9).map(record).collect()),
        ];
        Place::new(tables, 0)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("env")
    }

    /// What programs name.
    pub(crate) fn env(&self) -> PathBuf {
        if self.flags & NOSUBDIR != 0 { self.data() } else { self.folder() }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join(if self.flags & NOSUBDIR != 0 { "some.db" } else { "data.mdb" })
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.folder().join(if self.flags & NOSUBDIR != 0 { "some.db-lock" } else { "lock.mdb" })
    }

    pub(crate) fn kept(&self) -> PathBuf {
        let mut name = self.data().into_os_string();
        name.push(".lmdb");
        name.into()
    }

    /// A program that opens it with these flags, too.
    pub(crate) fn opener(&self, wish: Option<&str>, flags: c_uint) -> Command {
        let (lib, program) = built();
        let mut command = Command::new(program);
        command.arg(self.env()).arg((self.flags | flags).to_string());
        command.env("LD_LIBRARY_PATH", lib.path()).env_remove("ZUBILO_CONVERT");
        command.envs(wish.map(|wish| ("ZUBILO_CONVERT", wish)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn open(&self, wish: Option<&str>, flags: c_uint) -> Said {
        Said::of(self.opener(wish, flags).output().expect("the program runs"))
    }

    /// Names in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder()).expect("the folder");
        let name = |e: std::io::Result<std::fs::DirEntry>| e.expect("a name").file_name();
        let mut names: Vec<_> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Nothing has happened to the old file, and nothing lies about.
    pub(crate) fn assert_untouched(&self) {
        assert!(
            std::fs::read(self.data()).expect("the file") == self.bytes,
            "the old file changed"
        );
        let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        let usual = [name(self.data()), name(self.lock())];
        let more: Vec<_> = self.names().into_iter().filter(|n| !usual.contains(n)).collect();
        assert!(more.is_empty(), "left behind: {more:?}");
    }

    /// The store has all that the old file had, which has another name now, whole.
    pub(crate) fn assert_converted(&self) {
        let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        let mut names = [self.data(), self.kept(), self.lock()].map(name);
        names.sort();
        assert_eq!(self.names(), names);
        assert!(std::fs::read(self.kept()).expect("the old file") == self.bytes);
        self.assert_holds();
    }

    pub(crate) fn assert_holds(&self) {
        let here = old::read(ours(), &self.env(), self.flags, &self.tables);
        let due = self.as_stored();
        for (here, due) in here.iter().zip(&due) {
            assert!(here == due, "{:?}: {} records", here.name, here.records.len());
        }
        assert_eq!(here.len(), due.len());
    }

    /// What the original reads from the old file.
    pub(crate) fn as_stored(&self) -> Vec<Table> {
        let copy = self.dir.path().join("copy.mdb");
        std::fs::write(&copy, &self.bytes).expect("a copy");
        old::read(common::original(), &copy, NOSUBDIR, &self.tables)
    }

    /// Owner, group and mode of the data file.
    pub(crate) fn rights(&self) -> (u32, u32, u32) {
        let found = self.data().metadata().expect("the file");
        (found.uid(), found.gid(), found.permissions().mode() & 0o7777)
    }

    /// Everybody may read and write it, and run the program.
    pub(crate) fn let_all_in(&self) {
        let (lib, program) = built();
        let library = lib.path().join("liblmdb.so.0");
        for path in [lib.path(), &library, program, self.dir.path(), &self.folder()] {
            std::fs::set_permissions(path, Permissions::from_mode(0o777)).expect("the mode");
        }
        for path in [self.data(), self.lock()] {
            std::fs::set_permissions(path, Permissions::from_mode(0o666)).expect("the mode");
        }
    }

    /// Puts the old file back as it was.
    pub(crate) fn restore(&self) {
        for name in self.names() {
            std::fs::remove_file(self.folder().join(name)).expect("it can go");
        }
        std::fs::write(self.data(), &self.bytes).expect("the file");
    }
}
