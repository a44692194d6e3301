//! What a process has done with a store since it opened it, and, in words of the lock file, what all of them have
//! done. Counting costs a few stores a commit: what a commit did is added up in plain numbers of its transaction,
//! and the counters are written under the writer lock. Nothing relies on them: a process that dies while it adds
//! leaves a commit counted in part.
//!
//! Reads are not counted: a look-up takes some hundred instructions, and the counters of all threads would
//! meet in one cache line.

use std::sync::atomic::AtomicU64 as LocalAtomicU64;
use std::time::{Duration, Instant};

use super::EnvInner;
use crate::shared::COUNTER_WORDS;
use crate::sync::{AtomicU64, Ordering};

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
            $($name: LocalAtomicU64,)*
        }

        impl Counters {
            fn look(&self) -> EnvCounters {
                EnvCounters { $($name: self.$name.load(Ordering::Relaxed),)* }
            }

            /// Adds to these and to those of all users what the holder of the writer lock has done. Such as others
            /// add to meanwhile are zero in `done`, and left alone.
            fn add_alone(&self, all: &[AtomicU64], done: &EnvCounters) {
                let mut words = all.iter();
                $(
                    let (own, word) = (&self.$name, words.next());
                    if done.$name != 0 {
                        own.store(own.load(Ordering::Relaxed).wrapping_add(done.$name), Ordering::Relaxed);
                        if let Some(word) = word {
                            word.store(word.load(Ordering::Relaxed).wrapping_add(done.$name), Ordering::Relaxed);
                        }
                    }
                )*
            }

            /// Adds what several threads may do at once.
            fn add(&self, all: &[AtomicU64], done: &EnvCounters) {
                let mut words = all.iter();
                $(
                    let (own, word) = (&self.$name, words.next());
                    if done.$name != 0 {
                        own.fetch_add(done.$name, Ordering::Relaxed);
                        if let Some(word) = word {
                            word.fetch_add(done.$name, Ordering::Relaxed);
                        }
                    }
                )*
            }
        }

        const _: () = assert!([$(stringify!($name)),*].len() <= COUNTER_WORDS);

        fn look_at(all: &[AtomicU64]) -> EnvCounters {
            let mut words = all.iter();
            EnvCounters { $($name: words.next().map_or(0, |word| word.load(Ordering::Relaxed)),)* }
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

impl EnvInner {
    /// What this process has done so far.
    pub(crate) fn counted(&self) -> EnvCounters {
        self.counters.look()
    }

    /// What all users have done since the first of them opened the store.
    pub(crate) fn counted_by_all(&self) -> EnvCounters {
        look_at(self.shared.counters())
    }

    /// Counts a commit. The caller holds the writer lock, so nobody else counts one.
    pub(crate) fn count_commit(&self, sums: &CommitSums) {
        let [prepare, layout, write, log, flush, publish] = sums.times;
        let done = EnvCounters {
            commits: 1,
            pages_copied: sums.copied,
            pages_split: sums.split,
            pages_merged: sums.merged,
            pages_spilled: sums.spilled,
            pages_written: sums.pages,
            runs_written: sums.runs,
            bytes_written: sums.bytes,
            commit_prepare_ns: prepare,
            commit_layout_ns: layout,
            commit_write_ns: write,
            commit_log_ns: log,
            commit_flush_ns: flush,
            commit_publish_ns: publish,
            ..EnvCounters::default()
        };
        self.counters.add_alone(self.shared.counters(), &done);
    }

    /// Counts a flush that began at `start`; threads flush at once.
    pub(crate) fn count_flush(&self, start: Instant) {
        let flush_ns = nanoseconds(start.elapsed());
        let done = EnvCounters { flushes: 1, flush_ns, ..EnvCounters::default() };
        self.counters.add(self.shared.counters(), &done);
    }

    /// Counts a wait for the writer lock.
    pub(crate) fn count_wait(&self, time: Duration) {
        let writer_wait_ns = nanoseconds(time);
        let done = EnvCounters { writer_waits: 1, writer_wait_ns, ..EnvCounters::default() };
        self.counters.add(self.shared.counters(), &done);
    }
}
