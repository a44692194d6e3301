//! Packing: children of one branch fill one another until fewer are left.
//!
//! A window of neighbours is rewritten if one page at least falls away, and it is the shortest that
//! yields one: so no page is rewritten for less than its share. The last page that comes out of a window
//! begins the next one, so that in a row of half-full pages all but the last are filled.

use crate::error::Result;
use crate::page::Branch;

use super::compact::{Part, touch_until, verified};
use super::siblings::{Filled, Pair, align_of, node_at};
use super::{Pages, Path, Ref, Tree};

/// Pages that are rewritten at most to save one: leaves that are full to 15 sixteenths of what is
/// wanted stay as they are.
const WINDOW: usize = 16;

/// Packs the children of the branch at step `d` of a path, from the step's index on. Gives the child to
/// go on with if the part has done enough before the last.
pub(super) fn pack_children(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
    room: usize,
) -> Result<Option<usize>> {
    let level = (path.len() - 2 - d) as u8;
    let from = path.steps()[d].index as usize;
    // Bytes that the children from `from` on fill, as far as they are known.
    let mut sizes: Vec<usize> = Vec::new();
    let mut i = from;
    loop {
        let children = children_of(part, path, d)?;
        if i + 1 >= children {
            return Ok(None);
        }
        let window = (i + WINDOW).min(children);
        while from + sizes.len() < window {
            let at = child_of(part, path, d, from + sizes.len())?;
            part.see(at)?;
            sizes.push(size_of(part, tree, at, level)?);
        }
        let known = sizes.get(i - from..window - from).unwrap_or_default();
        match shortest(part, tree, path, d, (i, known, room))? {
            Some(taken) => {
                let made = fill_window(part, tree, path, d, (i, taken, room))?;
                part.meter.saved += (taken - made.len()) as u64;
                let last = if made.len() < taken { made.len() - 1 } else { 1 };
                sizes.splice(i - from..i - from + taken, made);
                i += last;
            }
            None => i += 1,
        }
        if part.is_spent() {
            return Ok(Some(i).filter(|i| i + 1 < children));
        }
    }
}

fn children_of(part: &Part<'_>, path: &Path, d: usize) -> Result<usize> {
    let at = path.steps()[d].page;
    Ok(Branch::new(part.ws.view().page(at)?).map_err(at.damaged())?.count())
}

fn child_of(part: &Part<'_>, path: &Path, d: usize, i: usize) -> Result<Ref> {
    let at = path.steps()[d].page;
    let branch = Branch::new(part.ws.view().page(at)?).map_err(at.damaged())?;
    branch.child(i).map(Ref).map_err(at.damaged())
}

/// Bytes that a page's entries take, wherever they lie.
fn size_of(part: &Part<'_>, tree: &Tree, at: Ref, level: u8) -> Result<usize> {
    node_at(part.ws, at, level)?.size(align_of(tree)).map_err(at.damaged())
}

/// How many children from child `i` on, which have these sizes, have room in one page less.
fn shortest(
    part: &Part<'_>,
    tree: &Tree,
    path: &Path,
    d: usize,
    (i, sizes, room): (usize, &[usize], usize),
) -> Result<Option<usize>> {
    let first = sizes.first().copied().unwrap_or(room);
    if room.saturating_sub(first) * WINDOW < room {
        // A full one saves nothing that its neighbour alone would not.
        return Ok(None);
    }
    let mut sum = first;
    for (n, size) in sizes.iter().enumerate().skip(1) {
        sum += size;
        if sum <= n * room && saves(part, tree, path, d, (i, n + 1, room))? {
            return Ok(Some(n + 1));
        }
    }
    Ok(None)
}

/// Whether the entries of a window, filled into one page after the other, need fewer pages.
fn saves(
    part: &Part<'_>,
    tree: &Tree,
    path: &Path,
    d: usize,
    (i, taken, room): (usize, usize, usize),
) -> Result<bool> {
    let (mut pages, mut used) = (1, 0);
    for n in i..i + taken {
        let at = child_of(part, path, d, n)?;
        let node = node_at(part.ws, at, (path.len() - 2 - d) as u8)?;
        for entry in 0..node.count() {
            let size = node.entry_size(entry, align_of(tree)).map_err(at.damaged())?;
            if used > 0 && used + size > room {
                (pages, used) = (pages + 1, 0);
            }
            used += size;
        }
    }
    Ok(pages < taken)
}

/// Fills each page of a window from those behind it; gives the sizes of the pages that are left. Where
/// the branch has no room for a separator the rest stays as it is.
fn fill_window(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
    (i, taken, room): (usize, usize, usize),
) -> Result<Vec<usize>> {
    let level = (path.len() - 2 - d) as u8;
    for n in i..i + taken {
        verified(part.ws, child_of(part, path, d, n)?)?;
    }
    touch_until(part.ws, tree, path, d)?;
    let parent = path.steps()[d].page;
    let (mut at, mut left) = (i + 1, taken);
    for _ in 1..taken {
        let Some(mut pair) = Pair::at(part.ws, parent, at, level)? else { break };
        match pair.fill(part.ws, tree, room)? {
            Filled::Merged => left -= 1,
            Filled::Left => at += 1,
            Filled::NoRoom => break,
        }
    }
    (i..i + left).map(|n| size_of(part, tree, child_of(part, path, d, n)?, level)).collect()
}
