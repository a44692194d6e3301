//! Deliberate mistakes, one at a time, to prove that the crash tests find such. Without the feature
//! `planted` none can be made, and asking costs nothing.

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
    /// A checkpoint whose meta's write failed is forgotten.
    FailedMetaForgotten,
    /// The wipe of an unpublished meta is not flushed.
    WipeNotFlushed,
    /// The newest meta is overwritten, if it is not the steady one.
    NewestOverwritten,
    /// A commit is published before its meta is written.
    PublishedBeforeWritten,
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
