//! Conversion of data files of the original LMDB, where `ZUBILO_CONVERT` in the environment asks for it:
//! `1` keeps the old file under its name with `.lmdb` added, `discard` does not.
//!
//! The new store is made beside the old file, which is only read, in one commit; it is compared with the
//! old file, gets its owner and mode, and is flushed before any name changes. Then the old file gets
//! its second name, and the new one its first, by a rename. So at any moment the name leads to the old
//! file or to the new one, whole. What a conversion that was killed has left is removed by the next one.
//!
//! Who takes part, in this order, each lock ending with its holder:
//! * an `flock` of the old file: of two conversions one waits, and finds the work done;
//! * the lock on the first byte of LMDB's lock file: each process that has the file open with LMDB holds
//!   it shared, and those that come wait for it. Who opens the file with `MDB_NOLOCK` is not seen, as
//!   LMDB itself does not see him; a commit of his during the conversion is.

use std::ffi::OsStr;
use std::fmt::{Display, Formatter};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use lmdb_file::{Error as OldError, LmdbFile};
use lmdb_import::{Error as ImportError, How, Import};
use zubilo::{Env, Geometry, Level, Options, VerifyReads};

use crate::abi::MAX_KEY;
use crate::beyond::show_anyway;
use crate::errors::{Code, Result};

const VARIABLE: &str = "ZUBILO_CONVERT";
/// Added to the name of the old file when it is kept, and of the new one until it is whole.
const KEPT: &str = ".lmdb";
const UNFINISHED: &str = ".converting";
/// Changed pages that an import holds in memory, in bytes.
const MEMORY: u64 = 64 << 20;
/// Address space for the new store, at least, in bytes.
const RESERVE: u64 = 1 << 40;

/// What the user wants done with data files of LMDB.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Refuse,
    Keep,
    Discard,
}

/// What an open that met a file of LMDB knows.
pub(super) struct Asked {
    pub(super) read_only: bool,
    /// Whether a lock file may be made.
    pub(super) lock_file: bool,
    /// Bytes of a page; 0 is the usual.
    pub(super) page_size: u32,
    /// The store is to be encrypted.
    pub(super) has_key: bool,
}

/// Why there was no conversion; the old file is as it was.
struct Refusal {
    code: Code,
    cause: String,
}

impl Refusal {
    fn new(code: Code, cause: impl Into<String>) -> Refusal {
        Refusal { code, cause: cause.into() }
    }

    /// Of a call of the system.
    fn io<'o>(op: &'o str, path: &'o Path) -> impl FnOnce(io::Error) -> Refusal + 'o {
        move |error| {
            let code = Code(error.raw_os_error().unwrap_or(libc::EIO));
            Refusal { code, cause: format!("cannot {op} {}: {error}", path.display()) }
        }
    }

    /// Of the new store.
    fn store(error: zubilo::Error) -> Refusal {
        let cause = error.to_string();
        Refusal { code: error.into(), cause }
    }

    fn busy(who: &str) -> Refusal {
        Refusal::new(Code(libc::EBUSY), format!("{who}; end that program first"))
    }
}

impl From<OldError> for Refusal {
    fn from(error: OldError) -> Refusal {
        let code = match &error {
            OldError::Io { source, .. } => Code(source.raw_os_error().unwrap_or(libc::EIO)),
            OldError::Unsupported(_) => Code::VERSION_MISMATCH,
            OldError::NotLmdb => Code::INVALID,
            _ => Code::CORRUPTED,
        };
        Refusal::new(code, error.to_string())
    }
}

impl From<ImportError> for Refusal {
    fn from(error: ImportError) -> Refusal {
        let cause = error.to_string();
        match error {
            ImportError::Old(error) => error.into(),
            ImportError::New { source, .. } => Refusal { code: source.into(), cause },
            ImportError::TooLong { .. } => Refusal { code: Code::BAD_VALSIZE, cause },
            _ => Refusal { code: Code::CORRUPTED, cause },
        }
    }
}

/// Converts the file at `path`, which was LMDB's a moment ago, if the user wants it. When it gives no
/// error the file is to be opened again: this call or another one has converted it.
pub(super) fn convert(path: &Path, asked: &Asked) -> Result<()> {
    let failed = |refusal: Refusal| {
        let Refusal { code, cause } = refusal;
        show_anyway(
            Level::Error,
            format_args!(
                "{} was written by the original LMDB and was not converted: {cause}",
                path.display()
            ),
        );
        code
    };
    match wish().map_err(failed)? {
        Wish::Refuse => {
            show_anyway(Level::Error, format_args!("{}", Advice(path)));
            Err(Code::VERSION_MISMATCH)
        }
        wish => alone(path, asked, wish).map_err(failed),
    }
}

/// What can be done with a file of LMDB.
struct Advice<'p>(&'p Path);

impl Display for Advice<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{0} was written by the original LMDB. Its records can be taken over: with \
             {VARIABLE}=1 in the environment the next open for writing converts the file and keeps \
             the old one as {0}{KEPT}; zubilo import {0} NEW makes another store",
            self.0.display()
        )
    }
}

fn wish() -> Result<Wish, Refusal> {
    // SAFETY: reads a number that the system gave the process. With rights that its user has not, a
    // process does nothing to files because of what the user has written into the environment.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return Ok(Wish::Refuse);
    }
    match std::env::var_os(VARIABLE).as_deref().and_then(OsStr::to_str) {
        None | Some("" | "0") => Ok(Wish::Refuse),
        Some("1") => Ok(Wish::Keep),
        Some("discard") => Ok(Wish::Discard),
        Some(other) => {
            let cause = format!("{VARIABLE} is \"{}\", not 1 or discard", other.escape_default());
            Err(Refusal::new(Code::EINVAL, cause))
        }
    }
}

/// Converts the file when nobody else can have it open.
fn alone(given: &Path, asked: &Asked, wish: Wish) -> Result<(), Refusal> {
    // The name that changes is that of the file itself; links to it lead to the new one then.
    let path = given.canonicalize().map_err(Refusal::io("find", given))?;
    let old = File::open(&path).map_err(Refusal::io("open", &path))?;
    let found = old.metadata().map_err(Refusal::io("look at", &path))?;
    wait_for(&old, asked.read_only).map_err(Refusal::io("lock", &path))?;
    if !is_at(&found, &path) {
        return Ok(());
    }
    if asked.read_only {
        let cause = "it is opened with MDB_RDONLY, which changes nothing; let a program open it for \
                     writing first";
        return Err(Refusal::new(Code::VERSION_MISMATCH, cause));
    }
    let lock = Options::default_lock_path(&path);
    let _held = hold(&lock, &found, asked.lock_file)?;
    // A symbolic link to the file itself has a lock file of LMDB's beside it.
    let beside_link = Options::default_lock_path(given);
    let other = !same(&beside_link, &lock);
    let _held = if other { hold(&beside_link, &found, false)? } else { None };
    let conversion = Conversion {
        old: LmdbFile::new(old)?,
        found,
        new: with(&path, UNFINISHED),
        kept: (wish == Wish::Keep).then(|| with(&path, KEPT)),
        path,
    };
    conversion.run(asked)?;
    let kept = conversion.kept.as_ref();
    let kept = kept.map(|kept| format!("; the old file is {}", kept.display()));
    show_anyway(
        Level::Info,
        format_args!(
            "{} was converted from the original LMDB{}",
            conversion.path.display(),
            kept.unwrap_or_default()
        ),
    );
    Ok(())
}

/// Waits until nobody else converts the file; who reads only does not keep others who do waiting.
fn wait_for(old: &File, shared: bool) -> io::Result<()> {
    loop {
        match if shared { old.lock_shared() } else { old.lock() } {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Whether the path still leads to the file.
fn is_at(file: &Metadata, path: &Path) -> bool {
    path.metadata().is_ok_and(|now| (now.dev(), now.ino()) == (file.dev(), file.ino()))
}

/// Whether two names that may not be there are one.
fn same(a: &Path, b: &Path) -> bool {
    let resolved = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?))
    };
    a == b || resolved(a).is_some_and(|a| Some(a) == resolved(b))
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Keeps programs of LMDB out while the result lives. Without `create` there may be no lock file: then
/// nobody holds it.
fn hold(lock: &Path, data: &Metadata, create: bool) -> Result<Option<File>, Refusal> {
    let mut how = OpenOptions::new();
    how.read(true).write(true);
    let file = match how.open(lock) {
        Err(error) if error.kind() == ErrorKind::NotFound && !create => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Who may not write it shall not keep others out by reading it.
            let writers = data.mode() & 0o222;
            let made = how.mode(0o600).create(true).open(lock);
            let made = made.map_err(Refusal::io("make", lock))?;
            give_owner(&made, data, lock)?;
            let mode = Permissions::from_mode(data.mode() & (writers | writers << 1) | 0o600);
            made.set_permissions(mode).map_err(Refusal::io("set the mode of", lock))?;
            made
        }
        opened => opened.map_err(Refusal::io("open", lock))?,
    };
    // SAFETY: all-zero bytes are a valid flock64, and the pid must be zero for this command.
    let mut byte: libc::flock64 = unsafe { std::mem::zeroed() };
    (byte.l_type, byte.l_whence, byte.l_len) = (libc::F_WRLCK as _, libc::SEEK_SET as _, 1);
    // SAFETY: the descriptor is open and the structure outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut byte) } {
        0 => Ok(Some(file)),
        _ => {
            let error = io::Error::last_os_error();
            Err(match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Refusal::busy("a process has it open"),
                _ => Refusal::io("lock", lock)(error),
            })
        }
    }
}

/// Gives a new file the owner that the old one has.
fn give_owner(file: &File, old: &Metadata, path: &Path) -> Result<(), Refusal> {
    let now = file.metadata().map_err(Refusal::io("look at", path))?;
    if (now.uid(), now.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    let given = fchown(file, Some(old.uid()), Some(old.gid()));
    given.map_err(Refusal::io("give the old file's owner and group to", path))
}

/// A conversion under way.
struct Conversion {
    old: LmdbFile<File>,
    /// What the old file was like.
    found: Metadata,
    path: PathBuf,
    /// The new store until it is whole.
    new: PathBuf,
    /// The old file's other name.
    kept: Option<PathBuf>,
}

impl Conversion {
    fn run(&self, asked: &Asked) -> Result<(), Refusal> {
        if self.old.info().one_meta_damaged {
            let cause = "one of its two metas is damaged, and with it perhaps the newest commit";
            return Err(Refusal::new(Code::CORRUPTED, cause));
        }
        if let Some(kept) = self.kept.as_ref().filter(|kept| self.is_taken(kept)) {
            let cause = format!("{} is another file; move it away first", kept.display());
            return Err(Refusal::new(Code(libc::EEXIST), cause));
        }
        self.remove_new().map_err(Refusal::io("remove", &self.new))?;
        let done = self.import(asked).and_then(|()| self.change_names());
        if done.is_err() {
            // What remains is of no use to anybody, and the next conversion tries it again.
            let _ = self.remove_new();
        }
        done
    }

    /// Whether a name is that of another file than the old one.
    fn is_taken(&self, name: &Path) -> bool {
        fs::symlink_metadata(name).is_ok() && !is_at(&self.found, name)
    }

    fn remove_new(&self) -> io::Result<()> {
        match fs::remove_file(&self.new) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Makes the new store, and compares it.
    fn import(&self, asked: &Asked) -> Result<(), Refusal> {
        let how = How { main_table: None, keep_orders: true, longest: MAX_KEY };
        let mut import = Import::plan(&self.old, how)?;
        let env = self.create(asked)?;
        let mut txn = env.write().map_err(Refusal::store)?;
        import.copy(&mut txn, &mut |_| true)?;
        txn.commit().map_err(Refusal::store)?;
        self.keep_map_size(&env).map_err(Refusal::store)?;
        env.close().map_err(Refusal::store)?;
        let options = self.options().read_only(true).create(false);
        let options = options.verify_reads(VerifyReads::FirstTouch);
        let env = options.open(&self.new).map_err(Refusal::store)?;
        import.verify(&env.read().map_err(Refusal::store)?, &mut |_| true)?;
        if !self.old.is_unchanged()? {
            return Err(Refusal::busy("a process writes to it"));
        }
        Ok(())
    }

    /// Nobody knows of the new store: it needs no lock file.
    fn options(&self) -> Options {
        Options::new().lock_file(false).reserve(RESERVE.max(self.found.len() * 4))
    }

    fn create(&self, asked: &Asked) -> Result<Env, Refusal> {
        // Nobody else reads it before it has the old file's mode.
        let options = self.options().mode(0o600).dirty_limit(MEMORY);
        let options = match asked.page_size {
            0 => options,
            bytes => options.page_size(bytes),
        };
        options.open(&self.new).map_err(Refusal::store)
    }

    /// A program that sets no map size finds the one that its file had.
    fn keep_map_size(&self, env: &Env) -> zubilo::Result<()> {
        let mut geometry = Geometry::default();
        geometry.upper = self.old.info().map_size.max(env.info()?.used_len);
        let mut txn = env.write()?;
        txn.set_geometry(geometry)?;
        txn.commit().map(drop)
    }

    /// Puts the new store, whole and on disk, in the old file's place.
    fn change_names(&self) -> Result<(), Refusal> {
        let new = File::open(&self.new).map_err(Refusal::io("open", &self.new))?;
        give_owner(&new, &self.found, &self.new)?;
        let mode = Permissions::from_mode(self.found.mode() & 0o7777);
        new.set_permissions(mode).map_err(Refusal::io("set the mode of", &self.new))?;
        new.sync_all().map_err(Refusal::io("flush", &self.new))?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let folder = File::open(folder).map_err(Refusal::io("open", folder))?;
        let flush = || folder.sync_all().map_err(Refusal::io("flush the folder of", &self.path));
        let mut linked = None;
        if let Some(kept) = self.kept.as_ref().filter(|kept| !is_at(&self.found, kept)) {
            let link = fs::hard_link(&self.path, kept);
            link.map_err(Refusal::io("give the old file the name", kept))?;
            linked = Some(kept);
        }
        // The second name is on disk before the first one goes.
        let renamed = flush().and_then(|()| {
            fs::rename(&self.new, &self.path).map_err(Refusal::io("replace", &self.path))
        });
        if renamed.is_err()
            && let Some(kept) = linked
        {
            let _ = fs::remove_file(kept);
        }
        renamed?;
        flush()
    }
}
