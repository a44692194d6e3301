//! The way from the root to an entry: one step a level.

use super::Ref;
use super::desc::MAX_DEPTH;

/// Levels of all usual trees: 100 million records of 16-byte keys have four. A deeper path lies on the
/// heap.
const USUAL_DEPTH: usize = 4;

/// A page on the way and the entry taken in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    pub(crate) page: Ref,
    pub(crate) index: u32,
    /// Entries of the page when the step was taken.
    pub(crate) count: u32,
}

/// Steps from the root (first) to a leaf (last). In place, so that a search allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    len: u32,
    /// The steps, as long as they fit.
    near: [Step; USUAL_DEPTH],
    /// All steps of a deeper path.
    deep: Option<Box<[Step; MAX_DEPTH]>>,
}

impl Path {
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Adds a step below; callers bound the depth by the descriptor's, which is checked.
    #[inline(always)]
    pub(crate) fn push(&mut self, page: Ref, index: usize, count: usize) {
        let step = Step { page, index: index as u32, count: count as u32 };
        let at = self.len as usize;
        if self.deep.is_none()
            && let Some(place) = self.near.get_mut(at)
        {
            *place = step;
            self.len += 1;
        } else {
            self.push_deep(step);
        }
    }

    #[cold]
    fn push_deep(&mut self, step: Step) {
        let deep = self.deep.get_or_insert_with(|| {
            let mut deep = Box::new([Step::default(); MAX_DEPTH]);
            deep[..USUAL_DEPTH].copy_from_slice(&self.near);
            deep
        });
        let place = deep.get_mut(self.len as usize);
        debug_assert!(place.is_some(), "the depth was checked");
        if let Some(place) = place {
            *place = step;
            self.len += 1;
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len as u32);
    }

    #[inline(always)]
    pub(crate) fn steps(&self) -> &[Step] {
        let len = self.len as usize;
        match &self.deep {
            None => self.near.get(..len).unwrap_or_default(),
            Some(deep) => deep.get(..len).unwrap_or_default(),
        }
    }

    #[inline(always)]
    pub(crate) fn steps_mut(&mut self) -> &mut [Step] {
        let len = self.len as usize;
        match &mut self.deep {
            None => self.near.get_mut(..len).unwrap_or_default(),
            Some(deep) => deep.get_mut(..len).unwrap_or_default(),
        }
    }

    #[inline(always)]
    pub(crate) fn last(&self) -> Option<&Step> {
        self.steps().last()
    }

    #[inline(always)]
    pub(crate) fn last_mut(&mut self) -> Option<&mut Step> {
        self.steps_mut().last_mut()
    }

    /// True when every step above the leaf took its page's last child: the rightmost leaf.
    pub(crate) fn is_rightmost(&self) -> bool {
        let steps = self.steps();
        let branches = steps.len().saturating_sub(1);
        steps[..branches].iter().all(|s| s.index + 1 >= s.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_paths_keep_all_their_steps() {
        let mut path = Path::default();
        for round in 0..3 {
            path.clear();
            for i in 0..MAX_DEPTH {
                path.push(Ref(i as u64 + round), i, MAX_DEPTH);
                assert_eq!(path.len(), i + 1);
                let steps = path.steps().iter().enumerate();
                steps.for_each(|(i, s)| {
                    assert_eq!((s.page, s.index), (Ref(i as u64 + round), i as u32))
                });
            }
            path.truncate(3);
            assert_eq!(path.len(), 3);
            path.last_mut().unwrap().index = 77;
            assert_eq!(path.clone().last().unwrap().index, 77);
        }
    }
}
