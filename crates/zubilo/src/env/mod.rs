//! The open store: file, map, lock file, and the state that its transactions share.
//!
//! [`EnvInner`] lives as long as any handle ([`crate::Env`]) or transaction. Modules
//! here own one thing each: `open` brings a file to life, `meta`/`metas` the anchors of commits,
//! `choose` the commit that a caller wants instead, `free_space` the way to the free-space log, `checkpoint` weak commits becoming steady, `flusher` the thread
//! that asks for it, `log` the messages to the caller.

mod adopt;
pub(crate) mod checkpoint;
pub(crate) mod choose;
pub(crate) mod counters;
pub(crate) mod encryption;
pub(crate) mod facade;
pub(crate) mod flusher;
mod free_space;
pub(crate) mod geometry;
pub(crate) mod info;
pub(crate) mod join;
pub(crate) mod log;
pub(crate) mod mark;
pub(crate) mod meta;
pub(crate) mod metas;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod prepared;
pub(crate) mod redo;
pub(crate) mod slow;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering as StdOrdering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::dirty::Arena;
use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::planted::{Bug, has};
use crate::platform::{self, Claim, DataFile, LockFile};
use crate::shared::{RootWords, Shared, Word};
use crate::space::Space;
use crate::space::log::FreeSpaceLog;
use crate::sync::Ordering;
use crate::tree::desc::DESC_WORDS;
use crate::tree::verify::Verifier;
use crate::tree::{Snapshot, TreeDesc};

pub(crate) use self::adopt::adopt;
use self::counters::Counters;
use self::flusher::Flusher;
use self::log::Level;
use self::meta::Meta;
use self::options::{Durability, Options};

/// What all handles and transactions of an open store share.
pub(crate) struct EnvInner {
    pub(crate) data: Box<dyn DataFile>,
    /// Held by being open; given up before the lock file.
    _claim: Option<Claim>,
    /// As well: what keeps writers from a medium that is read-only now.
    _guard: Option<LockFile>,
    /// The lock file of who looks at a chosen commit: nobody else gets in.
    _shut: Option<Shared>,
    pub(crate) shared: Shared,
    pub(crate) options: Options,
    pub(crate) shift: u32,
    /// See [`EnvInner::reach`]. Users of the store cut the file after the newest commit only.
    reach: AtomicU64,
    pub(crate) boot_id: [u8; 16],
    /// See [`EnvInner::opening`].
    opening: AtomicU32,
    pub(crate) checks: &'static Checks,
    /// What readers do with a page before they look at it.
    pub(crate) verifier: Option<Verifier>,
    /// The least that anybody does with it.
    pub(crate) decrypting: Option<Arc<Verifier>>,
    pub(crate) flusher: Flusher,
    pub(crate) counters: Counters,
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
    /// Of the redo log that was born with this commit the bytes from this place on are needed, or fewer.
    pub(crate) redo_start: (u64, u64),
    /// All commits after this one have their records in the redo log. Earlier ones may have, too.
    pub(crate) redo_since: u64,
    /// The redo log that was born with this commit could not be made longer.
    pub(crate) redo_stays: u64,
}

/// The root of a snapshot, as the lock file has it.
#[derive(Clone, Copy)]
pub(crate) struct Root {
    pub(crate) txn: u64,
    pub(crate) end: u64,
    pub(crate) main: TreeDesc,
    pub(crate) user_words: [u64; 4],
}

impl Root {
    pub(crate) fn of(meta: &Meta) -> Root {
        Root { txn: meta.txn, end: meta.end, main: meta.main, user_words: meta.user_words }
    }

    pub(crate) fn to_words(self, shift: u32) -> RootWords {
        let mut words = RootWords::default();
        words[0] = self.txn;
        words[1] = self.end;
        words[2..2 + DESC_WORDS].copy_from_slice(&self.main.to_words());
        words[12] = u64::from(shift);
        words[13..17].copy_from_slice(&self.user_words);
        words
    }

    #[inline(always)]
    pub(crate) fn from_words(words: &RootWords) -> Option<Root> {
        let main = TreeDesc::from_words(words[2..].first_chunk::<DESC_WORDS>()?)?;
        let user_words = *words[13..].first_chunk()?;
        Some(Root { txn: words[0], end: words[1], main, user_words })
    }
}

/// Checks of whole stores, which the layers above lend to an open store.
pub(crate) struct Checks {
    /// Whether all that a commit reaches is there as it was written. It is given the commit's snapshot and meta,
    /// and how many pages its free-space log may speak of.
    pub(crate) is_whole: fn(Snapshot<'_>, &Meta, u64, u64) -> bool,
    /// The check that follows a commit, see [`Options::audit`].
    pub(crate) audit: fn(&Arc<EnvInner>, TxnId) -> Result<()>,
    /// Makes the commits anew whose records are in the redo log; gives how many.
    pub(crate) replay: fn(&Arc<EnvInner>) -> Result<u64>,
}

impl EnvInner {
    pub(crate) fn page_size(&self) -> usize {
        1 << self.shift
    }

    /// A number by chance, not 0, in the metas and pages that this process writes.
    #[inline]
    pub(crate) fn opening(&self) -> u32 {
        self.opening.load(StdOrdering::Relaxed)
    }

    /// From here on another one: a commit number that was used may be used again. The caller holds the writer lock.
    pub(crate) fn draw_opening(&self) {
        self.opening.store(open::new_opening(), StdOrdering::Relaxed);
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

    /// As `open::plausible_pages`.
    pub(crate) fn plausible_pages(&self) -> u64 {
        open::plausible_pages(self.data.as_ref(), self.shift)
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
        if self.is_poisoned() { Err(Error::poisoned(self.data.path())) } else { Ok(()) }
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

    /// Makes everything committed so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.check_alive()?;
        if self.flush_ring()? { Ok(()) } else { checkpoint::checkpoint(self) }
    }

    /// At the end: should nobody change the file until the next open, what the lock file knows is about
    /// what is there. While others have the store open it is for the last of them to say; two who end at once may
    /// both leave it.
    fn leave_stamp(&self) {
        if !self.is_forked()
            && self.shared.is_alone()
            && let Some(stamp) = self.data.stamp()
        {
            self.shared.word(Word::Stamp).store(stamp, Ordering::SeqCst);
        }
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
        self.leave_stamp();
    }
}
