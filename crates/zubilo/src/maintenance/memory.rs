//! What of a store is in memory, and bringing parts of it there before they are needed.
//!
//! The system decides what stays: this asks and advises, and is right at the moment of the call only.

use std::ops::Range;

use crate::env::EnvInner;
use crate::env::meta::META_COUNT;
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::ValueKind;
use crate::platform::Advice;
use crate::tree::range::Bounds;
use crate::tree::values::tree_of;
use crate::tree::{Pages, Ref, RunRef, Snapshot, leaves};
use crate::txn::{ReadTable, ReadTxn};

/// How much of a store is in memory: see [`Env::residency`](crate::Env::residency).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let found = env.residency(&mut |_, _| {})?;
/// println!("{} of {} pages are in memory", found.resident, found.pages);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Residency {
    /// Pages that the newest commit reaches up to.
    pub pages: u64,
    /// Pages of those that are in memory.
    pub resident: u64,
}

/// How something is brought into memory.
///
/// ```
/// use zubilo::WarmUp;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let pages = env.warm_up_table::<&[u8]>("t", .., WarmUp::Wait, &mut |_, _| true)?;
/// assert_eq!(pages, 1);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WarmUp {
    /// The system is asked to read it in the background; the call returns at once.
    #[default]
    ReadAhead,
    /// It is in memory when the call returns, if it has room there, and mapped: the first access does not
    /// fault either. On kernels before 5.14 as `ReadAhead`.
    Wait,
}

/// Pages whose state is asked in one go.
const ASKED: u64 = 1 << 16;
/// Bytes brought in between two looks at whether to go on.
const STEP: u64 = 8 << 20;

/// Reports for each page below `end` whether it is in memory.
pub(crate) fn residency(
    env: &EnvInner,
    end: u64,
    visit: &mut dyn FnMut(PageNo, bool),
) -> Result<Residency> {
    let mut found = Residency { pages: end, resident: 0 };
    for first in (0..end).step_by(ASKED as usize) {
        let pages = first..end.min(first + ASKED);
        let bytes = (pages.end - pages.start) << env.shift;
        let resident = env.data.resident(first << env.shift, bytes);
        let resident =
            resident.map_err(Error::io_at("ask what is in memory of", env.data.path()))?;
        // Pages of the store may be larger than the system's.
        let each = (resident.len() / (pages.end - pages.start) as usize).max(1);
        for (page, part) in pages.zip(resident.chunks(each)) {
            let is_resident = part.iter().all(|resident| *resident);
            found.resident += u64::from(is_resident);
            visit(PageNo(page), is_resident);
        }
    }
    Ok(found)
}

/// Brings all pages of a snapshot into memory; gives how many.
pub(crate) fn warm_all(
    env: &EnvInner,
    end: u64,
    how: WarmUp,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<u64> {
    bring(env, META_COUNT..end, how, &mut |done| progress(done, end - META_COUNT))
}

/// Brings some pages into memory, as long as `go_on` says so.
fn bring(
    env: &EnvInner,
    pages: Range<u64>,
    how: WarmUp,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<u64> {
    let advice = match how {
        WarmUp::ReadAhead => Advice::WillNeed,
        WarmUp::Wait => Advice::Populate,
    };
    let step = (STEP >> env.shift).max(1);
    let mut done = 0;
    for first in pages.clone().step_by(step as usize) {
        let count = step.min(pages.end - first);
        let brought = env.data.advise(first << env.shift, count << env.shift, advice);
        brought.map_err(Error::io_at("read ahead in", env.data.path()))?;
        done += count;
        if !go_on(done) {
            return Err(Error::Stopped);
        }
    }
    Ok(done)
}

/// Brings what a range of a table needs into memory: its leaves, then large values and the values of keys
/// with many, which the leaves name.
pub(crate) fn warm_table(
    txn: &ReadTxn,
    table: &ReadTable<'_>,
    bounds: &Bounds,
    how: WarmUp,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<u64> {
    let (pages, tree) = (table.snapshot(), table.tree());
    let desc = &tree.desc;
    let outside = desc.run_pages + desc.value_pages;
    let (mut done, all) = (0, desc.leaf_pages + outside);
    let mut warm = |mut numbers: Vec<u64>| {
        numbers.sort_unstable();
        for run in numbers.chunk_by(|a, b| a + 1 == *b) {
            let pages = run[0]..run[0] + run.len() as u64;
            done += bring(txn.env(), pages, how, &mut |part| progress(done + part, all.max(done)))?;
        }
        Ok(())
    };
    let numbers = |leaves: &[Ref]| leaves.iter().map(|leaf| leaf.page_no().0).collect();
    leaves::inside(&pages, tree, bounds, &mut |leaves| warm(numbers(leaves)))?;
    if outside > 0 {
        leaves::inside(&pages, tree, bounds, &mut |leaves| {
            for at in leaves {
                let mut own = Vec::new();
                outside_of(&pages, *at, &mut own)?;
                warm(own)?;
            }
            Ok(())
        })?;
    }
    Ok(done)
}

/// The pages that the records of a leaf have elsewhere, but for the branches on the way to them.
fn outside_of(pages: &Snapshot<'_>, at: Ref, into: &mut Vec<u64>) -> Result<()> {
    let leaf = pages.leaf(at)?;
    for i in 0..leaf.count() {
        let entry = leaf.entry(i)?;
        match entry.kind {
            ValueKind::Run => {
                let run = RunRef::load(entry.value).map_err(at.damaged())?;
                pages.run(at, &run)?;
                into.extend(run.first..run.first + run.len.div_ceil(pages.page_size() as u64));
            }
            ValueKind::Tree => {
                let values = tree_of(pages, at, entry.value)?;
                leaves::all(pages, &values, &mut |leaves| {
                    into.extend(leaves.iter().map(|leaf| leaf.page_no().0));
                    Ok(())
                })?;
            }
            ValueKind::Inline | ValueKind::Duplicates => {}
        }
    }
    Ok(())
}
