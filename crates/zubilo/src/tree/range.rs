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

/// An end of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// A range from both ends. Its users move it about, so it is kept small: most ranges are walked from
/// one end only.
pub(crate) struct Range<'p, P: Pages<'p>> {
    bounds: Bounds,
    /// The end that was asked for first; its cursor gives pages and order to both.
    near: Side<'p, P>,
    near_is: Option<End>,
    /// The other end.
    far: Option<Box<Side<'p, P>>>,
    done: bool,
    warm: Warm,
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
    /// What lies between the bounds; nothing if it has `ended` before it began.
    #[inline(always)]
    pub(crate) fn new(
        pages: P,
        desc: &TreeDesc,
        order: Order,
        bounds: Bounds,
        ended: bool,
    ) -> Range<'p, P> {
        let done = ended || desc.depth == 0 || bounds.is_empty(&order);
        let near = Side::new(Cursor::new(pages, desc, order));
        Range { bounds, near, near_is: None, far: None, done, warm: Warm::Untouched }
    }

    /// One of the ends, if it has been asked for.
    #[inline(always)]
    fn side(&mut self, end: End) -> Option<&mut Side<'p, P>> {
        match self.near_is {
            None => None,
            Some(near) if near == end => Some(&mut self.near),
            Some(_) => self.far.as_deref_mut(),
        }
    }

    /// The front and the back, if they have come to the same leaf.
    #[inline(always)]
    fn met(&mut self) -> Option<(&mut Side<'p, P>, &mut Side<'p, P>)> {
        let (near, far) = (&mut self.near, self.far.as_deref_mut()?);
        if near.leaf()?.0 != far.leaf()?.0 {
            return None;
        }
        Some(if self.near_is == Some(End::Front) { (near, far) } else { (far, near) })
    }

    /// Makes a place for an end that is asked for for the first time.
    #[inline(always)]
    fn make_side(&mut self, end: End) -> (&mut Side<'p, P>, &Bounds) {
        let side = match self.near_is {
            None => {
                self.near_is = Some(end);
                &mut self.near
            }
            Some(_) => self.far.insert(Box::new(Side::new(self.near.cursor.another()))),
        };
        (side, &self.bounds)
    }

    #[inline(always)]
    fn start_front(&mut self) -> Result<()> {
        let (side, bounds) = self.make_side(End::Front);
        let cursor = &mut side.cursor;
        match &bounds.start {
            Bound::Unbounded => cursor.first()?,
            Bound::Included(key) => drop(cursor.seek(key)?),
            Bound::Excluded(key) => {
                if cursor.seek(key)? {
                    cursor.next()?;
                }
            }
        }
        side.enter_forward(bounds)
    }

    fn start_back(&mut self) -> Result<()> {
        let (side, bounds) = self.make_side(End::Back);
        let cursor = &mut side.cursor;
        match &bounds.end {
            Bound::Unbounded => cursor.last()?,
            Bound::Included(key) | Bound::Excluded(key) => drop(cursor.seek_gap(key)?),
        }
        if let Some((at, leaf, _)) = cursor.position()
            && bounds.high_in(cursor.order(), at, &leaf)? == 0
        {
            cursor.prev_leaf()?;
        }
        side.enter_back(bounds)
    }

    #[inline(always)]
    fn pair(&self, at: Ref, leaf: &Leaf<'p>, i: usize) -> Result<Pair<'p>> {
        let entry = leaf.entry(i).map_err(at.damaged())?;
        Ok((entry.key, value_of(self.near.cursor.pages(), at, &entry)?))
    }

    /// All entries that the front has in its leaf, for the caller to go through by itself; none
    /// at the end. Before anything else is asked of the range, what the caller did not use must
    /// be given back.
    pub(crate) fn take_run(&mut self) -> Result<Option<Run<'p>>> {
        while !self.done {
            let warm = self.warm;
            if let Some(side) = self.side(End::Front)
                && side.low < side.high
                && let Some((at, leaf)) = side.leaf()
            {
                let mut end = side.high;
                let next = match warm {
                    Warm::Untouched if end - side.low > FIRST_RUN => {
                        end = side.low + FIRST_RUN;
                        Warm::Begun
                    }
                    Warm::Begun => {
                        side.cursor.prefetch_around();
                        Warm::Running
                    }
                    same => same,
                };
                let offsets = leaf.offsets().get(side.low..end).unwrap_or_default();
                side.low = end;
                self.warm = next;
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
        Ok(None)
    }

    /// Takes back the last `rest` entries of the run that was taken.
    pub(crate) fn give_back(&mut self, rest: usize) {
        if let Some(front) = self.side(End::Front) {
            front.low = front.low.saturating_sub(rest);
        }
        // What the front has given the back does not give again.
        if let Some((front, back)) = self.met() {
            back.low = front.low;
        }
    }

    /// Ends the range, after an error outside.
    pub(crate) fn end(&mut self) {
        self.done = true;
    }

    /// The value of an entry of a run.
    pub(crate) fn value(&self, at: Ref, entry: &Entry<'p>) -> Result<&'p [u8]> {
        value_of(self.near.cursor.pages(), at, entry)
    }

    /// To the next leaf of the front; false at the end of the range.
    #[cold]
    fn advance_front(&mut self) -> Result<bool> {
        let met = self.met().is_some();
        let bounds = &self.bounds;
        let side = match self.near_is {
            Some(End::Front) => Some(&mut self.near),
            _ => self.far.as_deref_mut(),
        };
        if let Some(side) = side {
            if side.leaf().is_none() || side.final_leaf || met || !side.cursor.next_leaf()? {
                side.cursor.leave();
                return Ok(false);
            }
            side.enter_forward(bounds)?;
        } else {
            self.start_front()?;
        }
        Ok(self.meet(End::Front))
    }

    fn try_next_back(&mut self) -> Result<Option<Pair<'p>>> {
        loop {
            if let Some(side) = self.side(End::Back)
                && side.low < side.high
                && let Some((at, leaf)) = side.leaf()
            {
                side.high -= 1;
                let i = side.high;
                if let Some((front, _)) = self.met() {
                    front.high = front.high.min(i);
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
        let met = self.met().is_some();
        let bounds = &self.bounds;
        let side = match self.near_is {
            Some(End::Back) => Some(&mut self.near),
            _ => self.far.as_deref_mut(),
        };
        if let Some(side) = side {
            if side.leaf().is_none() || side.final_leaf || met || !side.cursor.prev_leaf()? {
                side.cursor.leave();
                return Ok(false);
            }
            side.enter_back(bounds)?;
        } else {
            self.start_back()?;
        }
        Ok(self.meet(End::Back))
    }

    /// After a move of one end, whether it has come to a leaf. Both ends in one leaf share what is
    /// left there.
    #[inline(always)]
    fn meet(&mut self, moved: End) -> bool {
        if let Some((front, back)) = self.met() {
            back.low = front.low;
            front.high = front.high.min(back.high);
        }
        self.side(moved).is_some_and(|side| side.leaf().is_some())
    }

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
