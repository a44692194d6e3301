//! A position in a tree and its moves. The cursor holds the path to a leaf and the leaf's view;
//! steps inside a leaf touch nothing else.

use std::marker::PhantomData;
use std::ops::Range;

use crate::error::Result;
use crate::page::{Branch, Damage, Entry, Leaf, LeafPage, NormBuf, Order, SearchKey};

use super::lookup::{branch_at, descend_by};
use super::{Pages, Path, Ref, TreeDesc};

/// So many pages are asked for together by a cursor that walks on.
const AHEAD: u32 = 4;

/// A position in the tree `desc` as `pages` shows it.
#[derive(Clone)]
pub(crate) struct Cursor<'p, P: Pages<'p>, L: LeafPage<'p> = Leaf<'p>> {
    pages: P,
    // Of the descriptor no more than moves need: cursors are made for each search.
    root: Ref,
    table: u32,
    depth: u8,
    order: Order,
    path: Path,
    leaf: Option<(Ref, L)>,
    /// The children of the lowest branch that were asked for last.
    asked: Range<u32>,
    life: PhantomData<&'p [u8]>,
}

impl<'p, P: Pages<'p>> Cursor<'p, P> {
    /// The entry under the cursor; none when it stands nowhere.
    #[inline(always)]
    pub(crate) fn entry(&self) -> Result<Option<(Ref, Entry<'p>)>> {
        match self.position() {
            Some((at, leaf, i)) if i < leaf.count() => {
                Ok(Some((at, leaf.entry(i).map_err(at.damaged())?)))
            }
            _ => Ok(None),
        }
    }
}

impl<'p, P: Pages<'p>, L: LeafPage<'p>> Cursor<'p, P, L> {
    #[inline(always)]
    pub(crate) fn new(pages: P, desc: &TreeDesc, order: Order) -> Cursor<'p, P, L> {
        Cursor {
            pages,
            root: desc.root,
            table: desc.table,
            depth: desc.depth,
            order,
            path: Path::default(),
            leaf: None,
            asked: 0..0,
            life: PhantomData,
        }
    }

    /// One that stands nowhere yet in the same tree.
    pub(crate) fn another(&self) -> Cursor<'p, P, L> {
        Cursor {
            pages: self.pages,
            order: self.order.clone(),
            path: Path::default(),
            leaf: None,
            asked: 0..0,
            ..*self
        }
    }

    /// A cursor that stands at the end of a path in its tree.
    pub(crate) fn resume(
        pages: P,
        desc: &TreeDesc,
        order: Order,
        path: Path,
    ) -> Result<Cursor<'p, P, L>> {
        let mut cursor = Cursor { path, ..Cursor::new(pages, desc, order) };
        cursor.load_leaf()?;
        Ok(cursor)
    }

    /// The pages of the tree.
    #[inline(always)]
    pub(crate) fn pages(&self) -> &P {
        &self.pages
    }

    /// The order of the keys.
    pub(crate) fn order(&self) -> &Order {
        &self.order
    }

    /// The number of the tree's table.
    pub(crate) fn table(&self) -> u32 {
        self.table
    }

    /// The way to the position.
    pub(crate) fn into_path(self) -> Path {
        self.path
    }

    /// The leaf under the cursor, its reference and the index in it.
    #[inline(always)]
    pub(crate) fn position(&self) -> Option<(Ref, L, usize)> {
        let (at, leaf) = self.leaf?;
        Some((at, leaf, self.path.last()?.index as usize))
    }

    /// The key under the cursor; none when it stands nowhere.
    pub(crate) fn key(&self) -> Result<Option<&'p [u8]>> {
        match self.position() {
            Some((at, leaf, i)) if i < leaf.count() => leaf.key(i).map_err(at.damaged()).map(Some),
            _ => Ok(None),
        }
    }

    /// To the first entry with a key not less than `key`; true when it equals `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.seek_gap(key)?;
        if let Some((_, leaf, i)) = self.position()
            && i >= leaf.count()
        {
            self.next_leaf()?;
        }
        Ok(found)
    }

    /// To the first entry with a key not less than `key`, or behind the last entry; true when it
    /// equals `key`.
    pub(crate) fn seek_or_behind(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.seek(key)?;
        if self.position().is_none() {
            self.last()?;
            self.step_behind();
        }
        Ok(found)
    }

    /// To the entry whose key has these bytes, which is near the end of a path of before. False when
    /// there is none; the cursor stands at that end then. No keys are ordered.
    pub(crate) fn seek_near(&mut self, near: &Path, key: &[u8]) -> Result<bool> {
        self.descend_near(near)?;
        let (mut ahead, mut back) = (self.clone(), self.clone());
        let (mut more_ahead, mut more_back) = (ahead.position().is_some(), true);
        while more_ahead || more_back {
            if more_ahead && ahead.key()? == Some(key) {
                *self = ahead;
                return Ok(true);
            }
            more_ahead = more_ahead && ahead.next()?;
            more_back = more_back && back.prev()?;
            if more_back && back.key()? == Some(key) {
                *self = back;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Follows the indexes of a path of before. Where pages were split since, what is beyond a page's
    /// end is in the next one.
    fn descend_near(&mut self, near: &Path) -> Result<()> {
        self.leave();
        let depth = usize::from(self.depth);
        // By height: the root may be another one.
        let wanted = |height: usize| {
            let step = near.len().checked_sub(height).and_then(|at| near.steps().get(at));
            step.map_or(0, |step| step.index as usize)
        };
        let (mut at, mut index) = (self.root, wanted(depth));
        for height in (2..=depth).rev() {
            let branch = branch_at(&self.pages, at, height as u8 - 1)?;
            let mut i = index.min(branch.count().saturating_sub(1));
            let mut below = wanted(height - 1);
            loop {
                let child = Ref(branch.child(i).map_err(at.damaged())?);
                let count = match height {
                    2 => self.leaf_at(child)?.count(),
                    _ => branch_at(&self.pages, child, height as u8 - 2)?.count(),
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
            let leaf = self.leaf_at(at)?;
            self.path.push(at, index.min(leaf.count().saturating_sub(1)), leaf.count());
            self.leaf = Some((at, leaf));
        }
        Ok(())
    }

    /// From the last entry of a leaf to the place behind it.
    pub(crate) fn step_behind(&mut self) {
        if let Some(step) = self.path.last_mut() {
            step.index += 1;
        }
    }

    /// To another entry of the leaf.
    pub(crate) fn set_index(&mut self, i: usize) {
        if let Some(step) = self.path.last_mut() {
            step.index = i as u32;
        }
    }

    /// Whether the cursor stands on the first entry of all.
    pub(crate) fn is_first(&self) -> bool {
        self.leaf.is_some() && self.path.steps().iter().all(|s| s.index == 0)
    }

    /// Whether the cursor stands on the last entry of all.
    pub(crate) fn is_last(&self) -> bool {
        self.leaf.is_some() && self.path.steps().iter().all(|s| s.index + 1 == s.count)
    }

    /// To the position where `key` is or would be inserted, which may be behind a leaf's last
    /// entry: the exclusive end of a range.
    pub(crate) fn seek_gap(&mut self, key: &[u8]) -> Result<bool> {
        match self.order.as_it_is(key) {
            Some(key) => self.descend(&key),
            None => self.seek_gap_reversed(key),
        }
    }

    /// Apart, so that other orders need no room for a normal form.
    #[inline(never)]
    fn seek_gap_reversed(&mut self, key: &[u8]) -> Result<bool> {
        let mut buf = NormBuf::default();
        let key = SearchKey::new(&self.order, key, &mut buf);
        self.descend(&key)
    }

    // One for both callers: it is long.
    #[inline(never)]
    fn descend(&mut self, key: &SearchKey<'_>) -> Result<bool> {
        (self.leaf, self.asked) = (None, 0..0);
        let (top, path) = ((self.root, self.depth), &mut self.path);
        let prefetch = |p: &P, child, _| p.prefetch(child);
        let (found, leaf) = descend_by::<P, L>(&self.pages, top, &self.order, key, path, prefetch)?;
        self.leaf = leaf;
        Ok(found)
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        self.path.clear();
        self.descend_edge(self.root, self.depth, false)
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        self.path.clear();
        self.descend_edge(self.root, self.depth, true)
    }

    /// To the next entry; false at the end, where the cursor then stands nowhere.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<bool> {
        if let (Some((_, leaf)), Some(step)) = (self.leaf, self.path.last_mut()) {
            step.index += 1;
            if (step.index as usize) < leaf.count() {
                return Ok(true);
            }
            return self.next_leaf();
        }
        Ok(false)
    }

    /// To the previous entry; false at the start.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<bool> {
        if let (Some(_), Some(step)) = (self.leaf, self.path.last_mut()) {
            if step.index > 0 {
                step.index -= 1;
                return Ok(true);
            }
            return self.prev_leaf();
        }
        Ok(false)
    }

    /// To the first entry of the next leaf.
    pub(crate) fn next_leaf(&mut self) -> Result<bool> {
        self.turn(false)
    }

    /// To the last entry of the leaf before.
    pub(crate) fn prev_leaf(&mut self) -> Result<bool> {
        self.turn(true)
    }

    /// Leaves the cursor standing nowhere.
    pub(crate) fn leave(&mut self) {
        self.path.clear();
        self.leaf = None;
    }

    fn turn(&mut self, back: bool) -> Result<bool> {
        let old = self.leaf.take();
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
            let height = self.depth - up as u8;
            let branch = branch_at(&self.pages, step.page, height - 1)?;
            self.path.push(step.page, index as usize, step.count as usize);
            let child = branch.child(index as usize).map_err(step.page.damaged())?;
            if height > 2 {
                self.asked = 0..0;
            } else {
                self.prefetch_beyond(&branch, index, back);
            }
            self.descend_edge(Ref(child), height - 1, back)?;
            self.check_order(old, back)?;
            return Ok(true);
        }
        self.path.clear();
        Ok(false)
    }

    /// Asks for what comes beyond child `i`: of the next page the records, whose place its header
    /// tells, if that was asked for before; of those beyond it the headers.
    #[inline(always)]
    fn prefetch_beyond(&mut self, branch: &Branch<'p>, i: u32, back: bool) {
        let step = |i: u32| if back { i.checked_sub(1) } else { i.checked_add(1) };
        let Some(mut next) = step(i) else { return };
        if self.asked.contains(&next) {
            if let Ok(child) = branch.child(next as usize) {
                self.pages.prefetch_heap(Ref(child));
            }
            let Some(second) = step(next) else { return };
            next = second;
        }
        if !self.asked.contains(&next) {
            self.prefetch_headers(branch, next, back);
        }
    }

    /// Asks for the headers of several pages from child `next` on. The CPU waits for the address of
    /// each page to be translated, but for those of several together.
    #[inline(always)]
    fn prefetch_headers(&mut self, branch: &Branch<'p>, next: u32, back: bool) {
        self.asked = if back {
            (next + 1).saturating_sub(AHEAD)..next + 1
        } else {
            next..next.saturating_add(AHEAD).min(branch.count() as u32)
        };
        for child in self.asked.clone() {
            if let Ok(child) = branch.child(child as usize) {
                self.pages.prefetch(Ref(child));
            }
        }
    }

    /// The cursor is going to walk on: asks for the records of its leaf, and for the leaves behind.
    pub(crate) fn prefetch_around(&mut self) {
        let Some((at, ..)) = self.position() else { return };
        self.pages.prefetch_heap(at);
        let steps = self.path.steps();
        if let Some(step) = steps.len().checked_sub(2).and_then(|up| steps.get(up)).copied()
            && let Ok(branch) = branch_at(&self.pages, step.page, 1)
        {
            self.prefetch_headers(&branch, step.index + 1, false);
        }
    }

    /// A damaged file may lead to the same leaves again and again; keys that do not go on in
    /// order tell.
    fn check_order(&self, old: Option<(Ref, L)>, back: bool) -> Result<()> {
        let (Some((_, old)), Some((at, new))) = (old, self.leaf) else { return Ok(()) };
        let (before, after) = if back { (new, old) } else { (old, new) };
        let last = before.key(before.count().saturating_sub(1)).map_err(at.damaged())?;
        let first = after.key(0).map_err(at.damaged())?;
        // A caller's function is not asked about two stored keys.
        let ascending = match self.order.is_plain() {
            true => last != first,
            false => self.order.compare(last, first).is_lt(),
        };
        if ascending { Ok(()) } else { Err(at.damaged()(Damage("leaves are not in order"))) }
    }

    fn descend_edge(&mut self, root: Ref, height: u8, last: bool) -> Result<()> {
        self.leaf = None;
        if height == 0 {
            return Ok(());
        }
        let mut at = root;
        for level in (1..height).rev() {
            let branch = branch_at(&self.pages, at, level)?;
            let i = if last { branch.count().saturating_sub(1) } else { 0 };
            let child = branch.child(i).map_err(at.damaged())?;
            self.path.push(at, i, branch.count());
            at = Ref(child);
        }
        let leaf = self.leaf_at(at)?;
        if leaf.count() == 0 {
            return Err(at.damaged()(Damage("an empty leaf inside a tree")));
        }
        let i = if last { leaf.count() - 1 } else { 0 };
        self.path.push(at, i, leaf.count());
        self.leaf = Some((at, leaf));
        Ok(())
    }

    fn load_leaf(&mut self) -> Result<()> {
        self.leaf = match self.path.last() {
            Some(step) => Some((step.page, self.leaf_at(step.page)?)),
            None => None,
        };
        Ok(())
    }

    #[inline(always)]
    fn leaf_at(&self, at: Ref) -> Result<L> {
        L::parse(self.pages.page(at)?).map_err(at.damaged())
    }
}
