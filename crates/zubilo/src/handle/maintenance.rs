//! What is done to a whole store, as its users ask for it.

use std::io::{Read, Write};
use std::ops::RangeBounds;
use std::path::Path;

use crate::env::options::Options;
use crate::error::Result;
use crate::maintenance::check::{self, CheckReport, PageVisit, SpaceInfo};
use crate::maintenance::compact::{self, CompactOptions, CompactReport};
use crate::maintenance::memory::{self, Residency, WarmUp};
use crate::maintenance::{ScrubReport, copy};
use crate::num::{PageNo, TxnId};
use crate::txn::bounds_of;

use super::Env;

impl Env {
    /// Checks the newest commit, all of it. `progress` gets pages done and pages in all from time
    /// to time and stops the check by giving false.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<CheckReport> {
        check::run(&self.here()?.inner, progress, &mut |_| true)
    }

    /// Checks the newest commit as [`Env::check`] does and shows each page to `visit` on the way,
    /// which stops the walk by giving false ([`Error::Stopped`](crate::Error::Stopped)).
    pub fn walk_pages(&self, visit: &mut dyn FnMut(&PageVisit<'_>) -> bool) -> Result<CheckReport> {
        check::run(&self.here()?.inner, &mut |_, _| true, visit)
    }

    /// How much of the file is free. Reads the free-space log, not the pages; needs no lock.
    pub fn space(&self) -> Result<SpaceInfo> {
        check::space(&self.here()?.inner)
    }

    /// Copies the newest commit to a new file, which must not exist. With `compact` free pages are
    /// left out and pages are filled. The copy is on disk when this returns. `progress` gets
    /// pages done and pages in all, and stops the copy by giving false ([`Error::Stopped`](crate::Error::Stopped)); what
    /// an unfinished copy left behind is removed.
    ///
    /// All that is copied is verified. Damage is an error, and there is no copy then; what is left of a
    /// damaged store [`Salvage`](crate::Salvage) brings out.
    ///
    /// The copy of an encrypted store is encrypted with the same key or passphrase.
    ///
    /// Nobody may do more with the copy than with the store: its mode is that of the store, less the
    /// process's mask; rights of the group only if the new file gets the same group.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let backup = path.with_extension("backup");
    /// env.copy_to_path(&backup, false, &mut |done, all| {
    ///     println!("{done} of {all} pages");
    ///     true
    /// })?;
    /// assert_eq!(Options::new().open(&backup)?.read()?.table("t")?.len(), 1);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn copy_to_path(
        &self,
        path: impl AsRef<Path>,
        compact: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<TxnId> {
        let inner = &self.here()?.inner;
        copy::to_path(inner, path.as_ref(), compact, inner.options.secret.as_ref(), progress)
    }

    /// As [`Env::copy_to_path`], with the key or passphrase of `like` instead of the store's: so a store gets another key, or
    /// becomes an encrypted one. Without a key in `like` the copy is not encrypted.
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # #[cfg(feature = "encryption")] {
    /// # let env = Options::new().open(path)?;
    /// let encrypted = Options::new().passphrase("correct horse battery staple");
    /// let path = path.with_extension("encrypted");
    /// env.copy_to_path_as(&path, true, &encrypted, &mut |_, _| true)?;
    /// encrypted.open(&path)?;
    /// # }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn copy_to_path_as(
        &self,
        path: impl AsRef<Path>,
        compact: bool,
        like: &Options,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<TxnId> {
        let inner = &self.here()?.inner;
        copy::to_path(inner, path.as_ref(), compact, like.secret.as_ref(), progress)
    }

    /// Streams a copy of the newest commit, to a pipe for example; otherwise as
    /// [`Env::copy_to_path`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let mut copy = Vec::new();
    /// let commit = env.copy_to_writer(&mut copy, true, &mut |_, _| true)?;
    /// assert_eq!((copy.len() % env.page_size(), commit), (0, env.read()?.id()));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn copy_to_writer(
        &self,
        out: &mut dyn Write,
        compact: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<TxnId> {
        let inner = &self.here()?.inner;
        copy::to_writer(inner, out, compact, inner.options.secret.as_ref(), progress)
    }

    /// As [`Env::copy_to_writer`], with the key or passphrase of `like` instead of the store's; see
    /// [`Env::copy_to_path_as`].
    ///
    /// ```
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = Options::new().open(path)?;
    /// // Whatever key the store has, the copy has none.
    /// let mut copy = Vec::new();
    /// env.copy_to_writer_as(&mut copy, false, &Options::new(), &mut |_, _| true)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn copy_to_writer_as(
        &self,
        out: &mut dyn Write,
        compact: bool,
        like: &Options,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<TxnId> {
        copy::to_writer(&self.here()?.inner, out, compact, like.secret.as_ref(), progress)
    }

    /// Streams what is new since an older commit, whose number a copy gave: its changes. With such a copy,
    /// or with it and the changes until then, [`restore`](crate::restore) makes a store of them.
    ///
    /// Of the store those parts are read that have changed, and one line of pages beside them: changes of one
    /// record are a few pages, however large the store. The older commit need not be pinned, nothing
    /// has to be prepared, and compaction in place only makes the changes longer. The rest is as in
    /// [`Env::copy_to_writer`]; what is written is verified first.
    ///
    /// [`Error::Invalid`](crate::Error::Invalid) if there is no such commit yet.
    ///
    /// With [`Lazy`](crate::Durability::Lazy) or [`NoSync`](crate::Durability::NoSync) call [`Env::sync`] before a copy or its changes are
    /// made: a power cut may take back a commit that is not on disk. Its number is used again then, and a copy of it is
    /// of another history: `restore` refuses changes of the new one. The same holds after
    /// [`discard_newer`](crate::Options::discard_newer), and for a copy that was written to.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = |name| dir.path().join(name);
    /// # fn show(path: impl Fn(&'static str) -> std::path::PathBuf) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path("store"))?;
    /// let sunday = env.copy_to_path(path("sunday"), false, &mut |_, _| true)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let mut monday = Vec::new();
    /// env.copy_changes_to_writer(sunday, &mut monday, &mut |_, _| true)?;
    ///
    /// zubilo::restore(path("sunday"), &mut [&mut &monday[..]], path("new"), &mut |_, _| true)?;
    /// let restored = zubilo::Options::new().open(path("new"))?;
    /// assert_eq!(restored.read()?.table("t")?.get("key")?, Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// # show(path).unwrap();
    /// ```
    pub fn copy_changes_to_writer(
        &self,
        since: TxnId,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<TxnId> {
        copy::changes_to_writer(&self.here()?.inner, since, out, progress)
    }

    /// As [`Env::copy_changes_to_writer`] into a new file, which must not exist; with the rights, and all or nothing,
    /// as [`Env::copy_to_path`]. Until it is on disk it is called `path` with `-part` added.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = |name| dir.path().join(name);
    /// # fn show(path: impl Fn(&'static str) -> std::path::PathBuf) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path("store"))?;
    /// let sunday = env.copy_to_path(path("sunday"), false, &mut |_, _| true)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let monday = env.copy_changes_to_path(sunday, path("monday"), &mut |_, _| true)?;
    /// assert_eq!(monday, env.read()?.id());
    /// # Ok(())
    /// # }
    /// # show(path).unwrap();
    /// ```
    pub fn copy_changes_to_path(
        &self,
        since: TxnId,
        path: impl AsRef<Path>,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<TxnId> {
        copy::changes_to_path(&self.here()?.inner, since, path.as_ref(), progress)
    }

    /// Makes the store smaller while it is used: pages are filled, what lies far out in the file is
    /// moved to free places further down, and the tail is cut. The content stays as it is.
    ///
    /// The work is done in many small write transactions, so readers go on and other writers get their
    /// turns; nothing is lost if it is interrupted, and it needs no more room in the file than two
    /// steps. With [`crate::Durability::Lazy`] and [`crate::Durability::NoSync`] each step is followed by
    /// [`Env::sync`]: what was replaced falls free only when its successor is on disk.
    ///
    /// `progress` gets pages looked at and about how many there will be, and ends the work by giving
    /// false; what was done until then stays.
    ///
    /// A damaged page is not written anew: it ends the work with [`Error::Corrupted`](crate::Error::Corrupted).
    pub fn compact(
        &self,
        options: &CompactOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<CompactReport> {
        compact::run(&self.here()?.inner, options, progress)
    }

    /// How much of the store is in memory, as the system reports. `visit` gets each page of the newest commit's
    /// part of the file, free ones among them. Costs a system call for 64 Ki pages and reads nothing.
    pub fn residency(&self, visit: &mut dyn FnMut(PageNo, bool)) -> Result<Residency> {
        // The snapshot keeps the file from being cut.
        let read = self.read()?;
        memory::residency(&self.here()?.inner, read.root().end, visit)
    }

    /// Brings the whole store into memory; gives the number of pages. `progress` gets pages done and pages in
    /// all, and stops the work by giving false ([`Error::Stopped`](crate::Error::Stopped)).
    ///
    /// Worth it before a store that fits into memory is asked at random: the disk then reads in order.
    ///
    /// ```
    /// use zubilo::WarmUp;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// // After a start, before the first request.
    /// env.warm_up(WarmUp::ReadAhead, &mut |done, all| {
    ///     println!("{done} of {all} pages");
    ///     true
    /// })?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn warm_up(&self, how: WarmUp, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<u64> {
        let read = self.read()?;
        memory::warm_all(&self.here()?.inner, read.root().end, how, progress)
    }

    /// Brings the records of `table` with keys inside `range` into memory, large values among them; gives the
    /// number of pages. The pages on the way to the leaves are read. `progress` as in [`Env::warm_up`]; the pages
    /// in all are those of the whole table.
    pub fn warm_up_table<K: AsRef<[u8]>>(
        &self,
        table: impl AsRef<[u8]>,
        range: impl RangeBounds<K>,
        how: WarmUp,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<u64> {
        let read = self.read()?;
        let table = read.table(table)?;
        memory::warm_table(&read, &table, &bounds_of(range), how, progress)
    }

    /// What the last check in the background found ([`Options::scrub`](crate::Options::scrub)); `None`
    /// before the first has ended, and in a forked child.
    pub fn scrub_report(&self) -> Option<ScrubReport> {
        // In a forked child the thread that may have locked it is not there.
        let here = self.here().ok()?;
        if here.inner.is_forked() { None } else { here.owner.scrubber.report() }
    }
}

/// Makes a new store at `to` of a copy, which is not changed, and of the changes since, in their order, each as
/// [`Env::copy_changes_to_writer`] wrote it. Gives the commit that the store is at.
///
/// The copy is one that was not compacted and has not been written to since. Changes that do not go on from it,
/// by number or by history, are [`Error::ForeignChanges`](crate::Error::ForeignChanges); damaged ones are
/// [`Error::Io`](crate::Error::Io) of the kind `InvalidData`.
///
/// All or nothing: the new file is checked as [`Env::check`] does, is on disk when this returns, and gets its
/// name last. Until then it is called `to` with `-part` added, which a process that was killed leaves behind.
/// `progress` gets pages done and pages in all, and stops the work by giving false
/// ([`Error::Stopped`](crate::Error::Stopped)).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = |name| dir.path().join(name);
/// # fn show(path: impl Fn(&'static str) -> std::path::PathBuf) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path("store"))?;
/// let sunday = env.copy_to_path(path("sunday"), false, &mut |_, _| true)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// env.copy_changes_to_path(sunday, path("monday"), &mut |_, _| true)?;
///
/// let mut monday = std::fs::File::open(path("monday")).unwrap();
/// let commit = zubilo::restore(path("sunday"), &mut [&mut monday], path("new"), &mut |_, _| true)?;
/// assert_eq!(commit, env.read()?.id());
/// # Ok(())
/// # }
/// # show(path).unwrap();
/// ```
pub fn restore(
    copy: impl AsRef<Path>,
    changes: &mut [&mut dyn Read],
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<TxnId> {
    // An encrypted one is refused: its changes cannot be had.
    let copy = Options::new().read_only(true).open(copy)?;
    let part = copy::Part::create(&copy.inner, to.as_ref())?;
    let filled = part.fill(&copy.inner, changes, &mut |done, all| progress(done, all * 2));
    let (txn, end) = filled?;
    let new = Options::new().read_only(true).lock_file(false).open(part.path())?;
    let checked = new.check(&mut |done, all| progress(end + done.min(all), end + all));
    let checked = checked.and_then(|report| report.into_result());
    checked.map_err(|error| copy::Part::blame(&copy.inner, changes.len(), error))?;
    drop(new);
    part.finish()?;
    Ok(txn)
}
