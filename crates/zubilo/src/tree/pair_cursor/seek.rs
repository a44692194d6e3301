//! Searches: for a key, for a value of it, for a pair, in each direction; and back to a place after a
//! change.

use crate::error::Result;
use crate::tree::Pages;

use super::values::ValueCursor;
use super::{Mark, Pair, PairCursor, Stand};

/// How what is to be found stands to what is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The greatest that is less.
    Less,
    /// The same, or the greatest that is less.
    LessOrEqual,
    /// The same.
    Equal,
    /// The same, or the least that is greater.
    GreaterOrEqual,
    /// The least that is greater.
    Greater,
}

impl<'p, P: Pages<'p>> PairCursor<'p, P> {
    /// To the first value of `key`; nowhere when there is none.
    pub(crate) fn seek_exact(&mut self, key: &[u8]) -> Result<Option<Pair<'p>>> {
        if self.keys.seek(key)? {
            return self.enter(false);
        }
        self.leave();
        Ok(None)
    }

    /// To the first value of the first key that is not less than `key`; behind the last record when
    /// there is none.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<Option<Pair<'p>>> {
        self.keys.seek(key)?;
        self.on_or_end()
    }

    fn on_or_end(&mut self) -> Result<Option<Pair<'p>>> {
        if self.keys.position().is_none() {
            self.end();
            return Ok(None);
        }
        self.enter(false)
    }

    /// To the nearest value of `key` that compares so with `value`; nowhere when there is none.
    pub(crate) fn seek_value_by(
        &mut self,
        seek: Seek,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Pair<'p>>> {
        if self.keys.seek(key)? {
            self.enter(false)?;
            let same = self.seek_value(value)?;
            let is_there = match seek {
                Seek::Equal => same,
                Seek::GreaterOrEqual => self.pair()?.is_some(),
                Seek::Greater => {
                    if same {
                        self.values.step()?
                    } else {
                        self.pair()?.is_some()
                    }
                }
                Seek::LessOrEqual if same => true,
                Seek::LessOrEqual | Seek::Less => self.values.step_back()?,
            };
            if is_there {
                return self.pair();
            }
        }
        self.leave();
        Ok(None)
    }

    /// To the nearest key that compares so with `key`, at the end of its values that is nearer;
    /// behind the last record, or nowhere if it was sought downwards, when there is none.
    pub(crate) fn seek_key_by(&mut self, seek: Seek, key: &[u8]) -> Result<Option<Pair<'p>>> {
        match seek {
            Seek::Equal => return self.seek_exact(key),
            Seek::GreaterOrEqual => return self.seek(key),
            _ => {}
        }
        let found = self.keys.seek(key)?;
        match seek {
            Seek::Greater => {
                if found {
                    self.keys.next()?;
                }
                self.on_or_end()
            }
            _ if found && seek == Seek::LessOrEqual => self.enter(true),
            _ => {
                if self.keys.position().is_none() {
                    self.keys.last()?;
                } else {
                    self.keys.prev()?;
                }
                self.entered(true)
            }
        }
    }

    /// To the nearest pair that compares so with the one given.
    pub(crate) fn seek_pair_by(
        &mut self,
        seek: Seek,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Pair<'p>>> {
        if !self.keys.seek(key)? {
            return match seek {
                Seek::Equal => self.seek_exact(key),
                Seek::Less | Seek::LessOrEqual => self.seek_key_by(Seek::Less, key),
                Seek::GreaterOrEqual | Seek::Greater => self.seek(key),
            };
        }
        self.enter(false)?;
        let found = self.seek_value(value)?;
        match seek {
            Seek::Equal if found => self.pair(),
            Seek::Equal => {
                self.leave();
                Ok(None)
            }
            Seek::GreaterOrEqual | Seek::Greater => {
                let skip = found && seek == Seek::Greater;
                if (!skip && self.pair()?.is_some()) || self.values.step()? {
                    return self.pair();
                }
                self.keys.next()?;
                self.on_or_end()
            }
            Seek::Less | Seek::LessOrEqual => {
                if (found && seek == Seek::LessOrEqual) || self.values.step_back()? {
                    return self.pair();
                }
                self.keys.prev()?;
                self.entered(true)
            }
        }
    }

    /// To the place of a pair that may be gone. If it is, the cursor stands at the gap, marked.
    /// Without a value: of a key, or with `behind` to the place behind its last value. True when
    /// what was sought is there.
    pub(crate) fn seek_back(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        behind: bool,
    ) -> Result<bool> {
        let mut found = self.keys.seek(key)?;
        self.on_or_end()?;
        if self.stand != Stand::On {
            return Ok(false);
        }
        if !found {
            self.mark = Mark::Key;
        } else if let Some(value) = value.filter(|_| self.duplicates) {
            found = self.seek_value(value)?;
            if !found {
                self.mark = Mark::Value;
            }
        } else if behind {
            self.enter(true)?;
            self.values.step_behind();
            self.mark = Mark::Value;
        }
        Ok(found)
    }

    /// To the first value that is not less than `value`, or behind the last one; whether it equals
    /// `value`. The keys' cursor stands on a record.
    pub(super) fn seek_value(&mut self, value: &[u8]) -> Result<bool> {
        let Some(record) = self.record()? else { return Ok(false) };
        let (values, found) = ValueCursor::at_value(self.pages, record, &self.order, value)?;
        self.values = values;
        Ok(found)
    }
}
