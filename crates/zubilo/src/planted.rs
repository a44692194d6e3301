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
