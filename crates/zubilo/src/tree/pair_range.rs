//! Iteration over the pairs of a table with many values under a key, over a range of keys, from
//! both ends.

use std::ops::Bound;

use crate::error::Result;
use crate::page::Order;

use super::cursor::Cursor;
use super::range::{Bounds, Pair};
use super::values::ValuesIter;
use super::{Pages, Ref, Tree, TreeDesc};

/// One end of the range: the record it has come to and the values of it still to come.
struct End<'p, P: Pages<'p>> {
    keys: Cursor<'p, P>,
    /// Leaf and index of the record.
    place: (Ref, usize),
    key: &'p [u8],
    values: ValuesIter<'p, P>,
}

/// The pairs of a range of keys.
pub(crate) struct PairRange<'p, P: Pages<'p>> {
    pages: P,
    desc: TreeDesc,
    order: Order,
    value_order: Order,
    bounds: Bounds,
    front: Option<End<'p, P>>,
    back: Option<End<'p, P>>,
    /// Both ends have come to one record, whose values the end named has.
    met: Option<Side>,
    done: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Front,
    Back,
}

impl<'p, P: Pages<'p>> PairRange<'p, P> {
    pub(crate) fn new(pages: P, tree: &Tree, bounds: Bounds) -> PairRange<'p, P> {
        let done = tree.desc.depth == 0 || bounds.is_empty(&tree.order);
        PairRange {
            pages,
            desc: tree.desc,
            order: tree.order.clone(),
            value_order: tree.values.clone(),
            bounds,
            front: None,
            back: None,
            met: None,
            done,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Result<Pair<'p>>> {
        self.step(Side::Front)
    }

    pub(crate) fn next_back(&mut self) -> Option<Result<Pair<'p>>> {
        self.step(Side::Back)
    }

    fn end_mut(&mut self, side: Side) -> Option<&mut End<'p, P>> {
        match side {
            Side::Front => self.front.as_mut(),
            Side::Back => self.back.as_mut(),
        }
    }

    #[inline]
    fn step(&mut self, side: Side) -> Option<Result<Pair<'p>>> {
        while !self.done {
            let holder = self.met.unwrap_or(side);
            if let Some(end) = self.end_mut(holder) {
                let value = match side {
                    Side::Front => end.values.next(),
                    Side::Back => end.values.next_back(),
                };
                let key = end.key;
                if let Some(value) = value {
                    self.done = value.is_err();
                    return Some(value.map(|value| (key, value)));
                }
            }
            match self.advance(side) {
                Ok(more) => self.done = !more,
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// To the next record on one side; false when there is none left.
    fn advance(&mut self, side: Side) -> Result<bool> {
        if self.met.is_some() {
            return Ok(false);
        }
        let end = match side {
            Side::Front => self.front.take(),
            Side::Back => self.back.take(),
        };
        let keys = match (end, side) {
            (None, Side::Front) => self.first()?,
            (None, Side::Back) => self.last()?,
            (Some(mut end), Side::Front) => {
                end.keys.next()?;
                end.keys
            }
            (Some(mut end), Side::Back) => {
                end.keys.prev()?;
                end.keys
            }
        };
        let (Some((at, entry)), Some((_, _, i))) = (keys.entry()?, keys.position()) else {
            return Ok(false);
        };
        if !self.is_inside(entry.key) {
            return Ok(false);
        }
        let values = ValuesIter::new(self.pages, at, &entry, &self.value_order)?;
        let end = Some(End { keys, place: (at, i), key: entry.key, values });
        let other = match side {
            Side::Front => {
                self.front = end;
                Side::Back
            }
            Side::Back => {
                self.back = end;
                Side::Front
            }
        };
        if self.end_mut(other).is_some_and(|o| o.place == (at, i)) {
            self.met = Some(other);
        }
        Ok(true)
    }

    fn is_inside(&self, key: &[u8]) -> bool {
        let order = &self.order;
        let behind_start = match &self.bounds.start {
            Bound::Unbounded => true,
            Bound::Included(start) => order.compare(start, key).is_le(),
            Bound::Excluded(start) => order.compare(start, key).is_lt(),
        };
        behind_start
            && match &self.bounds.end {
                Bound::Unbounded => true,
                Bound::Included(end) => order.compare(end, key).is_ge(),
                Bound::Excluded(end) => order.compare(end, key).is_gt(),
            }
    }

    /// A cursor on the first record of the range.
    fn first(&self) -> Result<Cursor<'p, P>> {
        let mut cursor = Cursor::new(self.pages, &self.desc, self.order.clone());
        match &self.bounds.start {
            Bound::Unbounded => cursor.first()?,
            Bound::Included(key) => drop(cursor.seek(key)?),
            Bound::Excluded(key) => {
                if cursor.seek(key)? {
                    cursor.next()?;
                }
            }
        }
        Ok(cursor)
    }

    /// A cursor on the last record of the range.
    fn last(&self) -> Result<Cursor<'p, P>> {
        let mut cursor = Cursor::new(self.pages, &self.desc, self.order.clone());
        let (key, stay) = match &self.bounds.end {
            Bound::Unbounded => (None, false),
            Bound::Included(key) => (Some(key), true),
            Bound::Excluded(key) => (Some(key), false),
        };
        let Some(key) = key else {
            cursor.last()?;
            return Ok(cursor);
        };
        let found = cursor.seek(key)?;
        if cursor.position().is_none() {
            cursor.last()?;
        } else if !(found && stay) {
            cursor.prev()?;
        }
        Ok(cursor)
    }
}
