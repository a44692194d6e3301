//! The full check: every page of a snapshot, and the account of all pages of the file.
//!
//! It proves that each page is exactly one of: a meta, used by one tree or run or the free-space
//! log, free, or retired (dead, but seen by some snapshot). It reads every page, verifies number,
//! birth and checksum, the order of keys within and across pages, separators, levels, counts.
//! It needs no lock: the snapshot and the free-space log that belongs to it are pinned by a read
//! transaction.

mod account;
mod space;
mod walk;
mod whole;

use std::sync::Arc;

use crate::env::checkpoint::MetaLock;
use crate::env::meta::{META_COUNT, Meta};
use crate::env::{EnvInner, choose, metas};
use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::space::log::Loaded;
use crate::tree::Snapshot;
use crate::tree::verify::Verifier;
use crate::txn::{ReadTxn, pinned};

use account::{Account, Use};
pub(crate) use space::space;
pub use space::{HeldBack, SpaceInfo};
pub(crate) use whole::is_whole;

/// Damage that a check found.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// for problem in env.check(&mut |_, _| true)?.problems {
///     println!("page {}: {}", problem.page, problem.reason);
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The page, 0 where none can be named.
    pub page: PageNo,
    /// The table, where one is known; empty for the table of tables.
    pub table: Option<Vec<u8>>,
    /// What is wrong.
    pub reason: String,
}

/// Outcome of a check.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let report = env.check(&mut |_, _| true)?;
/// assert!(report.is_ok());
/// assert_eq!((report.tables, report.leaf_pages), (1, 2));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// The snapshot that was checked.
    pub txn: TxnId,
    /// Tables, the table of tables not counted.
    pub tables: u64,
    /// Records in all tables.
    pub entries: u64,
    /// Pages up to the last one ever used, the metas included.
    pub pages: u64,
    /// Pages on level 0 of the trees.
    pub leaf_pages: u64,
    /// Pages above.
    pub branch_pages: u64,
    /// Pages of large values.
    pub run_pages: u64,
    /// Pages of the free-space log.
    pub free_space_log_pages: u64,
    /// Pages of the redo log.
    pub redo_log_pages: u64,
    /// Pages that can be used at once.
    pub free_pages: u64,
    /// Dead pages that a snapshot or the steady commit may still see.
    pub retired_pages: u64,
    /// What is wrong; empty when all is well. At most [`PROBLEMS_MAX`] are listed.
    pub problems: Vec<Problem>,
}

/// A check lists no more problems than this.
pub const PROBLEMS_MAX: usize = 1000;

impl CheckReport {
    /// True when nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// The first problem as an error.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// // A damaged store ends this function with an error.
    /// env.check(&mut |_, _| true)?.into_result()?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn into_result(self) -> Result<CheckReport> {
        match self.problems.first() {
            None => Ok(self),
            Some(problem) => {
                Err(Error::Corrupted { page: problem.page, reason: "the check found problems" })
            }
        }
    }

    /// The report of a check that could not be made.
    pub(crate) fn of_error(error: &Error) -> CheckReport {
        let page = match error {
            Error::Corrupted { page, .. } => page.0,
            _ => 0,
        };
        let mut report = CheckReport::default();
        report.problem(page, None, reason_of(error));
        report
    }

    fn problem(&mut self, page: u64, table: Option<&[u8]>, reason: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            let table = table.map(<[u8]>::to_vec);
            self.problems.push(Problem { page: PageNo(page), table, reason: reason.into() });
        }
    }
}

/// A page, or an extent of pages, that a walk came to.
///
/// ```
/// use zubilo::PageKind;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let mut records = 0;
/// env.walk_pages(&mut |page| {
///     if page.kind == PageKind::Leaf && page.table == b"t" {
///         records += page.entries;
///     }
///     true
/// })?;
/// assert_eq!(records, 1);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageVisit<'w> {
    /// The first page.
    pub page: PageNo,
    /// How many pages: 1 for pages of trees.
    pub count: u64,
    /// What the pages are.
    pub kind: PageKind,
    /// The table they belong to; empty for the table of tables, the free-space log and free pages.
    pub table: &'w [u8],
    /// Distance from the leaves, for pages of trees.
    pub level: u8,
    /// Entries, for pages of trees.
    pub entries: usize,
    /// Bytes in use.
    pub used: u64,
    /// The transaction that wrote them, where it is known.
    pub birth: TxnId,
    /// The newest snapshot that sees them, of pages that are held back ([`PageKind::Retired`]): older ones may, too.
    pub held_for: Option<TxnId>,
}

/// Kinds of pages as a walk reports them.
///
/// ```
/// use zubilo::PageKind;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut free = 0;
/// env.walk_pages(&mut |page| {
///     if page.kind == PageKind::Free {
///         free += page.count;
///     }
///     true
/// })?;
/// assert_eq!(free, env.space()?.free_pages);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageKind {
    /// Separators and children.
    Branch,
    /// Records.
    Leaf,
    /// A large value.
    Run,
    /// The free-space log.
    FreeSpaceLog,
    /// The redo log.
    RedoLog,
    /// Reusable at once.
    Free,
    /// Dead, but a snapshot still sees it.
    Retired,
}

/// Receives the pages of a walk; stops it by giving false.
type Visitor<'v> = &'v mut dyn FnMut(&PageVisit<'_>) -> bool;

/// The check of the newest commit.
pub(crate) fn run(
    env: &Arc<EnvInner>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
    visit: Visitor<'_>,
) -> Result<CheckReport> {
    env.check_alive()?;
    let (txn, meta) = pinned(env)?;
    let of_file = Verifier::of_file(env.data.as_ref());
    let snapshot = from_file(txn.snapshot(), of_file.as_ref());
    let mut report = CheckReport { txn: txn.id(), pages: meta.end, ..Default::default() };
    let damaged = {
        let _lock = MetaLock::take(&env.shared)?;
        metas::damaged(env.data.as_ref(), env.shift)
    };
    for meta in damaged {
        report.problem(meta.page.0, None, meta.to_string());
    }
    let mut account = Account::new(meta.end)?;
    account.add(0, META_COUNT, Use::Meta, &mut report, None);
    let mut walk = walk::Walk {
        snapshot,
        account: &mut account,
        report: &mut report,
        progress,
        visit: &mut *visit,
        stopped: false,
    };
    walk.all_tables(&meta.main)?;
    free_space(&snapshot, &meta, env, &mut account, &mut report, visit)?;
    account.gaps(&mut report);
    if let Some(reason) = not_as_written(env)? {
        report.problem(meta.main.root.0, None, reason.to_string());
    }
    Ok(report)
}

/// Of a chosen commit that is looked at: why pages of it may be those of an older one, though each is whole by itself.
fn not_as_written(env: &EnvInner) -> Result<Option<&'static str>> {
    let reason =
        "pages that this commit wrote never reached the disk: in their places are older ones";
    let is_written = !env.options.is_look() || choose::is_as_written(env)?;
    Ok((!is_written).then_some(reason))
}

/// An error where the commit is a chosen one that was not written as it should be.
pub(crate) fn check_written(env: &EnvInner, meta: &Meta) -> Result<()> {
    match not_as_written(env)? {
        Some(reason) => Err(Error::Corrupted { page: PageNo(meta.main.root.0), reason }),
        None => Ok(()),
    }
}

/// The pages of a snapshot as the file has them, where a process may have others in memory.
fn from_file<'s>(snapshot: Snapshot<'s>, of_file: Option<&'s Verifier>) -> Snapshot<'s> {
    of_file.map_or(snapshot, |of_file| snapshot.verified_by(of_file))
}

/// Reads all that a pinned snapshot reaches; damage is an error.
pub(crate) fn verify(
    txn: &ReadTxn,
    meta: &Meta,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<()> {
    verify_visiting(txn, meta, progress, &mut |_| true)
}

/// As [`verify`], and shows all pages of trees and values.
pub(crate) fn verify_visiting(
    txn: &ReadTxn,
    meta: &Meta,
    progress: &mut dyn FnMut(u64, u64) -> bool,
    visit: Visitor<'_>,
) -> Result<()> {
    let of_file = Verifier::of_file(txn.env().data.as_ref());
    let mut report = CheckReport { txn: txn.id(), pages: meta.end, ..Default::default() };
    let mut account = Account::new(meta.end)?;
    account.add(0, META_COUNT, Use::Meta, &mut report, None);
    let mut walk = walk::Walk {
        snapshot: from_file(txn.snapshot(), of_file.as_ref()),
        account: &mut account,
        report: &mut report,
        progress,
        visit,
        stopped: false,
    };
    walk.all_tables(&meta.main)?;
    check_written(txn.env(), meta)?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => {
            let reason = "what the copy would hold is not what was written";
            Err(Error::Corrupted { page: problem.page, reason })
        }
    }
}

/// Adds what the free-space log says: its own pages, free pages, retired pages.
fn free_space(
    snapshot: &Snapshot<'_>,
    meta: &Meta,
    env: &EnvInner,
    account: &mut Account,
    report: &mut CheckReport,
    visit: Visitor<'_>,
) -> Result<()> {
    let mut pins = Vec::new();
    env.collect_pins(&mut pins);
    let (log, space) = match meta.load_log(snapshot, &pins, env.plausible_pages()) {
        Ok(Loaded { log, space, .. }) => (log, space),
        Err(error) => {
            let page = match &error {
                Error::Corrupted { page, .. } => page.0,
                _ => 0,
            };
            report.problem(page, None, format!("the free-space log: {error}"));
            return Ok(());
        }
    };
    for segment in log.segments() {
        let pages = segment.pages(meta.page_shift);
        report.free_space_log_pages += pages;
        let kind = PageKind::FreeSpaceLog;
        show(visit, &of_no_table(segment.first, pages, kind, segment.txn, segment.len))?;
        account.add(segment.first, pages, Use::FreeSpaceLog, report, None);
    }
    if let Some(log) = &meta.redo {
        let pages = log.pages(meta.page_shift);
        report.redo_log_pages = pages;
        show(visit, &of_no_table(log.first, pages, PageKind::RedoLog, log.birth, log.bytes))?;
        account.add(log.first, pages, Use::RedoLog, report, None);
    }
    let mut shown = Ok(());
    space.for_each_free(&mut |e| {
        report.free_pages += e.count;
        if shown.is_ok() {
            shown = show(visit, &of_no_table(e.first, e.count, PageKind::Free, 0, 0));
        }
        account.add(e.first, e.count, Use::Free, report, None);
    });
    let mut shown_retired = Ok(());
    space.for_each_retired(&mut |r, pin| {
        report.retired_pages += r.count;
        if shown_retired.is_ok() {
            let visited = of_no_table(r.first, r.count, PageKind::Retired, r.birth, 0);
            let held_for = Some(TxnId(pin));
            shown_retired = show(visit, &PageVisit { held_for, ..visited });
        }
        account.add(r.first, r.count, Use::Free, report, None);
    });
    shown.and(shown_retired)
}

fn show(visit: Visitor<'_>, visited: &PageVisit<'_>) -> Result<()> {
    if visit(visited) { Ok(()) } else { Err(Error::Stopped) }
}

/// Pages that hold no records.
fn of_no_table(
    first: u64,
    count: u64,
    kind: PageKind,
    birth: u64,
    used: u64,
) -> PageVisit<'static> {
    PageVisit {
        page: PageNo(first),
        count,
        kind,
        table: &[],
        level: 0,
        entries: 0,
        used,
        birth: TxnId(birth),
        held_for: None,
    }
}

/// What is wrong with a page, for who has its number already and is at the check.
fn reason_of(error: &Error) -> String {
    match error {
        Error::Corrupted { reason, .. } => (*reason).to_string(),
        other => other.to_string(),
    }
}
