//! Redistribution: the entries of two siblings, and perhaps a new one, are cut anew where both are
//! best filled.
//!
//! A full leaf gives entries to a neighbour that has room before it is split into a fresh page
//! ([`overflow`]); a sparse page is merged with a neighbour, or both even out ([`underflow`]);
//! compaction fills pages one after the other ([`Pair::fill`]). A leaf that is cut in two leaves both
//! half empty, and random insertions would keep leaves at 0.69 of their bytes: to give takes no more
//! pages in a commit than to split.
//!
//! The parent is changed first. Where it has no room for another separator nothing moves, and the
//! callers do without: a full leaf is split, a sparse page stays sparse.

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::row::{self, Cut, New, Node, Row, Rules};
use crate::page::{Branch, Damage, HEADER, branch, header, leaf, packed};

use super::insert::{Place, Shape, broken_path, leaf_slot};
use super::lookup::branch_at;
use super::remove::{collapse_root, count_pages, rebalance};
use super::{Pages, Path, Ref, Tree};

/// A neighbour takes entries of a full leaf if this share of a page is free in it: with less it would
/// be asked again soon.
const ROOM: usize = 8;

/// A record for a leaf of a tree, or an item of a packed one.
#[derive(Clone, Copy)]
pub(super) struct Entry<'e> {
    pub(super) key: &'e [u8],
    pub(super) value: Shape<'e>,
}

/// Two neighbouring children of a branch.
pub(super) struct Pair {
    parent: Ref,
    /// Index of the right one in the parent.
    at: usize,
    left: Ref,
    right: Ref,
    level: u8,
}

pub(super) fn align_of(tree: &Tree) -> usize {
    usize::from(tree.desc.options.align)
}

pub(super) fn capacity(ws: &Workspace) -> usize {
    ws.page_size() - HEADER
}

pub(super) fn node_at(ws: &Workspace, at: Ref, level: u8) -> Result<Node<'_>> {
    Node::on_level(ws.view().page(at)?, level).map_err(at.damaged())
}

impl Pair {
    /// Child `at` of a branch, whose children are on `level`, and the one before it; none where there
    /// is no such child or none before it.
    pub(super) fn at(ws: &Workspace, parent: Ref, at: usize, level: u8) -> Result<Option<Pair>> {
        let branch = branch_at(&ws.view(), parent, level + 1)?;
        if at == 0 || at >= branch.count() {
            return Ok(None);
        }
        let child = |i| branch.child(i).map(Ref).map_err(parent.damaged());
        Ok(Some(Pair { parent, at, left: child(at - 1)?, right: child(at)?, level }))
    }

    /// What separates the two.
    fn between(&self, ws: &Workspace) -> Result<Vec<u8>> {
        let mut between = Vec::new();
        if self.level > 0 {
            let branch = branch_at(&ws.view(), self.parent, self.level + 1)?;
            branch.separator(self.at, &mut between).map_err(self.parent.damaged())?;
        }
        Ok(between)
    }

    fn row<'w>(
        &self,
        ws: &'w Workspace,
        tree: &'w Tree,
        between: &'w [u8],
        new: Option<New<'w>>,
    ) -> Result<Row<'w>> {
        let rules = Rules { order: &tree.order, align: align_of(tree), between };
        let (left, right) =
            (node_at(ws, self.left, self.level)?, node_at(ws, self.right, self.level)?);
        Ok(Row::new(left, right, rules, new))
    }

    /// Moves entries until the left page has `keep` of them, where `separator` is then between the two.
    /// False, and nothing is changed, where the parent has no room for that.
    fn shift(
        &mut self,
        ws: &mut Workspace,
        tree: &mut Tree,
        keep: usize,
        between: &[u8],
        separator: &[u8],
    ) -> Result<bool> {
        let slot = self.parent.slot().ok_or_else(broken_path)?;
        let told = branch::set_separator(ws.page_mut(slot)?, self.at, &tree.order, separator);
        if !told.map_err(self.parent.damaged())? {
            return Ok(false);
        }
        tree.finger.reset();
        self.left = self.touch(ws, self.left, self.at - 1)?;
        self.right = self.touch(ws, self.right, self.at)?;
        let rules = Rules { order: &tree.order, align: align_of(tree), between };
        move_between(ws, (self.left, self.right), keep, &rules)?;
        Ok(true)
    }

    /// Makes one of the two changeable.
    fn touch(&self, ws: &mut Workspace, child: Ref, at: usize) -> Result<Ref> {
        let new = Ref::dirty(ws.touch(child)?);
        if new != child {
            let slot = self.parent.slot().ok_or_else(broken_path)?;
            branch::set_child(ws.page_mut(slot)?, at, new.0).map_err(self.parent.damaged())?;
        }
        Ok(new)
    }

    /// Moves all entries into one of the two, whose parent then has a child less.
    fn merge(
        &mut self,
        ws: &mut Workspace,
        tree: &mut Tree,
        into_left: bool,
        between: &[u8],
    ) -> Result<()> {
        let (kept, gone) =
            if into_left { (self.left, self.right) } else { (self.right, self.left) };
        let slot = ws.touch(kept)?;
        let kept = Ref::dirty(slot);
        let rules = Rules { order: &tree.order, align: align_of(tree), between };
        let (page, other) = ws.change_from(slot, gone)?;
        let all = (0, usize::from(header::count(other)));
        let fits = row::take(page, into_left, other, all, &rules).map_err(gone.damaged())?;
        if !fits {
            return Err(gone.damaged()(NO_ROOM));
        }
        ws.drop_page(gone)?;
        tree.finger.reset();
        count_pages(&mut tree.desc, self.level == 0, -1);
        let parent = ws.page_mut(self.parent.slot().ok_or_else(broken_path)?)?;
        branch::set_child(parent, self.at - 1, kept.0)
            .and_then(|()| branch::remove(parent, self.at))
            .map_err(self.parent.damaged())
    }

    /// Fills the left page from the right one up to so many bytes. The parent must be changeable.
    pub(super) fn fill(
        &mut self,
        ws: &mut Workspace,
        tree: &mut Tree,
        room: usize,
    ) -> Result<Filled> {
        let between = self.between(ws)?;
        let row = self.row(ws, tree, &between, None)?;
        match row.filled(room).map_err(self.left.damaged())? {
            None => {
                self.merge(ws, tree, true, &between)?;
                Ok(Filled::Merged)
            }
            Some(cut) if row.is_cut(cut) => Ok(Filled::Left),
            Some(cut) if self.even_out(ws, tree, cut, &between)? => Ok(Filled::Left),
            Some(_) => Ok(Filled::NoRoom),
        }
    }

    /// Moves entries to where the row is to be cut; false, and nothing is changed, where the parent has
    /// no room for the separator.
    fn even_out(
        &mut self,
        ws: &mut Workspace,
        tree: &mut Tree,
        cut: Cut,
        between: &[u8],
    ) -> Result<bool> {
        let row = self.row(ws, tree, between, None)?;
        let mut separator = Vec::new();
        row.separator(cut, &mut separator).map_err(self.left.damaged())?;
        self.shift(ws, tree, cut.keep, between, &separator)
    }
}

/// What became of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// The left page has as much as it can.
    Left,
    /// One page is left.
    Merged,
    /// The parent has no room for the separator: nothing has changed.
    NoRoom,
}

const NO_ROOM: Damage = Damage("a page has less room than it seemed");

/// Moves entries between two changeable pages until the left one has `keep` of them.
fn move_between(
    ws: &mut Workspace,
    (left, right): (Ref, Ref),
    keep: usize,
    rules: &Rules<'_>,
) -> Result<()> {
    let slots = left.slot().zip(right.slot()).ok_or_else(broken_path)?;
    let (l, r) = ws.pair_mut(slots.0, slots.1)?;
    match row::shift(l, r, keep, rules) {
        Ok(true) => Ok(()),
        Ok(false) => Err(left.damaged()(NO_ROOM)),
        Err(damage) => Err(left.damaged()(damage)),
    }
}

/// Puts an entry into the full leaf at the end of a touched path: with a neighbour that has room, else
/// with a fresh page.
pub(super) fn overflow(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &Path,
    entry: Entry<'_>,
) -> Result<Place> {
    let (full, index) = leaf_slot(path)?;
    let count = usize::from(header::count(ws.page_mut(full)?));
    // A sorted load leaves full pages behind.
    let appends = index >= count && path.is_rightmost();
    let shared = if appends { None } else { share(ws, tree, path, entry)? };
    match shared {
        Some(place) => Ok(place),
        None => split(ws, tree, path, entry, appends),
    }
}

fn size_of(tree: &Tree, entry: Entry<'_>) -> usize {
    if tree.desc.options.is_packed() {
        return entry.key.len();
    }
    leaf::footprint(entry.key.len(), entry.value.len, align_of(tree))
}

/// Evens out with a neighbour that has room, and puts the new entry where it then belongs.
fn share(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &Path,
    entry: Entry<'_>,
) -> Result<Option<Place>> {
    let (_, index) = leaf_slot(path)?;
    let Some((mut pair, before)) = roomy_pair(ws, tree, path)? else { return Ok(None) };
    let index = before + index;
    let new = New { key: entry.key, size: size_of(tree, entry), index };
    let row = pair.row(ws, tree, &[], Some(new))?;
    let cut = row.even(capacity(ws)).map_err(pair.left.damaged())?;
    let Some(cut) = cut else { return Ok(None) };
    let mut separator = Vec::new();
    row.separator(cut, &mut separator).map_err(pair.left.damaged())?;
    if !pair.shift(ws, tree, cut.keep, &[], &separator)? {
        return Ok(None);
    }
    place(ws, tree, (pair.left, pair.right), (cut.at, index), entry).map(Some)
}

/// The leaf at the end of a touched path and the neighbour with the most room, if that is enough; how
/// many entries lie before those of the leaf.
fn roomy_pair(ws: &Workspace, tree: &Tree, path: &Path) -> Result<Option<(Pair, usize)>> {
    let [.., parent, _] = path.steps() else { return Ok(None) };
    let own = parent.index as usize;
    let mut best = None;
    let mut most = capacity(ws) / ROOM;
    for at in [own, own + 1] {
        let Some(pair) = Pair::at(ws, parent.page, at, 0)? else { continue };
        let other = if at == own { pair.left } else { pair.right };
        let node = node_at(ws, other, 0)?;
        let size = node.size(align_of(tree)).map_err(other.damaged())?;
        let room = capacity(ws).saturating_sub(size + node.prefix_len());
        if room >= most {
            // Of two with the same room the left one is taken.
            most = room + 1;
            best = Some((pair, if at == own { node.count() } else { 0 }));
        }
    }
    Ok(best)
}

/// Moves entries to a fresh page behind the full one.
fn split(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &Path,
    entry: Entry<'_>,
    appends: bool,
) -> Result<Place> {
    let (full, index) = leaf_slot(path)?;
    let left = Ref::dirty(full);
    let fresh = ws.new_page()?;
    let right = Ref::dirty(fresh);
    tree.desc.leaf_pages += 1;
    let (l, r) = ws.pair_mut(full, fresh)?;
    header::init_like(r, l).map_err(left.damaged())?;
    let mut separator = std::mem::take(&mut ws.separator);
    let new = New { key: entry.key, size: size_of(tree, entry), index };
    let rules = Rules { order: &tree.order, align: align_of(tree), between: &[] };
    let row = Row::new(node_at(ws, left, 0)?, node_at(ws, right, 0)?, rules, Some(new));
    let cut = if appends { Ok(Some(row.cut_at(index))) } else { row.even(capacity(ws)) };
    let cut = cut.and_then(|cut| {
        let cut = cut.ok_or(Damage("no split makes room"))?;
        row.separator(cut, &mut separator).map(|()| cut)
    });
    let cut = cut.map_err(left.damaged())?;
    let rules = Rules { order: &tree.order, align: align_of(tree), between: &[] };
    move_between(ws, (left, right), cut.keep, &rules)?;
    let place = place(ws, tree, (left, right), (cut.at, index), entry)?;
    insert_child(ws, tree, path, path.len() - 1, &separator, right)?;
    ws.separator = separator;
    Ok(place)
}

/// Puts the new entry, which has place `index` in the row of two leaves, where it lies since the row
/// is cut at `cut`.
fn place(
    ws: &mut Workspace,
    tree: &Tree,
    (left, right): (Ref, Ref),
    (cut, index): (usize, usize),
    entry: Entry<'_>,
) -> Result<Place> {
    let (at, index) = if index < cut { (left, index) } else { (right, index - cut) };
    let slot = at.slot().ok_or_else(broken_path)?;
    let page = ws.page_mut(slot)?;
    if tree.desc.options.is_packed() {
        if !packed::insert(page, index, entry.key).map_err(at.damaged())? {
            return Err(at.damaged()(NO_ROOM));
        }
    } else {
        let Entry { key, value } = entry;
        let align = align_of(tree);
        let to = leaf::insert_surely(page, index, &tree.order, key, value.kind, value.len, align);
        value.store(to.map_err(at.damaged())?);
    }
    Ok(Place { slot, index })
}

/// Puts `child` with its separator behind the child taken at the step above `below`.
fn insert_child(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &Path,
    below: usize,
    separator: &[u8],
    child: Ref,
) -> Result<()> {
    tree.finger.reset();
    let Some(step) = below.checked_sub(1).and_then(|up| path.steps().get(up)) else {
        return grow_root(ws, tree, separator, child);
    };
    let at = step.page;
    let slot = at.slot().ok_or_else(broken_path)?;
    let i = step.index as usize + 1;
    let page = ws.page_mut(slot)?;
    if branch::insert(page, i, &tree.order, separator, child.0).map_err(at.damaged())? {
        return Ok(());
    }
    let right = ws.new_page()?;
    tree.desc.branch_pages += 1;
    let mut promoted = Vec::new();
    let (l, r) = ws.pair_mut(slot, right)?;
    let append = path_is_rightmost_until(path, below);
    let split = branch::split_point(l, i, separator.len(), append).map_err(at.damaged())?;
    Branch::new(l).and_then(|l| l.separator(split, &mut promoted)).map_err(at.damaged())?;
    header::init_like(r, l).map_err(at.damaged())?;
    let rules = Rules { order: &tree.order, align: 1, between: &[] };
    move_between(ws, (at, Ref::dirty(right)), split, &rules)?;
    let (l, r) = ws.pair_mut(slot, right)?;
    let room = if i <= split {
        branch::insert(l, i, &tree.order, separator, child.0)
    } else {
        branch::insert(r, i - split, &tree.order, separator, child.0)
    };
    if !room.map_err(at.damaged())? {
        return Err(at.damaged()(Damage("a split leaves no room for a separator")));
    }
    insert_child(ws, tree, path, below - 1, &promoted, Ref::dirty(right))
}

fn path_is_rightmost_until(path: &Path, below: usize) -> bool {
    path.steps().iter().take(below).all(|s| s.index + 1 >= s.count)
}

fn grow_root(ws: &mut Workspace, tree: &mut Tree, separator: &[u8], right: Ref) -> Result<()> {
    let old = tree.desc.root;
    let slot = ws.new_page()?;
    let plain = tree.order.is_plain();
    let level = tree.desc.depth;
    let page = ws.page_mut(slot)?;
    let counted = tree.desc.options.is_counted();
    branch::init_with(page, level, tree.desc.table, plain, counted, old.0);
    let at = Ref::dirty(slot);
    if !branch::insert(page, 1, &tree.order, separator, right.0).map_err(at.damaged())? {
        return Err(at.damaged()(Damage("a new root has no room for its separator")));
    }
    tree.desc.root = at;
    tree.desc.depth += 1;
    tree.desc.branch_pages += 1;
    Ok(())
}

/// Merges the sparse page at step `d` of a touched path with a neighbour, or evens the two out.
pub(super) fn underflow(ws: &mut Workspace, tree: &mut Tree, path: &Path, d: usize) -> Result<()> {
    let (parent, level) = (path.steps()[d - 1], (path.len() - 1 - d) as u8);
    let own = parent.index as usize;
    let neighbour_is_left = own > 0;
    let Some(mut pair) = Pair::at(ws, parent.page, own.max(1), level)? else {
        // An only child stays; at the top it takes the root's place.
        return if d == 1 { collapse_root(ws, tree) } else { Ok(()) };
    };
    let between = pair.between(ws)?;
    let row = pair.row(ws, tree, &between, None)?;
    let damaged = pair.left.damaged();
    if row.filled(capacity(ws)).map_err(pair.left.damaged())?.is_none() {
        pair.merge(ws, tree, !neighbour_is_left, &between)?;
        return rebalance(ws, tree, path, d - 1);
    }
    match row.even(capacity(ws)).map_err(damaged)? {
        Some(cut) if !row.is_cut(cut) => pair.even_out(ws, tree, cut, &between).map(drop),
        _ => Ok(()),
    }
}
