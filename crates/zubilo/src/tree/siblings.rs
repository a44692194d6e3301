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
use crate::page::row::{self, Cut, New, Row, Rules};
use crate::page::{Damage, HEADER, NewValue, branch, header, leaf, packed};

use super::insert::{Place, TreeMut, broken_path};
use super::{Located, Pages, Ref, Tree};

/// A neighbour takes entries of a full leaf if this share of a page is free in it: with less it would
/// be asked again soon.
const ROOM: usize = 8;

const NO_ROOM: Damage = Damage("a page has less room than it seemed");

/// A record for a leaf of a tree, or an item of a packed one.
#[derive(Clone, Copy)]
pub(super) struct Entry<'e> {
    pub(super) key: &'e [u8],
    pub(super) value: NewValue<'e>,
}

/// Two neighbouring children of a branch.
pub(super) struct Pair {
    parent: Ref,
    /// Index of the right one in the parent.
    at: usize,
    left: Ref,
    right: Ref,
    level: u8,
    /// What separates them, if they are branches.
    between: Vec<u8>,
}

pub(super) fn align_of(tree: &Tree) -> usize {
    usize::from(tree.desc.options.align)
}

pub(super) fn capacity(ws: &Workspace) -> usize {
    ws.page_size() - HEADER
}

impl Pair {
    /// Child `at` of a branch, whose children are on `level`, and the one before it; none where there
    /// is no such child or none before it.
    pub(super) fn at(ws: &Workspace, parent: Ref, at: usize, level: u8) -> Result<Option<Pair>> {
        let branch = ws.view().branch(parent, level + 1)?;
        if at == 0 || at >= branch.count() {
            return Ok(None);
        }
        let (left, right) = (branch.child(at - 1)?, branch.child(at)?);
        let mut between = Vec::new();
        if level > 0 {
            branch.separator(at, &mut between)?;
        }
        Ok(Some(Pair { parent, at, left, right, level, between }))
    }

    fn rules<'r>(&'r self, tree: &'r Tree) -> Rules<'r> {
        Rules { between: &self.between, ..tree.rules() }
    }

    fn row<'w>(
        &'w self,
        ws: &'w Workspace,
        tree: &'w Tree,
        new: Option<New<'w>>,
    ) -> Result<Located<Row<'w>>> {
        let (left, right) =
            (ws.view().node(self.left, self.level)?, ws.view().node(self.right, self.level)?);
        Located::new(self.left, Ok(Row::new(*left, *right, self.rules(tree), new)))
    }

    /// Moves entries until the left page has `keep` of them, where `separator` is then between the two.
    /// False, and nothing is changed, where the parent has no room for that.
    fn shift(&mut self, tree: &mut TreeMut<'_>, keep: usize, separator: &[u8]) -> Result<bool> {
        if !tree.ws.edit(self.parent, |page| branch::set_separator(page, self.at, separator))? {
            return Ok(false);
        }
        self.left = self.touch(tree.ws, self.left, self.at - 1)?;
        self.right = self.touch(tree.ws, self.right, self.at)?;
        tree.tree.finger.reset();
        move_between(tree.ws, (self.left, self.right), keep, &self.rules(tree.tree))?;
        Ok(true)
    }

    /// Makes one of the two changeable.
    fn touch(&self, ws: &mut Workspace, child: Ref, at: usize) -> Result<Ref> {
        let new = Ref::dirty(ws.touch(child)?);
        if new != child {
            ws.edit(self.parent, |page| branch::set_child(page, at, new.0))?;
        }
        Ok(new)
    }

    /// Moves all entries into one of the two, whose parent then has a child less.
    fn merge(&mut self, tree: &mut TreeMut<'_>, into_left: bool) -> Result<()> {
        let (kept, gone) =
            if into_left { (self.left, self.right) } else { (self.right, self.left) };
        let slot = tree.ws.touch(kept)?;
        let kept = Ref::dirty(slot);
        let (page, other) = tree.ws.change_from(slot, gone)?;
        let all = (0, usize::from(header::count(other)));
        let fits = row::take(page, into_left, other, all, &self.rules(tree.tree));
        if !fits.map_err(gone.damaged())? {
            return Err(gone.damaged()(NO_ROOM));
        }
        tree.ws.drop_page(gone)?;
        tree.ws.counts.merged += 1;
        tree.tree.finger.reset();
        tree.tree.desc.count_pages(self.level == 0, -1);
        tree.ws.edit(self.parent, |page| {
            branch::set_child(page, self.at - 1, kept.0)?;
            branch::remove(page, self.at)
        })
    }

    /// Fills the left page from the right one up to so many bytes. The parent must be changeable.
    pub(super) fn fill(&mut self, tree: &mut TreeMut<'_>, room: usize) -> Result<Filled> {
        let row = self.row(tree.ws, tree.tree, None)?;
        match row.filled(room)? {
            None => {
                self.merge(tree, true)?;
                Ok(Filled::Merged)
            }
            Some(cut) if row.is_cut(cut) => Ok(Filled::Left),
            Some(cut) if self.even_out(tree, cut)? => Ok(Filled::Left),
            Some(_) => Ok(Filled::NoRoom),
        }
    }

    /// Moves entries to where the row is to be cut; false, and nothing is changed, where the parent has
    /// no room for the separator.
    fn even_out(&mut self, tree: &mut TreeMut<'_>, cut: Cut) -> Result<bool> {
        let mut separator = Vec::new();
        self.row(tree.ws, tree.tree, None)?.separator(cut, &mut separator)?;
        self.shift(tree, cut.keep, &separator)
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

/// Makes a fresh page like another one.
fn fresh_like(ws: &mut Workspace, like: Ref) -> Result<Ref> {
    let slot = ws.new_page()?;
    let (page, like_page) = ws.change_from(slot, like)?;
    header::init_like(page, like_page).map_err(like.damaged())?;
    ws.counts.split += 1;
    Ok(Ref::dirty(slot))
}

impl TreeMut<'_> {
    /// Puts an entry into the full leaf at the end of the touched path: with a neighbour that has room,
    /// else with a fresh page.
    pub(super) fn overflow(&mut self, entry: Entry<'_>) -> Result<Place> {
        let (full, index) = self.end()?;
        // A sorted load leaves full pages after it.
        let appends = self.path.is_rightmost() && index >= self.ws.view().node(full, 0)?.count();
        let shared = if appends { None } else { self.share(entry)? };
        match shared {
            Some(place) => Ok(place),
            None => self.split(entry, appends),
        }
    }

    /// The entry as one of a row, where it has this index.
    fn new_in_row<'e>(&self, entry: Entry<'e>, index: usize) -> New<'e> {
        let desc = &self.tree.desc;
        let size = if desc.is_packed() {
            packed::footprint(usize::from(desc.item_size), entry.key.len())
        } else {
            leaf::footprint(entry.key.len(), entry.value.len, align_of(self.tree))
        };
        New { key: entry.key, size, index }
    }

    /// Evens out with a neighbour that has room, and puts the new entry where it then belongs.
    fn share(&mut self, entry: Entry<'_>) -> Result<Option<Place>> {
        let (_, index) = self.end()?;
        let Some((mut pair, before)) = self.roomy_pair()? else { return Ok(None) };
        let new = self.new_in_row(entry, before + index);
        let row = pair.row(self.ws, self.tree, Some(new))?;
        let Some(cut) = row.even(capacity(self.ws))? else { return Ok(None) };
        let mut separator = Vec::new();
        row.separator(cut, &mut separator)?;
        if !pair.shift(self, cut.keep, &separator)? {
            return Ok(None);
        }
        self.place((pair.left, pair.right), (cut.at, new.index), entry).map(Some)
    }

    /// The leaf at the end of the touched path and the neighbour with the most room, if that is enough;
    /// how many entries lie before those of the leaf.
    fn roomy_pair(&self) -> Result<Option<(Pair, usize)>> {
        let [.., parent, _] = self.path.steps() else { return Ok(None) };
        let own = parent.index as usize;
        let mut best = None;
        let mut most = capacity(self.ws) / ROOM;
        for at in [own, own + 1] {
            let Some(pair) = Pair::at(self.ws, parent.page, at, 0)? else { continue };
            let node = self.ws.view().node(if at == own { pair.left } else { pair.right }, 0)?;
            let size = node.size(align_of(self.tree))?;
            let room = capacity(self.ws).saturating_sub(size + node.prefix_len());
            if room >= most {
                // Of two with the same room the left one is taken.
                most = room + 1;
                best = Some((pair, if at == own { node.count() } else { 0 }));
            }
        }
        Ok(best)
    }

    /// Moves entries to a fresh page after the full one.
    fn split(&mut self, entry: Entry<'_>, appends: bool) -> Result<Place> {
        let (left, index) = self.end()?;
        let right = fresh_like(self.ws, left)?;
        self.tree.desc.leaf_pages += 1;
        let mut separator = std::mem::take(&mut self.ws.separator);
        let (view, new) = (self.ws.view(), self.new_in_row(entry, index));
        let (l, r) = (view.node(left, 0)?, view.node(right, 0)?);
        let row = Row::new(*l, *r, self.tree.rules(), Some(new));
        let row = Located::new(left, Ok(row))?;
        let cut = match appends {
            true => Some(row.cut_at(index)),
            false => row.even(capacity(self.ws))?,
        };
        let cut = cut.ok_or_else(|| left.damaged()(Damage("no split makes room")))?;
        row.separator(cut, &mut separator)?;
        move_between(self.ws, (left, right), cut.keep, &self.tree.rules())?;
        let place = self.place((left, right), (cut.at, index), entry)?;
        self.insert_child(self.path.len() - 1, &separator, right)?;
        self.ws.separator = separator;
        Ok(place)
    }

    /// Puts the new entry, which has place `index` in the row of two leaves, where it lies since the row
    /// is cut at `cut`.
    fn place(
        &mut self,
        (left, right): (Ref, Ref),
        (cut, index): (usize, usize),
        entry: Entry<'_>,
    ) -> Result<Place> {
        let (at, index) = if index < cut { (left, index) } else { (right, index - cut) };
        let (rules, packed) = (self.tree.rules(), self.tree.desc.is_packed());
        self.ws.edit(at, |page| match packed {
            true if packed::insert(page, index, entry.key)? => Ok(()),
            true => Err(NO_ROOM),
            false => leaf::insert_surely(page, index, &rules, entry.key, entry.value),
        })?;
        Ok(Place { at, index })
    }

    /// Puts `child` with its separator after the child taken at the step above `below`.
    fn insert_child(&mut self, below: usize, separator: &[u8], child: Ref) -> Result<()> {
        self.tree.finger.reset();
        let Some(step) = below.checked_sub(1).and_then(|up| self.path.steps().get(up)) else {
            return self.grow_root(separator, child);
        };
        let (at, i) = (step.page, step.index as usize + 1);
        let insert = |page: &mut [u8], i| branch::insert(page, i, separator, child.0);
        if self.ws.edit(at, |page| insert(page, i))? {
            return Ok(());
        }
        let right = fresh_like(self.ws, at)?;
        self.tree.desc.branch_pages += 1;
        let append = self.path.steps().iter().take(below).all(|s| s.index + 1 >= s.count);
        let len = separator.len();
        let split = self.ws.edit(at, |page| branch::split_point(page, i, len, append))?;
        let mut promoted = Vec::new();
        let level = (self.path.len() - below) as u8;
        self.ws.view().branch(at, level)?.separator(split, &mut promoted)?;
        move_between(self.ws, (at, right), split, &self.tree.rules())?;
        let room = match i.checked_sub(split) {
            None | Some(0) => self.ws.edit(at, |page| insert(page, i))?,
            Some(i) => self.ws.edit(right, |page| insert(page, i))?,
        };
        if !room {
            return Err(at.damaged()(Damage("a split leaves no room for a separator")));
        }
        self.insert_child(below - 1, &promoted, right)
    }

    fn grow_root(&mut self, separator: &[u8], right: Ref) -> Result<()> {
        let desc = &mut self.tree.desc;
        let custom = self.tree.order.is_custom();
        let at = Ref::dirty(self.ws.new_page()?);
        let room = self.ws.edit(at, |page| {
            let counted = desc.options.is_counted();
            branch::init(page, desc.depth, desc.table, custom, counted);
            branch::set_first(page, desc.root.0)?;
            branch::insert(page, 1, separator, right.0)
        })?;
        if !room {
            return Err(at.damaged()(Damage("a new root has no room for its separator")));
        }
        desc.root = at;
        desc.depth += 1;
        desc.branch_pages += 1;
        Ok(())
    }

    /// Merges the sparse page at step `d` of the touched path with a neighbour, or evens the two out.
    pub(super) fn underflow(&mut self, d: usize) -> Result<()> {
        let (parent, level) = (self.path.steps()[d - 1], (self.path.len() - 1 - d) as u8);
        let own = parent.index as usize;
        let neighbour_is_left = own > 0;
        let Some(mut pair) = Pair::at(self.ws, parent.page, own.max(1), level)? else {
            // An only child stays; at the top it takes the root's place.
            return if d == 1 { self.collapse_root() } else { Ok(()) };
        };
        let row = pair.row(self.ws, self.tree, None)?;
        if row.filled(capacity(self.ws))?.is_none() {
            pair.merge(self, !neighbour_is_left)?;
            return self.rebalance(d - 1);
        }
        match row.even(capacity(self.ws))? {
            Some(cut) if !row.is_cut(cut) => pair.even_out(self, cut).map(drop),
            _ => Ok(()),
        }
    }
}
