//! Taking an entry out, and keeping pages from becoming empty: merge, borrow, collapse.

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::row::Node;
use crate::page::{Damage, NormBuf, SearchKey, branch, leaf, packed};

use super::insert::{OutOfLine, TreeMut};
use super::lookup::descend_to_change;
use super::siblings::capacity;
use super::{Pages, Path, Ref, Tree, TreeDesc};

/// A page with less than this share of its bytes in use looks for a neighbour.
const SPARSE: usize = 4;

/// Removes `key`; false when it is not there.
pub(crate) fn remove(ws: &mut Workspace, tree: &mut Tree, key: &[u8]) -> Result<bool> {
    let mut at = TreeMut::new(ws, tree);
    let found = at.find(key)?;
    if found {
        at.remove()?;
    }
    Ok(found)
}

/// Removes the entry at the end of `path`.
pub(crate) fn remove_at(ws: &mut Workspace, tree: &mut Tree, path: Path) -> Result<()> {
    TreeMut { ws, tree, path }.remove()
}

impl TreeMut<'_> {
    /// Fills the path with that to `key`; says whether the key is in the tree. The finger is forgotten.
    pub(super) fn find(&mut self, key: &[u8]) -> Result<bool> {
        self.tree.finger.reset();
        let tree = &*self.tree;
        let mut buf = NormBuf::default();
        let key = SearchKey::new(&tree.order, key, &mut buf);
        descend_to_change(&self.ws.view(), &tree.desc, &tree.order, &key, &mut self.path)
    }

    /// Removes the entry at the end of the path.
    pub(super) fn remove(&mut self) -> Result<()> {
        self.tree.finger.reset();
        self.touch()?;
        let (at, i) = self.end()?;
        let mut count = 1;
        if self.tree.desc.is_packed() {
            self.ws.edit(at, |page| packed::remove(page, i))?;
        } else {
            let old = OutOfLine::of(self.ws, self.tree.desc.options.has_duplicates(), at, i)?;
            self.drop_out_of_line(&old)?;
            self.ws.edit(at, |page| leaf::remove(page, i))?;
            count = old.count();
        }
        self.tree.desc.entries = self.tree.desc.entries.saturating_sub(count);
        self.tree.desc.modified = self.ws.txn();
        self.rebalance(self.path.len() - 1)
    }

    /// Looks after the page at step `d` of the touched path, which has lost entries.
    pub(super) fn rebalance(&mut self, d: usize) -> Result<()> {
        if d == 0 {
            return self.collapse_root();
        }
        let (at, is_leaf) = (self.path.steps()[d].page, d + 1 == self.path.len());
        let node = self.ws.view().node(at, (self.path.len() - 1 - d) as u8)?;
        let count = node.count();
        if count > 0 && node.used() >= capacity(self.ws) / SPARSE && (is_leaf || count > 1) {
            return Ok(());
        }
        if count > 0 {
            return self.underflow(d);
        }
        self.ws.drop_page(at)?;
        self.tree.desc.count_pages(is_leaf, -1);
        let parent = self.path.steps()[d - 1];
        self.ws.edit(parent.page, |page| branch::remove(page, parent.index as usize))?;
        self.rebalance(d - 1)
    }

    /// A root with one child hands over to it; an empty one leaves an empty tree.
    pub(super) fn collapse_root(&mut self) -> Result<()> {
        let desc = &mut self.tree.desc;
        while desc.depth > 0 {
            let at = desc.root;
            let is_leaf = desc.depth == 1;
            let node = self.ws.view().node(at, desc.depth - 1)?;
            let child = match *node {
                _ if node.count() == 0 => None,
                Node::Branch(branch) if branch.count() == 1 => {
                    Some(branch.child(0).map(Ref).map_err(at.damaged())?)
                }
                _ => return Ok(()),
            };
            self.ws.drop_page(at)?;
            desc.count_pages(is_leaf, -1);
            (desc.root, desc.depth) = match child {
                Some(child) => (child, desc.depth - 1),
                None => (Ref::NONE, 0),
            };
        }
        Ok(())
    }
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
    Dropped::from(ws, desc).pages(ws, desc)
}

/// What was dropped of a table's tree, entry by entry.
pub(super) struct Dropped {
    duplicates: bool,
    /// Pages that there can be at most, still: a damaged tree that leads to the same pages again and
    /// again runs out of them.
    budget: u64,
    /// Values.
    pub(super) entries: u64,
    pub(super) run_pages: u64,
    pub(super) value_pages: u64,
}

impl Dropped {
    /// Nothing yet, of the table that a descriptor names.
    pub(super) fn from(ws: &Workspace, desc: &TreeDesc) -> Dropped {
        let (duplicates, budget) = (desc.options.has_duplicates(), ws.page_bound());
        Dropped { duplicates, budget, entries: 0, run_pages: 0, value_pages: 0 }
    }

    /// Drops all pages of a tree.
    fn pages(&mut self, ws: &mut Workspace, desc: &TreeDesc) -> Result<()> {
        if desc.depth == 0 {
            return Ok(());
        }
        let has_more = desc.run_pages > 0 || desc.options.has_duplicates();
        self.subtree(ws, desc.root, desc.depth - 1, has_more)
    }

    /// Drops a subtree; `has_more`: whether its entries may have something outside their leaves.
    fn subtree(&mut self, ws: &mut Workspace, at: Ref, level: u8, has_more: bool) -> Result<()> {
        let more = || at.damaged()(Damage("a tree with more pages than the store"));
        self.budget = self.budget.checked_sub(1).ok_or_else(more)?;
        if level > 0 {
            for i in 0..ws.view().branch(at, level)?.count() {
                let child = ws.view().branch(at, level)?.child(i)?;
                self.subtree(ws, child, level - 1, has_more)?;
            }
        } else if has_more {
            let count = ws.view().leaf(at)?.count();
            self.entries(ws, at, 0, count)?;
        }
        ws.drop_page(at)
    }

    /// Drops what a leaf's entries [from, to) have outside the leaf.
    pub(super) fn entries(
        &mut self,
        ws: &mut Workspace,
        at: Ref,
        from: usize,
        to: usize,
    ) -> Result<()> {
        for i in from..to {
            let old = OutOfLine::of(ws, self.duplicates, at, i)?;
            // What a damaged leaf has may claim any size.
            self.entries = self.entries.saturating_add(old.count());
            match old {
                OutOfLine::Nothing | OutOfLine::Set(_) => {}
                OutOfLine::Run(run) => {
                    let pages = run.pages(ws.page_shift());
                    self.run_pages = self.run_pages.saturating_add(pages);
                    ws.drop_run(&run)?;
                }
                OutOfLine::Tree(desc) => {
                    self.value_pages = self.value_pages.saturating_add(desc.pages());
                    self.pages(ws, &desc)?;
                }
            }
        }
        Ok(())
    }
}
