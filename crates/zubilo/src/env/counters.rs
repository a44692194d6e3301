//! What a process has done with a store since it opened it. Counting costs a few stores a commit: what a
//! commit did is added up in plain numbers of its transaction, and the counters are written under the writer
//! lock.
//!
//! Reads are not counted: a look-up takes some hundred instructions, and the counters of all threads would
//! meet in one cache line.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::EnvInner;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What this process has done with a store since it opened it: see [`Env::counters`](crate::Env::counters).
        ///
        /// ```
        /// # let dir = tempfile::tempdir().unwrap();
        /// # let path = dir.path().join("store");
        /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
        /// # let env = zubilo::Options::new().open(path)?;
        /// let before = env.counters();
        /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
        /// let done = env.counters().since(&before);
        /// println!("{} pages copied, {} bytes written", done.pages_copied, done.bytes_written);
        /// # Ok(())
        /// # }
        /// # show(&path).unwrap();
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct EnvCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl EnvCounters {
            /// All counters by their names.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }

            /// What has been counted since an `earlier` look.
            pub fn since(&self, earlier: &EnvCounters) -> EnvCounters {
                EnvCounters { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }

        /// The counters of an open store.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($name: AtomicU64,)*
        }

        impl Counters {
            fn look(&self) -> EnvCounters {
                EnvCounters { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Commits.
    commits,
    /// Pages copied to be changed.
    pages_copied,
    /// Splits of pages: each makes a page more.
    pages_split,
    /// Pages joined with a neighbour: each makes a page less.
    pages_merged,
    /// Pages written early, because a transaction outgrew its memory.
    pages_spilled,
    /// Pages that commits wrote, without those of the free-space log.
    pages_written,
    /// Runs of neighbouring pages that commits consisted of.
    runs_written,
    /// Bytes that commits wrote, with the free-space log and the meta.
    bytes_written,
    /// Flushes of the data file, be it for a commit or a checkpoint.
    flushes,
    /// Time in them, in nanoseconds.
    flush_ns,
    /// Time of commits before pages got their places, in nanoseconds.
    commit_prepare_ns,
    /// Time of commits in which pages got their places.
    commit_layout_ns,
    /// Time of commits in which pages were handed to the kernel.
    commit_write_ns,
    /// Time of commits for the free-space log.
    commit_log_ns,
    /// Time of commits for the flushes that they waited for.
    commit_flush_ns,
    /// Time of commits for meta, publication and the tail of the file.
    commit_publish_ns,
    /// Write transactions that found the writer lock taken and waited.
    writer_waits,
    /// Time of these waits, in nanoseconds.
    writer_wait_ns,
}

/// What a transaction did with pages before its commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitSums {
    pub(crate) copied: u64,
    pub(crate) split: u64,
    pub(crate) merged: u64,
    pub(crate) spilled: u64,
    pub(crate) pages: u64,
    pub(crate) runs: u64,
    pub(crate) bytes: u64,
    /// In nanoseconds, as the counters have them: prepare, layout, write, log, flush, publish.
    pub(crate) times: [u64; 6],
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Counters {
    /// Counts a commit. The caller holds the writer lock, so nobody else writes these.
    pub(crate) fn add_commit(&self, sums: &CommitSums) {
        let add = |counter: &AtomicU64, n: u64| {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        };
        add(&self.commits, 1);
        add(&self.pages_copied, sums.copied);
        add(&self.pages_split, sums.split);
        add(&self.pages_merged, sums.merged);
        add(&self.pages_spilled, sums.spilled);
        add(&self.pages_written, sums.pages);
        add(&self.runs_written, sums.runs);
        add(&self.bytes_written, sums.bytes);
        let parts = [
            &self.commit_prepare_ns,
            &self.commit_layout_ns,
            &self.commit_write_ns,
            &self.commit_log_ns,
            &self.commit_flush_ns,
            &self.commit_publish_ns,
        ];
        for (counter, time) in parts.into_iter().zip(sums.times) {
            add(counter, time);
        }
    }

    /// Counts a flush that began at `start`; threads flush at once.
    pub(crate) fn add_flush(&self, start: Instant) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flush_ns.fetch_add(nanoseconds(start.elapsed()), Ordering::Relaxed);
    }

    /// Counts a wait for the writer lock.
    pub(crate) fn add_wait(&self, time: Duration) {
        self.writer_waits.fetch_add(1, Ordering::Relaxed);
        self.writer_wait_ns.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }
}

impl EnvInner {
    /// What this process has done so far.
    pub(crate) fn counted(&self) -> EnvCounters {
        self.counters.look()
    }
}
