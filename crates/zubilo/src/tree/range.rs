//! Iteration over a range of keys from both ends.
//!
//! Forwards it hands out runs, whole leaves' worth of entries, so that a scan spends its time in
//! the caller's loop. The bounds are turned into positions inside leaves once a leaf, so a step is an index and a
//! compare; keys are not compared one by one.

use std::ops::Bound;

use crate::error::{Error, Result};
use crate::page::{Entry, Leaf, NormBuf, Order, SearchKey};

use super::cursor::Cursor;
use super::lookup::value_of;
use super::{Pages, Ref, TreeDesc};

/// A key and its value.
pub(crate) type Pair<'p> = (&'p [u8], &'p [u8]);

/// Both bounds of a range, owned.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) start: Bound<Vec<u8>>,
    pub(crate) end: Bound<Vec<u8>>,
}

impl Bounds {
    /// True when no key can lie between the bounds.
    pub(super) fn is_empty(&self, order: &Order) -> bool {
        use Bound::{Excluded, Included, Unbounded};
        match (&self.start, &self.end) {
            (Included(a), Included(b)) => order.compare(a, b).is_gt(),
            (Included(a) | Excluded(a), Excluded(b)) | (Excluded(a), Included(b)) => {
                order.compare(a, b).is_ge()
            }
            (Unbounded, _) | (_, Unbounded) => false,
        }
    }
}

impl Bounds {
    /// Index of the first entry of `leaf` behind the range's end.
    fn high_in(&self, order: &Order, at: Ref, leaf: &Leaf<'_>) -> Result<usize> {
        match &self.end {
            Bound::Unbounded => Ok(leaf.count()),
            Bound::Included(key) => index_of(order, at, leaf, key, true),
            Bound::Excluded(key) => index_of(order, at, leaf, key, false),
        }
    }

    /// Index of the first entry of `leaf` inside the range's start.
    fn low_in(&self, order: &Order, at: Ref, leaf: &Leaf<'_>) -> Result<usize> {
        match &self.start {
            Bound::Unbounded => Ok(0),
            Bound::Included(key) => index_of(order, at, leaf, key, false),
            Bound::Excluded(key) => index_of(order, at, leaf, key, true),
        }
    }
}

fn index_of(order: &Order, at: Ref, leaf: &Leaf<'_>, key: &[u8], behind: bool) -> Result<usize> {
    let mut buf = NormBuf::default();
    let key = SearchKey::new(order, key, &mut buf);
    Ok(match leaf.search(order, &key).map_err(at.damaged())? {
        Ok(i) => i + usize::from(behind),
        Err(i) => i,
    })
}

/// One end of the range: a cursor, and in its leaf the entries [low, high) still to come.
struct Side<'p, P: Pages<'p>> {
    cursor: Cursor<'p, P>,
    at: Ref,
    leaf: Leaf<'p>,
    low: usize,
    high: usize,
    /// The range ends in this leaf.
    final_leaf: bool,
}

/// Neighbouring entries of a leaf.
#[derive(Clone, Copy)]
pub(crate) struct Run<'p> {
    pub(crate) at: Ref,
    pub(crate) page: &'p [u8],
    pub(crate) offsets: &'p [[u8; 2]],
}

impl<'p, P: Pages<'p>> Side<'p, P> {
    /// Takes over the leaf that the cursor has come to from the left.
    fn enter_forward(&mut self, bounds: &Bounds, order: &Order) -> Result<()> {
        if let Some((at, leaf, index)) = self.cursor.position() {
            let high = bounds.high_in(order, at, &leaf)?;
            (self.at, self.leaf, self.low, self.high) = (at, leaf, index, high);
            self.final_leaf = high < leaf.count();
        }
        Ok(())
    }
}

/// A range from both ends.
pub(crate) struct Range<'p, P: Pages<'p>> {
    pages: P,
    desc: TreeDesc,
    order: Order,
    bounds: Bounds,
    front: Option<Side<'p, P>>,
    back: Option<Side<'p, P>>,
    started: (bool, bool),
    done: bool,
    warm: Warm,
    /// To be told before the end.
    failure: Option<Error>,
}

/// Entries of the first run: many ranges are asked for one or two only.
const FIRST_RUN: usize = 2;

/// Whether more than the first entries were asked for, so that fetching ahead is worth it.
#[derive(Clone, Copy)]
enum Warm {
    Untouched,
    Begun,
    Running,
}

impl<'p, P: Pages<'p>> Range<'p, P> {
    pub(crate) fn new(pages: P, desc: TreeDesc, order: Order, bounds: Bounds) -> Range<'p, P> {
        let done = desc.depth == 0 || bounds.is_empty(&order);
        Range {
            pages,
            desc,
            order,
            bounds,
            front: None,
            back: None,
            started: (false, false),
            done,
            warm: Warm::Untouched,
            failure: None,
        }
    }

    /// A range that gives nothing but an error.
    pub(crate) fn failed(pages: P, desc: TreeDesc, order: Order, error: Error) -> Range<'p, P> {
        let bounds = Bounds { start: Bound::Unbounded, end: Bound::Unbounded };
        let range = Range::new(pages, desc, order, bounds);
        Range { done: true, failure: Some(error), ..range }
    }

    fn front_side(&self, cursor: Cursor<'p, P>) -> Result<Option<Side<'p, P>>> {
        let Some((at, leaf, _)) = cursor.position() else { return Ok(None) };
        let mut side = Side { cursor, at, leaf, low: 0, high: 0, final_leaf: false };
        side.enter_forward(&self.bounds, &self.order)?;
        Ok(Some(side))
    }

    fn start_front(&mut self) -> Result<()> {
        self.started.0 = true;
        let mut cursor = Cursor::new(self.pages, self.desc, self.order.clone());
        match &self.bounds.start {
            Bound::Unbounded => cursor.first()?,
            Bound::Included(key) => drop(cursor.seek(key)?),
            Bound::Excluded(key) => {
                if cursor.seek(key)? {
                    cursor.next()?;
                }
            }
        }
        self.front = self.front_side(cursor)?;
        Ok(())
    }

    fn start_back(&mut self) -> Result<()> {
        self.started.1 = true;
        let mut cursor = Cursor::new(self.pages, self.desc, self.order.clone());
        match &self.bounds.end {
            Bound::Unbounded => cursor.last()?,
            Bound::Included(key) | Bound::Excluded(key) => drop(cursor.seek_gap(key)?),
        }
        if let Some((at, leaf, _)) = cursor.position()
            && self.bounds.high_in(&self.order, at, &leaf)? == 0
        {
            cursor.prev_leaf()?;
        }
        self.back = self.back_side(cursor)?;
        Ok(())
    }

    fn back_side(&self, cursor: Cursor<'p, P>) -> Result<Option<Side<'p, P>>> {
        let Some((at, leaf, _)) = cursor.position() else { return Ok(None) };
        let high = self.bounds.high_in(&self.order, at, &leaf)?;
        let low = self.bounds.low_in(&self.order, at, &leaf)?;
        Ok(Some(Side { cursor, at, leaf, low, high, final_leaf: low > 0 }))
    }

    #[inline(always)]
    fn pair(&self, at: Ref, leaf: &Leaf<'p>, i: usize) -> Result<Pair<'p>> {
        let entry = leaf.entry(i).map_err(at.damaged())?;
        Ok((entry.key, value_of(&self.pages, at, &entry)?))
    }

    /// All entries that the front has in its leaf, for the caller to go through by itself; none
    /// at the end. Before anything else is asked of the range, what the caller did not use must
    /// be given back.
    pub(crate) fn take_run(&mut self) -> Result<Option<Run<'p>>> {
        while !self.done {
            if let Some(side) = &mut self.front
                && side.low < side.high
            {
                let mut end = side.high;
                match self.warm {
                    Warm::Untouched if end - side.low > FIRST_RUN => {
                        end = side.low + FIRST_RUN;
                        self.warm = Warm::Begun;
                    }
                    Warm::Begun => {
                        side.cursor.prefetch_around();
                        self.warm = Warm::Running;
                    }
                    _ => {}
                }
                let offsets = side.leaf.offsets().get(side.low..end).unwrap_or_default();
                side.low = end;
                return Ok(Some(Run { at: side.at, page: side.leaf.page(), offsets }));
            }
            match self.advance_front() {
                Ok(true) => {}
                Ok(false) => self.done = true,
                Err(error) => {
                    self.done = true;
                    return Err(error);
                }
            }
        }
        self.failure.take().map_or(Ok(None), Err)
    }

    /// Takes back the last `rest` entries of the run that was taken.
    pub(crate) fn give_back(&mut self, rest: usize) {
        if let Some(side) = &mut self.front {
            side.low = side.low.saturating_sub(rest);
        }
        self.raise_back();
    }

    /// Ends the range, after an error outside.
    pub(crate) fn end(&mut self) {
        self.done = true;
    }

    /// The value of an entry of a run.
    pub(crate) fn value(&self, at: Ref, entry: &Entry<'p>) -> Result<&'p [u8]> {
        value_of(&self.pages, at, entry)
    }

    /// To the next leaf of the front; false at the end of the range.
    #[cold]
    fn advance_front(&mut self) -> Result<bool> {
        if !self.started.0 {
            self.start_front()?;
        } else {
            let Some(side) = &mut self.front else { return Ok(false) };
            let met = self.back.as_ref().is_some_and(|b| b.at == side.at);
            if side.final_leaf || met || !side.cursor.next_leaf()? {
                self.front = None;
                return Ok(false);
            }
            // In place: a side is too large to be moved for each leaf.
            side.enter_forward(&self.bounds, &self.order)?;
        }
        self.meet();
        Ok(self.front.is_some())
    }

    fn try_next_back(&mut self) -> Result<Option<Pair<'p>>> {
        loop {
            if let Some(side) = &mut self.back
                && side.low < side.high
            {
                side.high -= 1;
                let (at, leaf, i) = (side.at, side.leaf, side.high);
                self.lower_front(at, i);
                return self.pair(at, &leaf, i).map(Some);
            }
            if !self.advance_back()? {
                return Ok(None);
            }
        }
    }

    #[cold]
    fn advance_back(&mut self) -> Result<bool> {
        if !self.started.1 {
            self.start_back()?;
        } else {
            let Some(mut side) = self.back.take() else { return Ok(false) };
            let met = self.front.as_ref().is_some_and(|f| f.at == side.at);
            if side.final_leaf || met || !side.cursor.prev_leaf()? {
                return Ok(false);
            }
            self.back = self.back_side(side.cursor)?;
        }
        self.meet();
        Ok(self.back.is_some())
    }

    /// Both ends in one leaf share what is left there.
    fn meet(&mut self) {
        if let (Some(front), Some(back)) = (&mut self.front, &mut self.back)
            && front.at == back.at
        {
            back.low = front.low;
            front.high = front.high.min(back.high);
        }
    }

    fn lower_front(&mut self, at: Ref, high: usize) {
        if let Some(front) = &mut self.front
            && front.at == at
        {
            front.high = front.high.min(high);
        }
    }

    fn raise_back(&mut self) {
        if let (Some(front), Some(back)) = (&self.front, &mut self.back)
            && front.at == back.at
        {
            back.low = front.low;
        }
    }
}

impl<'p, P: Pages<'p>> Range<'p, P> {
    /// The last pair not yet given.
    pub(crate) fn next_back(&mut self) -> Option<Result<Pair<'p>>> {
        if self.done {
            return self.failure.take().map(Err);
        }
        let item = self.try_next_back().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}
