//! Values of one size that lie packed: many at once, without a copy.

use crate::error::{Error, Result};
use crate::page::Items;
use crate::tree::Pages;

use super::values::ValueCursor;
use super::{PairCursor, Stand};

const NOT_FIXED: Error = Error::Incompatible("the table's values are not all of one size");

impl<'p, P: Pages<'p>> PairCursor<'p, P> {
    /// All values that lie packed where the cursor stands, and their size; the cursor then stands on
    /// the last of them.
    pub(crate) fn packed_here(&mut self) -> Result<Option<(&'p [u8], usize)>> {
        if !self.fixed {
            return Err(NOT_FIXED);
        }
        let Some((_, value)) = self.pair()? else { return Ok(None) };
        match &mut self.values {
            ValueCursor::One(_) => Ok(Some((value, value.len()))),
            ValueCursor::Set(set, i) => {
                *i = set.count() - 1;
                Ok(set.packed())
            }
            ValueCursor::Tree(cursor, _) => {
                let Some((_, Items::Packed(packed), _)) = cursor.position() else {
                    return Ok(None);
                };
                cursor.set_index(packed.count().saturating_sub(1));
                Ok(Some((packed.items(), packed.item_size())))
            }
        }
    }

    /// The same for the values behind those where the cursor stands, of the same key.
    pub(crate) fn packed_behind(&mut self) -> Result<Option<(&'p [u8], usize)>> {
        match self.next_value()? {
            Some(_) => self.packed_here(),
            None if self.fixed => Ok(None),
            None => Err(NOT_FIXED),
        }
    }

    /// The same for the leaf of values before the one where the cursor stands; where there is none it
    /// stays where it is.
    pub(crate) fn packed_before(&mut self) -> Result<Option<(&'p [u8], usize)>> {
        if !self.fixed {
            return Err(NOT_FIXED);
        }
        if self.stand == Stand::Unset {
            return match self.last()? {
                Some(_) => self.packed_before(),
                None => Ok(None),
            };
        }
        let ValueCursor::Tree(cursor, _) = &mut self.values else { return Ok(None) };
        let stood = cursor.position().map_or(0, |(_, _, index)| index);
        cursor.set_index(0);
        if self.values.step_back()? {
            return self.packed_here();
        }
        if let ValueCursor::Tree(cursor, _) = &mut self.values {
            cursor.set_index(stood);
        }
        Ok(None)
    }
}
