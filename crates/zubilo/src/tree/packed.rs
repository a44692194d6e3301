//! Putting items into a tree of packed leaves: the values of one key, all of one size.

use crate::dirty::Workspace;
use crate::error::{Error, Result};
use crate::page::{self, Branch, Damage, Packed, branch, packed};

use super::insert::{broken_path, insert_child, touch_path};
use super::{Pages, Path, Ref, Tree};

/// Inserts an item where a descent that did not find it ended.
pub(super) fn insert(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &mut Path,
    item: &[u8],
) -> Result<()> {
    if tree.desc.depth == 0 {
        return first_item(ws, tree, item);
    }
    touch_path(ws, tree, path)?;
    tree.desc.entries += 1;
    let step = *path.last().ok_or_else(broken_path)?;
    let slot = step.page.slot().ok_or_else(broken_path)?;
    let page = ws.page_mut(slot)?;
    if packed::insert(page, step.index as usize, item).map_err(step.page.damaged())? {
        return Ok(());
    }
    if share(ws, tree, path, item)? { Ok(()) } else { split(ws, tree, path, item) }
}

/// Evens out a full leaf with the one behind it, if that is at most half full, instead of a split.
/// Sorted loads leave such a one at the end. False, and nothing is changed, where it cannot be.
fn share(ws: &mut Workspace, tree: &mut Tree, path: &Path, item: &[u8]) -> Result<bool> {
    let [.., parent, step] = path.steps() else { return Ok(false) };
    let (parent, step) = (*parent, *step);
    let (above, left) = (parent.page.slot(), step.page.slot());
    let (Some(above), Some(left)) = (above, left) else { return Err(broken_path()) };
    let (i, right) = (step.index as usize, parent.index as usize + 1);
    let mut separator = Vec::new();
    let view = ws.view();
    let branch = Branch::new(view.page(parent.page)?).map_err(parent.page.damaged())?;
    if right >= branch.count() {
        return Ok(false);
    }
    let other = Ref(branch.child(right).map_err(parent.page.damaged())?);
    let own = Packed::new(view.page(step.page)?).map_err(step.page.damaged())?;
    let theirs = Packed::new(view.page(other)?).map_err(other.damaged())?;
    if theirs.count() > theirs.capacity() / 2 {
        return Ok(false);
    }
    // Items that the full leaf has in the end, and where it is cut to get there.
    let keep = (own.count() + 1 + theirs.count()) / 2;
    let cut = keep - usize::from(i < keep);
    let (count, mut tried) = (own.count(), view.page(parent.page)?.to_vec());
    let with_item = |at: usize| match at.cmp(&i) {
        std::cmp::Ordering::Less => own.item(at),
        std::cmp::Ordering::Equal => Ok(item),
        std::cmp::Ordering::Greater => own.item(at - 1),
    };
    let ends = with_item(keep - 1).and_then(|last| Ok((last, with_item(keep)?)));
    let (last, first) = ends.map_err(step.page.damaged())?;
    page::separator(&tree.order, last, first, &mut separator);
    let fits = branch::set_separator(&mut tried, right, &tree.order, &separator);
    if !fits.map_err(parent.page.damaged())? {
        return Ok(false);
    }
    tree.finger.reset();
    let behind = ws.touch(other)?;
    let page = ws.page_mut(above)?;
    let linked = branch::set_child(page, right, Ref::dirty(behind).0)
        .and_then(|()| branch::set_separator(page, right, &tree.order, &separator));
    linked.map_err(parent.page.damaged())?;
    let (l, r) = ws.pair_mut(left, behind)?;
    let moved = packed::prepend(r, l, cut, count).and_then(|fits| {
        packed::remove_range(l, cut, count)?;
        let put =
            if i < keep { packed::insert(l, i, item)? } else { packed::insert(r, i - keep, item)? };
        Ok(fits && put)
    });
    match moved {
        Ok(true) => Ok(true),
        Ok(false) => Err(other.damaged()(Damage("a half-full leaf has no room for its share"))),
        Err(damage) => Err(other.damaged()(damage)),
    }
}

fn first_item(ws: &mut Workspace, tree: &mut Tree, item: &[u8]) -> Result<()> {
    let slot = ws.new_page()?;
    let at = Ref::dirty(slot);
    let page = ws.page_mut(slot)?;
    let made = packed::init(page, tree.desc.table, tree.order.is_plain(), item.len())
        && packed::insert(page, 0, item).map_err(at.damaged())?;
    if !made {
        return Err(Error::Invalid("a value of this size does not fit a page"));
    }
    tree.desc.root = at;
    tree.desc.depth = 1;
    tree.desc.leaf_pages += 1;
    tree.desc.entries += 1;
    Ok(())
}

fn split(ws: &mut Workspace, tree: &mut Tree, path: &Path, item: &[u8]) -> Result<()> {
    let step = *path.last().ok_or_else(broken_path)?;
    let (left, i) = (step.page.slot().ok_or_else(broken_path)?, step.index as usize);
    let damaged = |d: Damage| step.page.damaged()(d);
    let right = ws.new_page()?;
    tree.desc.leaf_pages += 1;
    let append = path.is_rightmost();
    let (l, r) = ws.pair_mut(left, right)?;
    let count = Packed::new(l).map_err(damaged)?.count();
    // Sorted loads fill pages.
    let at = if append && i >= count { count } else { count / 2 };
    packed::split(l, r, at).map_err(damaged)?;
    let room = if i < at || (i == at && at < count) {
        packed::insert(l, i, item)
    } else {
        packed::insert(r, i - at, item)
    };
    if !room.map_err(damaged)? {
        return Err(damaged(Damage("a split leaves no room for the value")));
    }
    let mut separator = std::mem::take(&mut ws.separator);
    let view = ws.view();
    let l = Packed::new(view.page(step.page)?).map_err(damaged)?;
    let r = Packed::new(view.page(Ref::dirty(right))?).map_err(damaged)?;
    let last = l.item(l.count().saturating_sub(1)).map_err(damaged)?;
    page::separator(&tree.order, last, r.item(0).map_err(damaged)?, &mut separator);
    insert_child(ws, tree, path, path.len() - 1, &separator, Ref::dirty(right))?;
    ws.separator = separator;
    Ok(())
}
