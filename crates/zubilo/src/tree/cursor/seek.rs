//! Searches: for a key, for a value of it, for a pair, in each direction.

use crate::error::Result;
use crate::tree::Pages;

use super::{InTable, Pair};

/// How what is to be found stands to what is given.
///
/// ```
/// use zubilo::Seek;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| {
///     let mut table = txn.table_or_create("t")?;
///     (0..100u8).step_by(10).try_for_each(|n| table.put([n], "value"))
/// })?;
/// let read = env.read()?;
/// let table = read.table("t")?;
/// let mut cursor = table.cursor();
/// let mut key = |seek, key: u8| cursor.seek_by(seek, [key]).map(|record| record.map(|r| r.0[0]));
/// assert_eq!(key(Seek::LessOrEqual, 45)?, Some(40));
/// assert_eq!(key(Seek::Greater, 50)?, Some(60));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
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

impl<'p, P: Pages<'p>> InTable<'_, P> {
    /// To the first value of `key`; nowhere when there is none.
    pub(crate) fn seek_exact(&mut self, key: &[u8]) -> Result<Option<Pair<'p>>> {
        if self.state.keys.seek(&self.keys(), key)? {
            return self.enter(false);
        }
        self.state.leave();
        Ok(None)
    }

    /// To the first value of the first key that is not less than `key`; after the last record when
    /// there is none.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<Option<Pair<'p>>> {
        self.state.keys.seek(&self.keys(), key)?;
        self.on_or_end()
    }

    pub(super) fn on_or_end(&mut self) -> Result<Option<Pair<'p>>> {
        if self.state.keys.is_nowhere() {
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
        if self.state.keys.seek(&self.keys(), key)? {
            self.enter(false)?;
            let same = self.seek_value(value)?;
            let is_there = match seek {
                Seek::Equal => same,
                Seek::GreaterOrEqual => self.pair()?.is_some(),
                Seek::Greater => {
                    if same {
                        self.step_value(false)?
                    } else {
                        self.pair()?.is_some()
                    }
                }
                Seek::LessOrEqual if same => true,
                Seek::LessOrEqual | Seek::Less => self.step_value(true)?,
            };
            if is_there {
                return self.pair();
            }
        }
        self.state.leave();
        Ok(None)
    }

    /// To the nearest key that compares so with `key`, at the end of its values that is nearer;
    /// after the last record, or nowhere if it was sought downwards, when there is none.
    pub(crate) fn seek_key_by(&mut self, seek: Seek, key: &[u8]) -> Result<Option<Pair<'p>>> {
        match seek {
            Seek::Equal => return self.seek_exact(key),
            Seek::GreaterOrEqual => return self.seek(key),
            _ => {}
        }
        let found = self.state.keys.seek(&self.keys(), key)?;
        match seek {
            Seek::Greater => {
                if found {
                    self.state.keys.next(&self.keys())?;
                }
                self.on_or_end()
            }
            _ if found && seek == Seek::LessOrEqual => self.enter(true),
            _ => {
                if self.state.keys.is_nowhere() {
                    self.state.keys.last(&self.keys())?;
                } else {
                    self.state.keys.prev(&self.keys())?;
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
        if !self.state.keys.seek(&self.keys(), key)? {
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
                self.state.leave();
                Ok(None)
            }
            Seek::GreaterOrEqual | Seek::Greater => {
                let skip = found && seek == Seek::Greater;
                if (!skip && self.pair()?.is_some()) || self.step_value(false)? {
                    return self.pair();
                }
                self.state.keys.next(&self.keys())?;
                self.on_or_end()
            }
            Seek::Less | Seek::LessOrEqual => {
                if (found && seek == Seek::LessOrEqual) || self.step_value(true)? {
                    return self.pair();
                }
                self.state.keys.prev(&self.keys())?;
                self.entered(true)
            }
        }
    }

    /// To the first value that is not less than `value`, or after the last one; whether it equals
    /// `value`. The way leads to a record.
    fn seek_value(&mut self, value: &[u8]) -> Result<bool> {
        self.seek_value_from(None, value)
    }
}
