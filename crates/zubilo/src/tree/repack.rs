//! Packing: children of one branch fill one another until fewer are left.
//!
//! A window of neighbours is rewritten if one page at least falls away, and it is the shortest that
//! yields one: so no page is rewritten for less than its share. The last page that comes out of a window
//! begins the next one, so that in a row of half-full pages all but the last are filled.

use crate::error::Result;

use super::compact::{Part, touch_until, verified};
use super::insert::TreeMut;
use super::siblings::{Filled, Pair, align_of};
use super::{Pages, Path, Ref, Tree};

/// Pages that are rewritten at most to save one: leaves that are full to 15 sixteenths of what is
/// wanted stay as they are.
const WINDOW: usize = 16;

/// Packs the children of the branch at step `d` of a path, from the step's index on. Gives the child to
/// go on with if the part has done enough before the last.
pub(super) fn pack_children(
    part: &mut Part<'_>,
    tree: &mut Tree,
    path: &mut Path,
    d: usize,
    room: usize,
) -> Result<Option<usize>> {
    let from = path.steps()[d].index as usize;
    let mut packing = Packing { part, tree, path, d, room };
    // Bytes that the children from `from` on fill, as far as they are known.
    let mut sizes: Vec<usize> = Vec::new();
    let mut i = from;
    loop {
        let children =
            packing.part.ws.view().branch(packing.parent(), packing.level() + 1)?.count();
        if i + 1 >= children {
            return Ok(None);
        }
        let window = (i + WINDOW).min(children);
        while from + sizes.len() < window {
            let child = from + sizes.len();
            packing.part.see(packing.child(child)?)?;
            sizes.push(packing.size_of(child)?);
        }
        let known = sizes.get(i - from..window - from).unwrap_or_default();
        match packing.shortest(i, known)? {
            Some(taken) => {
                let made = packing.fill_window(i, taken)?;
                packing.part.budget.saved += (taken - made.len()) as u64;
                let last = if made.len() < taken { made.len() - 1 } else { 1 };
                sizes.splice(i - from..i - from + taken, made);
                i += last;
            }
            None => i += 1,
        }
        if packing.part.is_spent() {
            return Ok(Some(i).filter(|i| i + 1 < children));
        }
    }
}

/// The children of one branch in the course of packing.
struct Packing<'a, 'w> {
    part: &'a mut Part<'w>,
    tree: &'a mut Tree,
    path: &'a mut Path,
    /// The branch's step of the path.
    d: usize,
    /// Bytes of a page to be filled.
    room: usize,
}

impl Packing<'_, '_> {
    fn parent(&self) -> Ref {
        self.path.steps()[self.d].page
    }

    /// The level of the children.
    fn level(&self) -> u8 {
        (self.path.len() - 2 - self.d) as u8
    }

    fn child(&self, i: usize) -> Result<Ref> {
        self.part.ws.view().branch(self.parent(), self.level() + 1)?.child(i)
    }

    /// Bytes that a child's entries take, wherever they lie.
    fn size_of(&self, i: usize) -> Result<usize> {
        self.part.ws.view().node(self.child(i)?, self.level())?.size(align_of(self.tree))
    }

    /// How many children from child `i` on, which have these sizes, have room in one page less.
    fn shortest(&self, i: usize, sizes: &[usize]) -> Result<Option<usize>> {
        let first = sizes.first().copied().unwrap_or(self.room);
        if self.room.saturating_sub(first) * WINDOW < self.room {
            // A full one saves nothing that its neighbour alone would not.
            return Ok(None);
        }
        let mut sum = first;
        for (n, size) in sizes.iter().enumerate().skip(1) {
            sum += size;
            if sum <= n * self.room && self.saves(i, n + 1)? {
                return Ok(Some(n + 1));
            }
        }
        Ok(None)
    }

    /// Whether the entries of a window, filled into one page after the other, need fewer pages.
    fn saves(&self, i: usize, taken: usize) -> Result<bool> {
        let (mut pages, mut used) = (1, 0);
        for n in i..i + taken {
            let node = self.part.ws.view().node(self.child(n)?, self.level())?;
            for entry in 0..node.count() {
                let size = node.entry_size(entry, align_of(self.tree))?;
                if used > 0 && used + size > self.room {
                    (pages, used) = (pages + 1, 0);
                }
                used += size;
            }
        }
        Ok(pages < taken)
    }

    /// Fills each page of a window from those after it; gives the sizes of the pages that are left.
    /// Where the branch has no room for a separator the rest stays as it is.
    fn fill_window(&mut self, i: usize, taken: usize) -> Result<Vec<usize>> {
        for n in i..i + taken {
            verified(self.part.ws, self.child(n)?)?;
        }
        touch_until(self.part.ws, self.tree, self.path, self.d)?;
        let (parent, level) = (self.parent(), self.level());
        let mut tree = TreeMut::new(self.part.ws, self.tree);
        let (mut at, mut left) = (i + 1, taken);
        for _ in 1..taken {
            let Some(mut pair) = Pair::at(tree.ws, parent, at, level)? else { break };
            match pair.fill(&mut tree, self.room)? {
                Filled::Merged => left -= 1,
                Filled::Left => at += 1,
                Filled::NoRoom => break,
            }
        }
        (i..i + left).map(|n| self.size_of(n)).collect()
    }
}
