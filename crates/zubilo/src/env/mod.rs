//! The open store: file, map, lock file, and the state that its transactions share.
//!
//! [`Env`] is a cheap handle on [`EnvInner`], which lives as long as any handle or transaction.
//! One process opens a file once: a second open of the same file gives the same store. Modules
//! here own one thing each: `open` brings a file to life, `meta`/`metas` the anchors of commits,
//! `free_space` the way to the free-space log, `checkpoint` weak commits becoming steady, `flusher` the thread
//! that asks for it, `scrub` the thread that looks for damage, `log` the messages to the caller.

mod adopt;
pub(crate) mod checkpoint;
pub(crate) mod flusher;
mod free_space;
pub(crate) mod geometry;
pub(crate) mod info;
mod join;
pub(crate) mod log;
pub(crate) mod meta;
pub(crate) mod metas;
mod open;
pub(crate) mod options;
mod registry;
pub(crate) mod scrub;
pub(crate) mod verify;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as StdOrdering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::dirty::Arena;
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::planted::{Bug, has};
use crate::platform::{self, Claim, DataFile};
use crate::shared::{RootWords, Shared, Word};
use crate::space::Space;
use crate::space::log::FreeSpaceLog;
use crate::sync::Ordering;
use crate::tree::TreeDesc;
use crate::tree::desc::DESC_WORDS;
use crate::txn::group::GroupQueue;
use crate::txn::{ReadTxn, Reader, WriteTxn};

pub(crate) use self::adopt::adopt;
use self::flusher::Flusher;
use self::log::Level;
use self::meta::Meta;
use self::options::{Durability, Options};
use self::scrub::{ScrubReport, Scrubber};
use self::verify::Verifier;

/// An open store. Clones are handles on the same store; the last one closes it.
#[derive(Clone)]
pub struct Env {
    pub(crate) inner: Arc<EnvInner>,
    /// Ends the flusher when the last handle goes; transactions do not hold it.
    _closer: Arc<flusher::Closer>,
}

/// What all handles and transactions of an open store share.
pub(crate) struct EnvInner {
    pub(crate) data: Box<dyn DataFile>,
    /// Held by being open; given up before the lock file.
    _claim: Option<Claim>,
    pub(crate) shared: Shared,
    pub(crate) options: Options,
    pub(crate) shift: u32,
    /// See [`EnvInner::reach`]. Users of the store cut the file behind the newest commit only.
    reach: AtomicU64,
    pub(crate) boot_id: [u8; 16],
    pub(crate) verifier: Option<Verifier>,
    pub(crate) flusher: Flusher,
    pub(crate) scrubber: Scrubber,
    pub(crate) group: GroupQueue,
    pub(crate) close_without_sync: AtomicBool,
    /// The last handle is gone, and made durable what was committed. A write transaction may have
    /// stayed: nobody would flush its commit later.
    pub(crate) closed: AtomicBool,
    /// The geometry of the options is not stored yet.
    pub(crate) geometry_pending: AtomicBool,
    /// Bytes of memory for what a transaction has changed.
    pub(crate) dirty_limit: u64,
    /// Bytes of memory that this process may use.
    pub(crate) memory: AtomicU64,
    /// The file is longer than that.
    pub(crate) outgrown: AtomicBool,
    /// Commits are lazy although the options say `Sync`.
    pub(crate) lazy_now: AtomicBool,
    fork_generation: u32,
    writer: Mutex<Option<Box<WriterState>>>,
    checkpointing: Mutex<()>,
}

/// What the writer keeps between its transactions; rebuilt from the file when another process
/// committed or a commit failed.
pub(crate) struct WriterState {
    pub(crate) space: Space,
    /// The meta of the newest commit.
    pub(crate) meta: Meta,
    pub(crate) log: FreeSpaceLog,
    pub(crate) arena: Option<Arena>,
    /// The last commit found no long run; see `txn::clean`.
    pub(crate) scattered: bool,
    pub(crate) pins: Vec<u64>,
}

/// The root of a snapshot, as it stands in the lock file.
#[derive(Clone, Copy)]
pub(crate) struct Root {
    pub(crate) txn: u64,
    pub(crate) end: u64,
    pub(crate) main: TreeDesc,
    pub(crate) canary: [u64; 4],
}

impl Root {
    pub(crate) fn of(meta: &Meta) -> Root {
        Root { txn: meta.txn, end: meta.end, main: meta.main, canary: meta.canary }
    }

    pub(crate) fn to_words(self, shift: u32) -> RootWords {
        let mut words = RootWords::default();
        words[0] = self.txn;
        words[1] = self.end;
        words[2..2 + DESC_WORDS].copy_from_slice(&self.main.to_words());
        words[12] = u64::from(shift);
        words[13..17].copy_from_slice(&self.canary);
        words
    }

    #[inline(always)]
    pub(crate) fn from_words(words: &RootWords) -> Option<Root> {
        let main = TreeDesc::from_words(words[2..].first_chunk::<DESC_WORDS>()?)?;
        let canary = *words[13..].first_chunk()?;
        Some(Root { txn: words[0], end: words[1], main, canary })
    }
}

impl Env {
    /// Opens the store at `path`, creating it if the options say so. The file's lock file lies
    /// beside it, with `-lock` added to its name (a symbolic link is followed first; a file with
    /// two names must be opened by one of them). A second open of the same file in one process
    /// gives a handle on the same store, with the options of the first.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Env> {
        open::open(path.as_ref(), options)
    }

    /// A store on a given file and system: for simulation.
    #[doc(hidden)]
    pub fn open_parts(data: Box<dyn DataFile>, boot_id: [u8; 16], options: Options) -> Result<Env> {
        open::open_parts(data, None, boot_id, options)
    }

    /// As [`Env::open_parts`], with the lock file of a store at `path`: several stores opened on one
    /// file and one path are as the handles of several processes.
    #[doc(hidden)]
    pub fn open_parts_shared(
        data: Box<dyn DataFile>,
        path: &Path,
        boot_id: [u8; 16],
        options: Options,
    ) -> Result<Env> {
        open::open_parts(data, Some(path), boot_id, options)
    }

    pub(crate) fn from_inner(inner: Arc<EnvInner>, closer: Arc<flusher::Closer>) -> Env {
        Env { inner, _closer: closer }
    }

    /// Begins a read transaction: a snapshot of the newest commit. Never waits.
    pub fn read(&self) -> Result<ReadTxn> {
        ReadTxn::begin(&self.inner)
    }

    /// For many short read transactions in one place: a [`Reader`] begins each of them faster.
    pub fn reader(&self) -> Result<Reader> {
        Reader::new(&self.inner)
    }

    /// Begins the write transaction; waits while another thread or process has it. The transaction
    /// belongs to this thread. A second one in the same thread is [`Error::Busy`].
    pub fn write(&self) -> Result<WriteTxn> {
        WriteTxn::begin(&self.inner, true)?.ok_or(Error::Busy("the writer lock is taken"))
    }

    /// Begins the write transaction if no one else has it.
    pub fn try_write(&self) -> Result<Option<WriteTxn>> {
        WriteTxn::begin(&self.inner, false)
    }

    /// Runs `change` in a write transaction of its own and commits it. Calls that come while a
    /// commit is under way are gathered: each runs in a nested transaction, and all share one
    /// commit and one flush. An error or panic undoes its own closure's changes only.
    ///
    /// `change` may run on another thread (one that is waiting in `update` itself), where it gets
    /// [`Error::Busy`] if it begins to write, or calls `update`: so does the `Drop` of what it holds.
    /// What it gives is dropped on the caller's own thread, outside of the transaction and of all locks.
    /// Nested levels that it opens end with it; it can neither end those of others nor commit.
    pub fn update<T, F>(&self, change: F) -> Result<T>
    where
        F: FnOnce(&mut WriteTxn) -> Result<T> + Send,
        T: Send,
    {
        crate::txn::group::update(&self.inner, change)
    }

    /// Makes everything committed so far durable. Waits for the disk, not for transactions.
    pub fn sync(&self) -> Result<()> {
        self.inner.check_alive()?;
        checkpoint::checkpoint(&self.inner)
    }

    /// Makes what is committed durable and closes this handle. Dropping the last handle does the
    /// same but cannot tell of an error.
    pub fn close(self) -> Result<()> {
        if self.inner.options.read_only { Ok(()) } else { self.sync() }
    }

    /// Closes this handle; if it is the last one, without making weak commits durable first.
    pub fn close_without_sync(self) {
        if Arc::strong_count(&self._closer) == 1 {
            self.inner.close_without_sync.store(true, StdOrdering::SeqCst);
        }
    }

    /// What the last check in the background found ([`Options::scrub`]); `None` before the first
    /// has ended.
    pub fn scrub_report(&self) -> Option<ScrubReport> {
        self.inner.scrubber.report()
    }

    /// In a store opened with [`Durability::Sync`]: from now on commits of this process are as with
    /// [`Durability::LAZY`], or durable again. What was committed before the change keeps its kind.
    pub fn set_lazy(&self, lazy: bool) -> Result<()> {
        self.inner.check_writable()?;
        if lazy {
            self._closer.start_flusher(Durability::LAZY_BOUNDS)?;
        }
        self.inner.lazy_now.store(lazy, StdOrdering::Relaxed);
        Ok(())
    }

    /// The data file's path.
    pub fn path(&self) -> &Path {
        self.inner.data.path()
    }

    /// The system's number for the open data file, for those who lock or examine it by their own
    /// means. Nothing must be written through it.
    pub fn descriptor(&self) -> Option<i32> {
        self.inner.data.descriptor()
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    /// Longest key, in bytes.
    pub fn max_key_len(&self) -> usize {
        crate::page::max_key(self.inner.page_size())
    }
}

impl EnvInner {
    pub(crate) fn page_size(&self) -> usize {
        1 << self.shift
    }

    /// Pages that were seen to lie in the file, and in the address space reserved for its map.
    #[inline]
    pub(crate) fn reach(&self) -> u64 {
        self.reach.load(StdOrdering::Relaxed)
    }

    /// Makes sure that the first `end` pages can be touched.
    #[cold]
    pub(crate) fn reach_out(&self, end: u64) -> Result<()> {
        if end > self.data.reserved() >> self.shift {
            return Err(Error::Invalid(
                "another process has grown the store beyond the address space reserved here; \
                 reopen with a larger Options::reserve",
            ));
        }
        let len = self.data.len();
        let len = len.map_err(Error::io_at("find the length of", self.data.path()))?;
        if end > len >> self.shift {
            return Err(Error::Corrupted {
                page: PageNo(len >> self.shift),
                reason: "the file was truncated while it was in use: it ends before this page",
            });
        }
        let within = len.min(self.data.reserved()) >> self.shift;
        self.reach.fetch_max(within, StdOrdering::Relaxed);
        Ok(())
    }

    /// As `open::believable_pages`.
    pub(crate) fn believable_pages(&self) -> u64 {
        open::believable_pages(self.data.as_ref(), self.shift)
    }

    /// Refuses work in a forked child.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        if platform::fork_generation() == self.fork_generation {
            Ok(())
        } else {
            Err(Error::Forked)
        }
    }

    /// True in a process that did not open the store itself.
    pub(crate) fn is_forked(&self) -> bool {
        self.check_alive().is_err()
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_alive()?;
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        if self.is_poisoned() { Err(Error::Poisoned) } else { Ok(()) }
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.shared.word(Word::Poisoned).load(Ordering::SeqCst) != 0
    }

    /// After a failed flush: the kernel may have dropped what it could not write, so no later
    /// flush can vouch for it.
    pub(crate) fn poison(&self) {
        self.shared.word(Word::Poisoned).store(1, Ordering::SeqCst);
    }

    /// The writer's state; the caller holds the writer lock or merely looks.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Option<Box<WriterState>>> {
        self.writer.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// One checkpoint at a time in this process.
    pub(crate) fn checkpoint_turn(&self) -> MutexGuard<'_, ()> {
        self.checkpointing.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn steady(&self) -> u64 {
        metas::steady(&self.shared)
    }

    /// All snapshots that must stay readable, ascending: readers', and those that the meta slots pin.
    pub(crate) fn collect_pins(&self, pins: &mut Vec<u64>) {
        pins.clear();
        if !has(Bug::ReadersNotPinned) {
            let cleaned = self.shared.pins(pins);
            if cleaned > 0 {
                self.log(Level::Warn, format_args!("{cleaned} readers of dead processes removed"));
            }
        }
        for txn in metas::pinned(&self.shared) {
            if let Err(at) = pins.binary_search(&txn) {
                pins.insert(at, txn);
            }
        }
    }

    /// The meta of the newest commit.
    pub(crate) fn newest_meta(&self) -> Result<Meta> {
        let _lock = checkpoint::MetaLock::take(&self.shared)?;
        metas::load(self.data.as_ref(), &self.shared, self.shift)
    }

    /// Whether a commit is to be durable when it returns.
    pub(crate) fn is_sync(&self) -> bool {
        self.options.durability == Durability::Sync && !self.lazy_now.load(StdOrdering::Relaxed)
            || self.closed.load(StdOrdering::SeqCst)
    }
}

impl Drop for EnvInner {
    fn drop(&mut self) {
        // A commit that had begun its end when the last handle went.
        let closed = self.closed.load(StdOrdering::SeqCst);
        if closed && self.check_writable().is_ok() && self.steady() < self.shared.newest() {
            // Dropping cannot report.
            let _ = checkpoint::checkpoint(self);
        }
    }
}
