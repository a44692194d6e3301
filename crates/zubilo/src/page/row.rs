//! Neighbouring branches whose children are spread anew, and a branch in which several children take
//! the place of others: what packing needs.

use super::branch::{Child, Parts, init};
use super::branch_read::Branch;
use super::key::Order;
use super::{Damage, HEADER, header};

/// The children of neighbouring branches in a row.
#[derive(Default)]
pub(crate) struct Row {
    parts: Parts,
}

impl Row {
    /// Adds all children of a branch, whose own separator in its parent is `first`.
    pub(crate) fn add(&mut self, branch: &Branch<'_>, first: &[u8]) -> Result<(), Damage> {
        self.parts.extend(branch, 0, branch.count(), Some(first))
    }

    /// How many children there are.
    pub(crate) fn len(&self) -> usize {
        self.parts.entries.len()
    }

    /// What separates a child from the one before it.
    pub(crate) fn separator(&self, i: usize) -> &[u8] {
        self.parts.separator(i)
    }

    /// Where a branch ends that begins with child `from` and fills at most `room` bytes behind its
    /// header; it has two children at least, as long as there are two.
    pub(crate) fn fit(&self, from: usize, room: usize, plain: bool, counted: bool) -> usize {
        let fits = |to: usize| {
            let some = self.some(from, to);
            // As `write` chooses it.
            let prefix = some.prefix(plain, (room + HEADER) / 16).len();
            some.size_with(prefix, plain, counted) <= room
        };
        // The more children, the less they share: what does not fit will not with another one.
        let (mut low, mut high) = ((from + 2).min(self.len()), self.len());
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// Makes `page` a branch of children [from, to); false when they do not fit. `like` is one of the
    /// branches that they come from.
    pub(crate) fn write(
        &self,
        page: &mut [u8],
        like: &[u8],
        (from, to): (usize, usize),
        plain: bool,
    ) -> Result<bool, Damage> {
        let (level, table) = (header::level(like), header::table(like));
        init(page, level, table, plain, header::is_counted(like));
        self.some(from, to).write(page, plain)
    }

    fn some(&self, from: usize, to: usize) -> Parts {
        let mut some = Parts::default();
        for i in from..to {
            let Some((_, child)) = self.parts.entries.get(i) else { break };
            some.push(if i == from { &[] } else { self.parts.separator(i) }, *child);
        }
        some
    }
}

/// Puts other children in the place of those in [from, to), each with its separator but the first,
/// which keeps the old one; false when there is no room: the page is as it was.
pub(crate) fn replace(
    page: &mut [u8],
    (from, to): (usize, usize),
    order: &Order,
    new: &[(Vec<u8>, u64)],
) -> Result<bool, Damage> {
    let own = page.to_vec();
    let own = Branch::new(&own)?;
    if from >= to || to > own.count() {
        return Err(Damage("children replaced that are not there"));
    }
    let mut first = Vec::new();
    own.separator(from, &mut first)?;
    let mut parts = Parts::default();
    parts.extend(&own, 0, from, None)?;
    for (i, (separator, child)) in new.iter().enumerate() {
        parts.push(if i == 0 { &first } else { separator }, Child::new(*child));
    }
    parts.extend(&own, to, own.count(), None)?;
    parts.write(page, order.is_plain())
}
