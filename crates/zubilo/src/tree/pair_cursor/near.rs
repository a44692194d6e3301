//! Back to a place after changes without asking a caller's function, which is only called about what
//! its caller hands in, never about two stored items. The record is known by its bytes; the indexes on
//! the way to it, from before the changes, say where to begin to look.
//!
//! Each change of one record moves others by one place at most, so that the search is as long as the
//! number of changes since; splits and a new root are followed exactly.

use crate::error::Result;
use crate::tree::Pages;

use super::values::{ValueCursor, ValuePlace};
use super::{Mark, PairCursor, Position};

impl<'p, P: Pages<'p>> PairCursor<'p, P> {
    /// Whether keys or values are in a caller's order.
    pub(crate) fn is_custom(&self) -> bool {
        self.keys.order().is_plain() || (self.duplicates && self.order.is_plain())
    }

    /// The place, and the cursor stays.
    pub(crate) fn place(&self) -> Position {
        self.clone().detach()
    }

    /// As `seek_back`, from a place near by.
    pub(crate) fn seek_near(
        &mut self,
        near: &Position,
        key: &[u8],
        value: Option<&[u8]>,
        behind: bool,
    ) -> Result<bool> {
        let mut found = if self.keys.order().is_plain() {
            self.keys.seek_near(&near.path, key)?
        } else {
            self.keys.seek(key)?
        };
        if self.keys.position().is_none() {
            self.end();
            return Ok(false);
        }
        self.enter(false)?;
        if !found {
            self.mark = Mark::Key;
        } else if let Some(value) = value.filter(|_| self.duplicates) {
            found = self.seek_value_near(&near.values, value)?;
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

    /// To the value of this record with these bytes, or where it may have been.
    fn seek_value_near(&mut self, near: &ValuePlace, value: &[u8]) -> Result<bool> {
        if !self.order.is_plain() {
            return self.seek_value(value);
        }
        let Some((at, _)) = self.record()? else { return Ok(false) };
        match &mut self.values {
            ValueCursor::One(_) => Ok(self.pair()?.is_some_and(|(_, own)| own == value)),
            ValueCursor::Set(set, i) => {
                for place in 0..set.count() {
                    if set.item(place).map_err(at.damaged())? == value {
                        *i = place;
                        return Ok(true);
                    }
                }
                *i = near.index().min(set.count());
                Ok(false)
            }
            ValueCursor::Tree(cursor, _) => match near {
                ValuePlace::Tree(path) => cursor.seek_near(path, value),
                _ => cursor.seek_near(&Default::default(), value),
            },
        }
    }

    /// What follows the pair under the cursor, or with `all` its key: where a cursor on it stands when
    /// it is gone. None behind the last record.
    pub(crate) fn successor(&self, all: bool) -> Result<Option<Successor>> {
        let mut next = self.clone();
        next.set_flags(Mark::None, false);
        if all || self.count()?.is_none_or(|count| count < 2) {
            let Some((key, value)) = next.next_key()? else { return Ok(None) };
            let value = self.duplicates.then(|| value.to_vec());
            return Ok(Some(Successor { key: key.to_vec(), value, mark: Mark::Key }));
        }
        let key = self.key()?.unwrap_or_default().to_vec();
        let value = next.next_value()?.map(|(_, value)| value.to_vec());
        Ok(Some(Successor { key, value, mark: Mark::Value }))
    }
}

/// What follows a pair that is removed.
#[derive(Clone)]
pub(crate) struct Successor {
    pub(crate) key: Vec<u8>,
    /// None behind the last value of the key, and where tables keep one.
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) mark: Mark,
}

impl Position {
    /// The way to the record, and the place among its values.
    pub(crate) fn into_way(self) -> (crate::tree::Path, ValuePlace) {
        (self.path, self.values)
    }
}
