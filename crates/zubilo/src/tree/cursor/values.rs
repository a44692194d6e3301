//! The place among the values of the record under a cursor.

use crate::error::Result;
use crate::page::{Entry, Order, Packed, ValueKind};
use crate::tree::place::{Place, TreeView};
use crate::tree::values::Values;
use crate::tree::{Located, Pages, Ref, TreeDesc};

/// A place among the values of a record.
#[derive(Clone, Debug, Default)]
pub(crate) enum ValuePlace {
    /// On the only value.
    #[default]
    One,
    /// Behind the only value.
    Behind,
    Set(usize),
    Tree(Place),
}

fn tree_of<'a, 'p, P: Pages<'p>>(
    pages: P,
    desc: &TreeDesc,
    order: &'a Order,
) -> TreeView<'a, 'p, P, Packed<'p>> {
    TreeView::new(pages, desc, order)
}

impl ValuePlace {
    /// Which of the values it is, or was in its leaf.
    pub(super) fn index(&self) -> usize {
        match self {
            ValuePlace::One => 0,
            ValuePlace::Behind => 1,
            ValuePlace::Set(i) => *i,
            ValuePlace::Tree(place) => place.at().map_or(0, |(_, i)| i),
        }
    }

    /// On the first or last value.
    pub(super) fn at_edge<'p, P: Pages<'p>>(
        pages: P,
        values: Values<'p>,
        order: &Order,
        last: bool,
    ) -> Result<ValuePlace> {
        Ok(match values {
            Values::One(_) => ValuePlace::One,
            Values::Set(set) => ValuePlace::Set(if last { set.count() - 1 } else { 0 }),
            Values::Tree(desc) => {
                let mut place = Place::default();
                place.edge(&tree_of(pages, &desc, order), last)?;
                ValuePlace::Tree(place)
            }
        })
    }

    /// On the first value that is not less than `value`, or after the last one; whether it equals
    /// `value`.
    pub(super) fn at_value<'p, P: Pages<'p>>(
        pages: P,
        values: Values<'p>,
        order: &Order,
        value: &[u8],
    ) -> Result<(ValuePlace, bool)> {
        Ok(match values {
            Values::One(own) => {
                let found = order.compare(value, own);
                let place = if found.is_gt() { ValuePlace::Behind } else { ValuePlace::One };
                (place, found.is_eq())
            }
            Values::Set(set) => {
                let found = set.position(order, value)?;
                let (Ok(i) | Err(i)) = found;
                (ValuePlace::Set(i), found.is_ok())
            }
            Values::Tree(desc) => {
                let mut place = Place::default();
                let found = place.seek_or_behind(&tree_of(pages, &desc, order), value)?;
                (ValuePlace::Tree(place), found)
            }
        })
    }

    /// On the value with these bytes, which is near a place of before; or where it may have been.
    pub(super) fn at_bytes<'p, P: Pages<'p>>(
        pages: P,
        values: Values<'p>,
        order: &Order,
        near: &ValuePlace,
        value: &[u8],
    ) -> Result<(ValuePlace, bool)> {
        Ok(match values {
            Values::One(own) => (ValuePlace::One, own == value),
            Values::Set(set) => {
                for i in 0..set.count() {
                    if set.item(i)? == value {
                        return Ok((ValuePlace::Set(i), true));
                    }
                }
                (ValuePlace::Set(near.index().min(set.count())), false)
            }
            Values::Tree(desc) => {
                let mut place = Place::default();
                let start = Place::default();
                let near = if let ValuePlace::Tree(near) = near { near } else { &start };
                let found = place.seek_near(&tree_of(pages, &desc, order), near.path(), value)?;
                (ValuePlace::Tree(place), found)
            }
        })
    }

    /// The value there, where there are several; none behind them, or if the record is of another kind.
    #[inline]
    pub(super) fn value<'p, P: Pages<'p>>(
        &self,
        pages: P,
        order: &Order,
        at: Ref,
        entry: &Entry<'p>,
    ) -> Result<Option<&'p [u8]>> {
        match self {
            ValuePlace::Set(i) if entry.kind == ValueKind::Duplicates => {
                let set = Located::new(at, Packed::in_record(entry.value))?;
                if *i < set.count() { set.item(*i).map(Some) } else { Ok(None) }
            }
            // The way leads there: of its tree nothing else is needed.
            ValuePlace::Tree(place) if entry.kind == ValueKind::Tree => {
                place.key(&TreeView::<P, Packed<'p>>::below(pages, (Ref::NONE, 0), order))
            }
            _ => Ok(None),
        }
    }

    /// To the next value of the same leaf; false, and nothing moves, when there is none, or no tree.
    #[inline]
    pub(super) fn step_in_leaf(&mut self) -> bool {
        match self {
            ValuePlace::Tree(place) => place.step_in_leaf(),
            _ => false,
        }
    }

    /// To the next value, or `back` to the one before; false, and nothing moves, when there is none.
    pub(super) fn step<'p, P: Pages<'p>>(
        &mut self,
        pages: P,
        values: &Values<'p>,
        order: &Order,
        back: bool,
    ) -> Result<bool> {
        match (self, values) {
            (ValuePlace::Set(i), Values::Set(set)) => {
                let more = if back { *i > 0 } else { *i + 1 < set.count() };
                match (more, back) {
                    (false, _) => {}
                    (true, true) => *i -= 1,
                    (true, false) => *i += 1,
                }
                Ok(more)
            }
            (ValuePlace::Tree(place), Values::Tree(desc)) => {
                let tree = tree_of(pages, desc, order);
                if !back && (place.is_nowhere() || place.is_behind()) {
                    return Ok(false);
                }
                let more = if back { place.prev(&tree)? } else { place.next(&tree)? };
                if !more {
                    place.edge(&tree, !back)?;
                }
                Ok(more)
            }
            _ => Ok(false),
        }
    }

    /// From the last value to behind it.
    pub(super) fn step_behind(&mut self) {
        match self {
            ValuePlace::One | ValuePlace::Behind => *self = ValuePlace::Behind,
            ValuePlace::Set(i) => *i += 1,
            ValuePlace::Tree(place) => place.step_behind(),
        }
    }

    pub(super) fn is_first(&self) -> bool {
        match self {
            ValuePlace::One | ValuePlace::Behind => true,
            ValuePlace::Set(i) => *i == 0,
            ValuePlace::Tree(place) => place.is_first(),
        }
    }

    /// Not to be asked of a set, whose size is in its record.
    pub(super) fn is_last(&self) -> bool {
        match self {
            ValuePlace::One | ValuePlace::Behind => true,
            ValuePlace::Set(_) => false,
            ValuePlace::Tree(place) => place.is_last(),
        }
    }
}
