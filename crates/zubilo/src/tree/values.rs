//! The values of one key, where there can be many: one in its record, a small set in its record, or
//! a tree of their own, whose descriptor the record holds.

use crate::error::Result;
use crate::page::{
    Damage, Entry, FLAG_DIRTY_RUNS, Items, NormBuf, Order, Packed, SearchKey, ValueKind, header,
};

use super::lookup::{find_leaf, get_entry};
use super::range::{Bounds, Range};
use super::{Located, Pages, Ref, RunRef, Tree, TreeDesc};

/// The values of a key as its record holds them.
#[derive(Clone, Copy)]
pub(crate) enum Values<'p> {
    One(&'p [u8]),
    Set(Located<Packed<'p>>),
    Tree(TreeDesc),
}

/// The values of an entry, which is in the leaf at `at`. Not for tables' records.
#[inline]
pub(crate) fn values_of<'p, P: Pages<'p>>(
    pages: &P,
    at: Ref,
    entry: &Entry<'p>,
) -> Result<Values<'p>> {
    match entry.kind {
        ValueKind::Inline => Ok(Values::One(entry.value)),
        ValueKind::Run => {
            let run = RunRef::of(at, entry.value)?;
            pages.run(at, &run).map(Values::One)
        }
        ValueKind::Duplicates => Located::new(at, Packed::in_record(entry.value)).map(Values::Set),
        ValueKind::Tree => tree_of(pages, at, entry.value).map(Values::Tree),
    }
}

/// The tree of values whose descriptor is in a record of the leaf at `at`.
pub(crate) fn tree_of<'p, P: Pages<'p>>(pages: &P, at: Ref, value: &[u8]) -> Result<TreeDesc> {
    let desc = *Located::new(at, TreeDesc::from_bytes(value))?;
    // Only a page of this transaction refers to pages that are not written yet; its header says so.
    let dirty = desc.root.slot().is_some();
    // Values have no values: a tree that claims it could lead into itself.
    let nested = desc.options.has_duplicates() || !desc.is_packed();
    if nested || desc.depth == 0 || (dirty && header::flags(pages.page(at)?) & FLAG_DIRTY_RUNS == 0)
    {
        return Err(at.damaged()(Damage("invalid duplicate-tree descriptor")));
    }
    Ok(desc)
}

/// The first value of a set or tree of values.
#[cold]
pub(crate) fn first_value<'p, P: Pages<'p>>(
    pages: &P,
    at: Ref,
    entry: &Entry<'p>,
) -> Result<&'p [u8]> {
    match values_of(pages, at, entry)? {
        Values::One(value) => Ok(value),
        Values::Set(set) => set.item(0),
        Values::Tree(desc) => {
            let mut at = desc.root;
            for level in (1..desc.depth).rev() {
                at = pages.branch(at, level)?.child(0)?;
            }
            pages.leaf_of_kind::<Packed<'p>>(at)?.item(0)
        }
    }
}

/// The last value of a key.
pub(crate) fn last_value<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    key: &[u8],
) -> Result<Option<&'p [u8]>> {
    let found = get_entry(pages, &tree.desc, &tree.order, key)?;
    let Some((at, entry)) = found else { return Ok(None) };
    ValuesIter::new(*pages, at, &entry, &tree.values)?.next_back().transpose()
}

impl<'p> Values<'p> {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Values::One(_) => 1,
            Values::Set(set) => set.count() as u64,
            Values::Tree(desc) => desc.entries,
        }
    }

    /// The stored value that equals `value`.
    pub(crate) fn find<P: Pages<'p>>(
        &self,
        pages: &P,
        order: &Order,
        value: &[u8],
    ) -> Result<Option<&'p [u8]>> {
        let leaf = match self {
            Values::One(own) => return Ok(order.compare(value, own).is_eq().then_some(*own)),
            Values::Set(set) => *set,
            Values::Tree(desc) => {
                let mut buf = NormBuf::default();
                let key = SearchKey::new(order, value, &mut buf);
                let leaf = find_leaf(pages, desc, order, &key)?;
                let Some(leaf) = leaf else { return Ok(None) };
                leaf
            }
        };
        match leaf.position(order, value)? {
            Ok(i) => leaf.item(i).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// Iterator over the values of one key, in order, from both ends.
pub(crate) struct ValuesIter<'p, P: Pages<'p>> {
    /// Values not yet given.
    left: u64,
    at: Ref,
    /// Those that come next, of a set or of a leaf that the front has come to.
    next: Items<'p>,
    inner: Inner<'p, P>,
}

enum Inner<'p, P: Pages<'p>> {
    One(&'p [u8]),
    Set,
    Tree(Box<Range<'p, P, Packed<'p>>>),
}

impl<'p, P: Pages<'p>> ValuesIter<'p, P> {
    /// The values of an entry.
    pub(crate) fn new(pages: P, at: Ref, entry: &Entry<'p>, order: &Order) -> Result<Self> {
        let values = values_of(&pages, at, entry)?;
        let (left, mut next) = (values.count(), Items::none());
        let inner = match values {
            Values::One(value) => Inner::One(value),
            Values::Set(set) => {
                next = Items::new(*set, 0..set.count());
                Inner::Set
            }
            Values::Tree(desc) => {
                Inner::Tree(Box::new(Range::new(pages, &desc, order.clone(), Bounds::ALL, false)))
            }
        };
        Ok(ValuesIter { left, at, next, inner })
    }

    /// Without values.
    pub(crate) fn empty() -> Self {
        ValuesIter { left: 0, at: Ref::NONE, next: Items::none(), inner: Inner::One(&[]) }
    }

    /// How many are still to come.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Result<&'p [u8]>> {
        self.left = self.left.checked_sub(1)?;
        match self.next.next() {
            Some(value) => Some(Ok(value)),
            None => self.next_slowly(),
        }
    }

    /// The only value, or the first one of the next leaf.
    #[inline(never)]
    fn next_slowly(&mut self) -> Option<Result<&'p [u8]>> {
        let value = match &mut self.inner {
            Inner::One(value) => Ok(Some(*value)),
            Inner::Tree(range) if self.next.len() == 0 => range.take().map(|taken| {
                let (leaf, taken) = taken?;
                self.next = Items::new(*leaf, taken);
                self.next.next()
            }),
            Inner::Set | Inner::Tree(_) => Ok(None),
        };
        self.given(value)
    }

    pub(crate) fn next_back(&mut self) -> Option<Result<&'p [u8]>> {
        self.left = self.left.checked_sub(1)?;
        let value = match &mut self.inner {
            Inner::One(value) => Ok(Some(*value)),
            Inner::Set => Ok(self.next.next_back()),
            Inner::Tree(range) => {
                range.give_back(self.next.len());
                self.next = Items::none();
                range.next_back_by(|leaf, i| leaf.item(i))
            }
        };
        self.given(value)
    }

    /// Ends after an error; a tree with fewer values than its descriptor says is damaged.
    fn given(&mut self, value: Result<Option<&'p [u8]>>) -> Option<Result<&'p [u8]>> {
        let lost =
            || self.at.damaged()(Damage("a tree of values with fewer values than it counts"));
        let value = value.and_then(|v| v.ok_or_else(lost));
        if value.is_err() {
            self.left = 0;
        }
        Some(value)
    }
}
