//! Joining those who use a store: its lock file, and the claim on its data file.
//!
//! * Whoever uses one data file together uses one lock file. The lock file names the data file that it
//!   belongs to, and the data file bears the locks of its users, placed by their lock file: so neither a
//!   second lock file nor a second data file goes unnoticed.
//! * Who cannot take part in a lock file that others may use is refused, never left by itself.

use std::path::Path;

use crate::error::{Error, Result};
use crate::platform::{self, Claim, DataFile, LockFile};
use crate::shared::{Role, Shared};

use super::metas::{self, Found};
use super::options::Options;

/// A place among the users of a store.
pub(crate) struct Joined {
    pub(super) shared: Shared,
    pub(super) role: Role,
    /// Held by being open. `None`: a store of this process alone.
    pub(super) claim: Option<Claim>,
    /// The claim could not be placed.
    pub(super) unclaimed: bool,
    /// Of a reader on a read-only medium; held by being open.
    pub(super) guard: Option<LockFile>,
    /// Of one who looks at a chosen commit; held by being open.
    pub(super) shut: Option<Shared>,
}

impl Joined {
    /// For [`Role::Joined`]: the page size's shift, as the others have published it.
    pub(super) fn shift(&self) -> u32 {
        self.shared.newest_root()[12] as u32
    }

    /// No other process takes part.
    pub(crate) fn alone(options: &Options) -> Joined {
        let shared = Shared::private(options.max_readers);
        Joined { shared, role: Role::First, claim: None, unclaimed: false, guard: None, shut: None }
    }
}

/// Takes part in what the lock file of `data` holds, or is the first to do so.
pub(crate) fn join(data: &dyn DataFile, path: &Path, options: &Options) -> Result<Joined> {
    if !options.lock_file {
        return Ok(Joined::alone(options));
    }
    // Beside the file itself: a process that came by a symbolic link must find the same one.
    let usual = Options::default_lock_path(path);
    let lock = options.lock_path.as_deref().unwrap_or(&usual);
    let claim = Claim::open(data, !is_usual(lock, &usual))?;
    if !options.exclusive && claim.as_ref().is_some_and(Claim::is_remote) {
        return Err(Error::Invalid(
            "the store lies on a network file system, where memory cannot be shared between \
             machines: open it with Options::exclusive",
        ));
    }
    let exclusive = options.exclusive || options.is_look();
    let opened = Shared::open(lock, options.mode, options.max_readers, exclusive, data.home());
    let (shared, role) = match opened {
        Err(Error::Io { source, .. })
            if options.read_only && source.kind() == std::io::ErrorKind::ReadOnlyFilesystem =>
        {
            return beside_nobody(data, lock, options);
        }
        opened => opened?,
    };
    if let Some(claim) = claim.as_ref().filter(|_| data.is_fixed()) {
        claim.take_device(path, role == Role::First)?;
    }
    let mut unclaimed = false;
    if let Some(claim) = &claim
        && let Some((lock, index)) = shared.entry()?
    {
        // The file may have come to this name under its readers. One that holds nothing has none.
        let is_new_here = !shared.has_claimed(data.home());
        let readers_too = is_new_here && !matches!(metas::read(data)?, Found::Nothing);
        unclaimed = !claim.take(lock, index, readers_too, data.path())?;
        shared.set_claimed(data.home());
    }
    if role == Role::Joined {
        compare_identity(data, &shared)?;
    }
    if options.is_look() {
        // The lock file is left as by an opener that was killed: what the users before knew stays in it.
        return Ok(Joined { claim, unclaimed, shut: Some(shared), ..Joined::alone(options) });
    }
    Ok(Joined { shared, role, claim, unclaimed, guard: None, shut: None })
}

/// Whether two paths of lock files are one, by whatever way to their folder.
fn is_usual(lock: &Path, usual: &Path) -> bool {
    let resolved = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    lock == usual || resolved(lock).is_some_and(|lock| Some(lock) == resolved(usual))
}

/// The lock file cannot be written here, because it is mounted so.
fn beside_nobody(data: &dyn DataFile, lock: &Path, options: &Options) -> Result<Joined> {
    if data.descriptor().is_some_and(platform::is_medium_read_only) {
        // Nobody writes it, by whatever mount: a reader table of one's own is enough. Should the medium become
        // writable, the lock keeps writers out.
        let guard = LockFile::closed_to_writers(lock).map_err(Error::io_at("lock", lock))?;
        return Ok(Joined { guard, ..Joined::alone(options) });
    }
    Err(Error::Busy(
        "the store is mounted for reading only, but its file system is not: others may write it \
         and could not see this reader; mount its folder writable, read a copy, or, if nobody \
         writes it meanwhile, open it without a lock file",
    ))
}

/// For the first user: which store the data file holds, for those who join.
pub(super) fn record_identity(data: &dyn DataFile, shared: &Shared) -> Result<()> {
    if let Found::Metas(metas) = metas::read(data)?
        && let Some((_, meta)) = metas.first()
    {
        shared.set_uuid(meta.uuid);
    }
    Ok(())
}

/// The file is the one that the others have open. What it holds may have been overwritten all the same.
fn compare_identity(data: &dyn DataFile, shared: &Shared) -> Result<()> {
    match metas::read(data)? {
        Found::Metas(metas) if !metas.iter().any(|(_, meta)| shared.has_uuid(meta.uuid)) => {
            Err(Error::Busy(
                "the data file was overwritten with another store while it was in use: end all \
                 processes that use it",
            ))
        }
        _ => Ok(()),
    }
}
