//! Compaction in place, as far as one tree is concerned: a walk in key order that packs neighbouring
//! pages, or moves what lies too far out in the file to free places further down.
//!
//! The walk is cut into parts, each the work of one write transaction. Between two of them anybody may
//! change the tree, so what is kept is a key, from which the next part finds its way.
//!
//! What a part rewrites it reads with its checksum: a fresh one would hide damage for good.

use std::time::Instant;

use crate::dirty::Workspace;
use crate::error::Result;
use crate::page::row::Node;
use crate::page::{Damage, HEADER, ValueKind, branch, header, leaf};

use super::insert::{TreeMut, broken_path, touch_path};
use super::lookup::{descend_first, descend_leaf};
use super::repack::pack_children;
use super::values::tree_of;
use super::{Pages, Path, Ref, RunRef, Tree, TreeDesc};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Neighbouring pages under one branch are joined so that they fill so many bytes each.
    Pack(usize),
    /// What lies at this page or beyond goes elsewhere.
    Lower(u64),
}

/// Bytes of a page to be filled, for a share in hundredths.
pub(crate) fn room_of(page_size: usize, percent: u8) -> usize {
    (page_size - HEADER) * usize::from(percent) / 100
}

/// How far a walk through a tree has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resume {
    /// 0: what records hold outside their leaves; above: the children of the branches on this level.
    level: u8,
    /// Where to go on; at the first key of all if there is none.
    key: Option<Vec<u8>>,
    /// How far the walk has come in the tree of values under `key`.
    inner: Option<Box<Resume>>,
}

/// What a part may do, and has done.
pub(crate) struct Budget {
    /// Bytes to be written, at which the part ends.
    pub(crate) bytes_max: u64,
    pub(crate) deadline: Option<Instant>,
    /// Pages that a whole walk can have at most, still.
    pub(crate) pages_left: u64,
    /// Pages looked at.
    pub(crate) seen: u64,
    /// Pages that packing has made superfluous.
    pub(crate) saved: u64,
    /// Pages moved.
    pub(crate) moved: u64,
    /// Bytes of large values that were written.
    pub(crate) run_bytes: u64,
}

impl Budget {
    /// Whether the part has done enough.
    pub(crate) fn is_spent(&self, ws: &Workspace) -> bool {
        ws.dirty_bytes() + self.run_bytes >= self.bytes_max
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Finds places for large values.
pub(crate) trait LowerRun {
    /// Writes the value to a place before the one it has; none if there is no such place.
    fn lower(&mut self, ws: &mut Workspace, holder: Ref, run: &RunRef) -> Result<Option<RunRef>>;
}

/// A part of the work.
pub(crate) struct Part<'w> {
    pub(crate) ws: &'w mut Workspace,
    pub(crate) task: Task,
    pub(crate) budget: &'w mut Budget,
    pub(crate) runs: &'w mut dyn LowerRun,
}

impl Part<'_> {
    /// Whether this part has done enough.
    pub(super) fn is_spent(&self) -> bool {
        self.budget.is_spent(self.ws)
    }

    /// Counts a page that was looked at. A damaged tree may lead in circles from part to part.
    pub(super) fn see(&mut self, at: Ref) -> Result<()> {
        self.budget.seen += 1;
        let left = self.budget.pages_left.checked_sub(1);
        self.budget.pages_left =
            left.ok_or_else(|| at.damaged()(Damage("a tree with more pages than the store")))?;
        Ok(())
    }

    /// Whether a page of the file is to be moved.
    fn is_beyond(&self, at: Ref) -> bool {
        match self.task {
            Task::Lower(end) => at.slot().is_none() && at.0 >= end,
            Task::Pack(_) => false,
        }
    }
}

/// Refuses a page of the file that is not what was written.
pub(super) fn verified(ws: &Workspace, at: Ref) -> Result<()> {
    match at.slot() {
        Some(_) => Ok(()),
        None => header::verify(ws.view().page(at)?, at.0).map_err(at.damaged()),
    }
}

/// The path to a key, all pages of it verified.
pub(crate) fn verified_path(ws: &Workspace, tree: &Tree, key: &[u8]) -> Result<Path> {
    let mut path = Path::default();
    descend_leaf::<_, Node<'_>>(&ws.view(), &tree.desc, &tree.order, key, &mut path)?;
    path.steps().iter().try_for_each(|step| verified(ws, step.page))?;
    Ok(path)
}

/// Verifies the neighbours of the pages of a path down to step `d`, which may be joined with them.
fn verify_beside(ws: &Workspace, path: &Path, d: usize) -> Result<()> {
    for (up, step) in path.steps().iter().enumerate().take(d) {
        let branch = ws.view().branch(step.page, (path.len() - 1 - up) as u8)?;
        let i = step.index as usize;
        for i in [i.checked_sub(1), Some(i + 1).filter(|i| *i < branch.count())] {
            let Some(i) = i else { continue };
            verified(ws, branch.child(i)?)?;
        }
    }
    Ok(())
}

/// Goes on with the walk from `resume`; true at the end of the tree.
pub(crate) fn advance(part: &mut Part<'_>, tree: &mut Tree, resume: &mut Resume) -> Result<bool> {
    tree.finger.reset();
    loop {
        let highest = match part.task {
            Task::Pack(_) => tree.desc.depth.saturating_sub(1),
            Task::Lower(_) => tree.desc.depth.min(1),
        };
        if resume.level > highest {
            return Ok(true);
        }
        let done = match (resume.level, part.task) {
            (0, task) if !holds(&tree.desc, task) => true,
            (0, _) => contents(part, tree, resume)?,
            (level, Task::Pack(room)) => pack_level(part, tree, level, room, &mut resume.key)?,
            (_, Task::Lower(_)) => lower_pages(part, tree, &mut resume.key)?,
        };
        if !done {
            return Ok(false);
        }
        *resume = Resume { level: resume.level + 1, ..Resume::default() };
    }
}

/// Whether records of the tree may hold something outside their leaves that the task is about.
fn holds(desc: &TreeDesc, task: Task) -> bool {
    let trees = desc.options.has_duplicates() && desc.value_pages > 0;
    trees || (matches!(task, Task::Lower(_)) && desc.run_pages > 0)
}

/// The path to a key, or to the first of all.
fn path_to(part: &mut Part<'_>, tree: &Tree, key: Option<&[u8]>) -> Result<Path> {
    let mut path = Path::default();
    match key {
        Some(key) => {
            descend_leaf::<_, Node<'_>>(&part.ws.view(), &tree.desc, &tree.order, key, &mut path)?;
        }
        None => {
            let level = tree.desc.depth.saturating_sub(1);
            descend_first(&part.ws.view(), tree.desc.root, level, &mut path)?;
        }
    }
    if let Some(step) = path.last() {
        part.see(step.page)?;
    }
    Ok(path)
}

/// The first key under a page on this level.
fn first_key(ws: &Workspace, at: Ref, level: u8) -> Result<Vec<u8>> {
    let mut path = Path::default();
    descend_first(&ws.view(), at, level, &mut path)?;
    let leaf = path.last().ok_or_else(broken_path)?.page;
    ws.view().node(leaf, 0)?.key(0).map(<[u8]>::to_vec)
}

/// The first key after the page at step `d` of a path.
fn next_key(ws: &Workspace, path: &Path, d: usize) -> Result<Option<Vec<u8>>> {
    for (up, step) in path.steps().iter().enumerate().take(d).rev() {
        if step.index + 1 < step.count {
            let level = (path.len() - 1 - up) as u8;
            let child = ws.view().branch(step.page, level)?.child(step.index as usize + 1)?;
            return first_key(ws, child, level - 1).map(Some);
        }
    }
    Ok(None)
}

/// Refuses a walk that would not get on: a damaged tree can lead in circles.
fn forward(tree: &Tree, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<()> {
    match (from, to) {
        (Some(from), Some(to)) if tree.order.compare(from, to).is_ge() => {
            Err(tree.desc.root.damaged()(Damage("keys are not in order")))
        }
        _ => Ok(()),
    }
}

/// Makes the pages of a path down to step `d` changeable.
pub(super) fn touch_until(
    ws: &mut Workspace,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
) -> Result<()> {
    for step in path.steps().iter().take(d + 1) {
        verified(ws, step.page)?;
    }
    let mut upper = path.clone();
    upper.truncate(d + 1);
    touch_path(ws, tree, &mut upper)?;
    for (step, touched) in path.steps_mut().iter_mut().zip(upper.steps()) {
        step.page = touched.page;
    }
    Ok(())
}

/// Packs the children of all branches on a level; true at the end.
fn pack_level(
    part: &mut Part<'_>,
    tree: &mut Tree,
    level: u8,
    room: usize,
    key: &mut Option<Vec<u8>>,
) -> Result<bool> {
    while level < tree.desc.depth {
        let mut path = path_to(part, tree, key.as_deref())?;
        let d = path.len() - 1 - usize::from(level);
        let next = next_key(part.ws, &path, d)?;
        let saved = part.budget.saved;
        let stopped = pack_children(part, tree, &mut path, d, room)?;
        let parent = path.steps()[d].page;
        let rest = match stopped {
            Some(i) => {
                let child = part.ws.view().branch(parent, level)?.child(i)?;
                Some(first_key(part.ws, child, level - 1)?)
            }
            None => None,
        };
        if part.budget.saved > saved {
            verify_beside(part.ws, &path, d)?;
            TreeMut { ws: part.ws, tree, path }.rebalance(d)?;
        }
        if let Some(at_end) = go_on(part, tree, key, rest, next)? {
            return Ok(at_end);
        }
    }
    Ok(true)
}

/// From one branch to the next: keeps the key to go on from, `rest` inside this branch or `next` after
/// it. Says whether the tree is at its end, if the part ends here.
fn go_on(
    part: &Part<'_>,
    tree: &Tree,
    key: &mut Option<Vec<u8>>,
    rest: Option<Vec<u8>>,
    next: Option<Vec<u8>>,
) -> Result<Option<bool>> {
    forward(tree, key.as_deref(), next.as_deref())?;
    let at_end = rest.is_none() && next.is_none();
    *key = rest.or(next);
    Ok((at_end || part.is_spent()).then_some(at_end))
}

/// Moves pages that lie too far out; true at the end.
fn lower_pages(part: &mut Part<'_>, tree: &mut Tree, key: &mut Option<Vec<u8>>) -> Result<bool> {
    loop {
        let mut path = path_to(part, tree, key.as_deref())?;
        let Some(d) = path.len().checked_sub(2) else {
            if let Some(root) = path.last().filter(|root| part.is_beyond(root.page)) {
                verified(part.ws, root.page)?;
                touch_path(part.ws, tree, &mut path)?;
                part.budget.moved += 1;
            }
            return Ok(true);
        };
        let next = next_key(part.ws, &path, d)?;
        for i in 0..=d {
            if part.is_beyond(path.steps()[i].page) {
                touch_until(part.ws, tree, &mut path, i)?;
                part.budget.moved += 1;
            }
        }
        let rest = lower_children(part, tree, &mut path, d)?;
        if let Some(at_end) = go_on(part, tree, key, rest, next)? {
            return Ok(at_end);
        }
    }
}

/// Moves leaves under one branch; gives the key to go on with if the part has done enough.
fn lower_children(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
) -> Result<Option<Vec<u8>>> {
    let step = path.steps()[d];
    let count = step.count as usize;
    for i in step.index as usize..count {
        let parent = path.steps()[d].page;
        let child = part.ws.view().branch(parent, 1)?.child(i)?;
        part.see(child)?;
        if !part.is_beyond(child) {
            continue;
        }
        touch_until(part.ws, tree, path, d)?;
        let parent = path.steps()[d].page;
        verified(part.ws, child)?;
        let moved = Ref::dirty(part.ws.touch(child)?);
        part.ws.edit(parent, |page| branch::set_child(page, i, moved.0))?;
        part.budget.moved += 1;
        if part.is_spent() && i + 1 < count {
            let next = part.ws.view().branch(parent, 1)?.child(i + 1)?;
            return first_key(part.ws, next, 0).map(Some);
        }
    }
    Ok(None)
}

/// Looks after what records hold outside their leaves; true at the end.
fn contents(part: &mut Part<'_>, tree: &mut Tree, resume: &mut Resume) -> Result<bool> {
    loop {
        let mut path = path_to(part, tree, resume.key.as_deref())?;
        let Some(step) = path.last().copied() else { return Ok(true) };
        let next = next_key(part.ws, &path, path.len() - 1)?;
        for i in step.index as usize..step.count as usize {
            if let Some(last) = path.last_mut() {
                last.index = i as u32;
            }
            if !content(part, tree, &mut path, resume)? {
                return Ok(false);
            }
            if part.is_spent() && i + 1 < step.count as usize {
                let at = path.last().ok_or_else(broken_path)?.page;
                resume.key = Some(part.ws.view().leaf(at)?.key(i + 1)?.to_vec());
                return Ok(false);
            }
        }
        forward(tree, resume.key.as_deref(), next.as_deref())?;
        let at_end = next.is_none();
        resume.key = next;
        if at_end || part.is_spent() {
            return Ok(at_end);
        }
    }
}

/// Looks after what the record at the end of a path holds; false if the part has done enough before
/// its end.
fn content(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    resume: &mut Resume,
) -> Result<bool> {
    let step = *path.last().ok_or_else(broken_path)?;
    let (at, i) = (step.page, step.index as usize);
    let entry = part.ws.view().leaf(at)?.entry(i)?;
    match (entry.kind, part.task) {
        (ValueKind::Run, Task::Lower(end)) => {
            let run = RunRef::of(at, entry.value)?;
            let last = run.first.saturating_add(run.pages(part.ws.page_shift()));
            if run.slot().is_none() && last > end {
                lower_run(part, tree, path, &run)?;
            }
            Ok(true)
        }
        (ValueKind::Tree, _) if tree.desc.options.has_duplicates() => {
            let desc = tree_of(&part.ws.view(), at, entry.value)?;
            let same = resume.key.as_deref() == Some(entry.key);
            let mut inner = resume.inner.take().filter(|_| same).unwrap_or_default();
            let key = entry.key.to_vec();
            let mut values = Tree::new(desc, tree.values.clone(), tree.values.clone());
            let done = advance(part, &mut values, &mut inner)?;
            if values.desc != desc {
                let d = path.len() - 1;
                touch_until(part.ws, tree, path, d)?;
                TreeMut { ws: part.ws, tree, path: path.clone() }
                    .store_tree(&desc, &values.desc)?;
                tree.finger.reset();
            }
            if !done {
                (resume.key, resume.inner) = (Some(key), Some(inner));
            }
            Ok(done)
        }
        _ => Ok(true),
    }
}

/// Moves the large value of the record at the end of a path, if there is a place for it further down.
fn lower_run(part: &mut Part<'_>, tree: &mut Tree, path: &mut Path, run: &RunRef) -> Result<()> {
    let step = *path.last().ok_or_else(broken_path)?;
    let pages = run.pages(part.ws.page_shift());
    let Some(moved) = part.runs.lower(part.ws, step.page, run)? else { return Ok(()) };
    part.budget.run_bytes += run.len;
    part.budget.moved += pages;
    let d = path.len() - 1;
    touch_until(part.ws, tree, path, d)?;
    part.ws.drop_run(run)?;
    let at = path.last().ok_or_else(broken_path)?.page;
    part.ws.edit(at, |page| moved.store(leaf::value_mut(page, step.index as usize)?))
}
