//! Putting an entry into a tree: find the leaf, make the way to it changeable, insert, split.

use std::cmp::Ordering;

use crate::dirty::Workspace;
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::{
    FLAG_DIRTY_RUNS, Kind, Leaf, NormBuf, SearchKey, Set, ValueKind, branch, header, leaf, packed,
};

use super::cursor::Cursor;
use super::lookup::descend_to_change;
use super::remove::drop_tree;
use super::siblings::{self, Entry};
use super::values::tree_of;
use super::{Pages, Path, Ref, RunRef, Tree, TreeDesc};

/// The way to the leaf of the last change, valid while nothing else changed the tree.
#[derive(Clone, Default)]
pub(crate) struct Finger {
    path: Path,
    live: bool,
    /// Whether the leaf is the last of all, once somebody has asked.
    last: Option<bool>,
}

impl Finger {
    /// Forgets the way, after any change made without it.
    pub(crate) fn reset(&mut self) {
        self.live = false;
    }

    /// Whether the leaf of the last change is known and is the last of all.
    #[inline]
    pub(super) fn is_last_leaf(&mut self) -> bool {
        self.live && *self.last.get_or_insert_with(|| self.path.is_rightmost())
    }

    /// The leaf of the last change.
    #[inline]
    pub(super) fn leaf(&self) -> Option<Ref> {
        self.path.last().map(|step| step.page)
    }
}

/// Where an entry was stored: a dirty leaf and the index in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) index: usize,
}

/// Outcome of [`put`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Put {
    /// A new entry.
    Inserted(Place),
    /// The key was there; its old value is gone.
    Replaced(Place),
    /// The key was there and was left alone.
    Exists,
}

/// The value of an entry to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'v> {
    pub(super) kind: ValueKind,
    /// Bytes in the leaf.
    pub(super) len: usize,
    /// What they are; empty when the caller fills the place.
    bytes: &'v [u8],
}

impl<'v> Shape<'v> {
    /// A value that is known.
    #[inline]
    pub(crate) fn of(kind: ValueKind, bytes: &'v [u8]) -> Shape<'v> {
        Shape { kind, len: bytes.len(), bytes }
    }

    /// Room for a value, which the caller fills.
    #[inline]
    pub(crate) fn room(kind: ValueKind, len: usize) -> Shape<'v> {
        Shape { kind, len, bytes: &[] }
    }

    #[inline]
    pub(super) fn store(&self, to: &mut [u8]) {
        if let Some(to) = to.get_mut(..self.bytes.len()) {
            to.copy_from_slice(self.bytes);
        }
    }
}

/// Makes room for a value under `key`. With `overwrite` false an existing key is left alone.
pub(crate) fn put(
    ws: &mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    shape: Shape<'_>,
    overwrite: bool,
) -> Result<Put> {
    if tree.desc.depth == 0 {
        return first_entry(ws, tree, key, shape).map(Put::Inserted);
    }
    let (mut path, found) = locate(ws, tree, key)?;
    if found && !overwrite {
        keep_finger(tree, path);
        return Ok(Put::Exists);
    }
    if !found {
        return insert_new(ws, tree, path, key, shape).map(Put::Inserted);
    }
    touch_path(ws, tree, &mut path)?;
    tree.desc.modified = ws.txn();
    replace(ws, tree, path, shape).map(Put::Replaced)
}

/// The way to `key` in a tree that is to be changed there, and whether the key is in it. The finger
/// is taken away: to be kept again when the change is done.
#[inline(always)]
pub(super) fn locate(ws: &Workspace, tree: &mut Tree, key: &[u8]) -> Result<(Path, bool)> {
    let mut buf = NormBuf::default();
    let key = SearchKey::new(&tree.order, key, &mut buf);
    let mut path = std::mem::take(&mut tree.finger.path);
    let found = match try_finger(ws, tree, &mut path, &key)? {
        Some(found) => found,
        None => descend_to_change(&ws.view(), &tree.desc, &tree.order, &key, &mut path)?,
    };
    tree.finger.live = false;
    Ok((path, found))
}

/// Makes room for a value under a key that is not in the tree, where `locate` ended.
pub(super) fn insert_new(
    ws: &mut Workspace,
    tree: &mut Tree,
    mut path: Path,
    key: &[u8],
    shape: Shape<'_>,
) -> Result<Place> {
    if tree.desc.depth == 0 {
        return first_entry(ws, tree, key, shape);
    }
    touch_path(ws, tree, &mut path)?;
    tree.desc.modified = ws.txn();
    tree.desc.entries += 1;
    insert_at(ws, tree, path, key, shape)
}

/// The finger's leaf, if `key` surely belongs there.
fn try_finger(
    ws: &Workspace,
    tree: &Tree,
    path: &mut Path,
    key: &SearchKey<'_>,
) -> Result<Option<bool>> {
    if !tree.finger.live {
        return Ok(None);
    }
    let rightmost = path.is_rightmost();
    let Some(step) = path.last_mut() else { return Ok(None) };
    if !ws.owns(step.page) {
        return Ok(None);
    }
    let page = ws.view().page(step.page)?;
    let leaf = Leaf::new(page).map_err(step.page.damaged())?;
    step.count = leaf.count() as u32;
    // Most keys are told by the outermost heads: those far away, and those that a sorted load appends.
    let found = match leaf.side(key) {
        Ordering::Less => return Ok(None),
        Ordering::Greater => Err(leaf.count()),
        Ordering::Equal => leaf.search(&tree.order, key).map_err(step.page.damaged())?,
    };
    let (Ok(i) | Err(i)) = found;
    let inside = found.is_ok() || (i > 0 && (i < leaf.count() || rightmost));
    step.index = i as u32;
    Ok(inside.then_some(found.is_ok()))
}

/// The last key of a tree.
pub(crate) fn last_key<'w>(ws: &'w Workspace, tree: &Tree) -> Result<Option<&'w [u8]>> {
    let view = ws.view();
    if tree.finger.live
        && tree.finger.path.is_rightmost()
        && let Some(step) = tree.finger.path.last()
        && ws.owns(step.page)
    {
        let leaf = Leaf::new(view.page(step.page)?).map_err(step.page.damaged())?;
        let last = leaf.key(leaf.count().saturating_sub(1));
        return last.map(Some).map_err(step.page.damaged());
    }
    let mut cursor = Cursor::<_, Leaf<'_>>::new(view, &tree.desc, tree.order.clone());
    cursor.last()?;
    cursor.key()
}

pub(super) fn keep_finger(tree: &mut Tree, path: Path) {
    tree.finger = Finger { path, live: true, last: None };
}

fn first_entry(ws: &mut Workspace, tree: &mut Tree, key: &[u8], shape: Shape<'_>) -> Result<Place> {
    let slot = ws.new_page()?;
    let (page, table, plain) = (ws.page_mut(slot)?, tree.desc.table, tree.order.is_plain());
    if !tree.desc.options.is_packed() {
        header::init(page, Kind::Leaf, 0, table, plain);
    } else if !packed::init(page, table, plain, key.len()) {
        return Err(Error::Invalid("a value of this size does not fit a page"));
    }
    tree.desc.root = Ref::dirty(slot);
    tree.desc.depth = 1;
    tree.desc.leaf_pages += 1;
    tree.desc.entries += 1;
    tree.desc.modified = ws.txn();
    let mut path = Path::default();
    path.push(tree.desc.root, 0, 0);
    insert_at(ws, tree, path, key, shape)
}

/// Makes each page of the path changeable and the references to them right.
pub(crate) fn touch_path(ws: &mut Workspace, tree: &mut Tree, path: &mut Path) -> Result<()> {
    if path.last().is_some_and(|leaf| ws.owns(leaf.page)) {
        return Ok(());
    }
    let mut parent: Option<(u32, usize)> = None;
    for step in path.steps_mut() {
        let slot = ws.touch(step.page)?;
        let new = Ref::dirty(slot);
        if new != step.page {
            match parent {
                None => tree.desc.root = new,
                Some((above, i)) => {
                    branch::set_child(ws.page_mut(above)?, i, new.0).map_err(new.damaged())?;
                }
            }
            step.page = new;
        }
        parent = Some((slot, step.index as usize));
    }
    Ok(())
}

/// The dirty leaf at the end of a touched path.
pub(super) fn leaf_slot(path: &Path) -> Result<(u32, usize)> {
    path.last().and_then(|s| Some((s.page.slot()?, s.index as usize))).ok_or_else(broken_path)
}

#[cold]
pub(crate) fn broken_path() -> Error {
    Error::Corrupted { page: PageNo(0), reason: "a path does not end in a changeable leaf" }
}

/// What an entry has besides its own bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    /// Nothing.
    One,
    /// A large value.
    Run(RunRef),
    /// Several values in the record: their number.
    Set(usize),
    /// A tree of values.
    Tree(TreeDesc),
}

impl Held {
    /// Values of the entry.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Held::One | Held::Run(_) => 1,
            Held::Set(count) => *count as u64,
            Held::Tree(desc) => desc.entries,
        }
    }
}

/// What the entry at a place holds. A tree in a table without duplicates is a table, which its
/// record does not own.
pub(crate) fn held(ws: &Workspace, duplicates: bool, at: Ref, index: usize) -> Result<Held> {
    let view = ws.view();
    let leaf = Leaf::new(view.page(at)?).map_err(at.damaged())?;
    let entry = leaf.entry(index).map_err(at.damaged())?;
    match entry.kind {
        ValueKind::Run => RunRef::load(entry.value).map_err(at.damaged()).map(Held::Run),
        ValueKind::Duplicates if duplicates => {
            let set = Set::new(entry.value).map_err(at.damaged())?;
            Ok(Held::Set(set.count()))
        }
        ValueKind::Tree if duplicates => tree_of(&view, at, entry.value).map(Held::Tree),
        _ => Ok(Held::One),
    }
}

/// Drops what an old value occupies outside its leaf.
pub(crate) fn drop_held(ws: &mut Workspace, tree: &mut Tree, held: &Held) -> Result<()> {
    match held {
        Held::One | Held::Set(_) => {}
        Held::Run(run) => {
            tree.desc.run_pages = tree.desc.run_pages.saturating_sub(run.pages(ws.page_shift()));
            ws.drop_run(run)?;
        }
        Held::Tree(desc) => {
            tree.desc.value_pages = tree.desc.value_pages.saturating_sub(desc.pages());
            drop_tree(ws, desc)?;
        }
    }
    Ok(())
}

fn replace(ws: &mut Workspace, tree: &mut Tree, path: Path, shape: Shape<'_>) -> Result<Place> {
    let (slot, index) = leaf_slot(&path)?;
    let held = held(ws, tree.desc.options.has_duplicates(), Ref::dirty(slot), index)?;
    drop_held(ws, tree, &held)?;
    tree.desc.entries = tree.desc.entries.saturating_sub(held.count().saturating_sub(1));
    reshape(ws, tree, path, shape)
}

/// Gives the entry at the end of a touched path another value.
pub(super) fn reshape(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    shape: Shape<'_>,
) -> Result<Place> {
    let (slot, index) = leaf_slot(&path)?;
    let at = Ref::dirty(slot);
    let align = usize::from(tree.desc.options.align);
    let page = ws.page_mut(slot)?;
    let room = leaf::set_value(page, index, &tree.order, shape.kind, shape.len, align);
    if let Some(to) = room.map_err(at.damaged())? {
        shape.store(to);
        keep_finger(tree, path);
        return Ok(Place { slot, index });
    }
    // The key as it is stored: in a caller's order another one may equal it.
    let key = Leaf::new(page).and_then(|leaf| leaf.key(index)).map_err(at.damaged())?.to_vec();
    leaf::remove(page, index).map_err(at.damaged())?;
    insert_at(ws, tree, path, &key, shape)
}

/// Inserts at the end of a touched path, splitting if there is no room.
pub(super) fn insert_at(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: Path,
    key: &[u8],
    shape: Shape<'_>,
) -> Result<Place> {
    let (slot, index) = leaf_slot(&path)?;
    let page = ws.page_mut(slot)?;
    let fits = if tree.desc.options.is_packed() {
        packed::insert(page, index, key)
    } else {
        let align = usize::from(tree.desc.options.align);
        let room = leaf::insert(page, index, &tree.order, key, shape.kind, shape.len, align);
        room.map(|room| room.map(|to| shape.store(to)).is_some())
    };
    if fits.map_err(Ref::dirty(slot).damaged())? {
        keep_finger(tree, path);
        return Ok(Place { slot, index });
    }
    siblings::overflow(ws, tree, &path, Entry { key, value: shape })
}

/// Marks a leaf that refers to values or trees of values still in memory, so that the commit looks
/// for them.
pub(crate) fn mark_dirty_runs(page: &mut [u8]) {
    let flags = header::flags(page) | FLAG_DIRTY_RUNS;
    header::set_flags(page, flags);
}
