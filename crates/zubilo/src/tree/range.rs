//! Iteration over a range of keys from both ends.
//!
//! Forwards it hands out runs, whole leaves' worth of entries, so that a scan spends its time in
//! the caller's loop. The bounds are turned into positions inside leaves once a leaf, so a step is an index and a
//! compare; keys are not compared one by one.

use std::marker::PhantomData;
use std::ops::{self, Bound};

use crate::error::Result;
use crate::page::{Entry, Leaf, LeafPage, NormBuf, Order, SearchKey};

use super::lookup::value_of;
use super::place::{Place, TreeView};
use super::{Located, Pages, Ref, TreeDesc};

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
    /// Bounds of everything.
    pub(crate) const ALL: Bounds = Bounds { start: Bound::Unbounded, end: Bound::Unbounded };

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

    /// Whether keys can lie inside both before `key` and from it on.
    pub(super) fn parts_at(&self, order: &Order, key: &[u8]) -> bool {
        let is_behind = match &self.start {
            Bound::Included(start) | Bound::Excluded(start) => order.compare(start, key).is_lt(),
            Bound::Unbounded => true,
        };
        is_behind
            && match &self.end {
                Bound::Included(end) => order.compare(key, end).is_le(),
                Bound::Excluded(end) => order.compare(key, end).is_lt(),
                Bound::Unbounded => true,
            }
    }

    /// Index of the first entry of `leaf` behind the range's end.
    fn high_in<'p, L: LeafPage<'p>>(&self, order: &Order, leaf: &Located<L>) -> Result<usize> {
        match &self.end {
            Bound::Unbounded => Ok(leaf.count()),
            Bound::Included(key) => index_of(order, leaf, key, true),
            Bound::Excluded(key) => index_of(order, leaf, key, false),
        }
    }

    /// To the first entry of the range.
    #[inline(always)]
    fn first<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &self,
        tree: &TreeView<'_, 'p, P, L>,
        place: &mut Place,
    ) -> Result<()> {
        match &self.start {
            Bound::Unbounded => place.first(tree)?,
            Bound::Included(key) => drop(place.seek(tree, key)?),
            Bound::Excluded(key) => {
                if place.seek(tree, key)? {
                    place.next(tree)?;
                }
            }
        }
        Ok(())
    }

    /// To the leaf of the last entry of the range.
    fn last<'p, P: Pages<'p>, L: LeafPage<'p>>(
        &self,
        tree: &TreeView<'_, 'p, P, L>,
        place: &mut Place,
    ) -> Result<()> {
        match &self.end {
            Bound::Unbounded => return place.last(tree),
            Bound::Included(key) | Bound::Excluded(key) => drop(place.seek_gap(tree, key)?),
        }
        if let Some(leaf) = place.leaf(tree)?
            && self.high_in(tree.order(), &leaf)? == 0
        {
            place.turn(tree, &leaf, true)?;
        }
        Ok(())
    }

    /// Index of the first entry of `leaf` inside the range's start.
    fn low_in<'p, L: LeafPage<'p>>(&self, order: &Order, leaf: &Located<L>) -> Result<usize> {
        match &self.start {
            Bound::Unbounded => Ok(0),
            Bound::Included(key) => index_of(order, leaf, key, false),
            Bound::Excluded(key) => index_of(order, leaf, key, true),
        }
    }
}

fn index_of<'p, L: LeafPage<'p>>(
    order: &Order,
    leaf: &Located<L>,
    key: &[u8],
    behind: bool,
) -> Result<usize> {
    let found = match order.as_it_is(key) {
        Some(key) => leaf.search(order, &key),
        None => leaf.search(order, &SearchKey::new(order, key, &mut NormBuf::default())),
    };
    Ok(match found? {
        Ok(i) => i + usize::from(behind),
        Err(i) => i,
    })
}

/// One end of the range: a place, its leaf, and there the entries [low, high) still to come.
struct Side<L> {
    place: Place,
    /// None before the start and at the end.
    leaf: Option<Located<L>>,
    low: usize,
    high: usize,
    /// The range ends in this leaf.
    final_leaf: bool,
}

impl<'p, L: LeafPage<'p>> Side<L> {
    #[inline(always)]
    fn new() -> Side<L> {
        Side { place: Place::default(), leaf: None, low: 0, high: 0, final_leaf: false }
    }

    /// Takes over the leaf that the place has come to; false where there is none.
    #[inline(always)]
    fn enter<P: Pages<'p>>(
        &mut self,
        tree: &TreeView<'_, 'p, P, L>,
        bounds: &Bounds,
        end: End,
    ) -> Result<bool> {
        (self.low, self.high) = (0, 0);
        self.leaf = self.place.leaf(tree)?;
        let (Some(leaf), Some((_, index))) = (&self.leaf, self.place.at()) else {
            return Ok(false);
        };
        self.high = bounds.high_in(tree.order(), leaf)?;
        self.low = if end == End::Front { index } else { bounds.low_in(tree.order(), leaf)? };
        self.final_leaf = match end {
            End::Front => self.high < leaf.count(),
            End::Back => self.low > 0,
        };
        Ok(true)
    }

    /// To the next leaf, or `back` to the one before, if the range goes on there.
    #[inline(always)]
    fn turn<P: Pages<'p>>(&mut self, tree: &TreeView<'_, 'p, P, L>, back: bool) -> Result<()> {
        match &self.leaf {
            Some(leaf) if !self.final_leaf => drop(self.place.turn(tree, leaf, back)?),
            _ => self.place.leave(),
        }
        Ok(())
    }
}

/// Neighbouring entries of a leaf.
#[derive(Clone, Copy)]
pub(crate) struct Run<'p> {
    pub(crate) at: Ref,
    pub(crate) page: &'p [u8],
    pub(crate) offsets: &'p [[u8; 2]],
}

/// An end of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// A range from both ends. Its users move it about, so it is kept small: most ranges are walked from
/// one end only.
pub(crate) struct Range<'p, P: Pages<'p>, L: LeafPage<'p> = Leaf<'p>> {
    pages: P,
    root: Ref,
    depth: u8,
    order: Order,
    bounds: Bounds,
    /// The end that was asked for first.
    near: Side<L>,
    near_is: Option<End>,
    /// The other end.
    far: Option<Box<Side<L>>>,
    done: bool,
    warm: Warm,
    life: PhantomData<&'p [u8]>,
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

impl<'p, P: Pages<'p>, L: LeafPage<'p>> Range<'p, P, L> {
    /// What lies between the bounds; nothing if it has `ended` before it began.
    #[inline(always)]
    pub(crate) fn new(
        pages: P,
        desc: &TreeDesc,
        order: Order,
        bounds: Bounds,
        ended: bool,
    ) -> Range<'p, P, L> {
        let done = ended || desc.depth == 0 || bounds.is_empty(&order);
        let (root, depth) = desc.top();
        Range {
            pages,
            root,
            depth,
            order,
            bounds,
            near: Side::new(),
            near_is: None,
            far: None,
            done,
            warm: Warm::Untouched,
            life: PhantomData,
        }
    }

    /// One of the ends, if it has been asked for.
    #[inline(always)]
    fn side(&mut self, end: End) -> Option<&mut Side<L>> {
        match self.near_is {
            None => None,
            Some(near) if near == end => Some(&mut self.near),
            Some(_) => self.far.as_deref_mut(),
        }
    }

    /// The front and the back, if they have come to the same leaf.
    #[inline(always)]
    fn met(&mut self) -> Option<(&mut Side<L>, &mut Side<L>)> {
        let (near, far) = (&mut self.near, self.far.as_deref_mut()?);
        if near.leaf.as_ref()?.at() != far.leaf.as_ref()?.at() {
            return None;
        }
        Some(if self.near_is == Some(End::Front) { (near, far) } else { (far, near) })
    }

    /// To the next leaf of an end; false at the end of the range.
    #[cold]
    fn advance(&mut self, end: End) -> Result<bool> {
        let (is_near, is_new) = match self.near_is {
            None => (true, true),
            Some(near) if near == end => (true, false),
            Some(_) => (false, self.far.is_none()),
        };
        let met = !is_new && self.met().is_some();
        let tree = TreeView::below(self.pages, (self.root, self.depth), &self.order);
        let bounds = &self.bounds;
        let side = match is_near {
            true => &mut self.near,
            false => self.far.get_or_insert_with(|| Box::new(Side::new())),
        };
        if is_near {
            self.near_is = Some(end);
        }
        match (is_new, end) {
            (true, End::Front) => bounds.first(&tree, &mut side.place)?,
            (true, End::Back) => bounds.last(&tree, &mut side.place)?,
            (false, _) if met => side.place.leave(),
            (false, _) => side.turn(&tree, end == End::Back)?,
        }
        let more = side.enter(&tree, bounds, end)?;
        // Both ends in one leaf share what is left there.
        if let Some((front, back)) = self.met() {
            back.low = front.low;
            front.high = front.high.min(back.high);
        }
        Ok(more)
    }

    /// The next entry at the front, as `get` takes it out of its leaf.
    #[inline(always)]
    pub(super) fn next_by<T>(
        &mut self,
        get: impl Fn(&Located<L>, usize) -> Result<T>,
    ) -> Result<Option<T>> {
        let near = &mut self.near;
        if near.low < near.high
            && self.near_is == Some(End::Front)
            && self.far.is_none()
            && let Some(leaf) = &near.leaf
        {
            near.low += 1;
            return get(leaf, near.low - 1).map(Some);
        }
        self.step_by(End::Front, get)
    }

    /// The last entry not yet given, likewise.
    pub(super) fn next_back_by<T>(
        &mut self,
        get: impl Fn(&Located<L>, usize) -> Result<T>,
    ) -> Result<Option<T>> {
        self.step_by(End::Back, get)
    }

    /// Where another leaf may come, or both ends were asked for.
    fn step_by<T>(
        &mut self,
        end: End,
        get: impl Fn(&Located<L>, usize) -> Result<T>,
    ) -> Result<Option<T>> {
        loop {
            if let Some(side) = self.side(end)
                && side.low < side.high
                && let Some(leaf) = &side.leaf
            {
                let i = match end {
                    End::Front => side.low,
                    End::Back => side.high - 1,
                };
                let got = get(leaf, i);
                match end {
                    End::Front => side.low = i + 1,
                    End::Back => side.high = i,
                }
                match (self.met(), end) {
                    (Some((_, back)), End::Front) => back.low = back.low.max(i + 1),
                    (Some((front, _)), End::Back) => front.high = front.high.min(i),
                    (None, _) => {}
                }
                return got.map(Some);
            }
            if !self.go_on(end)? {
                return Ok(None);
            }
        }
    }

    /// As `advance`; the range ends where it does, and at an error.
    #[inline(always)]
    fn go_on(&mut self, end: End) -> Result<bool> {
        let more = if self.done { Ok(false) } else { self.advance(end) };
        self.done = !matches!(more, Ok(true));
        more
    }

    /// Ends the range, after an error outside.
    pub(crate) fn end(&mut self) {
        self.done = true;
    }

    /// All entries that the front has in its leaf, for the caller to go through by itself; none
    /// at the end. Before anything else is asked of the range, what the caller did not use must
    /// be given back.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Result<Option<(Located<L>, ops::Range<usize>)>> {
        while !self.done {
            let (warm, pages) = (self.warm, self.pages);
            if let Some(side) = self.side(End::Front)
                && side.low < side.high
                && let Some(leaf) = side.leaf
            {
                let (start, mut end) = (side.low, side.high);
                let next = match warm {
                    Warm::Untouched if end - start > FIRST_RUN => {
                        end = start + FIRST_RUN;
                        Warm::Begun
                    }
                    Warm::Begun => {
                        side.place.prefetch_around(&pages);
                        Warm::Running
                    }
                    same => same,
                };
                side.low = end;
                self.warm = next;
                return Ok(Some((leaf, start..end)));
            }
            self.go_on(End::Front)?;
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
}

impl<'p, P: Pages<'p>> Range<'p, P> {
    /// As `take`, the entries of a leaf in a form that a loop of the caller reads fast.
    pub(crate) fn take_run(&mut self) -> Result<Option<Run<'p>>> {
        let Some((leaf, taken)) = self.take()? else { return Ok(None) };
        let offsets = leaf.offsets().get(taken).unwrap_or_default();
        Ok(Some(Run { at: leaf.at(), page: leaf.page(), offsets }))
    }

    /// The value of an entry of a run.
    pub(crate) fn value(&self, at: Ref, entry: &Entry<'p>) -> Result<&'p [u8]> {
        value_of(&self.pages, at, entry)
    }

    /// The last pair not yet given.
    pub(crate) fn next_back(&mut self) -> Option<Result<Pair<'p>>> {
        if self.done {
            return None;
        }
        let pages = self.pages;
        let item = self.next_back_by(|leaf, i| {
            let entry = leaf.entry(i)?;
            Ok((entry.key, value_of(&pages, leaf.at(), &entry)?))
        });
        self.done |= item.is_err();
        item.transpose()
    }
}
