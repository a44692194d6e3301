//! What crash tests plant in the engine: deliberate mistakes, one at a time, to prove that they are
//! found; and the end of a process between any two of its stores to shared memory. Without the feature
//! `planted` neither is there, and asking costs nothing.

#[cfg(all(feature = "planted", not(loom)))]
pub use self::stores::{AtomicU64, at_stores};

/// A mistake that no call to the disk shows: in what is trusted or verified, in which pages may be
/// reused, in what the free-space log says, in which meta is overwritten, in what is published when, in what
/// cursors learn of changes. What a call does show (flushes, cuts, their failures) is planted at the disk, see `sim::mistake`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A commit that shared its flush with its meta is trusted without its digest.
    DigestNotVerified,
    /// The pages of the last steady commit are reused before a later one is on disk.
    SteadyNotPinned,
    /// The pages of a commit on its way to become steady are reused.
    PendingNotPinned,
    /// The meta of the last steady commit is overwritten like any other.
    SteadyOverwritten,
    /// Metas that were not trusted or not published stay in the file.
    UnpublishedNotCleared,
    /// The next writer wipes the meta of a prepared transaction, and goes on.
    PreparedWiped,
    /// An open does not look for a prepared transaction.
    PreparedForgotten,
    /// The file may be cut before the pages of a prepared transaction.
    PreparedCut,
    /// The meta of a prepared transaction that was rolled back by somebody who was killed counts as wiped on disk.
    RollBackTrusted,
    /// After a failed flush, metas that were wiped count as wiped on disk.
    WipeTrusted,
    /// As long as a transaction is prepared no meta with its number is wiped.
    PreparedNumberSpared,
    /// The meta of a transaction whose preparing has failed stays in the file.
    FailedPreparedStays,
    /// Decisions about prepared transactions are taken by number.
    PreparedByNumber,
    /// A prepared transaction is committed in its own slot.
    PreparedOverwritten,
    /// The meta of a prepared transaction goes to the disk together with its pages.
    PreparedBeforePages,
    /// The roll-back of a prepared transaction is not flushed.
    RollBackNotFlushed,
    /// A commit shares its flush with its meta although the one before is not steady.
    OneFlushOnWeak,
    /// A weak commit is trusted although the system was restarted.
    BootNotCompared,
    /// A weak commit is trusted although the file is a copy of what a disk held.
    CopyTrusted,
    /// Where the run of the system is not known, a commit with pages like those of an attempt before it, or
    /// with a new base of the log, is weak as any.
    AttemptsForgotten,
    /// A checkpoint counts as done before its meta is flushed.
    SteadyTooEarly,
    /// A commit that was pending is neither that nor steady for a moment, the one between two stores.
    PendingBeforeSteady,
    /// A checkpoint whose meta's write failed is forgotten.
    FailedMetaForgotten,
    /// The newest meta is overwritten, if it is not the steady one.
    NewestOverwritten,
    /// A commit is published before its meta is written.
    PublishedBeforeWritten,
    /// The pages of a commit that a checkpoint flushes are reused meanwhile.
    FlushingNotPinned,
    /// The snapshots of readers are not pinned.
    ReadersNotPinned,
    /// The free-space log does not name the pages that died.
    FreedForgotten,
    /// The free-space log does not name the pages that a transaction spilled.
    SpilledForgotten,
    /// After a failed commit the writer goes on with its half-way space map.
    MapKeptAfterError,
    /// The checksum of a meta is not compared.
    MetaNotVerified,
    /// The checksum of a page is not compared.
    PageNotVerified,
    /// A table that is changed keeps its version, by which cursors know that they must look for their records.
    ChangeKeepsVersion,
    /// Tables whose pages are written early keep their versions.
    EarlyWriteKeepsVersions,
    /// Cursors do not note their records before their table changes.
    CursorsNotNoted,
    /// Cursors stay where a nested level left them when it is undone.
    CursorsNotRestored,
    /// The checksum of a record of the redo log is not compared.
    RecordNotVerified,
    /// A commit is acknowledged before its record is on disk.
    RecordNotFlushed,
    /// What an open could need of the redo log is overwritten: only commits after the newest one count.
    RingFreedTooEarly,
    /// A transaction is logged although its record does not say all that it did.
    ChangesNotLogged,
    /// The record of a transaction holds what a nested level did that was undone.
    UndoneChangesLogged,
    /// A commit is logged although the one before it is neither in the log nor on disk.
    GapInTheLog,
    /// The pages of the redo log count as free.
    RingNotBooked,
    /// The checksum of a record does not cover the one before.
    RecordsNotChained,
    /// A commit without a record leaves the chain of checksums as it was.
    ChainNotReseeded,
    /// Neither record nor chain know which open they are of.
    OpeningNotInChain,
    /// A record is appended after its commit was published.
    RecordAfterMeta,
    /// A record that reaches the ring's end goes on in the pages behind it.
    RecordNotWrapped,
    /// The record of a commit that failed stays in the log.
    RecordNotVoided,
    /// The pages of a ring that is given back are reused although an open may need its records.
    OldRingNotPinned,
    /// The pages of a ring that a longer one has replaced stay in use.
    OldRingNotFreed,
    /// Commits are logged while metas are in the file that name no log.
    OldMetasLeft,
    /// A durable commit flushes its own record, but not those before it.
    EarlierRecordsNotFlushed,
    /// A commit counts as logged although no commit is on disk from which on all have records.
    HopeTakenForLog,
    /// A weak commit that is whole in a copy of the file is taken for one whose record is there.
    RecordOfCopyTrusted,
    /// Of records that lie at both ends of the ring those at its beginning are not flushed.
    RingFlushNotWrapped,
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Makes the calling thread's part of the engine make this mistake, and no other.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether the mistake is to be made.
#[cfg(feature = "planted")]
pub(crate) fn has(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether the mistake is to be made.
#[cfg(not(feature = "planted"))]
#[inline]
pub(crate) const fn has(_bug: Bug) -> bool {
    false
}

/// While it lives no store ends the process: between taking a mutex and saying so there is no moment
/// that a simulated end could leave as a real one does, whose mutexes the system marks.
pub(crate) struct Shield(());

#[cfg(not(all(feature = "planted", not(loom))))]
pub(crate) const fn shield() -> Shield {
    Shield(())
}

#[cfg(all(feature = "planted", not(loom)))]
pub(crate) use self::stores::shield;

#[cfg(all(feature = "planted", not(loom)))]
mod stores {
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{self, Ordering};

    use super::Shield;

    type Hook = Box<dyn FnMut()>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
        static SHIELDS: Cell<u32> = const { Cell::new(0) };
    }

    /// Has `hook` called before each store that the calling thread makes to shared memory, except by
    /// itself. It can end the process by unwinding.
    pub fn at_stores(hook: Option<Hook>) {
        HOOK.set(hook);
    }

    pub(crate) fn shield() -> Shield {
        SHIELDS.set(SHIELDS.get() + 1);
        Shield(())
    }

    impl Drop for Shield {
        fn drop(&mut self) {
            SHIELDS.set(SHIELDS.get() - 1);
        }
    }

    fn store_comes() {
        // What unwinding stores is what others do about the dead.
        if SHIELDS.get() > 0 || std::thread::panicking() {
            return;
        }
        if let Some(mut hook) = HOOK.take() {
            hook();
            HOOK.set(Some(hook));
        }
    }

    /// The standard library's, with a hook before each change.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct AtomicU64(atomic::AtomicU64);

    #[expect(missing_docs, reason = "as in the standard library")]
    impl AtomicU64 {
        pub const fn new(value: u64) -> AtomicU64 {
            AtomicU64(atomic::AtomicU64::new(value))
        }

        #[inline]
        pub fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }

        #[inline]
        pub fn store(&self, value: u64, order: Ordering) {
            store_comes();
            self.0.store(value, order);
        }

        #[inline]
        pub fn swap(&self, value: u64, order: Ordering) -> u64 {
            store_comes();
            self.0.swap(value, order)
        }

        #[inline]
        pub fn compare_exchange(
            &self,
            from: u64,
            to: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            store_comes();
            self.0.compare_exchange(from, to, success, failure)
        }

        #[inline]
        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            store_comes();
            self.0.fetch_add(value, order)
        }

        /// Of this process's own memory alone: nobody is left to see it.
        #[inline]
        pub fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_or(value, order)
        }

        #[inline]
        pub fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
            store_comes();
            self.0.fetch_max(value, order)
        }
    }
}

/// The key of every store that is opened without one, where the environment asks for it: the tests then run on
/// encrypted stores.
#[cfg(all(feature = "planted", feature = "encryption"))]
pub(crate) fn key() -> Option<[u8; 32]> {
    std::env::var_os("ZUBILO_ENCRYPTED").map(|_| [0x77; 32])
}
