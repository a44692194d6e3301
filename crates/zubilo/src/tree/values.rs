//! The values of one key, where there can be many: one in its record, a small set in its record, or
//! a tree of their own, whose descriptor the record holds.

use crate::error::Result;
use crate::page::{Damage, Entry, FLAG_DIRTY_RUNS, Items, LeafPage, Order, Set, ValueKind, header};

use super::cursor::Cursor;
use super::lookup::{branch_at, descend_items, get_entry};
use super::{Pages, Path, Ref, RunRef, Tree, TreeDesc};

/// The values of a key as its record holds them.
#[derive(Clone, Copy)]
pub(crate) enum Values<'p> {
    One(&'p [u8]),
    Set(Set<'p>),
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
            let run = RunRef::load(entry.value).map_err(at.damaged())?;
            pages.run(at, &run).map(Values::One)
        }
        ValueKind::Duplicates => Set::new(entry.value).map_err(at.damaged()).map(Values::Set),
        ValueKind::Tree => tree_of(pages, at, entry.value).map(Values::Tree),
    }
}

/// The tree whose descriptor stands in a record of the leaf at `at`.
pub(crate) fn tree_of<'p, P: Pages<'p>>(pages: &P, at: Ref, value: &[u8]) -> Result<TreeDesc> {
    let desc = TreeDesc::from_bytes(value).map_err(at.damaged())?;
    // Only a page of this transaction refers to pages that are not written yet; it bears a mark.
    let dirty = desc.root.slot().is_some();
    // Values have no values: a tree that claims it could lead into itself.
    let nested = desc.options.has_duplicates();
    if nested || desc.depth == 0 || (dirty && header::flags(pages.page(at)?) & FLAG_DIRTY_RUNS == 0)
    {
        return Err(at.damaged()(Damage("a tree of values that cannot be")));
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
        Values::Set(set) => set.item(0).map_err(at.damaged()),
        Values::Tree(desc) => {
            let mut at = desc.root;
            for level in (1..desc.depth).rev() {
                at = Ref(branch_at(pages, at, level)?.child(0).map_err(at.damaged())?);
            }
            let leaf = Items::parse(pages.page(at)?).map_err(at.damaged())?;
            leaf.key(0).map_err(at.damaged())
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
        at: Ref,
        order: &Order,
        value: &[u8],
    ) -> Result<Option<&'p [u8]>> {
        match self {
            Values::One(own) => Ok(order.compare(value, own).is_eq().then_some(*own)),
            Values::Set(set) => match set.search(order, value).map_err(at.damaged())? {
                Ok(i) => set.item(i).map_err(at.damaged()).map(Some),
                Err(_) => Ok(None),
            },
            Values::Tree(desc) => {
                let mut path = Path::default();
                if !descend_items(pages, desc, order, value, &mut path)? {
                    return Ok(None);
                }
                Cursor::<P, Items<'p>>::resume(*pages, desc, order.clone(), path)?.key()
            }
        }
    }
}

/// Iterator over the values of one key, in order, from both ends.
pub(crate) struct ValuesIter<'p, P: Pages<'p>> {
    /// Values not yet given.
    left: u64,
    at: Ref,
    inner: Inner<'p, P>,
}

enum Inner<'p, P: Pages<'p>> {
    One(&'p [u8]),
    /// A set and the index of the next value.
    Set(Set<'p>, usize),
    Tree(Box<Ends<'p, P>>),
}

/// Both ends in a tree of values.
struct Ends<'p, P: Pages<'p>> {
    pages: P,
    desc: TreeDesc,
    order: Order,
    front: Option<End<'p, P>>,
    back: Option<End<'p, P>>,
}

/// One end: a cursor and, of its leaf, the values [low, high) to come.
struct End<'p, P: Pages<'p>> {
    cursor: Cursor<'p, P, Items<'p>>,
    leaf: Items<'p>,
    at: Ref,
    low: usize,
    high: usize,
}

impl<'p, P: Pages<'p>> End<'p, P> {
    fn at(cursor: Cursor<'p, P, Items<'p>>) -> Option<End<'p, P>> {
        let (at, leaf, _) = cursor.position()?;
        Some(End { cursor, leaf, at, low: 0, high: leaf.count() })
    }
}

impl<'p, P: Pages<'p>> Ends<'p, P> {
    fn cursor(&self) -> Cursor<'p, P, Items<'p>> {
        Cursor::new(self.pages, &self.desc, self.order.clone())
    }

    #[inline]
    fn next(&mut self) -> Result<Option<&'p [u8]>> {
        if let Some(end) = &mut self.front
            && end.low < end.high
        {
            end.low += 1;
            return end.leaf.key(end.low - 1).map_err(end.at.damaged()).map(Some);
        }
        self.next_leaf()
    }

    /// The first value of the next leaf.
    #[cold]
    fn next_leaf(&mut self) -> Result<Option<&'p [u8]>> {
        let cursor = match self.front.take() {
            None => {
                let mut cursor = self.cursor();
                cursor.first()?;
                cursor
            }
            Some(mut end) => {
                end.cursor.next_leaf()?;
                end.cursor
            }
        };
        self.front = End::at(cursor);
        let Some(end) = &mut self.front else { return Ok(None) };
        end.low = 1;
        end.leaf.key(0).map_err(end.at.damaged()).map(Some)
    }

    fn next_back(&mut self) -> Result<Option<&'p [u8]>> {
        if let Some(end) = &mut self.back
            && end.low < end.high
        {
            end.high -= 1;
            return end.leaf.key(end.high).map_err(end.at.damaged()).map(Some);
        }
        let cursor = match self.back.take() {
            None => {
                let mut cursor = self.cursor();
                cursor.last()?;
                cursor
            }
            Some(mut end) => {
                end.cursor.prev_leaf()?;
                end.cursor
            }
        };
        self.back = End::at(cursor);
        let Some(end) = &mut self.back else { return Ok(None) };
        end.high = end.high.saturating_sub(1);
        end.leaf.key(end.high).map_err(end.at.damaged()).map(Some)
    }
}

impl<'p, P: Pages<'p>> ValuesIter<'p, P> {
    /// The values of an entry.
    pub(crate) fn new(pages: P, at: Ref, entry: &Entry<'p>, order: &Order) -> Result<Self> {
        let values = values_of(&pages, at, entry)?;
        let left = values.count();
        let inner = match values {
            Values::One(value) => Inner::One(value),
            Values::Set(set) => Inner::Set(set, 0),
            Values::Tree(desc) => {
                let order = order.clone();
                Inner::Tree(Box::new(Ends { pages, desc, order, front: None, back: None }))
            }
        };
        Ok(ValuesIter { left, at, inner })
    }

    /// Without values.
    pub(crate) fn empty() -> Self {
        ValuesIter { left: 0, at: Ref::NONE, inner: Inner::One(&[]) }
    }

    /// How many are still to come.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Result<&'p [u8]>> {
        self.left = self.left.checked_sub(1)?;
        let value = match &mut self.inner {
            Inner::One(value) => Ok(Some(*value)),
            Inner::Set(set, next) => {
                *next += 1;
                set.item(*next - 1).map_err(self.at.damaged()).map(Some)
            }
            Inner::Tree(ends) => ends.next(),
        };
        self.checked(value)
    }

    pub(crate) fn next_back(&mut self) -> Option<Result<&'p [u8]>> {
        self.left = self.left.checked_sub(1)?;
        let value = match &mut self.inner {
            Inner::One(value) => Ok(Some(*value)),
            Inner::Set(set, next) => {
                set.item(*next + self.left as usize).map_err(self.at.damaged()).map(Some)
            }
            Inner::Tree(ends) => ends.next_back(),
        };
        self.checked(value)
    }

    /// Ends after an error; a tree with fewer values than its descriptor says is damaged.
    #[inline]
    fn checked(&mut self, value: Result<Option<&'p [u8]>>) -> Option<Result<&'p [u8]>> {
        let lost = || self.at.damaged()(Damage("a tree of values with fewer than it counts"));
        let value = value.and_then(|v| v.ok_or_else(lost));
        if value.is_err() {
            self.left = 0;
        }
        Some(value)
    }
}
