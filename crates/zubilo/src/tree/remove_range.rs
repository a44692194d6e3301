//! Removing all entries between two keys, leaf by leaf: a leaf that goes whole is not even
//! copied, so the cost follows the pages, not the records.

use std::ops::Bound;

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::{Leaf, NormBuf, Order, SearchKey, branch, leaf};

use super::insert::{TreeMut, broken_path, touch_path};
use super::lookup::{descend, descend_first};
use super::range::{Bounds, OwnedKey};
use super::remove::Dropped;
use super::{Located, Pages, Path, Tree};

/// Removes the entries inside `bounds`; gives their number.
pub(crate) fn remove_range(ws: &mut Workspace, tree: &mut Tree, bounds: &Bounds) -> Result<u64> {
    tree.finger.reset();
    let mut dropped = Dropped::from(ws, &tree.desc);
    let has_more = tree.desc.run_pages > 0 || tree.desc.options.has_duplicates();
    let mut done = false;
    while !done && tree.desc.depth > 0 {
        let Some((path, from, to)) = next_part(ws, tree, bounds)? else { break };
        let mut tree = TreeMut { ws, tree, path };
        let (at, _) = tree.end()?;
        let count = tree.ws.view().leaf(at)?.count();
        if has_more {
            dropped.entries(tree.ws, at, from, to)?;
        } else {
            dropped.entries += (to - from) as u64;
        }
        if from == 0 && to == count && tree.path.len() > 1 {
            tree.drop_leaf()?;
        } else {
            tree.touch()?;
            let (at, _) = tree.end()?;
            tree.ws.edit(at, |page| leaf::remove_range(page, from, to))?;
            tree.rebalance(tree.path.len() - 1)?;
        }
        done = to < count;
    }
    let desc = &mut tree.desc;
    let removed = dropped.entries.min(desc.entries);
    desc.entries -= removed;
    desc.run_pages = desc.run_pages.saturating_sub(dropped.run_pages);
    desc.value_pages = desc.value_pages.saturating_sub(dropped.value_pages);
    if removed > 0 {
        desc.modified = ws.txn();
    }
    Ok(removed)
}

/// The first leaf with entries inside the bounds, and which of them.
fn next_part(ws: &Workspace, tree: &Tree, bounds: &Bounds) -> Result<Option<(Path, usize, usize)>> {
    let mut path = Path::default();
    let mut from = seek_start(ws, tree, &bounds.start, &mut path)?;
    loop {
        let leaf = ws.view().leaf(path.last().ok_or_else(broken_path)?.page)?;
        if from < leaf.count() {
            let to = match &bounds.end {
                Bound::Unbounded => leaf.count(),
                Bound::Included(key) => index_of(&leaf, &tree.order, key, true)?,
                Bound::Excluded(key) => index_of(&leaf, &tree.order, key, false)?,
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
    let (key, after) = match start {
        Bound::Unbounded => {
            descend_first(&ws.view(), tree.desc.root, tree.desc.depth - 1, path)?;
            return Ok(0);
        }
        Bound::Included(key) => (key, false),
        Bound::Excluded(key) => (key, true),
    };
    let mut buf = NormBuf::default();
    let search = SearchKey::new(&tree.order, key, &mut buf);
    let found = descend(&ws.view(), &tree.desc, &tree.order, &search, path)?;
    let index = path.last().ok_or_else(broken_path)?.index as usize;
    Ok(index + usize::from(found && after))
}

/// To the leaf on the right; false when there is none.
fn step_right(ws: &Workspace, tree: &Tree, path: &mut Path) -> Result<bool> {
    let branches = path.len().saturating_sub(1);
    for up in (0..branches).rev() {
        let step = path.steps()[up];
        if step.index + 1 < step.count {
            let (view, level) = (ws.view(), tree.desc.depth - 1 - up as u8);
            let index = step.index as usize + 1;
            let child = view.branch(step.page, level)?.child(index)?;
            path.truncate(up);
            path.push(step.page, index, step.count as usize);
            descend_first(&view, child, level - 1, path)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn index_of(leaf: &Located<Leaf<'_>>, order: &Order, key: &[u8], after: bool) -> Result<usize> {
    let mut buf = NormBuf::default();
    let search = SearchKey::new(order, key, &mut buf);
    Ok(match leaf.search(order, &search)? {
        Ok(i) => i + usize::from(after),
        Err(i) => i,
    })
}

impl TreeMut<'_> {
    /// Drops the whole leaf at the end of the path: only the branches above it are changed.
    fn drop_leaf(&mut self) -> Result<()> {
        let (leaf, _) = self.end()?;
        let mut above = self.path.clone();
        above.truncate(self.path.len() - 1);
        touch_path(self.ws, self.tree, &mut above)?;
        self.ws.drop_page(leaf)?;
        self.tree.desc.count_pages(true, -1);
        let parent = *above.last().ok_or_else(broken_path)?;
        self.ws.edit(parent.page, |page| branch::remove(page, parent.index as usize))?;
        // The path keeps its depth so that a branch is not taken for a leaf.
        for (step, touched) in self.path.steps_mut().iter_mut().zip(above.steps()) {
            *step = *touched;
        }
        self.rebalance(self.path.len() - 2)
    }
}
