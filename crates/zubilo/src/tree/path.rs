//! The way from the root to an entry: one step a level.

use super::Ref;

/// Steps to make room for at first.
const USUAL_DEPTH: usize = 8;

/// A page on the way and the entry taken in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    pub(crate) page: Ref,
    pub(crate) index: u32,
    /// Entries of the page when the step was taken.
    pub(crate) count: u32,
}

/// Steps from the root (first) to a leaf (last). On the heap: paths are handed on and kept more
/// often than they are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    steps: Vec<Step>,
}

impl Path {
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Adds a step below; callers bound the depth by the descriptor's, which is checked.
    #[inline]
    pub(crate) fn push(&mut self, page: Ref, index: usize, count: usize) {
        if self.steps.capacity() == 0 {
            self.steps.reserve_exact(USUAL_DEPTH);
        }
        self.steps.push(Step { page, index: index as u32, count: count as u32 });
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.steps.truncate(len);
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn steps_mut(&mut self) -> &mut [Step] {
        &mut self.steps
    }

    pub(crate) fn last(&self) -> Option<&Step> {
        self.steps().last()
    }

    #[inline(always)]
    pub(crate) fn last_mut(&mut self) -> Option<&mut Step> {
        self.steps_mut().last_mut()
    }

    /// True when every step above the leaf took its page's last child: the rightmost leaf.
    pub(crate) fn is_rightmost(&self) -> bool {
        let branches = self.steps.len().saturating_sub(1);
        self.steps[..branches].iter().all(|s| s.index + 1 >= s.count)
    }
}
