//! Two neighbouring pages as one row of entries, cut in two at one place.
//!
//! A split, a merge, and neighbours that even out or fill one another are all the same: somebody
//! chooses where the row is to be cut ([`Row`]), and entries move until it is ([`shift`]). Leaves,
//! packed leaves and branches differ in what an entry takes and what separates two of them
//! ([`Node`]); both pages are of one kind.
//!
//! What [`Row`] says will fit fits: its sizes are those that the entries take at most, wherever they
//! lie and whatever prefix a page has.

use super::branch_read::{Branch, heap_need};
use super::key::{Order, common_len, separator};
use super::leaf_read::Leaf;
use super::packed::Packed;
use super::{Damage, Kind, branch, header, leaf, packed};

/// A page of a tree.
#[derive(Clone, Copy)]
pub(crate) enum Node<'p> {
    Leaf(Leaf<'p>),
    Packed(Packed<'p>),
    Branch(Branch<'p>),
}

impl<'p> Node<'p> {
    /// The page, which must be on `level`.
    pub(crate) fn on_level(page: &'p [u8], level: u8) -> Result<Node<'p>, Damage> {
        match header::kind_and_level(page) {
            (kind, 0) if level == 0 && kind == Kind::Packed as u8 => {
                Packed::new(page).map(Node::Packed)
            }
            _ if level == 0 => Leaf::on_level_0(page).map(Node::Leaf),
            _ => Branch::on_level(page, level).map(Node::Branch),
        }
    }

    /// Entries.
    pub(crate) fn count(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.count(),
            Node::Packed(packed) => packed.count(),
            Node::Branch(branch) => branch.count(),
        }
    }

    /// Bytes in use after the header.
    pub(crate) fn used(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.used(),
            Node::Packed(packed) => packed.used(),
            Node::Branch(branch) => branch.used(),
        }
    }

    /// Key of a leaf's entry.
    pub(crate) fn key(&self, i: usize) -> Result<&'p [u8], Damage> {
        match self {
            Node::Leaf(leaf) => leaf.key(i),
            Node::Packed(packed) => packed.item(i),
            Node::Branch(_) => Err(Damage("expected a leaf page")),
        }
    }

    /// Bytes of its prefix.
    pub(crate) fn prefix_len(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.prefix().len(),
            Node::Packed(_) => 0,
            Node::Branch(branch) => branch.prefix().len(),
        }
    }

    /// Bytes that all entries take, wherever they lie.
    pub(crate) fn size(&self, align: usize) -> Result<usize, Damage> {
        match self {
            Node::Leaf(leaf) => leaf::used(leaf, align),
            _ => Ok(self.used()),
        }
    }

    /// Bytes that an entry takes, wherever it lies.
    pub(crate) fn entry_size(&self, i: usize, align: usize) -> Result<usize, Damage> {
        match self {
            Node::Leaf(leaf) => leaf::entry_footprint(leaf, i, align),
            Node::Packed(packed) => packed.entry_size(i),
            Node::Branch(branch) => branch.entry_size(i),
        }
    }
}

/// What the pages of a tree have in common, and what separates two of them.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'r> {
    pub(crate) order: &'r Order,
    pub(crate) align: usize,
    /// The separator of the right page in its parent; leaves do without.
    pub(crate) between: &'r [u8],
}

impl<'r> Rules<'r> {
    /// Those of leaves.
    #[inline(always)]
    pub(crate) fn of_leaves(order: &'r Order, align: usize) -> Rules<'r> {
        Rules { order, align, between: &[] }
    }
}

/// An entry that is to come into one of two leaves.
#[derive(Clone, Copy)]
pub(crate) struct New<'k> {
    pub(crate) key: &'k [u8],
    /// Bytes that it takes.
    pub(crate) size: usize,
    /// Its place in the row.
    pub(crate) index: usize,
}

/// Where a row is cut.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// Entries before it.
    pub(crate) at: usize,
    /// The same without the new one.
    pub(crate) keep: usize,
}

/// The entries of two neighbours, and perhaps a new one among them.
pub(crate) struct Row<'p> {
    left: Node<'p>,
    right: Node<'p>,
    rules: Rules<'p>,
    new: Option<New<'p>>,
    /// Bytes of prefix that both pages share, if they are branches: separators are stored without.
    shared: usize,
}

impl<'p> Row<'p> {
    pub(crate) fn new(
        left: Node<'p>,
        right: Node<'p>,
        rules: Rules<'p>,
        new: Option<New<'p>>,
    ) -> Row<'p> {
        let shared = match (left, right) {
            (Node::Branch(left), Node::Branch(right)) => common_len(left.prefix(), right.prefix()),
            _ => 0,
        };
        Row { left, right, rules, new, shared }
    }

    /// Where the row is cut now. A new entry between the pages counts for the right one.
    fn cut_now(&self) -> usize {
        let count = self.left.count();
        count + usize::from(self.new.is_some_and(|new| new.index < count))
    }

    fn len(&self) -> usize {
        self.left.count() + self.right.count() + usize::from(self.new.is_some())
    }

    /// A place in the row, the new entry not counted.
    fn without_new(&self, i: usize) -> usize {
        i - usize::from(self.new.is_some_and(|new| new.index < i))
    }

    /// The page that has an entry, and its index there; the new one is in none.
    fn find(&self, i: usize) -> (&Node<'p>, usize) {
        let i = self.without_new(i);
        match i.checked_sub(self.left.count()) {
            None => (&self.left, i),
            Some(i) => (&self.right, i),
        }
    }

    fn is_first_of_right(&self, i: usize) -> bool {
        self.without_new(i) == self.left.count()
    }

    /// Bytes that an entry takes.
    #[inline]
    fn entry_size(&self, i: usize) -> Result<usize, Damage> {
        if let Some(new) = self.new.filter(|new| new.index == i) {
            return Ok(new.size);
        }
        match self.find(i) {
            (Node::Branch(branch), at) => {
                let size = branch.size_after(at, self.shared)?;
                let (between, custom) = (self.rules.between.len(), self.rules.order.is_custom());
                let first = self.is_first_of_right(i);
                Ok(size + if first { heap_need(between, self.shared, custom) } else { 0 })
            }
            (node, at) => node.entry_size(at, self.rules.align),
        }
    }

    /// Bytes on the left and on the right, as the row is cut now.
    fn sizes(&self) -> Result<(usize, usize), Damage> {
        if matches!(self.left, Node::Branch(_)) {
            let sum = |from, to| (from..to).try_fold(0, |sum, i| Ok(sum + self.entry_size(i)?));
            let cut = self.left.count();
            return Ok((self.shared + sum(0, cut)?, self.shared + sum(cut, self.len())?));
        }
        let (mut left, mut right) =
            (self.left.size(self.rules.align)?, self.right.size(self.rules.align)?);
        match self.new {
            Some(new) if new.index < self.left.count() => left += new.size,
            Some(new) => right += new.size,
            None => {}
        }
        Ok((left, right))
    }

    /// The cut that leaves both pages as equally full as can be; none where the fuller one would have
    /// more bytes than `capacity`.
    pub(crate) fn even(&self, capacity: usize) -> Result<Option<Cut>, Damage> {
        let mut cut = self.cut_now();
        let (mut left, mut right) = self.sizes()?;
        // An entry moves to the emptier side as long as it is no larger than the difference: so the
        // larger of both sums does not grow.
        while left > right && cut > 0 {
            let size = self.entry_size(cut - 1)?;
            if size > left - right {
                break;
            }
            (cut, left, right) = (cut - 1, left - size, right + size);
        }
        while right > left && cut < self.len() {
            let size = self.entry_size(cut)?;
            if size >= right - left {
                break;
            }
            (cut, left, right) = (cut + 1, left + size, right - size);
        }
        Ok((left.max(right) <= capacity).then(|| self.cut_at(cut)))
    }

    /// The cut that gives the left page as much as it can have, up to so many bytes; none where that
    /// is everything.
    pub(crate) fn filled(&self, room: usize) -> Result<Option<Cut>, Damage> {
        let mut cut = self.cut_now();
        let (mut left, right) = self.sizes()?;
        if left + right - self.shared <= room {
            return Ok(None);
        }
        while cut < self.len() {
            left += self.entry_size(cut)?;
            if left > room {
                // A branch has two children at least.
                let least = if matches!(self.left, Node::Branch(_)) { 2 } else { 1 };
                return Ok(Some(self.cut_at(cut.min(self.len().saturating_sub(least)))));
            }
            cut += 1;
        }
        Ok(None)
    }

    /// Whether the pages are cut so.
    pub(crate) fn is_cut(&self, cut: Cut) -> bool {
        cut.at == self.cut_now()
    }

    /// The cut before this entry.
    pub(crate) fn cut_at(&self, at: usize) -> Cut {
        Cut { at, keep: self.without_new(at) }
    }

    /// What then separates the pages.
    pub(crate) fn separator(&self, cut: Cut, out: &mut Vec<u8>) -> Result<(), Damage> {
        match self.find(cut.at) {
            (Node::Branch(_), 0) => {
                out.clear();
                out.extend_from_slice(self.rules.between);
                Ok(())
            }
            (Node::Branch(branch), i) => branch.separator(i, out),
            _ => {
                let (before, after) = (self.key(cut.at.wrapping_sub(1))?, self.key(cut.at)?);
                separator(self.rules.order, before, after, out);
                Ok(())
            }
        }
    }

    fn key(&self, i: usize) -> Result<&'p [u8], Damage> {
        match (self.new, self.find(i)) {
            (Some(new), _) if new.index == i => Ok(new.key),
            (_, (node, i)) => node.key(i),
        }
    }
}

const MIXED: Damage = Damage("neighbouring pages are of different kinds");

/// Moves entries between two neighbours until the left one has so many of them. False, and nothing
/// is changed, when they do not fit.
pub(crate) fn shift(
    left: &mut [u8],
    right: &mut [u8],
    keep: usize,
    rules: &Rules<'_>,
) -> Result<bool, Damage> {
    let count = usize::from(header::count(left));
    let (to, from, range, at_end) = match keep.checked_sub(count) {
        None => (right, left, (keep, count), false),
        Some(0) => return Ok(true),
        Some(more) => (left, right, (0, more), true),
    };
    if !take(to, at_end, from, range, rules)? {
        return Ok(false);
    }
    match header::kind(from)? {
        Kind::Leaf => leaf::cut(from, range, rules.order, rules.align)?,
        Kind::Packed => packed::remove_range(from, range.0, range.1)?,
        Kind::Branch => branch::cut(from, range)?,
    }
    Ok(true)
}

/// Adds entries [from, to) of a neighbour, in front or at the end; false, and nothing is changed, when
/// they do not fit.
pub(crate) fn take(
    page: &mut [u8],
    at_end: bool,
    other: &[u8],
    (from, to): (usize, usize),
    rules: &Rules<'_>,
) -> Result<bool, Damage> {
    let at = if at_end { usize::from(header::count(page)) } else { 0 };
    let level = header::level(other);
    if header::level(page) != level || header::kind(page)? != header::kind(other)? {
        return Err(MIXED);
    }
    let range = (from, to);
    let fits = match Node::on_level(other, level)? {
        Node::Leaf(other) => leaf::take(page, at, &other, range, rules)?,
        Node::Packed(other) => packed::take(page, at, &other, range)?,
        Node::Branch(other) => branch::take(page, at_end, &other, range, rules.between)?,
    };
    if fits {
        // What the entries refer to may be dirty.
        let flags = header::flags(page) | header::flags(other);
        header::set_flags(page, flags);
    }
    Ok(fits)
}
