//! Transactions larger than memory: finished pages go to free space before the commit. They stay
//! invisible (nothing durable refers to them) and can be taken back.

use crate::dirty::{no_list, with_room};
use crate::env::log::Level;
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::space::Extent;
use crate::tree::{RunRef, run};

use super::layout::{Allocated, Layout, Written, write_padded};
use super::write::WriteTxn;

impl WriteTxn {
    /// Writes all dirty pages of the running nesting level but the roots.
    pub(super) fn spill(&mut self) -> Result<()> {
        self.reset_fingers();
        self.reuse_returned()?;
        let (txn, bytes) = (self.id(), self.ws.dirty_bytes());
        let what = format_args!("transaction {txn}: {bytes} bytes of changes, written early");
        self.env.log(Level::Info, what);
        let upper = self.ws.arena().live() as u64 + self.ws.run_pages();
        let allocated = self.allocate(upper)?;
        let extents = allocated.all()?;
        let written = self.write_early(allocated).and_then(|written| {
            self.book_spilled(&written, &extents)?;
            Ok(written)
        });
        if let Err(error) = written {
            // Else an outer nesting level, which goes on, would miss them.
            if let Some(state) = &mut self.state {
                extents.iter().for_each(|extent| state.space.give_back(*extent));
            }
            return Err(error);
        }
        // What outer nesting levels own stays; do not try again for every record.
        let limit = self.env.dirty_limit;
        self.spill_at = limit.max(self.ws.dirty_bytes() + limit / 2);
        Ok(())
    }

    fn write_early(&mut self, allocated: Allocated) -> Result<Written> {
        let mut layout = Layout::new(&mut self.ws, allocated)?;
        for table in self.tables.iter().filter(|t| !t.gone) {
            layout.below(table.tree.desc.root, table.tree.desc.depth)?;
        }
        layout.below(self.main.desc.root, self.main.desc.depth)?;
        let mut written = layout.finish();
        written.write(&self.env, &self.ws, false)?;
        Ok(written)
    }

    /// Frees the memory of what was written; what was allocated but not used goes back. After an error
    /// nothing has changed.
    fn book_spilled(&mut self, written: &Written, extents: &[Extent]) -> Result<()> {
        // Neighbours in one extent are one piece, at least.
        let mut used: Vec<Extent> = with_room(extents.len()).ok_or_else(no_list)?;
        for (first, count) in written.extents(self.ws.page_shift(), &self.ws) {
            match used.last_mut() {
                Some(last) if last.first + last.count == first => last.count += count,
                _ => {
                    used.try_reserve(1).map_err(|_| no_list())?;
                    used.push(Extent { first, count });
                }
            }
        }
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let unused = subtract(extents, &used)?;
        self.ws.spilled.try_reserve(used.len()).map_err(|_| no_list())?;
        for (slot, index) in written.slots() {
            if let Some(slot) = slot {
                self.ws.forget_slot(slot);
            }
            if let Some(index) = index {
                self.ws.forget_run(index);
            }
        }
        for extent in unused {
            state.space.give_back(extent);
        }
        self.ws.extend(state.space.end());
        self.ws.spilled.extend(used);
        Ok(())
    }

    /// Writes a large value at once, without keeping it in memory.
    pub(super) fn write_run(&mut self, value: &[u8]) -> Result<RunRef> {
        let pages = (value.len() as u64).div_ceil(1 << self.ws.page_shift());
        let geometry = self.bounds();
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let limit = self.env.page_limit(&geometry);
        let extent =
            state.space.allocate_run(pages, limit).ok_or_else(|| self.env.full(&geometry))?;
        self.ws.spilled.push(extent);
        self.env.ensure_len(&geometry, state.space.end())?;
        self.ws.extend(state.space.end());
        write_padded(&self.env, extent.first, value)?;
        Ok(RunRef {
            first: extent.first,
            len: value.len() as u64,
            checksum: run::checksum(value),
            birth: self.ws.txn(),
        })
    }

    /// Pages that were written early and are no longer used can be used again at once, unless an
    /// outer nesting level could come back to them.
    pub(super) fn reuse_returned(&mut self) -> Result<()> {
        if !self.savepoints.is_empty() || self.ws.returned.is_empty() {
            return Ok(());
        }
        let rest = subtract(&self.ws.spilled, &self.ws.returned)?;
        let returned = std::mem::take(&mut self.ws.returned);
        if pages_of(&rest) + pages_of(&returned) != pages_of(&self.ws.spilled) {
            return Err(Error::Corrupted {
                page: PageNo(returned.first().map_or(0, |e| e.first)),
                reason: "a page of a tree claims to be of the transaction to come",
            });
        }
        self.ws.spilled = rest;
        if let Some(state) = &mut self.state {
            returned.into_iter().for_each(|extent| state.space.give_back(extent));
        }
        Ok(())
    }
}

fn pages_of(extents: &[Extent]) -> u128 {
    extents.iter().map(|e| u128::from(e.count)).sum()
}

/// The pages of `from` that are not in `taken`; both are lists of disjoint extents.
pub(super) fn subtract(from: &[Extent], taken: &[Extent]) -> Result<Vec<Extent>> {
    let sorted = |list: &[Extent]| {
        let mut copy = with_room(list.len()).ok_or_else(no_list)?;
        copy.extend_from_slice(list);
        copy.sort_unstable_by_key(|e| e.first);
        Ok(copy)
    };
    // Each that is taken cuts one extent in two, at most.
    let mut rest = with_room(from.len() + taken.len()).ok_or_else(no_list)?;
    let mut taken = sorted(taken)?.into_iter().peekable();
    for extent in sorted(from)? {
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
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtracting_extents_leaves_the_rest() {
        let subtract = |from: &[Extent], taken: &[Extent]| subtract(from, taken).unwrap();
        let e = |first, count| Extent { first, count };
        assert_eq!(subtract(&[e(0, 10)], &[]), [e(0, 10)]);
        assert_eq!(subtract(&[e(0, 10)], &[e(0, 10)]), []);
        assert_eq!(subtract(&[e(0, 10)], &[e(3, 2), e(9, 1)]), [e(0, 3), e(5, 4)]);
        assert_eq!(subtract(&[e(20, 5), e(0, 10)], &[e(8, 2), e(20, 1)]), [e(0, 8), e(21, 4)]);
        assert_eq!(subtract(&[e(0, 4), e(4, 4)], &[e(2, 4)]), [e(0, 2), e(6, 2)]);
    }
}
