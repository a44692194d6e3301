//! About how many records lie in a range, without reading them.
//!
//! Both edges of the range are looked up. What lies in their leaves is counted, and so are the pages beside
//! their ways; of each row of pages in between a few are looked at, evenly spread, for how much lies under
//! them. So the estimate of a short range is exact, and that of a long one costs a bounded number of pages,
//! whatever the length of keys and values in different parts of the table.

use std::ops::{Bound, Range};

use crate::error::Result;

use super::edge::edges;
use super::range::Bounds;
use super::rank::records_of_leaf;
use super::{Pages, Path, Ref, Tree};

/// Pages of a row that are looked at.
const SAMPLES: usize = 8;

/// An estimate of the records in a range, each value of a key counting for one.
pub(crate) fn records<'p, P: Pages<'p>>(pages: &P, tree: &Tree, bounds: &Bounds) -> Result<u64> {
    if let (Bound::Unbounded, Bound::Unbounded) = (&bounds.start, &bounds.end) {
        return Ok(tree.desc.entries);
    }
    let Some((start, end)) = edges(pages, tree, bounds)? else { return Ok(0) };
    let records = between(pages, &start, &end)?;
    Ok((records.round() as u64).min(tree.desc.entries))
}

fn between<'p, P: Pages<'p>>(pages: &P, start: &Path, end: &Path) -> Result<f64> {
    let (mut records, mut parted) = (0.0, false);
    let mut level = start.len() as u8;
    for (from, to) in start.steps().iter().zip(end.steps()) {
        level -= 1;
        let (first, last) = (from.index as usize, to.index as usize);
        records += match (parted, level) {
            (false, 0) => of_leaf(pages, from.page, first..last)?,
            (true, 0) => {
                let rest = first..from.count as usize;
                of_leaf(pages, from.page, rest)? + of_leaf(pages, to.page, 0..last)?
            }
            (true, _) => {
                let rest = first + 1..from.count as usize;
                of_row(pages, from.page, rest, level)? + of_row(pages, to.page, 0..last, level)?
            }
            (false, _) if first != last => {
                parted = true;
                of_row(pages, from.page, first + 1..last, level)?
            }
            (false, _) => 0.0,
        };
    }
    Ok(records)
}

/// Of a leaf.
fn of_leaf<'p, P: Pages<'p>>(pages: &P, at: Ref, row: Range<usize>) -> Result<f64> {
    let leaf = pages.leaf(at)?;
    Ok(records_of_leaf(&leaf, row.start, row.end).map_err(at.damaged())? as f64)
}

/// Under neighbouring children of the branch at a page, on `level`.
fn of_row<'p, P: Pages<'p>>(pages: &P, at: Ref, row: Range<usize>, level: u8) -> Result<f64> {
    let branch = pages.branch(at, level)?;
    let samples = row.len().min(SAMPLES);
    let mut seen = 0.0;
    for sample in 0..samples {
        // The middles of so many equal parts.
        let i = row.start + (2 * sample + 1) * row.len() / (2 * samples);
        seen += of_page(pages, branch.child(i)?, level - 1)?;
    }
    Ok(if samples == 0 { 0.0 } else { seen * row.len() as f64 / samples as f64 })
}

/// Under one page, by one way down through its middle.
fn of_page<'p, P: Pages<'p>>(pages: &P, at: Ref, level: u8) -> Result<f64> {
    let (mut at, mut times) = (at, 1.0);
    for level in (1..=level).rev() {
        let branch = pages.branch(at, level)?;
        times *= branch.count() as f64;
        at = branch.child(branch.count() / 2)?;
    }
    Ok(times * of_leaf(pages, at, 0..pages.leaf(at)?.count())?)
}
