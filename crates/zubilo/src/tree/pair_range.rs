//! Iteration over the pairs of a table with many values under a key, over a range of keys, from
//! both ends: the records of the range, and of the record that each end has come to the values.

use crate::error::Result;
use crate::page::{Leaf, Order};

use super::range::{Bounds, Pair, Range};
use super::values::ValuesIter;
use super::{Located, Pages, Tree};

/// A record that an end has come to, and the values of it still to come.
struct Opened<'p, P: Pages<'p>> {
    key: &'p [u8],
    values: ValuesIter<'p, P>,
}

impl<'p, P: Pages<'p>> Opened<'p, P> {
    #[inline]
    fn take(&mut self, back: bool) -> Option<Result<Pair<'p>>> {
        let value = if back { self.values.next_back() } else { self.values.next() };
        Some(value?.map(|value| (self.key, value)))
    }
}

/// The pairs of a range of keys.
pub(crate) struct PairRange<'p, P: Pages<'p>> {
    pages: P,
    order: Order,
    records: Range<'p, P>,
    front: Option<Opened<'p, P>>,
    back: Option<Opened<'p, P>>,
}

impl<'p, P: Pages<'p>> PairRange<'p, P> {
    pub(crate) fn new(pages: P, tree: &Tree, bounds: Bounds) -> PairRange<'p, P> {
        let records = Range::new(pages, &tree.desc, tree.order.clone(), bounds, false);
        PairRange { pages, order: tree.values.clone(), records, front: None, back: None }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Result<Pair<'p>>> {
        self.step(false)
    }

    pub(crate) fn next_back(&mut self) -> Option<Result<Pair<'p>>> {
        self.step(true)
    }

    #[inline(always)]
    fn step(&mut self, back: bool) -> Option<Result<Pair<'p>>> {
        loop {
            let own = if back { &mut self.back } else { &mut self.front };
            if let Some(pair) = own.as_mut().and_then(|record| record.take(back)) {
                return self.given(pair);
            }
            *own = None;
            match self.open(back) {
                Ok(Some(record)) if back => self.back = Some(record),
                Ok(Some(record)) => self.front = Some(record),
                // What is left is what the other end has not given of its record.
                Ok(None) => {
                    let other = if back { &mut self.front } else { &mut self.back };
                    let pair = other.as_mut()?.take(back)?;
                    return self.given(pair);
                }
                Err(error) => return self.given(Err(error)),
            }
        }
    }

    /// After an error nothing comes any more.
    #[inline(always)]
    fn given(&mut self, pair: Result<Pair<'p>>) -> Option<Result<Pair<'p>>> {
        if pair.is_err() {
            self.records.end();
            (self.front, self.back) = (None, None);
        }
        Some(pair)
    }

    /// The next record at an end.
    fn open(&mut self, back: bool) -> Result<Option<Opened<'p, P>>> {
        let (pages, order) = (self.pages, &self.order);
        let opened = |leaf: &Located<Leaf<'p>>, i| {
            let entry = leaf.entry(i)?;
            let values = ValuesIter::new(pages, leaf.at(), &entry, order)?;
            Ok(Opened { key: entry.key, values })
        };
        if back { self.records.next_back_by(opened) } else { self.records.next_by(opened) }
    }
}
