//! Removing all entries between two keys, leaf by leaf: a leaf that goes whole is not even
//! copied, so the cost follows the pages, not the records.

use std::ops::Bound;

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::{NormBuf, Order, SearchKey, branch, leaf};

use super::insert::{broken_path, touch_path};
use super::lookup::{descend, leaf_at};
use super::range::{Bounds, OwnedKey};
use super::remove::{drop_entries, rebalance};
use super::{Path, Ref, Tree};

/// Removes the entries inside `bounds`; gives their number.
pub(crate) fn remove_range(ws: &mut Workspace, tree: &mut Tree, bounds: &Bounds) -> Result<u64> {
    tree.finger.reset();
    let before = tree.desc.entries;
    let mut budget = ws.page_bound();
    while tree.desc.depth > 0 {
        let Some((mut path, from, to)) = next_piece(ws, tree, bounds)? else { break };
        let at = path.last().ok_or_else(broken_path)?.page;
        let count = leaf_at(&ws.view(), at)?.count();
        let mut entries = (to - from) as u64;
        let duplicates = tree.desc.options.has_duplicates();
        if tree.desc.run_pages > 0 || duplicates {
            let dropped = drop_entries(ws, duplicates, at, from, to, &mut budget)?;
            tree.desc.run_pages = tree.desc.run_pages.saturating_sub(dropped.run_pages);
            tree.desc.value_pages = tree.desc.value_pages.saturating_sub(dropped.value_pages);
            entries = dropped.entries;
        }
        tree.desc.entries = tree.desc.entries.saturating_sub(entries);
        tree.desc.modified = ws.txn();
        if from == 0 && to == count && path.len() > 1 {
            drop_leaf(ws, tree, &mut path)?;
        } else {
            touch_path(ws, tree, &mut path)?;
            let at = path.last().ok_or_else(broken_path)?.page;
            let slot = at.slot().ok_or_else(broken_path)?;
            leaf::remove_range(ws.page_mut(slot)?, from, to).map_err(at.damaged())?;
            rebalance(ws, tree, &path, path.len() - 1)?;
        }
        if to < count {
            break;
        }
    }
    Ok(before - tree.desc.entries)
}

/// The first leaf with entries inside the bounds, and which of them.
fn next_piece(
    ws: &Workspace,
    tree: &Tree,
    bounds: &Bounds,
) -> Result<Option<(Path, usize, usize)>> {
    let mut path = Path::default();
    let mut from = seek_start(ws, tree, &bounds.start, &mut path)?;
    loop {
        let at = path.last().ok_or_else(broken_path)?.page;
        let leaf = leaf_at(&ws.view(), at)?;
        if from < leaf.count() {
            let to = match &bounds.end {
                Bound::Unbounded => leaf.count(),
                Bound::Included(key) => index_of(&leaf, at, &tree.order, key, true)?,
                Bound::Excluded(key) => index_of(&leaf, at, &tree.order, key, false)?,
            };
            return Ok((from < to).then_some((path, from, to)));
        }
        if !step_right(ws, tree, &mut path)? {
            return Ok(None);
        }
        from = 0;
    }
}

fn seek_start(
    ws: &Workspace,
    tree: &Tree,
    start: &Bound<OwnedKey>,
    path: &mut Path,
) -> Result<usize> {
    let (key, behind) = match start {
        Bound::Unbounded => (None, false),
        Bound::Included(key) => (Some(key), false),
        Bound::Excluded(key) => (Some(key), true),
    };
    let Some(key) = key else {
        leftmost(ws, tree.desc.root, tree.desc.depth, path)?;
        return Ok(0);
    };
    let mut buf = NormBuf::default();
    let search = SearchKey::new(&tree.order, key, &mut buf);
    let found = descend(&ws.view(), &tree.desc, &tree.order, &search, path)?;
    let index = path.last().ok_or_else(broken_path)?.index as usize;
    Ok(index + usize::from(found && behind))
}

fn leftmost(ws: &Workspace, root: Ref, height: u8, path: &mut Path) -> Result<()> {
    let mut at = root;
    for level in (1..height).rev() {
        let branch = super::lookup::branch_at(&ws.view(), at, level)?;
        path.push(at, 0, branch.count());
        at = Ref(branch.child(0).map_err(at.damaged())?);
    }
    path.push(at, 0, leaf_at(&ws.view(), at)?.count());
    Ok(())
}

/// To the leaf on the right; false when there is none.
fn step_right(ws: &Workspace, tree: &Tree, path: &mut Path) -> Result<bool> {
    let mut up = path.len().saturating_sub(1);
    while up > 0 {
        up -= 1;
        let step = path.steps()[up];
        if step.index + 1 < step.count {
            let height = tree.desc.depth - up as u8;
            let branch = super::lookup::branch_at(&ws.view(), step.page, height - 1)?;
            let index = step.index as usize + 1;
            let child = Ref(branch.child(index).map_err(step.page.damaged())?);
            path.truncate(up);
            path.push(step.page, index, step.count as usize);
            leftmost(ws, child, height - 1, path)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn index_of(
    leaf: &crate::page::Leaf<'_>,
    at: Ref,
    order: &Order,
    key: &[u8],
    behind: bool,
) -> Result<usize> {
    let mut buf = NormBuf::default();
    let search = SearchKey::new(order, key, &mut buf);
    Ok(match leaf.search(order, &search).map_err(at.damaged())? {
        Ok(i) => i + usize::from(behind),
        Err(i) => i,
    })
}

/// Drops a whole leaf: only the branches above it are changed.
fn drop_leaf(ws: &mut Workspace, tree: &mut Tree, path: &mut Path) -> Result<()> {
    let leaf = path.last().ok_or_else(broken_path)?.page;
    let mut above = path.clone();
    above.truncate(path.len() - 1);
    touch_path(ws, tree, &mut above)?;
    ws.drop_page(leaf)?;
    tree.desc.leaf_pages = tree.desc.leaf_pages.saturating_sub(1);
    let parent = *above.last().ok_or_else(broken_path)?;
    let slot = parent.page.slot().ok_or_else(broken_path)?;
    branch::remove(ws.page_mut(slot)?, parent.index as usize).map_err(parent.page.damaged())?;
    // The path keeps its depth so that the branch is told from a leaf.
    for (step, touched) in path.steps_mut().iter_mut().zip(above.steps()) {
        *step = *touched;
    }
    rebalance(ws, tree, path, path.len() - 2)
}
