//! Steps: to the record, value or key before or behind, and to the ends.

use crate::error::Result;
use crate::page::ValueKind;
use crate::tree::Pages;

use super::values::ValueCursor;
use super::{Mark, Pair, PairCursor, Stand};

impl<'p, P: Pages<'p>> PairCursor<'p, P> {
    pub(crate) fn first(&mut self) -> Result<Option<Pair<'p>>> {
        self.keys.first()?;
        self.entered(false)
    }

    pub(crate) fn last(&mut self) -> Result<Option<Pair<'p>>> {
        self.keys.last()?;
        self.entered(true)
    }

    /// Whether the cursor stands on a record with one value, where no deletion must be minded: its
    /// steps are those of the keys' cursor.
    #[inline(always)]
    fn is_simple(&self) -> bool {
        self.stand == Stand::On
            && self.mark == Mark::None
            && !self.duplicates
            && matches!(self.values, ValueCursor::One(false))
    }

    /// The pair under such a cursor.
    #[inline(always)]
    fn simple_pair(&self) -> Result<Option<Pair<'p>>> {
        match self.keys.entry()? {
            Some((_, entry)) if entry.kind == ValueKind::Inline => {
                Ok(Some((entry.key, entry.value)))
            }
            _ => self.pair(),
        }
    }

    /// The leaf's page and the places of the records behind the cursor's, where its steps are those of
    /// the keys' cursor and its last one found something; see [`PairCursor::advance`].
    #[inline]
    pub(crate) fn rest_of_leaf(&self) -> Option<(&'p [u8], &'p [[u8; 2]])> {
        let (_, leaf, i) = self.keys.position().filter(|_| self.is_simple() && !self.eof)?;
        Some((leaf.page(), leaf.offsets().get(i + 1..)?))
    }

    /// As many steps as were made among the records of `rest_of_leaf`.
    pub(crate) fn advance(&mut self, steps: usize) {
        if let Some((.., i)) = self.keys.position() {
            self.keys.set_index(i + steps);
        }
    }

    /// To the next pair; where the cursor stands nowhere yet, to the first.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Pair<'p>>> {
        if !self.is_simple() {
            return self.next_slowly();
        }
        if self.keys.next()? {
            self.eof = false;
            return self.simple_pair();
        }
        self.keys.last()?;
        self.eof = true;
        Ok(None)
    }

    fn next_slowly(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.stand, std::mem::take(&mut self.mark)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) => Ok(None),
            (Stand::On, Mark::Key) => self.pair(),
            (Stand::On, Mark::None) if !self.duplicates => self.next_record(),
            (Stand::On, mark) => {
                let stays = mark == Mark::Value && self.pair()?.is_some();
                if stays || self.values.step()? { self.stepped() } else { self.next_record() }
            }
        }
    }

    /// The value to which a step led.
    #[inline]
    fn stepped(&mut self) -> Result<Option<Pair<'p>>> {
        self.eof = false;
        self.pair()
    }

    #[inline]
    fn next_record(&mut self) -> Result<Option<Pair<'p>>> {
        if self.keys.next()? {
            return self.enter(false);
        }
        self.keys.last()?;
        self.eof = true;
        Ok(None)
    }

    fn prev_record(&mut self) -> Result<Option<Pair<'p>>> {
        if self.keys.prev()? {
            return self.enter(true);
        }
        self.keys.first()?;
        Ok(None)
    }

    /// To the pair before; where the cursor stands nowhere yet, to the last.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<Option<Pair<'p>>> {
        if self.is_simple() && self.keys.prev()? {
            self.eof = false;
            return self.simple_pair();
        }
        self.prev_slowly()
    }

    fn prev_slowly(&mut self) -> Result<Option<Pair<'p>>> {
        self.mark = Mark::None;
        if self.stand != Stand::On {
            return self.last();
        }
        self.eof = false;
        if self.values.step_back()? { self.pair() } else { self.prev_record() }
    }

    /// To the next value of the same key.
    pub(crate) fn next_value(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.stand, std::mem::take(&mut self.mark)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) | (_, Mark::Key) => Ok(None),
            (Stand::On, mark) => {
                let stays = mark == Mark::Value && self.pair()?.is_some();
                if stays || self.values.step()? { self.stepped() } else { Ok(None) }
            }
        }
    }

    /// To the value before of the same key.
    pub(crate) fn prev_value(&mut self) -> Result<Option<Pair<'p>>> {
        self.mark = Mark::None;
        match self.stand {
            Stand::Unset => self.last(),
            Stand::End => Ok(None),
            Stand::On => {
                if self.values.step_back()? {
                    self.stepped()
                } else {
                    Ok(None)
                }
            }
        }
    }

    /// To the first value of the next key.
    pub(crate) fn next_key(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.stand, std::mem::take(&mut self.mark)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) => Ok(None),
            (Stand::On, Mark::Key) => self.pair(),
            (Stand::On, _) => self.next_record(),
        }
    }

    /// To the last value of the key before.
    pub(crate) fn prev_key(&mut self) -> Result<Option<Pair<'p>>> {
        if self.stand != Stand::On {
            return self.last();
        }
        // Where there is none the place among the values stays, with its mark.
        if self.mark == Mark::Key {
            let several = !matches!(self.values, ValueCursor::One(_));
            self.mark = if several { Mark::Value } else { Mark::None };
        }
        self.eof = false;
        self.prev_record()
    }

    /// To the first or last value of the same key.
    pub(crate) fn edge_value(&mut self, last: bool) -> Result<Option<Pair<'p>>> {
        if self.stand == Stand::On { self.enter(last) } else { Ok(None) }
    }
}
