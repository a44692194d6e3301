//! Compaction in place: a store in use becomes smaller, in many small write transactions.
//!
//! Two things are done, each by walks through all tables. *Packing* joins neighbouring pages until they
//! are as full as is wanted. *Moving down* rewrites what lies beyond the place where the file could end,
//! into free pages before it; then the tail is cut.
//!
//! Each step is an ordinary commit: readers go on, other writers come in between, and whoever ends the
//! process finds a store that is less compact than it would have become.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::env::info::ReaderInfo;
use crate::env::{EnvInner, checkpoint};
use crate::error::{Error, Result};
use crate::tree::compact::{Budget, Task};
use crate::txn::compact::{Account, Walk};
use crate::txn::{TableOptions, WriteTxn};

/// Walks of one kind, at most: each finds less to do than the one before.
const WALKS_MAX: u32 = 8;
/// Moving down is worth it if this share of the file falls away.
const GAIN: u64 = 32;
/// Room that is left below the end for what commits need between them, as a share of the pages in use.
const SLACK: u64 = 64;
/// And so many pages at least.
const SLACK_MIN: u64 = 8;
/// Commits that end the work: what the one before has set free falls away with the next.
const CUTS_MAX: u32 = 4;

/// How a store is compacted.
///
/// ```
/// use std::time::Duration;
/// use zubilo::CompactOptions;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// // Gently: a pause after each step.
/// let options = CompactOptions::new().fill(90).pause(Duration::from_millis(1));
/// let report = env.compact(&options, &mut |_, _| true)?;
/// assert!(report.finished);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct CompactOptions {
    fill: u8,
    step_bytes: u64,
    step_time: Duration,
    pause: Duration,
    tables: Vec<(Vec<u8>, TableOptions)>,
}

impl Default for CompactOptions {
    /// Pages are filled to 98 %; a step writes 4 MiB or takes 100 ms, whichever comes first, and a
    /// millisecond lies between two of them.
    fn default() -> CompactOptions {
        CompactOptions {
            fill: 98,
            step_bytes: 4 << 20,
            step_time: Duration::from_millis(100),
            pause: Duration::from_millis(1),
            tables: Vec::new(),
        }
    }
}

impl CompactOptions {
    /// As [`CompactOptions::default`].
    pub fn new() -> CompactOptions {
        CompactOptions::default()
    }

    /// To how many hundredths pages are filled, 50 to 100. A page without room is split by the next
    /// record that it gets: 100 is for stores that will only be read, 90 for those that will grow
    /// everywhere again.
    pub fn fill(mut self, percent: u8) -> CompactOptions {
        self.fill = percent;
        self
    }

    /// How many bytes of pages a step writes, about, and how long it keeps other writers waiting, about:
    /// the commit comes on top.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zubilo::CompactOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// // Other writers wait for 5 ms at most, about.
    /// let options = CompactOptions::new().step(1 << 20, Duration::from_millis(5));
    /// assert!(env.compact(&options, &mut |_, _| true)?.finished);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn step(mut self, bytes: u64, time: Duration) -> CompactOptions {
        (self.step_bytes, self.step_time) = (bytes, time);
        self
    }

    /// How long other writers have between two steps.
    pub fn pause(mut self, pause: Duration) -> CompactOptions {
        self.pause = pause;
        self
    }

    /// The options of a table in a caller's order, with its comparators. Without them such a table is
    /// left alone.
    pub fn table(mut self, name: impl AsRef<[u8]>, options: TableOptions) -> CompactOptions {
        self.tables.push((name.as_ref().to_vec(), options));
        self
    }
}

/// What compaction has done.
///
/// ```
/// use zubilo::CompactOptions;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let report = env.compact(&CompactOptions::new(), &mut |_, _| true)?;
/// assert!(report.used_after <= report.used_before);
/// println!("{} bytes saved in {} commits", report.file_before - report.file_after, report.commits);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompactReport {
    /// Bytes up to the last page ever used, before.
    pub used_before: u64,
    /// The same, after.
    pub used_after: u64,
    /// Length of the file, before.
    pub file_before: u64,
    /// Length of the file, after.
    pub file_after: u64,
    /// Steps that committed something.
    pub commits: u64,
    /// Pages that packing has made superfluous.
    pub pages_saved: u64,
    /// Pages that were moved down.
    pub pages_moved: u64,
    /// Bytes of replaced pages that cannot be used again yet, because somebody may still read them.
    pub held: u64,
    /// The reader with the oldest snapshot, if it is not the newest commit: what holds most of these.
    pub held_by: Option<ReaderInfo>,
    /// Tables that were left alone, because they are in a caller's order and their comparators were
    /// not given.
    pub left_alone: Vec<Vec<u8>>,
    /// False if the callback has asked to stop, or if packing ended early because the file would have
    /// grown: beside a reader of an old snapshot no page falls free.
    pub finished: bool,
}

/// Compacts in place.
pub(crate) fn run(
    env: &Arc<EnvInner>,
    options: &CompactOptions,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<CompactReport> {
    if !(50..=100).contains(&options.fill) {
        return Err(Error::Invalid(
            "the fill of pages must be 50 to 100 percent: CompactOptions::fill",
        ));
    }
    let info = env.info()?;
    let report = CompactReport {
        used_before: info.used_len,
        file_before: info.file_len,
        finished: true,
        ..CompactReport::default()
    };
    let (seen, total, start) = (0, 0, 0);
    let mut work = Work { env, options, progress, report, seen, total, start, stopped: false };
    work.run()?;
    work.finish()
}

/// The work and what it has come to.
struct Work<'w> {
    env: &'w Arc<EnvInner>,
    options: &'w CompactOptions,
    progress: &'w mut dyn FnMut(u64, u64) -> bool,
    report: CompactReport,
    /// Pages looked at, for `progress`.
    seen: u64,
    total: u64,
    /// The end of the used part when the work began, in pages.
    start: u64,
    /// The callback has asked to stop.
    stopped: bool,
}

/// What a walk has done.
#[derive(Default)]
struct Done {
    /// Pages saved and moved.
    pages: u64,
    /// It ended before its time.
    ended: bool,
}

impl Work<'_> {
    fn run(&mut self) -> Result<()> {
        // What the newest commit has replaced falls free only when it is on disk.
        checkpoint::checkpoint(self.env)?;
        let account = self.look()?;
        self.start = account.end;
        self.total = account.live().saturating_mul(2);
        let room = crate::tree::compact::room_of(self.env.page_size(), self.options.fill);
        for _ in 0..WALKS_MAX {
            let done = self.walk(Task::Pack(room), false)?;
            if done.ended || done.pages == 0 {
                break;
            }
        }
        for _ in 0..WALKS_MAX {
            if self.stopped {
                break;
            }
            let account = self.look()?;
            let target = target(&account);
            if account.end.saturating_sub(target) <= (account.end / GAIN).max(SLACK_MIN) {
                break;
            }
            let done = self.walk(Task::Lower(target), account.log_end > target)?;
            self.cut()?;
            // What was moved has left room for a large value that found none: on, though the end stands.
            if done.ended || done.pages == 0 {
                break;
            }
        }
        self.cut()
    }

    /// The account as it is now.
    fn look(&self) -> Result<Account> {
        self.begin().map(|(_, account)| account)
    }

    fn begin(&self) -> Result<(WriteTxn, Account)> {
        let mut txn =
            WriteTxn::begin(self.env, true)?.ok_or(Error::Busy("the writer lock is taken"))?;
        let account = txn.begin_compaction()?;
        Ok((txn, account))
    }

    /// One walk through all tables.
    fn walk(&mut self, task: Task, rebase: bool) -> Result<Done> {
        let mut walk = Walk::default();
        let mut done = Done::default();
        let mut seen = 0;
        let mut rebase = rebase;
        loop {
            let (mut txn, account) = self.begin()?;
            if matches!(task, Task::Pack(_)) && account.end > self.start + self.allowance(&account)
            {
                self.report.finished = false;
                done.ended = true;
                return Ok(done);
            }
            if let (Task::Lower(target), true) = (task, std::mem::take(&mut rebase)) {
                txn.rebase_log(target);
            }
            let mut budget = Budget {
                bytes_max: self.step_bytes(),
                deadline: Instant::now().checked_add(self.options.step_time),
                pages_left: account.end.saturating_mul(64).saturating_add(1000),
                seen: 0,
                saved: 0,
                moved: 0,
                run_bytes: 0,
            };
            let tables = &self.options.tables;
            let skipped = &mut self.report.left_alone;
            let at_end = txn.compact_part(task, &mut walk, &mut budget, tables, skipped)?;
            let changed = txn.is_changed();
            if changed {
                txn.cut();
                self.commit(txn)?;
            } else {
                drop(txn);
            }
            done.pages += budget.saved + budget.moved;
            self.report.pages_saved += budget.saved;
            self.report.pages_moved += budget.moved;
            seen += budget.seen;
            self.seen = (self.seen + budget.seen).min(self.total);
            if !(self.progress)(self.seen, self.total) {
                (self.report.finished, self.stopped) = (false, true);
                done.ended = true;
                return Ok(done);
            }
            // Somebody may add records after the walk for ever, and damaged trees lead in circles.
            if at_end || seen > account.end.max(self.start).saturating_mul(64) {
                return Ok(done);
            }
            std::thread::sleep(self.options.pause);
        }
    }

    /// What a step writes: early writing, which bounds the memory of large transactions, need not come
    /// in between.
    fn step_bytes(&self) -> u64 {
        let limit = self.env.dirty_limit / 2;
        self.options.step_bytes.min(limit).max(1)
    }

    /// Pages that the file may grow by while it is packed: those of two steps, for what the first has
    /// replaced falls free with the second, and a part of the whole.
    fn allowance(&self, account: &Account) -> u64 {
        let step = self.step_bytes() >> self.env.shift;
        step.saturating_mul(2).min(account.live()) + account.live() / 16 + 64
    }

    fn commit(&mut self, txn: WriteTxn) -> Result<()> {
        txn.commit()?;
        self.report.commits += 1;
        if !self.env.is_sync() {
            checkpoint::checkpoint(self.env)?;
        }
        Ok(())
    }

    /// Lowers the end to the last page in use.
    fn cut(&mut self) -> Result<()> {
        for _ in 0..CUTS_MAX {
            let (mut txn, _) = self.begin()?;
            if !txn.cut() {
                break;
            }
            self.commit(txn)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<CompactReport> {
        // All stands; a file that stays too long is no reason to fail.
        let _ = checkpoint::cut_tail(self.env, true);
        let account = self.look()?;
        let info = self.env.info()?;
        let report = &mut self.report;
        (report.used_after, report.file_after) = (info.used_len, info.file_len);
        report.held = account.retired << self.env.shift;
        let oldest = info.readers.into_iter().min_by_key(|reader| reader.txn);
        report.held_by = oldest.filter(|reader| reader.lag > 0 && report.held > 0);
        Ok(self.report)
    }
}

/// Where the used part could end.
fn target(account: &Account) -> u64 {
    let live = account.live();
    (live + account.retired + live / SLACK + SLACK_MIN).min(account.end)
}
