//! What a store reports about itself.

use std::time::Duration;

use crate::error::Result;
use crate::num::{PageNo, TxnId};
use crate::sync::Ordering;

use super::log::Level;
use super::options::Geometry;
use super::{EnvInner, checkpoint::MetaLock, metas};
use crate::shared::Word;

/// A live read transaction, in any process.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let read = env.read()?;
/// let readers = env.readers();
/// assert_eq!((readers.len(), readers[0].pid), (1, std::process::id()));
/// assert_eq!((readers[0].txn, readers[0].lag), (read.id(), 0));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderInfo {
    /// Its process.
    pub pid: u32,
    /// Its thread, as the system numbers threads.
    pub thread: u64,
    /// Its snapshot.
    pub txn: TxnId,
    /// Commits made since its snapshot.
    pub lag: u64,
    /// For how long its snapshot is no longer the newest; zero while it is. For so long it holds pages back.
    pub behind: Duration,
    /// The age of its snapshot, and at most so long it has been reading.
    pub age: Duration,
    /// It is parked ([`ReadTxn::park`](crate::ReadTxn::park)): it can be expired.
    pub is_parked: bool,
    pub(crate) slot: u32,
}

/// A meta page whose bytes are not those that were written there. That of a write which was cut off, as
/// by a power cut, is none.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// for meta in env.info()?.damaged_metas {
///     println!("meta {}: {} bad sectors, rebuilt: {}", meta.page, meta.sectors, meta.is_rebuilt);
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedMeta {
    /// The page.
    pub page: PageNo,
    /// Its damaged sectors of 512 bytes.
    pub sectors: usize,
    /// The commit that it is of, where that is still known.
    pub commit: Option<TxnId>,
    /// The other sectors show what the damaged one held: nothing is lost.
    pub is_rebuilt: bool,
}

impl DamagedMeta {
    /// Whether a commit newer than this one may have been lost with it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let info = env.info()?;
    /// if info.damaged_metas.iter().any(|meta| meta.may_be_newer_than(info.newest)) {
    ///     println!("copy the file before anything writes to it");
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn may_be_newer_than(&self, newest: TxnId) -> bool {
        !self.is_rebuilt && self.commit.is_none_or(|commit| commit > newest)
    }
}

impl std::fmt::Display for DamagedMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DamagedMeta { sectors, commit, is_rebuilt, .. } = self;
        write!(f, "the meta page")?;
        if let Some(commit) = commit {
            write!(f, " of commit {commit}")?;
        }
        match is_rebuilt {
            true => write!(f, " has a damaged sector, which the others make up for"),
            false => write!(f, " is damaged in {sectors} of 8 sectors and cannot be read"),
        }
    }
}

/// A meta page of a store and the commit that it names, see [`Env::stored_commits`](crate::Env::stored_commits).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// use zubilo::{Env, Options};
///
/// # Options::new().open(path)?.close()?;
/// for commit in Env::stored_commits(path)? {
///     println!("meta page {}: {:?}, {}, {} bytes", commit.page, commit.txn, commit.state, commit.used_len);
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCommit {
    /// The meta page.
    pub page: PageNo,
    /// The commit, where that is known.
    pub txn: Option<TxnId>,
    /// How much of it is there, as far as the meta shows.
    pub state: CommitState,
    /// Bytes of the file up to the last page that the commit uses.
    pub used_len: u64,
}

/// What a look at its meta shows of a commit. All but the newest one that is on disk may have lost pages to later
/// commits: only a full check ([`Env::check`](crate::Env::check)) of a store opened at it shows whether it is whole.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// use zubilo::{CommitState, Env, Options};
///
/// # Options::new().open(path)?.close()?;
/// let commits = Env::stored_commits(path)?;
/// assert!(commits.iter().any(|commit| commit.state == CommitState::OnDisk));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitState {
    /// Its pages were on disk before its meta, or those that it wrote are there.
    OnDisk,
    /// A page that it wrote is missing or damaged: it was cut off, or later commits have used the page.
    Incomplete,
    /// Nothing was flushed for it.
    Unflushed,
    /// The file ends before its last page: it was truncated, or later commits have cut it.
    Truncated,
    /// The write of the meta page was cut off. Its commit was never acknowledged.
    Torn,
    /// The meta page is damaged and cannot be read.
    Damaged,
    /// A transaction that was prepared: it waits for its decision, or that was made and the page not used since.
    Prepared,
}

impl std::fmt::Display for CommitState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CommitState::OnDisk => "on disk",
            CommitState::Incomplete => "incomplete",
            CommitState::Unflushed => "not flushed",
            CommitState::Truncated => "beyond the end of the file",
            CommitState::Torn => "cut off",
            CommitState::Damaged => "damaged",
            CommitState::Prepared => "prepared",
        })
    }
}

/// State and size of a store.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let info = env.info()?;
/// assert_eq!(info.page_size, env.page_size());
/// assert!(info.used_len <= info.file_len && info.readers.is_empty());
/// println!("commit {}, {} of {} bytes in use", info.newest, info.used_len, info.file_len);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EnvInfo {
    /// Bytes of a page.
    pub page_size: usize,
    /// Newest commit.
    pub newest: TxnId,
    /// Newest commit that is known to be on disk.
    pub steady: TxnId,
    /// A commit newer than `newest` that the file holds but that is not trusted: it was cut off
    /// before it was acknowledged, or its pages are damaged. The next write transaction wipes it.
    pub untrusted: Option<TxnId>,
    /// Meta pages that are damaged. With one that cannot be read a newer commit than `newest` may be
    /// lost, see [`DamagedMeta::may_be_newer_than`]: then copy the file and look what
    /// [`Salvage`](crate::Salvage) finds, before anything is written.
    pub damaged_metas: Vec<DamagedMeta>,
    /// Length of the file in bytes.
    pub file_len: u64,
    /// Bytes up to the last page ever used.
    pub used_len: u64,
    /// Bytes of address space reserved for the map.
    pub reserved: u64,
    /// Bounds and steps of the file.
    pub geometry: Geometry,
    /// Slots of the reader table.
    pub max_readers: u32,
    /// The live readers.
    pub readers: Vec<ReaderInfo>,
    /// Identity of the store, given at creation.
    pub uuid: [u8; 16],
    /// Its pages are encrypted.
    pub is_encrypted: bool,
}

impl EnvInfo {
    /// The snapshot of the oldest reader.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let read = env.read()?;
    /// assert_eq!(env.info()?.oldest_reader(), Some(read.id()));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn oldest_reader(&self) -> Option<TxnId> {
        self.readers.iter().map(|r| r.txn).min()
    }
}

impl EnvInner {
    /// State and size of the store.
    pub(crate) fn info(&self) -> Result<EnvInfo> {
        let env = self;
        env.check_alive()?;
        let (meta, untrusted, damaged_metas) = {
            let _lock = MetaLock::take(&env.shared)?;
            let meta = metas::load(env.data.as_ref(), &env.shared, env.shift)?;
            let damaged = metas::damaged(env.data.as_ref(), env.shift);
            (meta, metas::unpublished(&env.shared), damaged)
        };
        Ok(EnvInfo {
            page_size: env.page_size(),
            newest: TxnId(meta.txn),
            steady: TxnId(env.steady()),
            untrusted: untrusted.map(TxnId),
            damaged_metas,
            file_len: env.shared.word(Word::FileLen).load(Ordering::SeqCst),
            used_len: meta.end << env.shift,
            reserved: env.data.reserved(),
            geometry: meta.geometry.into(),
            max_readers: env.shared.max_readers(),
            readers: self.readers(),
            uuid: meta.uuid,
            is_encrypted: env.data.decryption().is_some(),
        })
    }

    /// The live read transactions of all processes.
    pub(crate) fn readers(&self) -> Vec<ReaderInfo> {
        let newest = self.shared.newest();
        let readers = self.shared.readers().into_iter();
        readers
            .map(|r| {
                let age = self.shared.age(&r);
                ReaderInfo {
                    pid: r.pid,
                    thread: r.thread,
                    txn: TxnId(r.txn),
                    lag: newest.saturating_sub(r.txn),
                    behind: age.behind,
                    age: age.snapshot,
                    is_parked: r.is_expirable,
                    slot: r.slot,
                }
            })
            .collect()
    }

    /// Ends a parked reader; false if it is at work, or has ended by itself.
    pub(crate) fn expire_reader(&self, reader: &ReaderInfo) -> Result<bool> {
        self.check_alive()?;
        let expired = self.shared.expire(reader.slot, reader.txn.0);
        if expired {
            let ReaderInfo { pid, thread, txn, .. } = reader;
            let what = format_args!("reader expired: process {pid}, thread {thread}, commit {txn}");
            self.log(Level::Warn, what);
        }
        Ok(expired)
    }

    /// Clears the slots of readers whose processes are gone, and gives their number. The writer
    /// does so by itself when such a reader holds pages back.
    pub(crate) fn clean_readers(&self) -> Result<u32> {
        self.check_alive()?;
        let cleaned = self.shared.clean_dead();
        if cleaned > 0 {
            let what = format_args!("{cleaned} readers of dead processes removed");
            self.log(Level::Warn, what);
        }
        Ok(cleaned)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, TxnId};

    #[test]
    fn reports_a_commit_that_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rolled-back");
        let env = Options::new().open(&path).unwrap();
        for value in ["first", "second"] {
            let mut txn = env.write().unwrap();
            txn.table_or_create("t").unwrap().put("key", value).unwrap();
            txn.commit().unwrap();
        }
        assert_eq!(env.info().unwrap().untrusted, None);
        env.close().unwrap();

        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(6).rposition(|w| w == b"second").unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let env = Options::new().open(&path).unwrap();
        let info = env.info().unwrap();
        assert_eq!((info.newest, info.untrusted), (TxnId(2), Some(TxnId(3))));
        let mut txn = env.write().unwrap();
        txn.table("t").unwrap().put("key", "third").unwrap();
        txn.commit().unwrap();
        assert_eq!(env.info().unwrap().untrusted, None);
    }
}
