//! Iteration over a range of keys from both ends.
//!
//! Forwards it hands out runs, whole leaves' worth of entries, so that a scan spends its time in
//! the caller's loop. The bounds are turned into positions inside leaves once a leaf, so a step is an index and a
//! compare; keys are not compared one by one.

use std::ops::Bound;

use crate::error::Result;
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
    fn is_empty(&self, order: &Order) -> bool {
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
}

impl<'p, P: Pages<'p>> Range<'p, P> {
    pub(crate) fn new(pages: P, desc: TreeDesc, order: Order, bounds: Bounds) -> Range<'p, P> {
        let done = desc.depth == 0 || bounds.is_empty(&order);
        Range { pages, desc, order, bounds, front: None, back: None, started: (false, false), done }
    }

    /// Index of the first entry of `leaf` behind the range's end.
    fn high_in(&self, at: Ref, leaf: &Leaf<'p>) -> Result<usize> {
        match &self.bounds.end {
            Bound::Unbounded => Ok(leaf.count()),
            Bound::Included(key) => self.index_of(at, leaf, key, true),
            Bound::Excluded(key) => self.index_of(at, leaf, key, false),
        }
    }

    /// Index of the first entry of `leaf` inside the range's start.
    fn low_in(&self, at: Ref, leaf: &Leaf<'p>) -> Result<usize> {
        match &self.bounds.start {
            Bound::Unbounded => Ok(0),
            Bound::Included(key) => self.index_of(at, leaf, key, false),
            Bound::Excluded(key) => self.index_of(at, leaf, key, true),
        }
    }

    fn index_of(&self, at: Ref, leaf: &Leaf<'p>, key: &[u8], behind: bool) -> Result<usize> {
        let mut buf = NormBuf::default();
        let key = SearchKey::new(&self.order, key, &mut buf);
        Ok(match leaf.search(&self.order, &key).map_err(at.damaged())? {
            Ok(i) => i + usize::from(behind),
            Err(i) => i,
        })
    }

    fn side(&self, cursor: Cursor<'p, P>) -> Result<Option<Side<'p, P>>> {
        let Some((at, leaf, index)) = cursor.position() else { return Ok(None) };
        let high = self.high_in(at, &leaf)?;
        let final_leaf = high < leaf.count();
        Ok(Some(Side { cursor, at, leaf, low: index, high, final_leaf }))
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
        self.front = self.side(cursor)?;
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
            && self.high_in(at, &leaf)? == 0
        {
            cursor.prev_leaf()?;
        }
        self.back = self.back_side(cursor)?;
        Ok(())
    }

    fn back_side(&self, cursor: Cursor<'p, P>) -> Result<Option<Side<'p, P>>> {
        let Some((at, leaf, _)) = cursor.position() else { return Ok(None) };
        let high = self.high_in(at, &leaf)?;
        let low = self.low_in(at, &leaf)?;
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
    #[inline]
    pub(crate) fn take_run(&mut self) -> Result<Option<Run<'p>>> {
        while !self.done {
            if let Some(side) = &mut self.front
                && side.low < side.high
            {
                let offsets = side.leaf.offsets().get(side.low..side.high).unwrap_or_default();
                side.low = side.high;
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
        Ok(None)
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
            let Some(mut side) = self.front.take() else { return Ok(false) };
            let met = self.back.as_ref().is_some_and(|b| b.at == side.at);
            if side.final_leaf || met || !side.cursor.next_leaf()? {
                return Ok(false);
            }
            self.front = self.side(side.cursor)?;
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
            return None;
        }
        let item = self.try_next_back().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}
