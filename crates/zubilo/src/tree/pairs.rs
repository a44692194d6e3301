//! Changing tables with many values under a key: a value alone, a small set in the record, or a
//! tree of values, and the ways between them.
//!
//! A set grows inside its record until the record has half a leaf, then becomes a tree; a tree that
//! would make a set of half that size becomes one again, so that neither happens at every change.

use crate::dirty::{View, Workspace};
use crate::error::{Error, Result};
use crate::page::{self, Items, Leaf, LeafPage, NormBuf, Order, SearchKey, ValueKind, leaf, set};

use super::cursor::Cursor;
use super::insert::{
    Place, Shape, broken_path, insert_new, keep_finger, leaf_slot, locate, mark_dirty_runs,
    reshape, touch_path,
};
use super::lookup::{descend_by, descend_items, descend_to_change};
use super::pair_cursor::ValuePlace;
use super::remove::{drop_tree, rebalance, remove_at};
use super::values::{Values, values_of};
use super::{Pages, Path, Ref, Tree, TreeDesc};

/// What a table with fixed-size values says to others.
const WRONG_SIZE: Error =
    Error::Invalid("all values of this table have one size, this has another");

/// Adds a value to those of a key; false when it is there already.
pub(crate) fn put_pair(
    ws: &mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    check_size(tree, value)?;
    if tree.desc.depth == 0 {
        tree.desc.item_size = if tree.desc.options.is_fixed() { value.len() as u16 } else { 0 };
    }
    let (path, found) = locate(ws, tree, key)?;
    if found {
        return add_value(ws, tree, path, value);
    }
    add_key(ws, tree, path, key, value)
}

/// Whether the table can have a value of this size.
pub(crate) fn check_size(tree: &Tree, value: &[u8]) -> Result<()> {
    let same = usize::from(tree.desc.item_size) == value.len();
    if tree.desc.options.is_fixed() && tree.desc.depth > 0 && !same {
        return Err(WRONG_SIZE);
    }
    Ok(())
}

fn add_key(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    insert_new(ws, tree, path, key, Shape::of(ValueKind::Inline, value))?;
    Ok(true)
}

/// The values of the entry at the end of a path, and the most bytes that a set of them may take.
fn values_at<'w>(ws: &'w Workspace, path: &Path) -> Result<(Values<'w>, usize)> {
    let step = path.last().ok_or_else(broken_path)?;
    let view = ws.view();
    let leaf = Leaf::new(view.page(step.page)?).map_err(step.page.damaged())?;
    let entry = leaf.entry(step.index as usize).map_err(step.page.damaged())?;
    let max = page::max_inline(ws.page_size()).saturating_sub(entry.key.len());
    Ok((values_of(&view, step.page, &entry)?, max))
}

/// Adds a value to the entry at the end of a path.
fn add_value(ws: &mut Workspace, tree: &mut Tree, mut path: Path, value: &[u8]) -> Result<bool> {
    let at = path.last().ok_or_else(broken_path)?.page;
    let order = tree.values.clone();
    let (values, max) = values_at(ws, &path)?;
    match values {
        Values::One(own) => {
            let both = match order.compare(value, own) {
                std::cmp::Ordering::Equal => return keep(tree, path),
                std::cmp::Ordering::Less => [value, own],
                std::cmp::Ordering::Greater => [own, value],
            };
            let mut bytes = Vec::new();
            set::build(usize::from(tree.desc.item_size), both.into_iter(), &mut bytes);
            if bytes.len() > max {
                let both = both.map(<[u8]>::to_vec);
                make_tree(ws, tree, path, both.iter().map(|v| &v[..]))?;
            } else {
                touch_path(ws, tree, &mut path)?;
                store(ws, tree, path, ValueKind::Duplicates, &bytes)?;
            }
        }
        Values::Set(set) => {
            let Err(i) = set.search(&order, value).map_err(at.damaged())? else {
                return keep(tree, path);
            };
            let len = set.len_with(value.len());
            if len > max {
                let mut items: Vec<Vec<u8>> = Vec::with_capacity(set.count() + 1);
                for i in 0..set.count() {
                    items.push(set.item(i).map_err(at.damaged())?.to_vec());
                }
                items.insert(i, value.to_vec());
                make_tree(ws, tree, path, items.iter().map(|v| &v[..]))?;
            } else {
                touch_path(ws, tree, &mut path)?;
                grow_set(ws, tree, path, i, value, len)?;
            }
        }
        Values::Tree(desc) => {
            let mut inner = Path::default();
            if descend_to_insert(&ws.view(), &desc, &order, value, &mut inner)? {
                return keep(tree, path);
            }
            touch_path(ws, tree, &mut path)?;
            let mut values = Tree::new(desc, order.clone(), order);
            insert_item(ws, &mut values, inner, value)?;
            values.desc.modified = ws.txn();
            store_tree(ws, tree, path, &desc, &values.desc)?;
        }
    }
    tree.desc.entries += 1;
    tree.desc.modified = ws.txn();
    Ok(true)
}

/// As `descend_items`, fetching the whole leaf at once: with very many keys that have trees of values
/// each change comes to a leaf that is not in the CPU's caches.
fn descend_to_insert(
    view: &View<'_>,
    desc: &TreeDesc,
    order: &Order,
    value: &[u8],
    path: &mut Path,
) -> Result<bool> {
    if desc.depth == 1 {
        view.prefetch_to_change(desc.root);
    }
    let mut buf = NormBuf::default();
    let search = SearchKey::new(order, value, &mut buf);
    let prefetch = |view: &View<'_>, child, level| {
        if level == 1 {
            view.prefetch_to_change(child);
        }
    };
    let (found, _) = descend_by::<_, Items<'_>>(view, desc.top(), order, &search, path, prefetch)?;
    Ok(found)
}

/// Nothing changes: the way is kept for the next one.
fn keep(tree: &mut Tree, path: Path) -> Result<bool> {
    keep_finger(tree, path);
    Ok(false)
}

/// Replaces the value of the entry at the end of a touched path.
fn store(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    kind: ValueKind,
    bytes: &[u8],
) -> Result<Place> {
    reshape(ws, tree, path, Shape::of(kind, bytes))
}

/// Inserts a value into the set at the end of a touched path; the set has `len` bytes then.
fn grow_set(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    i: usize,
    value: &[u8],
    len: usize,
) -> Result<()> {
    let (slot, index) = leaf_slot(&path)?;
    let at = Ref::dirty(slot);
    let page = ws.page_mut(slot)?;
    let old_len = leaf::value_mut(page, index).map_err(at.damaged())?.len();
    let grown = leaf::resize_value(page, index, &tree.order, len);
    if let Some(bytes) = grown.map_err(at.damaged())? {
        set::insert(bytes, old_len, i, value).map_err(at.damaged())?;
        keep_finger(tree, path);
        return Ok(());
    }
    // The leaf is full: the record goes where there is room for it as it will be.
    let page = ws.page_mut(slot)?;
    let mut bytes = leaf::value_mut(page, index).map_err(at.damaged())?.to_vec();
    bytes.resize(len, 0);
    set::insert(&mut bytes, old_len, i, value).map_err(at.damaged())?;
    store(ws, tree, path, ValueKind::Duplicates, &bytes).map(drop)
}

/// Inserts an item where a descent in a tree of values that did not find it ended.
fn insert_item(ws: &mut Workspace, values: &mut Tree, path: Path, item: &[u8]) -> Result<()> {
    insert_new(ws, values, path, item, Shape::of(ValueKind::Inline, &[])).map(drop)
}

/// Makes a tree of the sorted `items`, which the entry at the end of a path then holds.
fn make_tree<'v>(
    ws: &mut Workspace,
    tree: &mut Tree,
    mut path: Path,
    items: impl Iterator<Item = &'v [u8]>,
) -> Result<()> {
    touch_path(ws, tree, &mut path)?;
    let order = tree.values.clone();
    let mut values = Tree::new(tree.desc.of_values(), order.clone(), order.clone());
    for item in items {
        let inner = path_behind(ws, &values)?;
        insert_item(ws, &mut values, inner, item)?;
    }
    values.desc.modified = ws.txn();
    tree.desc.value_pages += values.desc.pages();
    let place = store(ws, tree, path, ValueKind::Tree, &values.desc.to_bytes())?;
    mark_dirty_runs(ws.page_mut(place.slot)?);
    Ok(())
}

/// The way to the place behind the last item of a tree of values.
fn path_behind(ws: &Workspace, values: &Tree) -> Result<Path> {
    let mut cursor = Cursor::<_, Items<'_>>::new(ws.view(), &values.desc, values.order.clone());
    cursor.last()?;
    cursor.step_behind();
    Ok(cursor.into_path())
}

/// Stores the changed descriptor of the tree of values at the end of a touched path.
pub(super) fn store_tree(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    old: &TreeDesc,
    new: &TreeDesc,
) -> Result<()> {
    let (slot, index) = leaf_slot(&path)?;
    let page = ws.page_mut(slot)?;
    let value = leaf::value_mut(page, index).map_err(Ref::dirty(slot).damaged())?;
    let bytes = new.to_bytes();
    value.get_mut(..bytes.len()).ok_or_else(broken_path)?.copy_from_slice(&bytes);
    mark_dirty_runs(page);
    tree.desc.value_pages =
        tree.desc.value_pages.saturating_sub(old.pages()).saturating_add(new.pages());
    keep_finger(tree, path);
    Ok(())
}

/// Removes one value of a key; false when the key does not have it.
pub(crate) fn remove_pair(
    ws: &mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    tree.finger.reset();
    let mut path = Path::default();
    let mut buf = NormBuf::default();
    let search = SearchKey::new(&tree.order, key, &mut buf);
    if !descend_to_change(&ws.view(), &tree.desc, &tree.order, &search, &mut path)? {
        return Ok(false);
    }
    let at = path.last().ok_or_else(broken_path)?.page;
    let order = &tree.values;
    let place = match values_at(ws, &path)?.0 {
        Values::One(own) => order.compare(value, own).is_eq().then_some(ValuePlace::One),
        Values::Set(set) => {
            let found = set.search(order, value).map_err(at.damaged())?;
            found.ok().map(ValuePlace::Set)
        }
        Values::Tree(desc) => {
            let mut inner = Path::default();
            let found = descend_items(&ws.view(), &desc, order, value, &mut inner)?;
            found.then_some(ValuePlace::Tree(inner))
        }
    };
    let Some(place) = place else { return Ok(false) };
    remove_value_at(ws, tree, path, place)?;
    Ok(true)
}

/// Removes the value at `place` among those of the entry at the end of `path`.
pub(crate) fn remove_value_at(
    ws: &mut Workspace,
    tree: &mut Tree,
    mut path: Path,
    place: ValuePlace,
) -> Result<()> {
    tree.finger.reset();
    let at = path.last().ok_or_else(broken_path)?.page;
    let (values, max) = values_at(ws, &path)?;
    match (values, place) {
        (Values::One(_), ValuePlace::One) => return remove_at(ws, tree, &mut path),
        (Values::Set(set), ValuePlace::Set(i)) => {
            let last = match set.count() {
                2 => Some(set.item(1 - i.min(1)).map_err(at.damaged())?.to_vec()),
                _ => None,
            };
            touch_path(ws, tree, &mut path)?;
            match last {
                Some(last) => settle(ws, tree, path, ValueKind::Inline, &last)?,
                None => shrink_set(ws, tree, path, i)?,
            }
        }
        (Values::Tree(desc), ValuePlace::Tree(mut inner)) => {
            touch_path(ws, tree, &mut path)?;
            let order = tree.values.clone();
            let mut values = Tree::new(desc, order.clone(), order);
            remove_at(ws, &mut values, &mut inner)?;
            shrink_tree(ws, tree, path, max, &desc, &values.desc)?;
        }
        _ => return Err(broken_path()),
    }
    tree.desc.entries = tree.desc.entries.saturating_sub(1);
    tree.desc.modified = ws.txn();
    Ok(())
}

/// Replaces the value of the entry at the end of a touched path by a shorter one, and looks after
/// the leaf.
fn settle(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    kind: ValueKind,
    bytes: &[u8],
) -> Result<()> {
    let way = path.clone();
    let before = tree.desc.leaf_pages;
    store(ws, tree, path, kind, bytes)?;
    if tree.desc.leaf_pages != before {
        // A set longer than the descriptor before it has split the leaf: that is full enough.
        return Ok(());
    }
    tree.finger.reset();
    rebalance(ws, tree, &way, way.len() - 1)
}

fn shrink_set(ws: &mut Workspace, tree: &mut Tree, path: Path, i: usize) -> Result<()> {
    let (slot, index) = leaf_slot(&path)?;
    let at = Ref::dirty(slot);
    let page = ws.page_mut(slot)?;
    let bytes = leaf::value_mut(page, index).map_err(at.damaged())?;
    let len = set::remove(bytes, i).map_err(at.damaged())?;
    leaf::resize_value(page, index, &tree.order, len).map_err(at.damaged())?;
    rebalance(ws, tree, &path, path.len() - 1)
}

/// Stores a tree of values that has lost one, as a set or a single value if few are left.
fn shrink_tree(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    max: usize,
    old: &TreeDesc,
    new: &TreeDesc,
) -> Result<()> {
    let Some((kind, bytes)) = as_record(ws, new, max)? else {
        return store_tree(ws, tree, path, old, new);
    };
    drop_tree(ws, new)?;
    tree.desc.value_pages = tree.desc.value_pages.saturating_sub(old.pages());
    settle(ws, tree, path, kind, &bytes)
}

/// The values of a tree as a record keeps them, if they are few enough.
fn as_record(ws: &Workspace, desc: &TreeDesc, max: usize) -> Result<Option<(ValueKind, Vec<u8>)>> {
    if desc.depth != 1 {
        return Ok(None);
    }
    let at = desc.root;
    let leaf = Items::parse(ws.view().page(at)?).map_err(at.damaged())?;
    let count = leaf.count();
    if count == 1 {
        return Ok(Some((ValueKind::Inline, leaf.key(0).map_err(at.damaged())?.to_vec())));
    }
    let items: Result<Vec<&[u8]>, _> = (0..count).map(|i| leaf.key(i)).collect();
    let items = items.map_err(at.damaged())?;
    let size = usize::from(desc.item_size);
    let len = set::len_of(size, count, items.iter().map(|v| v.len()).sum());
    if len > max / 2 {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(len);
    set::build(size, items.into_iter(), &mut bytes);
    Ok(Some((ValueKind::Duplicates, bytes)))
}
