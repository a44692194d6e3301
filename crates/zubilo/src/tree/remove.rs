//! Taking an entry out, and keeping pages from becoming empty: merge, borrow, collapse.

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::{
    Branch, Damage, Items, LeafPage, NormBuf, SearchKey, branch, header, leaf, packed,
};

use super::insert::{Held, broken_path, drop_held, held, touch_path};
use super::lookup::descend_to_change;
use super::{Pages, Path, Ref, Tree, TreeDesc};

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

/// Bytes in use and entries of a page.
fn fill(ws: &Workspace, at: Ref, is_leaf: bool) -> Result<(usize, usize)> {
    let page = ws.view().page(at)?;
    if is_leaf {
        let leaf = Items::parse(page).map_err(at.damaged())?;
        Ok((leaf.used(), leaf.count()))
    } else {
        let branch = Branch::new(page).map_err(at.damaged())?;
        Ok((branch.used(), branch.count()))
    }
}

/// Looks after the page at step `d` of a touched path, which has lost entries.
pub(crate) fn rebalance(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize) -> Result<()> {
    if d == 0 {
        return collapse_root(ws, tree);
    }
    let is_leaf = d + 1 == path.len();
    let at = path.steps()[d].page;
    let (used, count) = fill(ws, at, is_leaf)?;
    let capacity = ws.page_size() - crate::page::HEADER;
    if count > 0 && used >= capacity / SPARSE && (is_leaf || count > 1) {
        return Ok(());
    }
    if count == 0 {
        ws.drop_page(at)?;
        count_pages(&mut tree.desc, is_leaf, -1);
        return remove_child(ws, tree, path, d);
    }
    merge_or_borrow(ws, tree, path, d)
}

fn count_pages(desc: &mut TreeDesc, is_leaf: bool, by: i64) {
    let pages = if is_leaf { &mut desc.leaf_pages } else { &mut desc.branch_pages };
    *pages = pages.saturating_add_signed(by);
}

/// Takes the child at step `d` out of its parent, which then is looked after itself.
fn remove_child(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize) -> Result<()> {
    let step = path.steps()[d - 1];
    remove_child_at(ws, tree, path, d, step.index as usize)
}

fn remove_child_at(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &Path,
    d: usize,
    index: usize,
) -> Result<()> {
    let at = path.steps()[d - 1].page;
    let slot = at.slot().ok_or_else(broken_path)?;
    branch::remove(ws.page_mut(slot)?, index).map_err(at.damaged())?;
    rebalance(ws, tree, path, d - 1)
}

/// A root with one child hands over to it; an empty one leaves an empty tree.
fn collapse_root(ws: &mut Workspace, tree: &mut Tree) -> Result<()> {
    while tree.desc.depth > 0 {
        let at = tree.desc.root;
        let is_leaf = tree.desc.depth == 1;
        let (_, count) = fill(ws, at, is_leaf)?;
        if count > 1 || (is_leaf && count == 1) {
            return Ok(());
        }
        let child = match count {
            0 => None,
            _ => {
                let branch = Branch::new(ws.view().page(at)?).map_err(at.damaged())?;
                Some(Ref(branch.child(0).map_err(at.damaged())?))
            }
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

/// The parent's view of a sparse page and the neighbour it will deal with.
struct Pair {
    /// The sparse page.
    page: Ref,
    /// Its neighbour.
    other: Ref,
    /// Index of the right one of the two in the parent.
    right: usize,
    /// The neighbour is the left one.
    other_is_left: bool,
    is_leaf: bool,
}

fn choose(ws: &Workspace, path: &Path, d: usize) -> Result<Option<Pair>> {
    let parent = path.steps()[d - 1];
    let i = parent.index as usize;
    let branch = Branch::new(ws.view().page(parent.page)?).map_err(parent.page.damaged())?;
    let other_is_left = i > 0;
    let other = if other_is_left { i - 1 } else { i + 1 };
    if other >= branch.count() {
        return Ok(None);
    }
    Ok(Some(Pair {
        page: path.steps()[d].page,
        other: Ref(branch.child(other).map_err(parent.page.damaged())?),
        right: i.max(other),
        other_is_left,
        is_leaf: d + 1 == path.len(),
    }))
}

fn merge_or_borrow(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize) -> Result<()> {
    let Some(pair) = choose(ws, path, d)? else {
        // An only child stays; at the top it takes the root's place.
        return if d == 1 { collapse_root(ws, tree) } else { Ok(()) };
    };
    let level = header::level(ws.view().page(pair.other)?);
    if usize::from(level) + d + 1 != path.len() {
        return Err(pair.other.damaged()(Damage("a neighbour on another level")));
    }
    if merge(ws, tree, path, d, &pair)? {
        ws.drop_page(pair.other)?;
        count_pages(&mut tree.desc, pair.is_leaf, -1);
        return merged(ws, tree, path, d, &pair);
    }
    borrow(ws, tree, path, d, &pair)
}

/// After a merge the page stands for both: one child less, and the reference points to it.
fn merged(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize, pair: &Pair) -> Result<()> {
    let at = path.steps()[d - 1].page;
    let slot = at.slot().ok_or_else(broken_path)?;
    branch::set_child(ws.page_mut(slot)?, pair.right - 1, pair.page.0).map_err(at.damaged())?;
    remove_child_at(ws, tree, path, d, pair.right)
}

/// Takes all entries of the neighbour into the sparse page, if they fit.
fn merge(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize, pair: &Pair) -> Result<bool> {
    let (_, count) = fill(ws, pair.other, pair.is_leaf)?;
    move_entries(ws, tree, path, d, pair, 0, count)
}

/// Moves entries [from, to) of the neighbour into the sparse page.
fn move_entries(
    ws: &mut Workspace,
    tree: &Tree,
    path: &Path,
    d: usize,
    pair: &Pair,
    from: usize,
    to: usize,
) -> Result<bool> {
    let slot = pair.page.slot().ok_or_else(broken_path)?;
    let align = usize::from(tree.desc.options.align);
    let order = &tree.order;
    if pair.is_leaf {
        let (page, other) = ws.change_from(slot, pair.other)?;
        let flags = header::flags(page) | header::flags(other);
        let moved = match (tree.desc.options.is_packed(), pair.other_is_left) {
            (false, true) => leaf::prepend(page, other, from, to, order, align),
            (false, false) => leaf::append(page, other, from, to, order, align),
            (true, true) => packed::prepend(page, other, from, to),
            (true, false) => packed::append(page, other, from, to),
        };
        let moved = moved.map_err(pair.other.damaged())?;
        if moved {
            header::set_flags(page, flags);
        }
        return Ok(moved);
    }
    let mut separator = std::mem::take(&mut ws.separator);
    let parent = path.steps()[d - 1].page;
    let branch = Branch::new(ws.view().page(parent)?).map_err(parent.damaged())?;
    branch.separator(pair.right, &mut separator).map_err(parent.damaged())?;
    let (page, other) = ws.change_from(slot, pair.other)?;
    let moved = if pair.other_is_left {
        branch::prepend(page, other, from, to, order, &separator)
    } else {
        branch::append(page, other, from, to, order, &separator)
    };
    let moved = moved.map_err(pair.other.damaged())?;
    ws.separator = separator;
    Ok(moved)
}

/// Evens out with a neighbour that is too full to merge. Optional: where the parent has no room
/// for the new separator, the sparse page stays sparse.
fn borrow(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize, pair: &Pair) -> Result<()> {
    let (used, _) = fill(ws, pair.page, pair.is_leaf)?;
    let (other_used, other_count) = fill(ws, pair.other, pair.is_leaf)?;
    let take = entries_to_take(ws, pair, other_used.saturating_sub(used) / 2, other_count)?;
    if take == 0 || take >= other_count {
        return Ok(());
    }
    let (from, to) = if pair.other_is_left { (other_count - take, other_count) } else { (0, take) };
    let mut separator = Vec::new();
    boundary(ws, tree, pair, if pair.other_is_left { from } else { to }, &mut separator)?;
    let parent = path.steps()[d - 1].page;
    let parent_slot = parent.slot().ok_or_else(broken_path)?;
    // The entries move first: they need the old separator. So the new one is tried on a copy.
    let mut tried = ws.page_mut(parent_slot)?.to_vec();
    let fits = branch::set_separator(&mut tried, pair.right, &tree.order, &separator);
    if !fits.map_err(parent.damaged())? {
        return Ok(());
    }
    if !move_entries(ws, tree, path, d, pair, from, to)? {
        return Ok(());
    }
    let other = ws.touch(pair.other)?;
    let page = ws.page_mut(other)?;
    let cut = match (pair.is_leaf, tree.desc.options.is_packed()) {
        (true, false) => leaf::remove_range(page, from, to),
        (true, true) => packed::remove_range(page, from, to),
        (false, _) => branch::remove_range(page, from, to),
    };
    cut.map_err(pair.other.damaged())?;
    let index = if pair.other_is_left { pair.right - 1 } else { pair.right };
    let page = ws.page_mut(parent_slot)?;
    branch::set_child(page, index, Ref::dirty(other).0).map_err(parent.damaged())?;
    match branch::set_separator(page, pair.right, &tree.order, &separator) {
        Ok(true) => Ok(()),
        Ok(false) => Err(parent.damaged()(Damage("a separator that fitted does not fit"))),
        Err(damage) => Err(parent.damaged()(damage)),
    }
}

/// How many entries at the near end of the neighbour make up about `bytes`.
fn entries_to_take(ws: &Workspace, pair: &Pair, bytes: usize, count: usize) -> Result<usize> {
    let page = ws.view().page(pair.other)?;
    let mut sum = 0;
    for n in 0..count {
        let i = if pair.other_is_left { count - 1 - n } else { n };
        let size = if pair.is_leaf {
            Items::parse(page).and_then(|l| l.entry_size(i))
        } else {
            Branch::new(page).and_then(|b| b.entry_size(i))
        };
        sum += size.map_err(pair.other.damaged())?;
        if sum > bytes {
            return Ok(n);
        }
    }
    Ok(count)
}

/// The separator that will stand before entry `i` of the neighbour, where it is cut in two.
fn boundary(ws: &Workspace, tree: &Tree, pair: &Pair, i: usize, out: &mut Vec<u8>) -> Result<()> {
    let page = ws.view().page(pair.other)?;
    let damaged = pair.other.damaged();
    if !pair.is_leaf {
        return Branch::new(page).and_then(|b| b.separator(i, out)).map_err(damaged);
    }
    let cut = Items::parse(page).and_then(|leaf| Ok((leaf.key(i - 1)?, leaf.key(i)?)));
    let (left, right) = cut.map_err(damaged)?;
    crate::page::separator(&tree.order, left, right, out);
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
