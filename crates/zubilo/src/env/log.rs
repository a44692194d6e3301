//! Reports to the program what the store does and finds: a callback of the caller, asked for by
//! [`Options::logger`]. Without one nothing is formatted.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::EnvInner;
use super::options::Options;

/// How much a message matters; the greater, the less.
///
/// ```
/// use zubilo::{Level, Options};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// let env = Options::new()
///     .logger(Level::Warn, |level, message| eprintln!("{level:?}: {message}"))
///     .open(path)?;
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Damage was found, or something failed without an error that a call could give.
    Error,
    /// The store goes on, but somebody should know: commits that were not trusted, dead readers, a
    /// file that is full.
    Warn,
    /// Opening, transactions that outgrew their memory.
    Info,
    /// Each commit and checkpoint.
    Debug,
}

/// What receives the messages.
type Receiver = dyn Fn(Level, fmt::Arguments<'_>) + Send + Sync;

/// A callback, and the last level that it wants to hear of.
#[derive(Clone)]
pub(crate) struct Logger {
    most: Level,
    receiver: Arc<Receiver>,
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("most", &self.most).finish_non_exhaustive()
    }
}

impl Options {
    /// Hands messages of this level and of those that matter more to `receiver`, on whatever thread
    /// they arise, also in the middle of a commit: it must not call the store. A panic in it is
    /// dropped.
    pub fn logger(
        mut self,
        most: Level,
        receiver: impl Fn(Level, fmt::Arguments<'_>) + Send + Sync + 'static,
    ) -> Options {
        self.logger = Some(Logger { most, receiver: Arc::new(receiver) });
        self
    }
}

impl EnvInner {
    /// Hands a message to the logger, if there is one that wants it.
    #[inline]
    pub(crate) fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        super::facade::message(level, message);
        if let Some(logger) = self.options.logger.as_ref().filter(|l| level <= l.most) {
            // Whoever logs may hold locks or be half-way through a commit: it must go on.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (logger.receiver)(level, message)))
            {
                // Its `Drop` is the program's, too, and may panic.
                std::mem::forget(panic);
            }
        }
    }
}
