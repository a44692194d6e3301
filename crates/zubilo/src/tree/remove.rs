//! Taking an entry out, and keeping pages from becoming empty: merge, borrow, collapse.

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::row::Node;
use crate::page::{Damage, NormBuf, SearchKey, branch, leaf, packed};

use super::insert::{Held, broken_path, drop_held, held, touch_path};
use super::lookup::descend_to_change;
use super::siblings::{capacity, node_at, underflow};
use super::{Path, Ref, Tree, TreeDesc};

/// A page with less than this share of its bytes in use looks for a neighbour.
const SPARSE: usize = 4;

/// Removes `key`; false when it is not there.
pub(crate) fn remove(ws: &mut Workspace, tree: &mut Tree, key: &[u8]) -> Result<bool> {
    tree.finger.reset();
    let mut path = Path::default();
    let mut buf = NormBuf::default();
    let search = SearchKey::new(&tree.order, key, &mut buf);
    if !descend_to_change(&ws.view(), &tree.desc, &tree.order, &search, &mut path)? {
        return Ok(false);
    }
    remove_at(ws, tree, &mut path)?;
    Ok(true)
}

/// Removes the entry at the end of `path`.
pub(crate) fn remove_at(ws: &mut Workspace, tree: &mut Tree, path: &mut Path) -> Result<()> {
    tree.finger.reset();
    touch_path(ws, tree, path)?;
    let step = *path.last().ok_or_else(broken_path)?;
    let at = step.page;
    let (slot, i) = (at.slot().ok_or_else(broken_path)?, step.index as usize);
    if tree.desc.options.is_packed() {
        packed::remove(ws.page_mut(slot)?, i).map_err(at.damaged())?;
        tree.desc.entries = tree.desc.entries.saturating_sub(1);
    } else {
        let held = held(ws, tree.desc.options.has_duplicates(), at, i)?;
        drop_held(ws, tree, &held)?;
        leaf::remove(ws.page_mut(slot)?, i).map_err(at.damaged())?;
        tree.desc.entries = tree.desc.entries.saturating_sub(held.count());
    }
    tree.desc.modified = ws.txn();
    rebalance(ws, tree, path, path.len() - 1)
}

/// Looks after the page at step `d` of a touched path, which has lost entries.
pub(crate) fn rebalance(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize) -> Result<()> {
    if d == 0 {
        return collapse_root(ws, tree);
    }
    let (at, is_leaf) = (path.steps()[d].page, d + 1 == path.len());
    let node = node_at(ws, at, (path.len() - 1 - d) as u8)?;
    let count = node.count();
    if count > 0 && node.used() >= capacity(ws) / SPARSE && (is_leaf || count > 1) {
        return Ok(());
    }
    if count == 0 {
        ws.drop_page(at)?;
        count_pages(&mut tree.desc, is_leaf, -1);
        let parent = path.steps()[d - 1];
        let slot = parent.page.slot().ok_or_else(broken_path)?;
        let removed = branch::remove(ws.page_mut(slot)?, parent.index as usize);
        removed.map_err(parent.page.damaged())?;
        return rebalance(ws, tree, path, d - 1);
    }
    underflow(ws, tree, path, d)
}

pub(super) fn count_pages(desc: &mut TreeDesc, is_leaf: bool, by: i64) {
    let pages = if is_leaf { &mut desc.leaf_pages } else { &mut desc.branch_pages };
    *pages = pages.saturating_add_signed(by);
}

/// A root with one child hands over to it; an empty one leaves an empty tree.
pub(super) fn collapse_root(ws: &mut Workspace, tree: &mut Tree) -> Result<()> {
    while tree.desc.depth > 0 {
        let at = tree.desc.root;
        let is_leaf = tree.desc.depth == 1;
        let child = match node_at(ws, at, tree.desc.depth - 1)? {
            node if node.count() == 0 => None,
            Node::Branch(branch) if branch.count() == 1 => {
                Some(Ref(branch.child(0).map_err(at.damaged())?))
            }
            _ => return Ok(()),
        };
        ws.drop_page(at)?;
        count_pages(&mut tree.desc, is_leaf, -1);
        match child {
            Some(child) => {
                tree.desc.root = child;
                tree.desc.depth -= 1;
            }
            None => {
                tree.desc.root = Ref::NONE;
                tree.desc.depth = 0;
            }
        }
    }
    Ok(())
}

/// Frees every page of a tree and leaves it empty.
pub(crate) fn clear(ws: &mut Workspace, tree: &mut Tree) -> Result<()> {
    tree.finger.reset();
    let desc = tree.desc;
    drop_tree(ws, &desc)?;
    tree.desc = TreeDesc {
        sequence: desc.sequence,
        modified: ws.txn(),
        ..TreeDesc::empty(desc.table, desc.options)
    };
    Ok(())
}

/// Frees every page of the tree that a descriptor names.
pub(super) fn drop_tree(ws: &mut Workspace, desc: &TreeDesc) -> Result<()> {
    let mut budget = ws.page_bound();
    drop_pages(ws, desc, &mut budget)
}

fn drop_pages(ws: &mut Workspace, desc: &TreeDesc, budget: &mut u64) -> Result<()> {
    if desc.depth == 0 {
        return Ok(());
    }
    let holds = desc.run_pages > 0 || desc.options.has_duplicates();
    drop_subtree(ws, desc.root, desc.depth - 1, desc, holds, budget)
}

/// Frees a subtree; `holds` tells whether its leaves may hold more than their own bytes. `budget` is
/// the number of pages there can be: a damaged tree that leads to the same pages again and again runs
/// out of it.
fn drop_subtree(
    ws: &mut Workspace,
    at: Ref,
    level: u8,
    desc: &TreeDesc,
    holds: bool,
    budget: &mut u64,
) -> Result<()> {
    *budget = budget
        .checked_sub(1)
        .ok_or_else(|| at.damaged()(Damage("a tree with more pages than the store")))?;
    if level > 0 {
        let count = super::lookup::branch_at(&ws.view(), at, level)?.count();
        for i in 0..count {
            let branch = super::lookup::branch_at(&ws.view(), at, level)?;
            let child = Ref(branch.child(i).map_err(at.damaged())?);
            drop_subtree(ws, child, level - 1, desc, holds, budget)?;
        }
    } else if holds {
        drop_entries(ws, desc.options.has_duplicates(), at, 0, usize::MAX, budget)?;
    }
    ws.drop_page(at)
}

/// What entries had.
#[derive(Default)]
pub(super) struct Dropped {
    /// Values.
    pub(super) entries: u64,
    pub(super) run_pages: u64,
    pub(super) value_pages: u64,
}

/// Drops what a leaf's entries [from, to) have outside the leaf.
pub(super) fn drop_entries(
    ws: &mut Workspace,
    duplicates: bool,
    at: Ref,
    from: usize,
    to: usize,
    budget: &mut u64,
) -> Result<Dropped> {
    let count = super::lookup::leaf_at(&ws.view(), at)?.count();
    let mut dropped = Dropped::default();
    for i in from..to.min(count) {
        let held = held(ws, duplicates, at, i)?;
        dropped.entries = dropped.entries.saturating_add(held.count());
        match held {
            Held::One | Held::Set(_) => {}
            Held::Run(run) => {
                // The runs of a damaged leaf may claim any length.
                dropped.run_pages = dropped.run_pages.saturating_add(run.pages(ws.page_shift()));
                ws.drop_run(&run)?;
            }
            Held::Tree(desc) => {
                dropped.value_pages = dropped.value_pages.saturating_add(desc.pages());
                drop_pages(ws, &desc, budget)?;
            }
        }
    }
    Ok(dropped)
}
