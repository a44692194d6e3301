//! The way from the root to an entry: one step a level.

use super::Ref;
use super::desc::MAX_DEPTH;

/// A page on the way and the entry taken in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    pub(crate) page: Ref,
    pub(crate) index: u32,
    /// Entries of the page when the step was taken.
    pub(crate) count: u32,
}

/// Steps from the root (first) to a leaf (last).
#[derive(Clone, Copy)]
pub(crate) struct Path {
    steps: [Step; MAX_DEPTH],
    len: usize,
}

impl Default for Path {
    fn default() -> Path {
        Path { steps: [Step::default(); MAX_DEPTH], len: 0 }
    }
}

impl Path {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a step below; callers bound the depth by the descriptor's, which is checked.
    #[inline]
    pub(crate) fn push(&mut self, page: Ref, index: usize, count: usize) {
        if let Some(step) = self.steps.get_mut(self.len) {
            *step = Step { page, index: index as u32, count: count as u32 };
            self.len += 1;
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    pub(crate) fn steps_mut(&mut self) -> &mut [Step] {
        &mut self.steps[..self.len]
    }

    pub(crate) fn last(&self) -> Option<&Step> {
        self.steps().last()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Step> {
        self.steps_mut().last_mut()
    }

    /// True when every step above the leaf took its page's last child: the rightmost leaf.
    pub(crate) fn is_rightmost(&self) -> bool {
        let branches = self.len.saturating_sub(1);
        self.steps[..branches].iter().all(|s| s.index + 1 >= s.count)
    }
}
