//! How a store is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::crypt::Secret;
use crate::env::log::Logger;
use crate::env::slow::SlowReaders;
use crate::num::TxnId;

/// What a commit promises when it returns.
///
/// ```
/// use zubilo::{Durability, Options};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// // A power cut takes what the last second, or the last 4 MiB, had committed.
/// let lazily = Durability::Lazy { sync_bytes: 4 << 20, sync_period: std::time::Duration::from_secs(1) };
/// let env = Options::new().durability(lazily).open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// // Now it does not.
/// env.sync()?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// On disk: nothing acknowledged is lost, whatever happens. One flush a commit.
    Sync,
    /// In the kernel: survives the end of the process; after a power cut the store is in the
    /// state of a recent commit, at most as old as these bounds and the time of one flush. A
    /// thread of the library flushes; no commit waits for it. The end of the program in order flushes
    /// what is left, also of handles that are never dropped. What a killed process has left is flushed
    /// by another one that has the store open with `Lazy`, within two periods, or when the next writer
    /// commits durably, syncs or closes.
    Lazy {
        /// Flush after this many bytes were committed.
        sync_bytes: u64,
        /// Flush when a commit has waited this long.
        sync_period: Duration,
    },
    /// As `Lazy`, but flushed only when [`Env::sync`](crate::Env::sync) is called or the store is closed with it.
    NoSync,
}

impl Durability {
    /// `Lazy` with bounds of 32 MiB and one second.
    pub const LAZY: Durability = Durability::Lazy {
        sync_bytes: Durability::LAZY_BOUNDS.0,
        sync_period: Durability::LAZY_BOUNDS.1,
    };

    pub(crate) const LAZY_BOUNDS: (u64, Duration) = (32 << 20, Duration::from_secs(1));
}

/// Bounds and steps of the file's size.
///
/// ```
/// use zubilo::{Error, Geometry, Options};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// let mut geometry = Geometry::default();
/// geometry.upper = 1 << 20;
/// let env = Options::new().geometry(geometry).open(path)?;
/// let full = env.update(|txn| txn.table_or_create("t")?.put("key", vec![7; 2 << 20]));
/// assert!(matches!(full, Err(Error::MapFull { .. })));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Geometry {
    /// The file is not cut below this many bytes.
    pub lower: u64,
    /// The file does not grow beyond this many bytes; `u64::MAX` is as far as the reserved
    /// address space goes.
    pub upper: u64,
    /// Least growth, in bytes; 0 lets the store choose (a sixteenth of the file, 256 KiB to 64 MiB). The
    /// file grows by no more than 1 GiB at a time, or its own length.
    pub growth: u64,
    /// The file is cut when this many bytes at its end are free; 0 lets the store choose (twice
    /// the growth), `u64::MAX` never cuts.
    pub shrink: u64,
}

impl Default for Geometry {
    fn default() -> Geometry {
        Geometry { lower: 0, upper: u64::MAX, growth: 0, shrink: 0 }
    }
}

/// How the store is checked in the background.
///
/// ```
/// use std::time::Duration;
/// use zubilo::{Options, Scrub};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// let daily = Scrub { bytes_per_second: 8 << 20, period: Duration::from_secs(24 * 3600) };
/// let env = Options::new().scrub(daily).open(path)?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrub {
    /// Bytes of tree pages read a second, at most.
    pub bytes_per_second: u64,
    /// From the begin of a pass to the begin of the next, if it takes less.
    pub period: Duration,
}

/// When page checksums are verified by readers (the last commit is verified at open anyway).
///
/// ```
/// use zubilo::{Options, VerifyReads};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// let env = Options::new().verify_reads(VerifyReads::FirstTouch).open(path)?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyReads {
    /// Not on reads: `zubilo chk` and [`Env::check`](crate::Env::check) do it.
    Never,
    /// Each page when it is first read after the store was opened.
    FirstTouch,
    /// Each page each time it is read.
    Always,
}

/// Address space that is reserved unless the caller sets another amount, in bytes.
pub(crate) const DEFAULT_RESERVE: u64 = 1 << 40;

/// Options of [`Env::open`](crate::Env::open), with defaults that need no thought.
///
/// ```
/// use zubilo::{Durability, Options};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// let options = Options::new().page_size(8192).durability(Durability::LAZY).max_readers(500);
/// let env = options.open(path)?;
/// assert_eq!(env.page_size(), 8192);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(crate) page_size: u32,
    pub(crate) durability: Durability,
    pub(crate) geometry: Option<Geometry>,
    pub(crate) reserve: u64,
    pub(crate) max_readers: u32,
    pub(crate) read_only: bool,
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) lock_file: bool,
    pub(crate) lock_path: Option<PathBuf>,
    pub(crate) writable_map: Option<bool>,
    pub(crate) dirty_limit: Option<u64>,
    pub(crate) mode: u32,
    pub(crate) verify: VerifyReads,
    pub(crate) huge_pages: bool,
    pub(crate) read_ahead: Option<bool>,
    pub(crate) scrub: Option<Scrub>,
    pub(crate) logger: Option<Logger>,
    pub(crate) audit: bool,
    pub(crate) slow_reader: Option<SlowReaders>,
    pub(crate) expire_behind: Option<Duration>,
    pub(crate) expire_held: Option<u64>,
    pub(crate) redo_log: Option<u64>,
    pub(crate) at_commit: Option<TxnId>,
    pub(crate) discard_newer: bool,
    pub(crate) reopen_after_fork: bool,
    pub(crate) secret: Option<Secret>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            page_size: 4096,
            durability: Durability::Sync,
            geometry: None,
            reserve: DEFAULT_RESERVE,
            max_readers: 1024,
            read_only: false,
            create: true,
            exclusive: false,
            lock_file: true,
            lock_path: None,
            writable_map: None,
            dirty_limit: None,
            mode: 0o644,
            verify: VerifyReads::Never,
            huge_pages: false,
            read_ahead: None,
            scrub: None,
            logger: None,
            audit: false,
            slow_reader: None,
            expire_behind: None,
            expire_held: None,
            redo_log: None,
            at_commit: None,
            discard_newer: false,
            reopen_after_fork: false,
            #[cfg(all(feature = "planted", feature = "encryption"))]
            secret: crate::planted::key().map(|key| Secret::key(&key)),
            #[cfg(not(all(feature = "planted", feature = "encryption")))]
            secret: None,
        }
    }
}

impl Options {
    /// The defaults: 4 KiB pages, [`Durability::Sync`], created if missing.
    pub fn new() -> Options {
        Options::default()
    }

    /// Page size of a new store: 4, 8, 16, 32 or 64 KiB. An existing store keeps its own.
    pub fn page_size(mut self, bytes: u32) -> Options {
        self.page_size = bytes;
        self
    }

    /// What commits promise. Each process and each open may choose its own.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Bounds and steps of the file; stored with the next commit.
    pub fn geometry(mut self, geometry: Geometry) -> Options {
        self.geometry = Some(geometry);
        self
    }

    /// Address space to reserve, in bytes (default 1 TiB; costs no memory). The file cannot grow
    /// beyond it while open.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// // On a machine, or under a limit, that has little address space.
    /// let env = Options::new().reserve(1 << 30).open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn reserve(mut self, bytes: u64) -> Options {
        self.reserve = bytes;
        self
    }

    /// Slots of a new reader table (default 1024).
    pub fn max_readers(mut self, slots: u32) -> Options {
        self.max_readers = slots;
        self
    }

    /// Open for reading only; works on a read-only file system too. On a read-only mount of one that
    /// others can write it is [`Error::Busy`](crate::Error::Busy): their writer could not see the reader.
    pub fn read_only(mut self, yes: bool) -> Options {
        self.read_only = yes;
        self
    }

    /// Whether a missing store is created (default true).
    pub fn create(mut self, yes: bool) -> Options {
        self.create = yes;
        self
    }

    /// Keep every other process out while the store is open.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// // A store that only this process uses, with everything in its place.
    /// let options = Options::new().exclusive(true).create(true).mode(0o600).dirty_limit(64 << 20);
    /// let env = options.open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn exclusive(mut self, yes: bool) -> Options {
        self.exclusive = yes;
        self
    }

    /// False: no lock file; the caller promises that no other process uses the store.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # Options::new().open(path)?.close()?;
    /// // For a store on a disk that nobody writes to.
    /// let env = Options::new().lock_file(false).read_only(true).open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn lock_file(mut self, yes: bool) -> Options {
        self.lock_file = yes;
        self
    }

    /// Where the lock file of this data file is, unless [`Options::lock_path`] names another: beside
    /// it, under its name with `-lock` added, and `lock.mdb` beside `data.mdb`. Those two are the
    /// names of LMDB, which the drop-in keeps: whoever opens its stores from Rust has to meet its
    /// programs in one lock file.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// assert_eq!(Options::default_lock_path("fruit.zubilo").to_str(), Some("fruit.zubilo-lock"));
    /// // All who open this store have to say the same.
    /// let env = Options::new().lock_path(path.with_extension("lock")).open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn default_lock_path(data: impl AsRef<Path>) -> PathBuf {
        let data = data.as_ref();
        if data.file_name().is_some_and(|name| name == "data.mdb") {
            return data.with_file_name("lock.mdb");
        }
        let mut lock = data.as_os_str().to_owned();
        lock.push("-lock");
        lock.into()
    }

    /// Where the lock file is, if not where [`Options::default_lock_path`] says. All users of a store
    /// must name the same.
    pub fn lock_path(mut self, path: impl Into<PathBuf>) -> Options {
        self.lock_path = Some(path.into());
        self
    }

    /// Whether pages are written through a writable map instead of system calls, with
    /// [`Durability::NoSync`]: half the CPU time of a small transaction, but a stray pointer of the
    /// process can damage the file. By default, where nothing else speaks against it: on ext4 and
    /// tmpfs, as long as the file is not longer than the memory that the process may use. Other file
    /// systems need space for each page that is written again, and a store through a map ends the
    /// process when there is none; beyond memory a store reads from the disk what it overwrites.
    ///
    /// With other kinds of durability it changes nothing: each flush write-protects the pages anew,
    /// on all CPUs, and the next store to each would be a page fault, dearer than a call.
    ///
    /// ```
    /// use zubilo::{Durability, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// // A cache: fast, and as safe from the program's own stray pointers as from anything else.
    /// let options = Options::new().durability(Durability::NoSync).writable_map(false);
    /// let env = options.huge_pages(true).read_ahead(true).open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn writable_map(mut self, yes: bool) -> Options {
        self.writable_map = Some(yes);
        self
    }

    /// Memory for the pages that a transaction has changed, in bytes; a larger transaction writes
    /// finished pages to free space early, and those that it changes again once more. By default an
    /// eighth of the memory that the process may use (the machine's, or what its control group or its
    /// limit of data leave), at least 16 MiB and at most 4 GiB. Each open store has a limit of its own.
    /// Of the pages 256 MiB, at most, are kept for the next transaction.
    pub fn dirty_limit(mut self, bytes: u64) -> Options {
        self.dirty_limit = Some(bytes);
        self
    }

    /// The limit in force where a process may use so much memory.
    pub(crate) fn dirty_limit_of(&self, memory: u64) -> u64 {
        self.dirty_limit.unwrap_or((memory / 8).clamp(16 << 20, 4 << 30))
    }

    /// Permission bits of new files (default 0644, less the umask). The lock file can be read by those
    /// only who may write it.
    pub fn mode(mut self, mode: u32) -> Options {
        self.mode = mode;
        self
    }

    /// When readers verify checksums.
    pub fn verify_reads(mut self, verify: VerifyReads) -> Options {
        self.verify = verify;
        self
    }

    /// Check the whole store in the background, again and again, while it is open
    /// ([`Env::scrub_report`](crate::Env::scrub_report)). Default: not.
    pub fn scrub(mut self, how: Scrub) -> Options {
        self.scrub = Some(how);
        self
    }

    /// The key of an encrypted store. A store that is created is encrypted with it: all of it but the metas, which say
    /// how large the store is and not what is in it. [`Error::WrongKey`](crate::Error::WrongKey) if it has another one;
    /// [`Error::NotEncrypted`](crate::Error::NotEncrypted) if it has none. To change the key, or to encrypt a store that is
    /// there, copy it: [`Env::copy_to_path_as`](crate::Env::copy_to_path_as).
    ///
    /// Pages are decrypted into memory of the process when they are first read, and stay there. There is no redo log, and
    /// pages are written by calls, never through the map.
    ///
    /// ```
    /// use zubilo::{Error, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let key = [7; 32]; // from wherever the program keeps it
    /// let env = Options::new().encryption_key(&key).open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// env.close()?;
    /// assert!(matches!(Options::new().open(path), Err(Error::KeyMissing)));
    /// assert!(matches!(Options::new().encryption_key(&[8; 32]).open(path), Err(Error::WrongKey)));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    #[cfg(feature = "encryption")]
    pub fn encryption_key(mut self, key: &[u8; 32]) -> Options {
        self.secret = Some(Secret::key(key));
        self
    }

    /// The passphrase of an encrypted store, instead of a key. The key is made of it with Argon2id, which takes 64 MiB
    /// of memory and a tenth of a second at each open, so that guessing is expensive.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let env = Options::new().passphrase("correct horse battery staple").open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    #[cfg(feature = "encryption")]
    pub fn passphrase(mut self, passphrase: impl AsRef<[u8]>) -> Options {
        self.secret = Some(Secret::passphrase(passphrase.as_ref()));
        self
    }

    /// The key or passphrase of other options.
    #[doc(hidden)]
    pub fn encrypted_like(mut self, other: &Options) -> Options {
        self.secret = other.secret.clone();
        self
    }

    /// Checks the whole store after each commit, as [`crate::Env::check`] does, before the next
    /// transaction can begin. Problems go to the logger, and the commit gives
    /// [`Error::Corrupted`](crate::Error::Corrupted), although it stands. A commit then costs as much as reading the store:
    /// for tests, and for finding the cause of damage.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let env = Options::new().audit(true).open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn audit(mut self, yes: bool) -> Options {
        self.audit = yes;
        self
    }

    /// Open at this commit instead of the newest one that can be trusted: for a store that is damaged.
    /// [`Env::stored_commits`](crate::Env::stored_commits) lists the commits that a file still names.
    ///
    /// With [`Options::read_only`] nothing in the file is changed. Pages of the commit may be damaged, or gone because
    /// later commits use them: reading those is an error, and checksums are verified
    /// at least as with [`VerifyReads::FirstTouch`]. Of a commit that was not flushed before a power cut, pages that never
    /// reached the disk may show what was in their places before; [`Env::check`](crate::Env::check) finds that, and copies
    /// are refused. Without it [`Options::discard_newer`] must be given. Either way
    /// the store must not be in use, and nobody else gets in while it is looked at.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// # for _ in 0..3 { env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?; }
    /// # env.close()?;
    /// use zubilo::{Env, Options};
    ///
    /// for commit in Env::stored_commits(path)?.iter().filter_map(|stored| stored.txn) {
    ///     let env = Options::new().at_commit(commit).read_only(true).open(path)?;
    ///     let is_whole = env.check(&mut |_, _| true).is_ok_and(|report| report.is_ok());
    ///     println!("commit {commit} is {}", if is_whole { "whole" } else { "damaged" });
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn at_commit(mut self, commit: TxnId) -> Options {
        self.at_commit = Some(commit);
        self
    }

    /// With [`Options::at_commit`], a promise: all commits after the chosen one may be lost. The open
    /// makes it the newest one, on disk, if it is whole (all of it is read), and fails with nothing changed if not. A
    /// stop in the middle of that leaves the store as it was before or as it is after.
    ///
    /// ```
    /// use zubilo::{Env, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # Options::new().open(path)?.close()?;
    /// let commits = Env::stored_commits(path)?;
    /// let oldest = commits.iter().filter_map(|stored| stored.txn).min().expect("a commit");
    /// // The store goes back to it, for ever.
    /// let env = Options::new().at_commit(oldest).discard_newer(true).open(path)?;
    /// assert_eq!(env.read()?.id(), oldest);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn discard_newer(mut self, yes: bool) -> Options {
        self.discard_newer = yes;
        self
    }

    /// In a forked child, an inherited handle opens the store again when it is used first, with the options that it was
    /// opened with (default false: it answers [`Error::Forked`](crate::Error::Forked)). From then on the child is a user
    /// of its own: it waits for a writer of the parent as any other process does, and it closes the store when the
    /// last inherited handle is dropped in the child.
    ///
    /// Transactions, readers and whatever hangs on them are never inherited: in the child they answer `Forked`, also
    /// one that was open at the fork. Functions given with the options, as [`Options::logger`],
    /// are called in the child too; they must not wait for a lock that a thread of the parent may have held. A store
    /// without a lock file, or open exclusively, is not shared with a child.
    ///
    /// Not the default, since a child that only runs another program should not open anything, and because an open can
    /// fail and take time.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// // Inherited by worker processes, as of a server that forks.
    /// let env = Options::new().reopen_after_fork(true).open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn reopen_after_fork(mut self, yes: bool) -> Options {
        self.reopen_after_fork = yes;
        self
    }

    /// Whether a chosen commit is only looked at.
    pub(crate) fn is_look(&self) -> bool {
        self.at_commit.is_some() && self.read_only
    }

    /// With a number of bytes, durable commits ([`Durability::Sync`]) append what they changed to a redo log
    /// inside the file, where that is less than their pages, and flush only that: small commits are then 1.2 to 2.4
    /// times as fast and write a fifth. After a power cut the next open makes the commits anew that are in the
    /// log only, which takes about as long as they took without their flushes.
    ///
    /// Commits of [`Durability::Lazy`] go to the log too. Within the bounds of that mode, and at each
    /// [`Env::sync`](crate::Env::sync), only the log is flushed; their pages follow when half of the log is used, or after a
    /// minute. The bound by bytes counts what was appended.
    ///
    /// The number is the greatest length of the log, 64 KiB to 1 GiB; 8 MiB is a good one. It begins short and grows with
    /// the store. A longer log means fewer writes and a longer open after a power cut.
    /// The store gets its log with the next durable commit and keeps it when it is closed. Handles that say nothing of a log
    /// leave it alone and append nothing. One that says 0 gives it back with its next commit: processes
    /// that write to one store in turn should say the same.
    ///
    /// What to know: such a store has version 3 of the file format. After a power cut it cannot be opened
    /// for reading only before somebody has opened it for writing.
    /// Handles without a lock file append nothing.
    /// With [`Options::writable_map`] the pages of such commits are stored through the map.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let env = Options::new().redo_log(8 << 20).open(path)?;
    /// for n in 0..100u32 {
    ///     // Durable when it returns.
    ///     env.update(|txn| txn.table_or_create("t")?.put(n.to_be_bytes(), "value"))?;
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn redo_log(mut self, bytes: u64) -> Options {
        self.redo_log = Some(bytes);
        self
    }

    /// Ask the kernel for huge pages under the map: faster reads of read-mostly stores, slower
    /// scattered writes.
    pub fn huge_pages(mut self, yes: bool) -> Options {
        self.huge_pages = yes;
        self
    }

    /// Whether the kernel reads ahead when a page is not in memory. By default as long as the file is not
    /// longer than the memory that the process may use (the machine's, or the limit of its control
    /// group), which is looked at when the store is opened and when this process makes the file longer.
    /// Beyond that what is read ahead drives out what is needed: a look-up then costs megabytes. Walks
    /// through such a store are slower without.
    pub fn read_ahead(mut self, yes: bool) -> Options {
        self.read_ahead = Some(yes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_pages_may_take_a_part_of_memory() {
        let of = |memory| Options::new().dirty_limit_of(memory);
        assert_eq!(of(24 << 30), 3 << 30);
        assert_eq!(of(64 << 20), 16 << 20);
        // Where nothing is known, or there is more than a transaction should take.
        assert_eq!(of(u64::MAX), 4 << 30);
        assert_eq!(Options::new().dirty_limit(5).dirty_limit_of(24 << 30), 5);
    }
}
