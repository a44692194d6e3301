//! Steps: to the record, value or key before or behind, and to the ends.

use crate::error::Result;
use crate::page::{ValueKind, entry_of};
use crate::tree::Pages;

use super::{CursorState, Gap, InTable, Pair, Stand, ValuePlace};

impl CursorState {
    /// A step forward that is simple: from one record of a leaf to the next, both with no more than a small
    /// value. Else nothing moves. The way must be right.
    #[inline(always)]
    pub(crate) fn step_in_leaf<'p, P: Pages<'p>>(&mut self, pages: &P) -> Option<Pair<'p>> {
        if self.stand != Stand::On
            || self.gap != Gap::None
            || !matches!(self.values, ValuePlace::One)
        {
            return None;
        }
        let step = self.keys.last_step()?;
        let page = pages.page_again(step.page)?;
        let entry = entry_of(page, step.count as usize, step.index as usize + 1)?;
        if entry.kind != ValueKind::Inline {
            return None;
        }
        step.index += 1;
        self.eof = false;
        Some((entry.key, entry.value))
    }
}

impl<'p, P: Pages<'p>> InTable<'_, P> {
    pub(crate) fn first(&mut self) -> Result<Option<Pair<'p>>> {
        self.state.keys.first(&self.keys())?;
        self.entered(false)
    }

    pub(crate) fn last(&mut self) -> Result<Option<Pair<'p>>> {
        self.state.keys.last(&self.keys())?;
        self.entered(true)
    }

    /// To the next pair; where the cursor stands nowhere yet, to the first.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Pair<'p>>> {
        match self.state.step_in_leaf(&self.pages) {
            Some(pair) => Ok(Some(pair)),
            None => self.next_slowly(),
        }
    }

    fn next_slowly(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.state.stand, std::mem::take(&mut self.state.gap)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) => Ok(None),
            (Stand::On, Gap::Key) => self.pair(),
            (Stand::On, gap) => {
                let stays = gap == Gap::Value && self.pair()?.is_some();
                if stays || self.step_value(false)? { self.stepped() } else { self.next_record() }
            }
        }
    }

    /// The value to which a step led.
    #[inline]
    fn stepped(&mut self) -> Result<Option<Pair<'p>>> {
        self.state.eof = false;
        self.pair()
    }

    #[inline]
    fn next_record(&mut self) -> Result<Option<Pair<'p>>> {
        if self.state.keys.next(&self.keys())? {
            return self.enter(false);
        }
        self.state.keys.last(&self.keys())?;
        self.state.eof = true;
        Ok(None)
    }

    fn prev_record(&mut self) -> Result<Option<Pair<'p>>> {
        if self.state.keys.prev(&self.keys())? {
            return self.enter(true);
        }
        self.state.keys.first(&self.keys())?;
        Ok(None)
    }

    /// To the pair before; where the cursor stands nowhere yet, to the last.
    pub(crate) fn prev(&mut self) -> Result<Option<Pair<'p>>> {
        self.state.gap = Gap::None;
        if self.state.stand != Stand::On {
            return self.last();
        }
        self.state.eof = false;
        if self.step_value(true)? { self.pair() } else { self.prev_record() }
    }

    /// To the next value of the same key.
    pub(crate) fn next_value(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.state.stand, std::mem::take(&mut self.state.gap)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) | (_, Gap::Key) => Ok(None),
            (Stand::On, gap) => {
                let stays = gap == Gap::Value && self.pair()?.is_some();
                if stays || self.step_value(false)? { self.stepped() } else { Ok(None) }
            }
        }
    }

    /// To the value before of the same key.
    pub(crate) fn prev_value(&mut self) -> Result<Option<Pair<'p>>> {
        self.state.gap = Gap::None;
        match self.state.stand {
            Stand::Unset => self.last(),
            Stand::End => Ok(None),
            Stand::On => {
                if self.step_value(true)? {
                    self.stepped()
                } else {
                    Ok(None)
                }
            }
        }
    }

    /// To the first value of the next key.
    pub(crate) fn next_key(&mut self) -> Result<Option<Pair<'p>>> {
        match (self.state.stand, std::mem::take(&mut self.state.gap)) {
            (Stand::Unset, _) => self.first(),
            (Stand::End, _) => Ok(None),
            (Stand::On, Gap::Key) => self.pair(),
            (Stand::On, _) => self.next_record(),
        }
    }

    /// To the last value of the key before.
    pub(crate) fn prev_key(&mut self) -> Result<Option<Pair<'p>>> {
        if self.state.stand != Stand::On {
            return self.last();
        }
        // Where there is none the place among the values stays, with its gap.
        if self.state.gap == Gap::Key {
            self.state.gap = match self.state.values {
                ValuePlace::One | ValuePlace::Behind => Gap::None,
                ValuePlace::Set(_) | ValuePlace::Tree(_) => Gap::Value,
            };
        }
        self.state.eof = false;
        self.prev_record()
    }

    /// To the first or last value of the same key.
    pub(crate) fn edge_value(&mut self, last: bool) -> Result<Option<Pair<'p>>> {
        if self.state.stand == Stand::On { self.enter(last) } else { Ok(None) }
    }
}
