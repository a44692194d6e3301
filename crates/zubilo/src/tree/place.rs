//! A place in a tree and its moves: the way to an entry, as plain data that borrows nothing.
//!
//! Each move is handed the tree as pages show it ([`TreeView`]). Steps inside a leaf touch no page. A place
//! is right as long as the pages on its way stay as they are, and they are not checked again; who keeps it
//! beyond that looks after it.
//! After an error it leads nowhere.

use std::marker::PhantomData;
use std::ops::Range;

use crate::error::Result;
use crate::page::{Branch, Damage, Entry, Leaf, LeafPage, NormBuf, Order, SearchKey};

use super::lookup::descend_by;
use super::path::Step;
use super::{Located, Pages, Path, Ref, TreeDesc};

/// So many pages are asked for together by a walk that goes on.
const AHEAD: u32 = 4;

/// A tree as `pages` show it, with leaves of the kind `L`.
pub(crate) struct TreeView<'a, 'p, P: Pages<'p>, L: LeafPage<'p> = Leaf<'p>> {
    pages: P,
    // Of the descriptor no more than moves need: views are made for each move.
    root: Ref,
    depth: u8,
    order: &'a Order,
    kind: PhantomData<(&'p [u8], L)>,
}

impl<'p, P: Pages<'p>, L: LeafPage<'p>> Clone for TreeView<'_, 'p, P, L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<'p, P: Pages<'p>, L: LeafPage<'p>> Copy for TreeView<'_, 'p, P, L> {}

impl<'a, 'p, P: Pages<'p>, L: LeafPage<'p>> TreeView<'a, 'p, P, L> {
    #[inline(always)]
    pub(crate) fn new(pages: P, desc: &TreeDesc, order: &'a Order) -> TreeView<'a, 'p, P, L> {
        TreeView::below(pages, desc.top(), order)
    }

    /// From a root and its depth.
    #[inline(always)]
    pub(crate) fn below(
        pages: P,
        (root, depth): (Ref, u8),
        order: &'a Order,
    ) -> TreeView<'a, 'p, P, L> {
        TreeView { pages, root, depth, order, kind: PhantomData }
    }

    /// The order of the keys.
    #[inline(always)]
    pub(crate) fn order(&self) -> &'a Order {
        self.order
    }

    /// The leaf at `at`.
    #[inline(always)]
    fn leaf(&self, at: Ref) -> Result<Located<L>> {
        self.pages.leaf_of_kind(at)
    }
}

/// The way to an entry of a tree, to a gap after the last entry of a leaf, or nowhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    path: Path,
    /// The children of the lowest branch that were asked for last.
    asked: Range<u32>,
}

impl Place {
    /// At the end of a way that was searched.
    pub(crate) fn of(path: Path) -> Place {
        Place { path, asked: 0..0 }
    }

    /// The way.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The same, of a place that is not needed any more.
    pub(crate) fn into_path(self) -> Path {
        self.path
    }

    /// Whether it leads nowhere.
    #[inline(always)]
    pub(crate) fn is_nowhere(&self) -> bool {
        self.path.len() == 0
    }

    /// The step in the leaf it leads to.
    #[inline(always)]
    pub(super) fn last_step(&mut self) -> Option<&mut Step> {
        self.path.last_mut()
    }

    /// The leaf it leads to, and the index there.
    #[inline(always)]
    pub(crate) fn at(&self) -> Option<(Ref, usize)> {
        self.path.last().map(|step| (step.page, step.index as usize))
    }

    /// The same, if it leads to an entry.
    #[inline(always)]
    fn on(&self) -> Option<(Ref, usize)> {
        let step = self.path.last()?;
        (step.index < step.count).then_some((step.page, step.index as usize))
    }

    /// Whether it leads to the gap behind a leaf's last entry.
    #[inline(always)]
    pub(crate) fn is_behind(&self) -> bool {
        self.path.last().is_some_and(|step| step.index >= step.count)
    }

    /// The leaf it leads to.
    #[inline(always)]
    pub(crate) fn leaf<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &self,
        tree: &TreeView<'_, 'p, P, L>,
    ) -> Result<Option<Located<L>>> {
        self.at().map(|(at, _)| tree.pages.leaf_again(at)).transpose()
    }

    /// The entry there, and its leaf.
    #[inline(always)]
    pub(crate) fn entry<'p, P: Pages<'p>>(
        &self,
        tree: &TreeView<'_, 'p, P>,
    ) -> Result<Option<(Ref, Entry<'p>)>> {
        match self.on() {
            Some((at, i)) => Ok(Some((at, tree.pages.leaf_again::<Leaf<'p>>(at)?.entry(i)?))),
            None => Ok(None),
        }
    }

    /// The key there.
    pub(crate) fn key<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &self,
        tree: &TreeView<'_, 'p, P, L>,
    ) -> Result<Option<&'p [u8]>> {
        match self.on() {
            Some((at, i)) => tree.pages.leaf_again::<L>(at)?.key(i).map(Some),
            None => Ok(None),
        }
    }

    /// To the first entry with a key not less than `key`; true when it equals `key`.
    pub(crate) fn seek<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        key: &[u8],
    ) -> Result<bool> {
        let found = self.seek_gap(tree, key)?;
        if self.is_behind() {
            self.turn_from(tree, false)?;
        }
        Ok(found)
    }

    /// To the first entry with a key not less than `key`, or after the last entry; true when it
    /// equals `key`.
    pub(crate) fn seek_or_behind<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        key: &[u8],
    ) -> Result<bool> {
        let found = self.seek(tree, key)?;
        if self.is_nowhere() {
            self.last(tree)?;
            self.step_behind();
        }
        Ok(found)
    }

    /// To the entry whose key has these bytes, which is near the end of a path of before. False when
    /// there is none; the place is at that end then. No keys are ordered.
    pub(crate) fn seek_near<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        near: &Path,
        key: &[u8],
    ) -> Result<bool> {
        let descended = self.descend_near(tree, near);
        self.kept(descended)?;
        let (mut ahead, mut back) = (self.clone(), self.clone());
        let (mut more_ahead, mut more_back) = (!ahead.is_nowhere(), true);
        while more_ahead || more_back {
            if more_ahead && ahead.key(tree)? == Some(key) {
                *self = ahead;
                return Ok(true);
            }
            more_ahead = more_ahead && ahead.next(tree)?;
            more_back = more_back && back.prev(tree)?;
            if more_back && back.key(tree)? == Some(key) {
                *self = back;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Follows the indexes of a path of before. Where pages were split since, what is beyond a page's
    /// end is in the next one.
    fn descend_near<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        near: &Path,
    ) -> Result<()> {
        self.leave();
        let depth = usize::from(tree.depth);
        // By height: the root may be another one.
        let wanted = |height: usize| {
            let step = near.len().checked_sub(height).and_then(|at| near.steps().get(at));
            step.map_or(0, |step| step.index as usize)
        };
        let (mut at, mut index) = (tree.root, wanted(depth));
        for height in (2..=depth).rev() {
            let branch = tree.pages.branch(at, height as u8 - 1)?;
            let mut i = index.min(branch.count().saturating_sub(1));
            let mut below = wanted(height - 1);
            loop {
                let child = branch.child(i)?;
                let count = match height {
                    2 => tree.leaf(child)?.count(),
                    _ => tree.pages.branch(child, height as u8 - 2)?.count(),
                };
                if below < count || i + 1 >= branch.count() {
                    self.path.push(at, i, branch.count());
                    (at, index) = (child, below);
                    break;
                }
                below -= count;
                i += 1;
            }
        }
        if depth > 0 {
            let leaf = tree.leaf(at)?;
            self.path.push(at, index.min(leaf.count().saturating_sub(1)), leaf.count());
        }
        Ok(())
    }

    /// From the last entry of a leaf to the place behind it.
    pub(crate) fn step_behind(&mut self) {
        if let Some(step) = self.path.last_mut() {
            step.index += 1;
        }
    }

    /// To the first or last entry of the leaf.
    pub(crate) fn go_to_edge(&mut self, last: bool) {
        if let Some(step) = self.path.last_mut() {
            step.index = if last { step.count.saturating_sub(1) } else { 0 };
        }
    }

    /// Whether it leads to the first entry of all.
    pub(crate) fn is_first(&self) -> bool {
        !self.is_nowhere() && self.path.steps().iter().all(|s| s.index == 0)
    }

    /// Whether it leads to the last entry of all.
    pub(crate) fn is_last(&self) -> bool {
        !self.is_nowhere() && self.path.steps().iter().all(|s| s.index + 1 == s.count)
    }

    /// To where `key` is or would be inserted, which may be behind a leaf's last entry: the exclusive end
    /// of a range. True when an entry equals `key`.
    pub(crate) fn seek_gap<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        key: &[u8],
    ) -> Result<bool> {
        match tree.order.as_it_is(key) {
            Some(key) => self.descend(tree, &key),
            None => self.seek_gap_reversed(tree, key),
        }
    }

    /// Apart, so that other orders need no room for a normal form.
    #[inline(never)]
    fn seek_gap_reversed<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        key: &[u8],
    ) -> Result<bool> {
        let mut buf = NormBuf::default();
        let key = SearchKey::new(tree.order, key, &mut buf);
        self.descend(tree, &key)
    }

    // One for both callers: it is long.
    #[inline(never)]
    fn descend<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        key: &SearchKey<'_>,
    ) -> Result<bool> {
        self.asked = 0..0;
        let (top, path) = ((tree.root, tree.depth), &mut self.path);
        let prefetch = |p: &P, child, _| p.prefetch(child);
        let found = descend_by::<P, L>(&tree.pages, top, tree.order, key, path, prefetch);
        self.kept(found.map(|(found, _)| found))
    }

    /// After an error it leads nowhere.
    #[inline(always)]
    fn kept<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.leave();
        }
        result
    }

    /// To the first entry.
    pub(crate) fn first<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
    ) -> Result<()> {
        self.edge(tree, false)
    }

    /// To the last entry.
    pub(crate) fn last<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
    ) -> Result<()> {
        self.edge(tree, true)
    }

    /// To the first or last entry.
    pub(crate) fn edge<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        last: bool,
    ) -> Result<()> {
        self.leave();
        if tree.depth == 0 {
            return Ok(());
        }
        let leaf = self.descend_edge(tree, tree.root, tree.depth, last);
        self.kept(leaf.map(drop))
    }

    /// To the next entry of the same leaf; false, and nothing moves, when there is none.
    #[inline(always)]
    pub(crate) fn step_in_leaf(&mut self) -> bool {
        match self.path.last_mut() {
            Some(step) if step.index + 1 < step.count => {
                step.index += 1;
                true
            }
            _ => false,
        }
    }

    /// To the next entry; false at the end, and the place is nowhere then.
    #[inline(always)]
    pub(crate) fn next<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
    ) -> Result<bool> {
        Ok(self.step_in_leaf() || self.turn_from(tree, false)?)
    }

    /// To the previous entry; false at the start.
    #[inline]
    pub(crate) fn prev<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
    ) -> Result<bool> {
        if let Some(step) = self.path.last_mut()
            && step.index > 0
        {
            step.index -= 1;
            return Ok(true);
        }
        self.turn_from(tree, true)
    }

    fn turn_from<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        back: bool,
    ) -> Result<bool> {
        let leaf = self.leaf(tree);
        match self.kept(leaf)? {
            Some(leaf) => self.turn(tree, &leaf, back),
            None => Ok(false),
        }
    }

    /// Leads nowhere from now on.
    #[inline(always)]
    pub(crate) fn leave(&mut self) {
        self.path.clear();
    }

    /// From a leaf to the first entry of the next one, or `back` to the last of the one before; false, and
    /// nowhere, when there is none.
    pub(crate) fn turn<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        from: &Located<L>,
        back: bool,
    ) -> Result<bool> {
        let turned = self.turned(tree, from, back);
        self.kept(turned)
    }

    #[inline(always)]
    fn turned<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        from: &Located<L>,
        back: bool,
    ) -> Result<bool> {
        let mut up = self.path.len().saturating_sub(1);
        while up > 0 {
            up -= 1;
            let step = self.path.steps()[up];
            let more = if back { step.index > 0 } else { step.index + 1 < step.count };
            if !more {
                continue;
            }
            let index = if back { step.index - 1 } else { step.index + 1 };
            self.path.truncate(up);
            let height = tree.depth - up as u8;
            let branch = tree.pages.branch(step.page, height - 1)?;
            self.path.push(step.page, index as usize, step.count as usize);
            let child = branch.child(index as usize)?;
            if height > 2 {
                self.asked = 0..0;
            } else {
                self.prefetch_beyond(&tree.pages, &branch, index, back);
            }
            let leaf = self.descend_edge(tree, child, height - 1, back)?;
            check_order(tree.order, from, &leaf, back)?;
            return Ok(true);
        }
        self.leave();
        Ok(false)
    }

    #[inline(always)]
    fn descend_edge<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        mut at: Ref,
        height: u8,
        last: bool,
    ) -> Result<Located<L>> {
        for level in (1..height).rev() {
            let branch = tree.pages.branch(at, level)?;
            let i = if last { branch.count().saturating_sub(1) } else { 0 };
            let child = branch.child(i)?;
            self.path.push(at, i, branch.count());
            at = child;
        }
        let leaf = tree.leaf(at)?;
        if leaf.count() == 0 {
            return Err(at.damaged()(Damage("an empty leaf inside a tree")));
        }
        let i = if last { leaf.count() - 1 } else { 0 };
        self.path.push(at, i, leaf.count());
        Ok(leaf)
    }

    /// Asks for what comes beyond child `i`: of the next page the records, whose place its header
    /// gives, if that was asked for before; of those beyond it the headers.
    #[inline(always)]
    fn prefetch_beyond<'p>(&mut self, pages: &impl Pages<'p>, of: &Branch<'p>, i: u32, back: bool) {
        let step = |i: u32| if back { i.checked_sub(1) } else { i.checked_add(1) };
        let Some(mut next) = step(i) else { return };
        if self.asked.contains(&next) {
            if let Ok(child) = of.child(next as usize) {
                pages.prefetch_heap(Ref(child));
            }
            let Some(second) = step(next) else { return };
            next = second;
        }
        if !self.asked.contains(&next) {
            self.prefetch_headers(pages, of, next, back);
        }
    }

    /// Asks for the headers of several pages from child `next` on. The CPU waits for the address of
    /// each page to be translated, but for those of several together.
    #[inline(always)]
    fn prefetch_headers<'p>(
        &mut self,
        pages: &impl Pages<'p>,
        branch: &Branch<'p>,
        next: u32,
        back: bool,
    ) {
        self.asked = if back {
            (next + 1).saturating_sub(AHEAD)..next + 1
        } else {
            next..next.saturating_add(AHEAD).min(branch.count() as u32)
        };
        for child in self.asked.clone() {
            if let Ok(child) = branch.child(child as usize) {
                pages.prefetch(Ref(child));
            }
        }
    }

    /// The walk is going on: asks for the records of its leaf, and for the leaves behind.
    pub(crate) fn prefetch_around<'p>(&mut self, pages: &impl Pages<'p>) {
        let Some((at, _)) = self.at() else { return };
        pages.prefetch_heap(at);
        let steps = self.path.steps();
        if let Some(step) = steps.len().checked_sub(2).and_then(|up| steps.get(up)).copied()
            && let Ok(branch) = pages.branch(step.page, 1)
        {
            self.prefetch_headers(pages, &branch, step.index + 1, false);
        }
    }
}

/// A damaged file may lead to the same leaves again and again; keys that do not go on in
/// order show it.
fn check_order<'p, L: LeafPage<'p>>(
    order: &Order,
    from: &Located<L>,
    to: &Located<L>,
    back: bool,
) -> Result<()> {
    let (before, after) = if back { (to, from) } else { (from, to) };
    let (last, first) = (before.key(before.count().saturating_sub(1))?, after.key(0)?);
    // A caller's function is not asked about two stored keys.
    let ascending = match order.is_custom() {
        true => last != first,
        false => order.compare(last, first).is_lt(),
    };
    if ascending { Ok(()) } else { Err(to.at().damaged()(Damage("leaves are not in order"))) }
}
