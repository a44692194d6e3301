//! The edges of a range: for each of its two ends the way from the root to the place in a leaf.
//!
//! An edge lies between two records: before the one that its way leads to. Whatever two ways have in common is
//! outside of the question; from where they part, the range is what lies to the right of the one and to the
//! left of the other.

use std::ops::Bound;

use crate::error::Result;

use super::place::{Place, TreeView};
use super::range::Bounds;
use super::{Pages, Path, Tree};

/// Both edges of a range; none if no record can lie inside.
pub(super) fn edges<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    bounds: &Bounds,
) -> Result<Option<(Path, Path)>> {
    if tree.desc.depth == 0 || bounds.is_empty(&tree.order) {
        return Ok(None);
    }
    let view = TreeView::<_>::new(*pages, &tree.desc, &tree.order);
    let (mut start, mut end) = (Place::default(), Place::default());
    let behind_start = match &bounds.start {
        Bound::Unbounded => start.first(&view).map(|()| false)?,
        Bound::Included(key) => start.seek_gap(&view, key).map(|_| false)?,
        Bound::Excluded(key) => start.seek_gap(&view, key)?,
    };
    let behind_end = match &bounds.end {
        Bound::Unbounded => end.last(&view).map(|()| true)?,
        Bound::Included(key) => end.seek_gap(&view, key)?,
        Bound::Excluded(key) => end.seek_gap(&view, key).map(|_| false)?,
    };
    for (edge, behind) in [(&mut start, behind_start), (&mut end, behind_end)] {
        if behind {
            edge.step_behind();
        }
    }
    Ok(Some((start.into_path(), end.into_path())))
}

/// The index that a way takes in a branch on `level`, or with 0 in its leaf.
pub(super) fn index_on(way: &Path, level: u8) -> Option<usize> {
    let at = way.len().checked_sub(usize::from(level) + 1)?;
    way.steps().get(at).map(|step| step.index as usize)
}
