//! From a path to a handle: one store a file and process, and nothing that is no store is touched.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::env::choose;
use crate::env::encryption::{self, Prepared};
use crate::env::info::StoredCommit;
use crate::env::join::{self, Joined};
use crate::env::metas::{self, Found};
use crate::env::open as bring_up;
use crate::env::options::{DEFAULT_RESERVE, Durability, Options, VerifyReads};
use crate::error::{Error, Result};
use crate::maintenance::CHECKS;
use crate::platform::{self, DataFile, OpenFile, WritableMap};

use super::owner::Owner;
use super::{Env, registry};

/// How often a file that looks foreign beside a lock file is looked at anew, and the pause between two looks: a
/// creation writes one page, which takes longer only if it is stopped in the midst of that.
const CREATION_LOOKS: u32 = 100;
const CREATION_PAUSE: Duration = Duration::from_millis(2);

impl Options {
    /// Opens the store at `path`.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Env> {
        Env::open(path, self)
    }
}

pub(super) fn open(path: &Path, options: Options) -> Result<Env> {
    let options = checked(options)?;
    let how = OpenFile {
        read_only: options.read_only,
        create: options.create && !options.read_only,
        mode: options.mode,
        reserve: options.reserve,
        writable_map: match options.writable_map {
            Some(true) if options.redo_log.is_some_and(|bytes| bytes > 0) => WritableMap::Yes,
            _ if options.durability != Durability::NoSync => WritableMap::No,
            None => WritableMap::WhereSafe,
            Some(true) => WritableMap::Yes,
            Some(false) => WritableMap::No,
        },
        large_calls: options.durability == Durability::Sync,
    };
    if options.read_only && options.lock_file {
        platform::prepare_shared_reading(path)?;
    }
    let (data, _) = platform::open_data(path, &how)?;
    let place = registry::place(data.id());
    let mut known = place.lock();
    if let Some((env, owner)) = &*known
        && let (Some(inner), Some(owner)) = (env.upgrade(), owner.upgrade())
    {
        let env = &inner;
        if env.options.is_look() || options.at_commit.is_some() {
            return Err(Error::Busy(
                "this process has the store open, and one of the two opens is at a chosen commit: close \
                 the other one first",
            ));
        }
        match (&env.options.secret, &options.secret) {
            (Some(_), None) => return Err(Error::KeyMissing),
            (None, Some(_)) => return Err(Error::NotEncrypted),
            (of_store, given) if of_store != given => return Err(Error::WrongKey),
            _ => {}
        }
        if env.options.read_only && !options.read_only {
            return Err(Error::Busy("this process has the store open for reading only"));
        }
        if options.lock_file && !env.options.lock_file {
            return Err(Error::Busy(
                "this process has the store open without a lock file: other processes would not be kept out",
            ));
        }
        if options.exclusive && !env.options.exclusive {
            return Err(Error::Busy("this process has the store open, and not exclusively"));
        }
        return Ok(Env { inner, owner });
    }
    if let Some((env, _)) = &*known
        && let Some(env) = env.upgrade()
        && !(env.options.lock_file && options.lock_file)
    {
        // Its readers are in a table of its own, which no second one would see.
        return Err(Error::Busy(
            "a transaction or value of a closed handle is still alive, and the store has no lock \
             file: drop it first",
        ));
    }
    refuse_foreign(data.as_ref(), &options)?;
    let key = encryption::prepared(data.as_ref(), &options)?;
    let joined = join::join(data.as_ref(), data.path(), &options)?;
    let env = start(data, joined, key, platform::boot_id(), options)?;
    env.owner.start_redo_flusher()?;
    *known = Some((Arc::downgrade(&env.inner), Arc::downgrade(&env.owner)));
    Ok(env)
}

/// What the meta pages of a file name.
pub(super) fn stored_commits(path: &Path, options: &Options) -> Result<Vec<StoredCommit>> {
    let how = OpenFile {
        read_only: true,
        create: false,
        mode: 0,
        reserve: DEFAULT_RESERVE,
        writable_map: WritableMap::No,
        large_calls: false,
    };
    let (data, _) = platform::open_data(path, &how)?;
    let data = encryption::as_first(data, None, &options.clone().read_only(true))?;
    commits_of(data.as_ref(), platform::boot_id())
}

pub(super) fn commits_of(data: &dyn DataFile, boot_id: [u8; 16]) -> Result<Vec<StoredCommit>> {
    choose::commits(data, boot_id, &CHECKS)
}

pub(super) fn open_parts(
    data: Box<dyn DataFile>,
    path: Option<&Path>,
    boot_id: [u8; 16],
    options: Options,
) -> Result<Env> {
    let options = checked(options)?;
    let key = encryption::prepared(data.as_ref(), &options)?;
    let joined = match path {
        Some(path) => join::join(data.as_ref(), path, &options)?,
        None => Joined::alone(&options),
    };
    start(data, joined, key, boot_id, options)
}

/// Options that fit together.
fn checked(mut options: Options) -> Result<Options> {
    if !matches!(options.page_size, 4096 | 8192 | 16384 | 32768 | 65536) {
        return Err(Error::Invalid(
            "the page size must be 4, 8, 16, 32 or 64 KiB: Options::page_size",
        ));
    }
    if options.max_readers == 0 {
        return Err(Error::Invalid("a store needs at least one reader slot: Options::max_readers"));
    }
    if options.read_only && options.exclusive {
        return Err(Error::Invalid(
            "an exclusive open cannot be for reading only: Options::exclusive",
        ));
    }
    match (options.at_commit, options.read_only, options.discard_newer) {
        (None, _, true) => {
            return Err(Error::Invalid(
                "Options::discard_newer goes with a commit: name it with Options::at_commit",
            ));
        }
        (Some(_), false, false) => {
            return Err(Error::Invalid(
                "writing after an older commit loses all that are newer: open it for reading only, or \
                 promise with Options::discard_newer that they may go",
            ));
        }
        (Some(_), true, true) => {
            return Err(Error::Invalid(
                "an open for reading only cannot discard commits: Options::discard_newer",
            ));
        }
        _ => {}
    }
    if options.at_commit.is_some() {
        options.create = false;
    }
    if options.is_look() && options.verify == VerifyReads::Never {
        // What it shows may be in pages that others have used since.
        options.verify = VerifyReads::FirstTouch;
    }
    if options.secret.is_some() && options.redo_log.is_some_and(|bytes| bytes > 0) {
        return Err(Error::Invalid(
            "an encrypted store has no redo log: its records would be readable",
        ));
    }
    Ok(options)
}

/// Leaves a file that is no store alone, before anything is created beside it.
fn refuse_foreign(data: &dyn DataFile, options: &Options) -> Result<()> {
    let found = match metas::read(data)? {
        Found::Foreign(_) => settled(data, options)?,
        found => found,
    };
    match found {
        Found::Foreign(found) => {
            Err(Error::NotAStore { path: Box::new(data.path().to_path_buf()), found })
        }
        Found::Version(found) => Err(Error::version(found, data.path())),
        _ => Ok(()),
    }
}

/// What a file holds that looks foreign. Nobody is kept out yet: a store that another process creates in this moment
/// changes while it is read. Its lock file is there already.
fn settled(data: &dyn DataFile, options: &Options) -> Result<Found> {
    let usual = Options::default_lock_path(data.path());
    let lock = options.lock_path.as_deref().unwrap_or(&usual);
    for _ in 0..CREATION_LOOKS {
        let found = metas::read(data)?;
        if !matches!(found, Found::Foreign(_)) || !lock.exists() {
            return Ok(found);
        }
        std::thread::sleep(CREATION_PAUSE);
    }
    metas::read(data)
}

fn start(
    data: Box<dyn DataFile>,
    joined: Joined,
    key: Option<Prepared>,
    boot_id: [u8; 16],
    options: Options,
) -> Result<Env> {
    let data = encryption::unlocked(data, &joined, key, &options)?;
    let inner = bring_up::start(data, joined, boot_id, options, &CHECKS)?;
    let owner = Owner::start(&inner)?;
    Ok(Env { inner, owner })
}
