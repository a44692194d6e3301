//! Readers that hold pages back when a writer finds no room, and what the program does about them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::info::ReaderInfo;
use super::options::Options;

/// A reader that holds back pages which a writer needs: see [`Options::on_slow_reader`].
///
/// ```
/// use zubilo::{Options, SlowReader, SlowReaderAction};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// let decide = |slow: &SlowReader| match slow.reader.is_parked {
///     true => SlowReaderAction::Expire,
///     false if slow.tries < 100 && slow.held_bytes > 1 << 30 => SlowReaderAction::Retry,
///     false => SlowReaderAction::GiveUp,
/// };
/// let env = Options::new().on_slow_reader(decide).open(path)?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowReader {
    /// Process, thread, lag in commits and time, and whether it can be expired.
    pub reader: ReaderInfo,
    /// Bytes that would come free if nobody read its snapshot any more.
    pub held_bytes: u64,
    /// How often the function was called before for the room that is wanted now.
    pub tries: u32,
}

/// What is to be done about a slow reader.
///
/// ```
/// use zubilo::{Options, SlowReaderAction};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// let env = Options::new().on_slow_reader(|_| SlowReaderAction::GiveUp).open(path)?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlowReaderAction {
    /// Look for room again: the function has waited, or ended the reader's process.
    Retry,
    /// Expire the reader, which must be parked; one that is at work is left out from then on.
    Expire,
    /// The change gets [`Error::MapFull`](crate::Error::MapFull).
    GiveUp,
}

type Ask = dyn Fn(&SlowReader) -> SlowReaderAction + Send + Sync;

/// The program's function.
#[derive(Clone)]
pub(crate) struct SlowReaders(Arc<Ask>);

impl SlowReaders {
    pub(crate) fn ask(&self, reader: &SlowReader) -> SlowReaderAction {
        (self.0)(reader)
    }
}

impl fmt::Debug for SlowReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowReaders").finish_non_exhaustive()
    }
}

impl Options {
    /// Asks `function` what to do about readers when the store has reached its upper bound while they hold
    /// pages back, the one that holds back most first. (`env_set_hsr` of libmdbx, `OOM-KICK`.)
    ///
    /// It runs on the thread that writes, in the middle of its transaction: it may wait, end processes and use
    /// [`Env::readers`](crate::Env::readers), and must not write.
    ///
    /// ```
    /// use zubilo::{Geometry, Options, SlowReaderAction};
    ///
    /// let options = Options::new().on_slow_reader(|slow| match slow.reader.is_parked {
    ///     true => SlowReaderAction::Expire,
    ///     false if slow.tries < 10 => {
    ///         std::thread::sleep(std::time::Duration::from_millis(100));
    ///         SlowReaderAction::Retry
    ///     }
    ///     false => SlowReaderAction::GiveUp,
    /// });
    /// ```
    pub fn on_slow_reader(
        mut self,
        function: impl Fn(&SlowReader) -> SlowReaderAction + Send + Sync + 'static,
    ) -> Options {
        self.slow_reader = Some(SlowReaders(Arc::new(function)));
        self
    }

    /// Writers of this process expire parked readers whose snapshot is no longer the newest for longer than
    /// this. Default: they do not.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zubilo::Options;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// // Who has parked a reader for an hour, or holds 10 GiB back with it, has to begin anew.
    /// let env = Options::new().expire_behind(Duration::from_secs(3600)).expire_held(10 << 30).open(path)?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn expire_behind(mut self, bound: Duration) -> Options {
        self.expire_behind = Some(bound);
        self
    }

    /// Writers of this process expire parked readers as long as replaced pages of more than so many bytes are
    /// held back, those that hold back most first. Default: they do not.
    pub fn expire_held(mut self, bytes: u64) -> Options {
        self.expire_held = Some(bytes);
        self
    }
}
