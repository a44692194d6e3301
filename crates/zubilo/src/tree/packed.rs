//! Putting items into a tree of packed leaves: the values of one key, all of one size.

use crate::dirty::Workspace;
use crate::error::{Error, Result};
use crate::page::{self, Damage, Packed, packed};

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
    split(ws, tree, path, item)
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
