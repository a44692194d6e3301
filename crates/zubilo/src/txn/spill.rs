//! Transactions larger than memory: finished pages go to free space before the commit. They stay
//! invisible (nothing durable refers to them) and can be taken back.

use crate::error::{Error, Result};
use crate::space::{Extent, Policy};
use crate::tree::{RunRef, run};

use super::layout::{Layout, Places, RunPlaces, Written, write_blob};
use super::write::WriteTxn;

impl WriteTxn {
    /// Writes all dirty pages of the running nesting level but the roots.
    pub(super) fn spill(&mut self) -> Result<()> {
        self.reset_fingers();
        self.reuse_returned();
        let upper = self.ws.arena().live() as u64 + self.ws.run_pages();
        let policy = self.policy();
        let (places, run_places, extents) = self.allocate(upper, policy)?;
        let mut layout = Layout::new(&mut self.ws, places, run_places);
        for table in self.tables.iter().filter(|t| !t.gone) {
            layout.below(table.tree.desc.root, table.tree.desc.depth)?;
        }
        layout.below(self.main.desc.root, self.main.desc.depth)?;
        let mut written = layout.finish();
        written.write(&self.env, &self.ws, false)?;
        self.book_spilled(&written, extents)?;
        // What outer nesting levels own stays; do not try again for every record.
        let limit = self.env.options.dirty_limit;
        self.spill_at = limit.max(self.ws.dirty_bytes() + limit / 2);
        Ok(())
    }

    /// Frees the memory of what was written; what was allocated but not used goes back.
    fn book_spilled(&mut self, written: &Written, extents: Vec<Extent>) -> Result<()> {
        let mut used: Vec<Extent> = Vec::new();
        for (first, count) in written.extents(self.ws.page_shift(), &self.ws) {
            match used.last_mut() {
                Some(last) if last.first + last.count == first => last.count += count,
                _ => used.push(Extent { first, count }),
            }
        }
        for (slot, index) in written.slots() {
            if let Some(slot) = slot {
                self.ws.forget_slot(slot);
            }
            if let Some(index) = index {
                self.ws.forget_run(index);
            }
        }
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        for extent in subtract(&extents, &used) {
            state.space.give_back(extent);
        }
        self.ws.extend(state.space.end());
        self.ws.spilled.extend(used);
        Ok(())
    }

    /// Writes a large value at once, without keeping it in memory.
    pub(super) fn write_run(&mut self, value: &[u8]) -> Result<RunRef> {
        let pages = (value.len() as u64).div_ceil(1 << self.ws.page_shift());
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let limit = self.env.page_limit(&state.meta.geometry);
        let extent = state
            .space
            .allocate_run(pages, limit)
            .ok_or_else(|| self.env.full(&state.meta.geometry))?;
        self.ws.spilled.push(extent);
        self.env.ensure_len(&state.meta.geometry, state.space.end())?;
        self.ws.extend(state.space.end());
        write_blob(&self.env, extent.first, value)?;
        Ok(RunRef {
            first: extent.first,
            len: value.len() as u64,
            checksum: run::checksum(value),
            birth: self.ws.txn(),
        })
    }

    /// Pages that were written early and are no longer used can be used again at once, unless an
    /// outer nesting level could come back to them.
    pub(super) fn reuse_returned(&mut self) {
        if !self.savepoints.is_empty() {
            return;
        }
        let returned = std::mem::take(&mut self.ws.returned);
        if returned.is_empty() {
            return;
        }
        self.ws.spilled = subtract(&self.ws.spilled, &returned);
        if let Some(state) = &mut self.state {
            returned.into_iter().for_each(|extent| state.space.give_back(extent));
        }
    }

    /// Pages for a commit or spill: one run for everything if there is one, else places for the
    /// tree's pages and a run for each large value.
    pub(super) fn allocate(
        &mut self,
        pages: u64,
        policy: Policy,
    ) -> Result<(Places, RunPlaces, Vec<Extent>)> {
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let geometry = state.meta.geometry;
        let limit = self.env.page_limit(&geometry);
        let full = || self.env.full(&geometry);
        let grow_to = grow_to(&state.space, policy);
        let sizes = self.ws.run_sizes();
        let mut extents = state.space.allocate(pages, policy, grow_to, limit).ok_or_else(full)?;
        let mut run_places = None;
        if extents.len() > 1 && !sizes.is_empty() {
            extents.iter().for_each(|e| state.space.give_back(*e));
            let tree_pages = pages - sizes.iter().map(|(_, size)| size).sum::<u64>();
            extents = state.space.allocate(tree_pages, policy, grow_to, limit).ok_or_else(full)?;
            let mut runs = Vec::new();
            for (index, size) in sizes {
                match state.space.allocate_run(size, limit) {
                    Some(extent) => runs.push((index, extent)),
                    None => {
                        let taken = extents.iter().chain(runs.iter().map(|(_, e)| e));
                        taken.for_each(|e| state.space.give_back(*e));
                        return Err(full());
                    }
                }
            }
            run_places = Some(runs);
        }
        extents.sort_unstable_by_key(|e| e.first);
        let mut all = extents.clone();
        all.extend(run_places.iter().flatten().map(|(_, extent)| *extent));
        all.sort_unstable_by_key(|e| e.first);
        self.env.ensure_len(&geometry, state.space.end())?;
        Ok((Places::new(extents), run_places, all))
    }

    /// Where pages come from: long runs where a flush follows, recently used pages elsewhere.
    pub(super) fn policy(&self) -> Policy {
        if self.env.is_sync() { Policy::Contiguous } else { Policy::Recent }
    }
}

/// How far the file may grow to keep runs long: half the live data more than it has.
fn grow_to(space: &crate::space::Space, policy: Policy) -> u64 {
    match policy {
        Policy::Contiguous => {
            let live = space.end() - space.free_pages() - space.retired_pages();
            live + live / 2 + 64
        }
        Policy::Recent => 0,
    }
}

/// The pages of `from` that are not in `taken`; both are lists of disjoint extents.
pub(super) fn subtract(from: &[Extent], taken: &[Extent]) -> Vec<Extent> {
    let sorted = |list: &[Extent]| {
        let mut list = list.to_vec();
        list.sort_unstable_by_key(|e| e.first);
        list
    };
    let mut taken = sorted(taken).into_iter().peekable();
    let mut rest = Vec::new();
    for extent in sorted(from) {
        let (mut first, end) = (extent.first, extent.first + extent.count);
        while let Some(t) = taken.peek().copied().filter(|t| t.first < end) {
            if t.first > first {
                rest.push(Extent { first, count: t.first - first });
            }
            first = first.max(t.first + t.count);
            if t.first + t.count > end {
                break;
            }
            taken.next();
        }
        if first < end {
            rest.push(Extent { first, count: end - first });
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtracting_extents_leaves_the_rest() {
        let e = |first, count| Extent { first, count };
        assert_eq!(subtract(&[e(0, 10)], &[]), [e(0, 10)]);
        assert_eq!(subtract(&[e(0, 10)], &[e(0, 10)]), []);
        assert_eq!(subtract(&[e(0, 10)], &[e(3, 2), e(9, 1)]), [e(0, 3), e(5, 4)]);
        assert_eq!(subtract(&[e(20, 5), e(0, 10)], &[e(8, 2), e(20, 1)]), [e(0, 8), e(21, 4)]);
        assert_eq!(subtract(&[e(0, 4), e(4, 4)], &[e(2, 4)]), [e(0, 2), e(6, 2)]);
    }
}
