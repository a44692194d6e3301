//! The leaves that a range touches, named by their parents: they are named, not read.

use crate::error::Result;

use super::edge::{edges, index_on};
use super::range::Bounds;
use super::{Pages, Path, Ref, Tree, TreeDesc};

/// Gets the leaves below one branch, in order.
pub(crate) type Row<'v> = &'v mut dyn FnMut(&[Ref]) -> Result<()>;

/// All leaves of a tree that can hold records inside the bounds.
pub(crate) fn inside<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    bounds: &Bounds,
    row: Row<'_>,
) -> Result<()> {
    let Some((start, end)) = edges(pages, tree, bounds)? else { return Ok(()) };
    Walk { pages, row }.below(tree.desc.root, tree.desc.depth - 1, (Some(&start), Some(&end)))
}

/// All leaves of a tree.
pub(crate) fn all<'p, P: Pages<'p>>(pages: &P, desc: &TreeDesc, row: Row<'_>) -> Result<()> {
    match desc.depth {
        0 => Ok(()),
        depth => Walk { pages, row }.below(desc.root, depth - 1, (None, None)),
    }
}

struct Walk<'w, P> {
    pages: &'w P,
    row: Row<'w>,
}

impl<'p, P: Pages<'p>> Walk<'_, P> {
    /// Below a page on `level`, which an edge goes through where there is one.
    fn below(
        &mut self,
        at: Ref,
        level: u8,
        (start, end): (Option<&Path>, Option<&Path>),
    ) -> Result<()> {
        if level == 0 {
            return (self.row)(&[at]);
        }
        let branch = self.pages.branch(at, level)?;
        let index = |edge: &Path| index_on(edge, level);
        let from = start.and_then(index).unwrap_or(0);
        let last = end.and_then(index).unwrap_or(branch.count().saturating_sub(1));
        let children = (from..=last).map(|i| branch.child(i)).collect::<Result<Vec<_>>>()?;
        if level == 1 {
            return (self.row)(&children);
        }
        for (i, child) in (from..=last).zip(children) {
            let edges = (start.filter(|_| i == from), end.filter(|_| i == last));
            self.below(child, level - 1, edges)?;
        }
        Ok(())
    }
}
