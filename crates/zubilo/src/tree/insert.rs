//! Putting an entry into a tree: find the leaf, make the path to it changeable, insert, split.

use std::cmp::Ordering;

use crate::dirty::Workspace;
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::{
    FLAG_DIRTY_RUNS, Kind, NewValue, NormBuf, Packed, SearchKey, ValueKind, branch, header, leaf,
    packed,
};

use super::lookup::descend_to_change;
use super::place::{self, TreeView};
use super::run::RUN_REF_SIZE;
use super::siblings::Entry;
use super::values::tree_of;
use super::{Located, Pages, Path, Ref, RunRef, Tree, TreeDesc};

/// The path to the leaf of the last change, valid while nothing else changed the tree.
#[derive(Clone, Default)]
pub(crate) struct Finger {
    path: Path,
    live: bool,
    /// Whether the leaf is the last of all, once somebody has asked.
    last: Option<bool>,
}

impl Finger {
    /// Forgets the path, after any change made without it.
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
    pub(crate) at: Ref,
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

/// A tree in the course of a change: its pages, its description, and the path to where it changes.
///
/// Before a page of the path is changed the path is touched: each of its pages is then one that the
/// running level may change.
pub(crate) struct TreeMut<'t> {
    pub(crate) ws: &'t mut Workspace,
    pub(crate) tree: &'t mut Tree,
    pub(crate) path: Path,
}

/// Puts a value, or room for one, under `key`. With `overwrite` false an existing key is left alone.
pub(crate) fn put(
    ws: &mut Workspace,
    tree: &mut Tree,
    key: &[u8],
    value: NewValue<'_>,
    overwrite: bool,
) -> Result<Put> {
    let mut at = TreeMut::new(ws, tree);
    if !at.locate(key)? {
        return at.insert_new(key, value).map(Put::Inserted);
    }
    if !overwrite {
        at.keep_finger();
        return Ok(Put::Exists);
    }
    at.touch()?;
    at.tree.desc.modified = at.ws.txn();
    at.replace(value).map(Put::Replaced)
}

/// Puts a large value, which has pages of its own, under `key`.
pub(crate) fn put_run(ws: &mut Workspace, tree: &mut Tree, key: &[u8], run: &RunRef) -> Result<()> {
    let value = NewValue::room(ValueKind::Run, RUN_REF_SIZE);
    let (Put::Inserted(place) | Put::Replaced(place)) = put(ws, tree, key, value, true)? else {
        return Ok(());
    };
    tree.desc.run_pages += run.pages(ws.page_shift());
    ws.edit(place.at, |page| {
        if run.slot().is_some() {
            mark_dirty_runs(page);
        }
        run.store(leaf::value_mut(page, place.index)?)
    })
}

impl<'t> TreeMut<'t> {
    /// A tree, and no path yet.
    #[inline]
    pub(crate) fn new(ws: &'t mut Workspace, tree: &'t mut Tree) -> TreeMut<'t> {
        TreeMut { ws, tree, path: Path::default() }
    }

    /// Fills the path with that to `key`; says whether the key is in the tree. The finger is taken away:
    /// to be kept again when the change is done.
    #[inline(always)]
    pub(super) fn locate(&mut self, key: &[u8]) -> Result<bool> {
        let mut buf = NormBuf::default();
        let tree = &mut *self.tree;
        let key = SearchKey::new(&tree.order, key, &mut buf);
        self.path = std::mem::take(&mut tree.finger.path);
        let found = match try_finger(self.ws, tree, &mut self.path, &key)? {
            Some(found) => found,
            None => {
                let view = self.ws.view();
                descend_to_change(&view, &tree.desc, &tree.order, &key, &mut self.path)?
            }
        };
        tree.finger.live = false;
        Ok(found)
    }

    /// The path is that of the next change, most likely.
    pub(super) fn keep_finger(&mut self) {
        let path = std::mem::take(&mut self.path);
        self.tree.finger = Finger { path, live: true, last: None };
    }

    /// The leaf at the end of the path, and the index there.
    pub(super) fn end(&self) -> Result<(Ref, usize)> {
        self.path.last().map(|s| (s.page, s.index as usize)).ok_or_else(broken_path)
    }

    /// Makes each page of the path changeable.
    pub(super) fn touch(&mut self) -> Result<()> {
        touch_path(self.ws, self.tree, &mut self.path)
    }

    /// Puts a value, or room for one, under a key that is not in the tree, where `locate` ended.
    pub(super) fn insert_new(&mut self, key: &[u8], value: NewValue<'_>) -> Result<Place> {
        if self.tree.desc.depth == 0 {
            self.first_leaf()?;
            self.path.clear();
            self.path.push(self.tree.desc.root, 0, 0);
        } else {
            self.touch()?;
        }
        self.tree.desc.modified = self.ws.txn();
        self.tree.desc.entries += 1;
        self.insert(key, value)
    }

    /// Gives an empty tree its first leaf.
    pub(super) fn first_leaf(&mut self) -> Result<Ref> {
        let slot = self.ws.new_page()?;
        let (page, tree) = (self.ws.page_mut(slot)?, &mut *self.tree);
        let (table, custom) = (tree.desc.table, tree.order.is_custom());
        if !tree.desc.is_packed() {
            header::init(page, Kind::Leaf, 0, table, custom);
        } else if !packed::init(page, table, custom, usize::from(tree.desc.item_size)) {
            return Err(Error::Invalid("a value of this size does not fit a page"));
        }
        tree.desc.root = Ref::dirty(slot);
        tree.desc.depth = 1;
        tree.desc.leaf_pages += 1;
        Ok(tree.desc.root)
    }

    /// Replaces the value of the entry at the end of the touched path, and drops what it had.
    fn replace(&mut self, value: NewValue<'_>) -> Result<Place> {
        let (at, index) = self.end()?;
        let old = OutOfLine::of(self.ws, self.tree.desc.options.has_duplicates(), at, index)?;
        self.drop_out_of_line(&old)?;
        let entries = &mut self.tree.desc.entries;
        *entries = entries.saturating_sub(old.count().saturating_sub(1));
        self.set_value(value)
    }

    /// Gives the entry at the end of the touched path another value.
    pub(super) fn set_value(&mut self, value: NewValue<'_>) -> Result<Place> {
        let (at, index) = self.end()?;
        let rules = self.tree.rules();
        if self.ws.edit(at, |page| leaf::set_value(page, index, &rules, value))? {
            self.keep_finger();
            return Ok(Place { at, index });
        }
        // The key as it is stored: in a caller's order another one may equal it.
        let key = self.ws.view().leaf(at)?.key(index)?.to_vec();
        self.ws.edit(at, |page| leaf::remove(page, index))?;
        self.insert(&key, value)
    }

    /// Inserts at the end of the touched path, splitting if there is no room.
    fn insert(&mut self, key: &[u8], value: NewValue<'_>) -> Result<Place> {
        let (at, index) = self.end()?;
        let (rules, packed) = (self.tree.rules(), self.tree.desc.is_packed());
        let fits = self.ws.edit(at, |page| match packed {
            true => packed::insert(page, index, key),
            false => leaf::insert(page, index, &rules, key, value),
        })?;
        if fits {
            self.keep_finger();
            return Ok(Place { at, index });
        }
        self.overflow(Entry { key, value })
    }

    /// Drops what an old value occupies outside its leaf.
    pub(super) fn drop_out_of_line(&mut self, old: &OutOfLine) -> Result<()> {
        let desc = &mut self.tree.desc;
        match old {
            OutOfLine::Nothing | OutOfLine::Set(_) => Ok(()),
            OutOfLine::Run(run) => {
                desc.run_pages = desc.run_pages.saturating_sub(run.pages(self.ws.page_shift()));
                self.ws.drop_run(run)
            }
            OutOfLine::Tree(values) => {
                desc.value_pages = desc.value_pages.saturating_sub(values.pages());
                super::remove::drop_tree(self.ws, values)
            }
        }
    }
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
    let leaf = ws.view().leaf(step.page)?;
    step.count = leaf.count() as u32;
    // The outermost heads decide for most keys: those far away, and those that a sorted load appends.
    let found = match leaf.side(key) {
        Ordering::Less => return Ok(None),
        Ordering::Greater => Err(leaf.count()),
        Ordering::Equal => leaf.search(&tree.order, key)?,
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
        let leaf = view.leaf(step.page)?;
        return leaf.key(leaf.count().saturating_sub(1)).map(Some);
    }
    let tree = TreeView::<_>::new(view, &tree.desc, &tree.order);
    let mut last = place::Place::default();
    last.last(&tree)?;
    last.key(&tree)
}

/// Makes each page of the path changeable and the references to them right.
pub(crate) fn touch_path(ws: &mut Workspace, tree: &mut Tree, path: &mut Path) -> Result<()> {
    if path.last().is_some_and(|leaf| ws.owns(leaf.page)) {
        return Ok(());
    }
    let mut parent: Option<(Ref, usize)> = None;
    for step in path.steps_mut() {
        let new = Ref::dirty(ws.touch(step.page)?);
        if new != step.page {
            match parent {
                None => tree.desc.root = new,
                Some((above, i)) => ws.edit(above, |page| branch::set_child(page, i, new.0))?,
            }
            step.page = new;
        }
        parent = Some((new, step.index as usize));
    }
    Ok(())
}

/// What an entry has besides the bytes of one value in its leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutOfLine {
    Nothing,
    /// A large value.
    Run(RunRef),
    /// Several values in the record: their number.
    Set(usize),
    /// A tree of values.
    Tree(TreeDesc),
}

impl OutOfLine {
    /// What the entry at a place has. A tree in a table without duplicates is a table, which its record
    /// does not own.
    pub(crate) fn of(ws: &Workspace, duplicates: bool, at: Ref, index: usize) -> Result<OutOfLine> {
        let view = ws.view();
        let entry = view.leaf(at)?.entry(index)?;
        match entry.kind {
            ValueKind::Run => RunRef::of(at, entry.value).map(OutOfLine::Run),
            ValueKind::Duplicates if duplicates => {
                let set = Located::new(at, Packed::in_record(entry.value))?;
                Ok(OutOfLine::Set(set.count()))
            }
            ValueKind::Tree if duplicates => tree_of(&view, at, entry.value).map(OutOfLine::Tree),
            _ => Ok(OutOfLine::Nothing),
        }
    }

    /// Values of the entry.
    pub(crate) fn count(&self) -> u64 {
        match self {
            OutOfLine::Nothing | OutOfLine::Run(_) => 1,
            OutOfLine::Set(count) => *count as u64,
            OutOfLine::Tree(desc) => desc.entries,
        }
    }
}

/// A path that does not lead where its maker said.
#[cold]
pub(crate) fn broken_path() -> Error {
    Error::Corrupted { page: PageNo(0), reason: "a path does not end in a changeable leaf" }
}

/// Marks a leaf that refers to values or trees of values still in memory, so that the commit looks
/// for them.
pub(super) fn mark_dirty_runs(page: &mut [u8]) {
    let flags = header::flags(page) | FLAG_DIRTY_RUNS;
    header::set_flags(page, flags);
}
