//! The place among the values of the record under a cursor.

use crate::error::Result;
use crate::page::{Items, Order, Set};
use crate::tree::cursor::Cursor;
use crate::tree::values::Values;
use crate::tree::{Pages, Path, Ref};

/// Values of the record under a cursor and the place among them.
#[derive(Clone)]
pub(super) enum ValueCursor<'p, P: Pages<'p>> {
    /// The only value, or behind it.
    One(Behind),
    Set(Set<'p>, usize),
    Tree(Box<Cursor<'p, P, Items<'p>>>, u64),
}

/// Whether a cursor stands behind what it is at.
pub(super) type Behind = bool;

/// The same without the pages.
#[derive(Clone, Debug, Default)]
pub(crate) enum ValuePlace {
    /// On the only value.
    #[default]
    One,
    /// Behind the only value.
    Behind,
    Set(usize),
    Tree(Path),
}

impl ValuePlace {
    /// Which of the values it is, or was in its leaf.
    pub(super) fn index(&self) -> usize {
        match self {
            ValuePlace::One => 0,
            ValuePlace::Behind => 1,
            ValuePlace::Set(i) => *i,
            ValuePlace::Tree(path) => path.last().map_or(0, |step| step.index as usize),
        }
    }
}

impl<'p, P: Pages<'p>> ValueCursor<'p, P> {
    /// On the first or last value.
    pub(super) fn at_edge(pages: P, values: Values<'p>, order: &Order, last: bool) -> Result<Self> {
        Ok(match values {
            Values::One(_) => ValueCursor::One(false),
            Values::Set(set) => ValueCursor::Set(set, if last { set.count() - 1 } else { 0 }),
            Values::Tree(desc) => {
                let mut cursor = Cursor::new(pages, &desc, order.clone());
                if last {
                    cursor.last()?;
                } else {
                    cursor.first()?;
                }
                ValueCursor::Tree(Box::new(cursor), desc.entries)
            }
        })
    }

    /// On the first value that is not less than `value`, or behind the last one; whether it equals
    /// `value`. The values are of a record in the leaf `at`.
    pub(super) fn at_value(
        pages: P,
        (at, values): (Ref, Values<'p>),
        order: &Order,
        value: &[u8],
    ) -> Result<(Self, bool)> {
        Ok(match values {
            Values::One(own) => {
                let found = order.compare(value, own);
                (ValueCursor::One(found.is_gt()), found.is_eq())
            }
            Values::Set(set) => {
                let found = set.search(order, value).map_err(at.damaged())?;
                let (Ok(i) | Err(i)) = found;
                (ValueCursor::Set(set, i), found.is_ok())
            }
            Values::Tree(desc) => {
                let mut cursor = Cursor::new(pages, &desc, order.clone());
                let found = cursor.seek_or_behind(value)?;
                (ValueCursor::Tree(Box::new(cursor), desc.entries), found)
            }
        })
    }

    /// At a place of before, if the values are still of its kind.
    pub(super) fn resume(
        pages: P,
        values: Option<Values<'p>>,
        order: &Order,
        place: ValuePlace,
    ) -> Result<Self> {
        Ok(match (values, place) {
            (_, ValuePlace::Behind) => ValueCursor::One(true),
            (Some(Values::Set(set)), ValuePlace::Set(i)) => ValueCursor::Set(set, i),
            (Some(Values::Tree(desc)), ValuePlace::Tree(path)) => {
                let tree = Cursor::resume(pages, &desc, order.clone(), path)?;
                ValueCursor::Tree(Box::new(tree), desc.entries)
            }
            _ => ValueCursor::One(false),
        })
    }

    /// The place, for `resume`.
    pub(super) fn into_place(self) -> ValuePlace {
        match self {
            ValueCursor::One(false) => ValuePlace::One,
            ValueCursor::One(true) => ValuePlace::Behind,
            ValueCursor::Set(_, i) => ValuePlace::Set(i),
            ValueCursor::Tree(cursor, _) => ValuePlace::Tree(cursor.into_path()),
        }
    }

    /// To the next value; false, and nothing moves, when there is none.
    pub(super) fn step(&mut self) -> Result<bool> {
        match self {
            ValueCursor::One(_) => Ok(false),
            ValueCursor::Set(set, i) => {
                let more = *i + 1 < set.count();
                *i += usize::from(more);
                Ok(more)
            }
            ValueCursor::Tree(cursor, _) => {
                if cursor.key()?.is_none() {
                    return Ok(false);
                }
                let more = cursor.next()?;
                if !more {
                    cursor.last()?;
                }
                Ok(more)
            }
        }
    }

    /// To the value before; false, and nothing moves, when there is none.
    pub(super) fn step_back(&mut self) -> Result<bool> {
        match self {
            ValueCursor::One(behind) => Ok(std::mem::take(behind)),
            ValueCursor::Set(_, i) => {
                let more = *i > 0;
                *i -= usize::from(more);
                Ok(more)
            }
            ValueCursor::Tree(cursor, _) => {
                let more = cursor.prev()?;
                if !more {
                    cursor.first()?;
                }
                Ok(more)
            }
        }
    }

    /// From the last value to behind it.
    pub(super) fn step_behind(&mut self) {
        match self {
            ValueCursor::One(behind) => *behind = true,
            ValueCursor::Set(_, i) => *i += 1,
            ValueCursor::Tree(cursor, _) => cursor.step_behind(),
        }
    }

    pub(super) fn is_first(&self) -> bool {
        match self {
            ValueCursor::One(_) => true,
            ValueCursor::Set(_, i) => *i == 0,
            ValueCursor::Tree(cursor, _) => cursor.is_first(),
        }
    }

    pub(super) fn is_last(&self) -> bool {
        match self {
            ValueCursor::One(_) => true,
            ValueCursor::Set(set, i) => *i + 1 == set.count(),
            ValueCursor::Tree(cursor, _) => cursor.is_last(),
        }
    }
}
