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

/// Keys up to this length are copied without an allocation.
const SHORT: usize = 46;

/// A copy of a key.
#[derive(Clone)]
pub(crate) enum OwnedKey {
    /// So many bytes of an array.
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

impl From<&[u8]> for OwnedKey {
    #[inline]
    fn from(key: &[u8]) -> OwnedKey {
        let mut bytes = [0; SHORT];
        match bytes.get_mut(..key.len()) {
            Some(place) => {
                place.copy_from_slice(key);
                OwnedKey::Short(key.len() as u8, bytes)
            }
            None => OwnedKey::Long(key.into()),
        }
    }
}

impl std::ops::Deref for OwnedKey {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            OwnedKey::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            OwnedKey::Long(key) => key,
        }
    }
}

/// Both bounds of a range, owned.
#[derive(Clone)]
pub(crate) struct Bounds {
    pub(crate) start: Bound<OwnedKey>,
    pub(crate) end: Bound<OwnedKey>,
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
    let found = match order.as_it_is(key) {
        Some(key) => leaf.search(order, &key),
        None => leaf.search(order, &SearchKey::new(order, key, &mut NormBuf::default())),
    };
    Ok(match found.map_err(at.damaged())? {
        Ok(i) => i + usize::from(behind),
        Err(i) => i,
    })
}

/// One end of the range: a cursor, and in its leaf the entries [low, high) still to come.
struct Side<'p, P: Pages<'p>> {
    cursor: Cursor<'p, P>,
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
    #[inline(always)]
    fn new(cursor: Cursor<'p, P>) -> Side<'p, P> {
        Side { cursor, low: 0, high: 0, final_leaf: false }
    }

    /// The leaf; none before the start and at the end.
    #[inline(always)]
    fn leaf(&self) -> Option<(Ref, Leaf<'p>)> {
        let (at, leaf, _) = self.cursor.position()?;
        Some((at, leaf))
    }

    #[inline(always)]
    fn is_at(&self, place: Ref) -> bool {
        self.leaf().is_some_and(|(at, _)| at == place)
    }

    /// Takes over the leaf that the cursor has come to from the left.
    #[inline(always)]
    fn enter_forward(&mut self, bounds: &Bounds) -> Result<()> {
        (self.low, self.high) = (0, 0);
        if let Some((at, leaf, index)) = self.cursor.position() {
            let high = bounds.high_in(self.cursor.order(), at, &leaf)?;
            (self.low, self.high) = (index, high);
            self.final_leaf = high < leaf.count();
        }
        Ok(())
    }

    /// Takes over the leaf that the cursor has come to from the right.
    fn enter_back(&mut self, bounds: &Bounds) -> Result<()> {
        (self.low, self.high) = (0, 0);
        if let Some((at, leaf, _)) = self.cursor.position() {
            self.high = bounds.high_in(self.cursor.order(), at, &leaf)?;
            self.low = bounds.low_in(self.cursor.order(), at, &leaf)?;
            self.final_leaf = self.low > 0;
        }
        Ok(())
    }
}

/// A range from both ends. It is moved about by its users, so it is kept small.
pub(crate) struct Range<'p, P: Pages<'p>> {
    front: Side<'p, P>,
    /// Made when it is first asked for.
    back: Option<Side<'p, P>>,
    bounds: Bounds,
    started: bool,
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
    #[inline(always)]
    pub(crate) fn new(pages: P, desc: &TreeDesc, order: Order, bounds: Bounds) -> Range<'p, P> {
        let done = desc.depth == 0 || bounds.is_empty(&order);
        Range {
            front: Side::new(Cursor::new(pages, desc, order)),
            back: None,
            bounds,
            started: false,
            done,
            warm: Warm::Untouched,
            failure: None,
        }
    }

    /// A range that gives nothing but an error.
    #[cold]
    pub(crate) fn failed(pages: P, desc: &TreeDesc, order: Order, error: Error) -> Range<'p, P> {
        let bounds = Bounds { start: Bound::Unbounded, end: Bound::Unbounded };
        let range = Range::new(pages, desc, order, bounds);
        Range { done: true, failure: Some(error), ..range }
    }

    #[inline(always)]
    fn start_front(&mut self) -> Result<()> {
        self.started = true;
        let cursor = &mut self.front.cursor;
        match &self.bounds.start {
            Bound::Unbounded => cursor.first()?,
            Bound::Included(key) => drop(cursor.seek(key)?),
            Bound::Excluded(key) => {
                if cursor.seek(key)? {
                    cursor.next()?;
                }
            }
        }
        self.front.enter_forward(&self.bounds)
    }

    fn start_back(&mut self) -> Result<()> {
        let side = self.back.insert(Side::new(self.front.cursor.another()));
        let cursor = &mut side.cursor;
        match &self.bounds.end {
            Bound::Unbounded => cursor.last()?,
            Bound::Included(key) | Bound::Excluded(key) => drop(cursor.seek_gap(key)?),
        }
        if let Some((at, leaf, _)) = cursor.position()
            && self.bounds.high_in(cursor.order(), at, &leaf)? == 0
        {
            cursor.prev_leaf()?;
        }
        side.enter_back(&self.bounds)
    }

    #[inline(always)]
    fn pair(&self, at: Ref, leaf: &Leaf<'p>, i: usize) -> Result<Pair<'p>> {
        let entry = leaf.entry(i).map_err(at.damaged())?;
        Ok((entry.key, value_of(self.front.cursor.pages(), at, &entry)?))
    }

    /// All entries that the front has in its leaf, for the caller to go through by itself; none
    /// at the end. Before anything else is asked of the range, what the caller did not use must
    /// be given back.
    pub(crate) fn take_run(&mut self) -> Result<Option<Run<'p>>> {
        while !self.done {
            let side = &mut self.front;
            if side.low < side.high
                && let Some((at, leaf)) = side.leaf()
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
                let offsets = leaf.offsets().get(side.low..end).unwrap_or_default();
                side.low = end;
                return Ok(Some(Run { at, page: leaf.page(), offsets }));
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
        self.front.low = self.front.low.saturating_sub(rest);
        self.raise_back();
    }

    /// Ends the range, after an error outside.
    pub(crate) fn end(&mut self) {
        self.done = true;
    }

    /// The value of an entry of a run.
    pub(crate) fn value(&self, at: Ref, entry: &Entry<'p>) -> Result<&'p [u8]> {
        value_of(self.front.cursor.pages(), at, entry)
    }

    /// To the next leaf of the front; false at the end of the range.
    #[cold]
    fn advance_front(&mut self) -> Result<bool> {
        if !self.started {
            self.start_front()?;
        } else {
            let Some((at, _)) = self.front.leaf() else { return Ok(false) };
            let met = self.back.as_ref().is_some_and(|back| back.is_at(at));
            if self.front.final_leaf || met || !self.front.cursor.next_leaf()? {
                self.front.cursor.leave();
                return Ok(false);
            }
            self.front.enter_forward(&self.bounds)?;
        }
        self.meet();
        Ok(self.front.leaf().is_some())
    }

    fn try_next_back(&mut self) -> Result<Option<Pair<'p>>> {
        loop {
            if let Some(side) = &mut self.back
                && side.low < side.high
                && let Some((at, leaf)) = side.leaf()
            {
                side.high -= 1;
                let i = side.high;
                if self.front.is_at(at) {
                    self.front.high = self.front.high.min(i);
                }
                return self.pair(at, &leaf, i).map(Some);
            }
            if !self.advance_back()? {
                return Ok(None);
            }
        }
    }

    #[cold]
    fn advance_back(&mut self) -> Result<bool> {
        if let Some(side) = &mut self.back {
            let Some((at, _)) = side.leaf() else { return Ok(false) };
            if side.final_leaf || self.front.is_at(at) || !side.cursor.prev_leaf()? {
                side.cursor.leave();
                return Ok(false);
            }
            side.enter_back(&self.bounds)?;
        } else {
            self.start_back()?;
        }
        self.meet();
        Ok(self.back.as_ref().is_some_and(|side| side.leaf().is_some()))
    }

    /// Both ends in one leaf share what is left there.
    #[inline(always)]
    fn meet(&mut self) {
        if let Some(back) = &mut self.back
            && let Some((at, _)) = back.leaf()
            && self.front.is_at(at)
        {
            back.low = self.front.low;
            self.front.high = self.front.high.min(back.high);
        }
    }

    /// What the front has given the back does not give again.
    fn raise_back(&mut self) {
        if let Some(back) = &mut self.back
            && let Some((at, _)) = back.leaf()
            && self.front.is_at(at)
        {
            back.low = self.front.low;
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
