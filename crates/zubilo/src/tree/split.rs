//! Keys that cut a range into parts of about the same size.
//!
//! The pages of one level that the range touches, left to right, are weighed by how many children they have,
//! or on the lowest level by their records; a part ends where its share of the weight does. The level is the
//! first one, from the root down, with enough pages for even parts; where even the leaves are too few, the
//! records themselves are counted off.

use crate::error::Result;
use crate::page::Order;

use super::edge::{edges, index_on};
use super::range::Bounds;
use super::rank::records_of_leaf;
use super::{Pages, Path, Ref, Tree};

/// So many pages for each part make parts that are even enough: one page more or less is an eighth.
const PAGES_A_PART: usize = 8;
/// From so many pages for each part on they need not be weighed.
const WEIGHED: usize = 64;

/// The first keys of the second part and all further ones, in order; fewer if there are not as many keys.
pub(crate) fn cuts<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    bounds: &Bounds,
    parts: usize,
) -> Result<Vec<&'p [u8]>> {
    let Some((start, end)) = edges(pages, tree, bounds)? else { return Ok(Vec::new()) };
    if parts < 2 {
        return Ok(Vec::new());
    }
    let mut level = tree.desc.depth - 1;
    let mut row = vec![tree.desc.root];
    while level > 0 && row.len() < parts.saturating_mul(PAGES_A_PART) {
        row = below(pages, &row, level, (&start, &end))?;
        level -= 1;
    }
    let keys = if row.len() < parts.saturating_mul(PAGES_A_PART) {
        let ends = (index_on(&start, 0).unwrap_or(0), index_on(&end, 0).unwrap_or(0));
        of_records(pages, &row, ends, parts)?
    } else {
        of_pages(pages, &row, level, parts)?
    };
    Ok(inside(keys, &tree.order, bounds))
}

/// The children, inside the range, of a row of branches on `level`.
fn below<'p, P: Pages<'p>>(
    pages: &P,
    row: &[Ref],
    level: u8,
    (start, end): (&Path, &Path),
) -> Result<Vec<Ref>> {
    let mut children = Vec::new();
    for (i, at) in row.iter().enumerate() {
        let branch = pages.branch(*at, level)?;
        let from = if i == 0 { index_on(start, level).unwrap_or(0) } else { 0 };
        let to = if i + 1 == row.len() { index_on(end, level) } else { None };
        let to = to.map_or(branch.count(), |last| branch.count().min(last + 1));
        for child in from..to {
            children.push(branch.child(child)?);
        }
    }
    Ok(children)
}

/// Cuts between the pages of a row on `level`.
fn of_pages<'p, P: Pages<'p>>(
    pages: &P,
    row: &[Ref],
    level: u8,
    parts: usize,
) -> Result<Vec<&'p [u8]>> {
    let is_weighed = row.len() < parts.saturating_mul(WEIGHED);
    let weigh = |at: Ref| match level {
        _ if !is_weighed => Ok(1),
        0 => {
            let leaf = pages.leaf(at)?;
            records_of_leaf(&leaf, 0, leaf.count()).map_err(at.damaged())
        }
        _ => Ok(pages.branch(at, level)?.count() as u64),
    };
    let weights = row.iter().map(|at| weigh(*at)).collect::<Result<Vec<u64>>>()?;
    shares(&weights, parts).map(|i| first_key(pages, row[i], level)).collect()
}

/// Cuts between the records of a row of leaves, of the first one from, of the last one up to an index.
fn of_records<'p, P: Pages<'p>>(
    pages: &P,
    row: &[Ref],
    (start, end): (usize, usize),
    parts: usize,
) -> Result<Vec<&'p [u8]>> {
    let (mut keys, mut weights) = (Vec::new(), Vec::new());
    for (i, at) in row.iter().enumerate() {
        let leaf = pages.leaf(*at)?;
        let from = if i == 0 { start } else { 0 };
        let to = if i + 1 == row.len() { end } else { leaf.count() };
        for record in from..to {
            keys.push(leaf.key(record)?);
            weights.push(records_of_leaf(&leaf, record, record + 1).map_err(at.damaged())?);
        }
    }
    Ok(shares(&weights, parts).map(|i| keys[i]).collect())
}

/// Where each part but the first begins, so that all have about the same weight.
fn shares(weights: &[u64], parts: usize) -> impl Iterator<Item = usize> {
    let all: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    let (mut before, mut part) = (0u128, 1u128);
    weights.iter().enumerate().filter_map(move |(i, weight)| {
        let middle = before + u128::from(*weight) / 2;
        before += u128::from(*weight);
        let due = part < parts as u128 && middle * parts as u128 >= part * all;
        if !due || i == 0 {
            return None;
        }
        // Something heavy may have taken up the room of several parts.
        part = (middle * parts as u128 / all.max(1)).max(part) + 1;
        Some(i)
    })
}

fn first_key<'p, P: Pages<'p>>(pages: &P, at: Ref, level: u8) -> Result<&'p [u8]> {
    let mut at = at;
    for level in (1..=level).rev() {
        at = pages.branch(at, level)?.child(0)?;
    }
    pages.leaf(at)?.key(0)
}

/// Without those that would leave nothing in front of them or behind them.
fn inside<'p>(mut keys: Vec<&'p [u8]>, order: &Order, bounds: &Bounds) -> Vec<&'p [u8]> {
    keys.retain(|key| bounds.parts_at(order, key));
    keys
}
