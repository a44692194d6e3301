//! What crash tests plant in the engine: deliberate mistakes, one at a time, to prove that they are
//! found; and the end of a process between any two of its stores to shared memory. Without the feature
//! `planted` neither is there, and asking costs nothing.

#[cfg(all(feature = "planted", not(loom)))]
pub use self::stores::{AtomicU64, at_stores};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A commit that shared its flush with its meta is believed without its digest.
    DigestNotVerified,
    /// The pages of the last steady commit are reused before a later one is on disk.
    SteadyNotPinned,
    /// The pages of a commit on its way to become steady are reused.
    PendingNotPinned,
    /// The meta of the last steady commit is overwritten like any other.
    SteadyOverwritten,
    /// Metas that were not believed or not published stay in the file.
    UnpublishedNotCleared,
    /// A commit shares its flush with its meta although the one before is not steady.
    OneFlushOnWeak,
    /// Flushes are left out.
    NotFlushed,
    /// The flush after the meta's write is left out: acknowledged too early.
    AcknowledgedEarly,
    /// A commit that needs two flushes leaves out that of its pages.
    PagesNotFlushed,
    /// A creation leaves out the flush of the directory entry.
    DirectoryNotFlushed,
    /// An open leaves out the flush of what the last users left in the kernel.
    OpenNotFlushed,
    /// A weak commit is believed although the system was restarted.
    BootNotCompared,
    /// A weak commit is believed although the file is a copy of what a disk held.
    CopyBelieved,
    /// A checkpoint writes its meta before the pages are flushed.
    CheckpointUnflushed,
    /// A checkpoint counts as done before its meta is flushed.
    SteadyTooEarly,
    /// A commit that was pending is neither that nor steady for a moment, the one between two stores.
    PendingBeforeSteady,
    /// A checkpoint whose meta's write failed is forgotten.
    FailedMetaForgotten,
    /// The wipe of an unpublished meta is not flushed.
    WipeNotFlushed,
    /// The newest meta is overwritten, if it is not the steady one.
    NewestOverwritten,
    /// A commit is published before its meta is written.
    PublishedBeforeWritten,
    /// The pages of a commit that a checkpoint flushes are reused meanwhile.
    FlushingNotPinned,
    /// The snapshots of readers are not pinned.
    ReadersNotPinned,
    /// A flush that failed counts as one that succeeded.
    FailedFlushIgnored,
    /// The free-space log does not name the pages that died.
    FreedForgotten,
    /// The free-space log does not name the pages that a transaction spilled.
    SpilledForgotten,
    /// After a failed commit the writer goes on with its half-way space map.
    MapKeptAfterError,
    /// More than the free tail of the file is cut off.
    CutTooFar,
    /// The checksum of a meta is not compared.
    MetaNotVerified,
    /// The checksum of a page is not compared.
    PageNotVerified,
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
