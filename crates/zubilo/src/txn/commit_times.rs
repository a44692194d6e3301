//! The parts of a commit's time, measured in each: the clock is read some eight times.

use std::time::Duration;

use crate::env::counters::CommitSums;
use crate::num::TxnId;
use crate::platform;

/// Where the time of a commit went, and what it wrote: see
/// [`WriteTxn::commit_with_report`](crate::WriteTxn::commit_with_report).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// txn.table_or_create("t")?.put("key", "value")?;
/// let report = txn.commit_with_report()?;
/// assert!(report.pages > 0 && report.flushes > 0 && report.flush <= report.whole());
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitReport {
    /// The commit.
    pub txn: TxnId,
    /// Pages that the commit wrote, without those of the free-space log and those written before it.
    pub pages: u64,
    /// Pages that the transaction copied to change them.
    pub pages_copied: u64,
    /// Splits of pages.
    pub pages_split: u64,
    /// Pages joined with a neighbour.
    pub pages_merged: u64,
    /// Pages written before the commit, because the transaction outgrew its memory.
    pub pages_spilled: u64,
    /// Runs that the transaction wrote: extents of neighbouring pages.
    pub runs: u64,
    /// Bytes that the commit wrote.
    pub bytes: u64,
    /// Flushes that the commit waited for.
    pub flushes: u32,
    /// Descriptors of tables, a look at the readers, cleaning of windows.
    pub prepare: Duration,
    /// Places for the pages, checksums, references.
    pub layout: Duration,
    /// Pages handed to the kernel.
    pub write: Duration,
    /// The free-space log, laid out and written.
    pub log: Duration,
    /// Waits for the disk.
    pub flush: Duration,
    /// The meta written, the root published, the tail of the file cut.
    pub publish: Duration,
    /// The check that [`Options::audit`](crate::Options::audit) asks for.
    pub audit: Duration,
}

impl CommitReport {
    /// The whole time of the commit.
    pub fn whole(&self) -> Duration {
        self.prepare + self.layout + self.write + self.log + self.flush + self.publish + self.audit
    }
}

/// Parts of a commit, in the order of the counters; the audit is counted by itself.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Prepare,
    Layout,
    Write,
    Log,
    Flush,
    Publish,
    Audit,
}

/// Sorts the time of the running commit into its parts. Plain nanoseconds: durations are made of them when
/// somebody asks.
#[derive(Default)]
pub(super) struct CommitClock {
    /// Without the times.
    pub(super) report: CommitReport,
    times: [u64; 7],
    last: u64,
}

impl CommitClock {
    /// A commit begins.
    pub(super) fn start(&mut self) {
        *self = CommitClock { last: platform::clock_ns(), ..CommitClock::default() };
    }

    /// The time since the last call is of this part.
    pub(super) fn lap(&mut self, part: Part) {
        let now = platform::clock_ns();
        self.times[part as usize] += now.wrapping_sub(self.last);
        self.last = now;
    }

    /// The report of commit `txn`.
    pub(super) fn report_of(&self, txn: TxnId) -> CommitReport {
        let [prepare, layout, write, log, flush, publish, audit] =
            self.times.map(Duration::from_nanos);
        CommitReport { txn, prepare, layout, write, log, flush, publish, audit, ..self.report }
    }

    /// As the store's counters take it.
    pub(super) fn sums(&self) -> CommitSums {
        let report = &self.report;
        let [prepare, layout, write, log, flush, publish, _] = self.times;
        CommitSums {
            copied: report.pages_copied,
            split: report.pages_split,
            merged: report.pages_merged,
            spilled: report.pages_spilled,
            pages: report.pages,
            runs: report.runs,
            bytes: report.bytes,
            times: [prepare, layout, write, log, flush, publish],
        }
    }
}
