//! Values of one size that lie packed: many at once, without a copy.

use crate::error::{Error, Result};
use crate::page::Packed;
use crate::tree::place::{Place, TreeView};
use crate::tree::values::Values;
use crate::tree::{Located, Pages, Ref};

use super::{InTable, Stand, ValuePlace};

const NOT_FIXED: Error = Error::incompatible("the table's values are not all of one size");

impl<'p, P: Pages<'p>> InTable<'_, P> {
    fn check_fixed(&self) -> Result<()> {
        if self.tree.desc.options.is_fixed() { Ok(()) } else { Err(NOT_FIXED) }
    }

    /// The leaf of values that a place leads to.
    fn leaf_of_values(&self, place: &Place) -> Result<Option<Located<Packed<'p>>>> {
        place.leaf(&TreeView::below(self.pages, (Ref::NONE, 0), &self.tree.values))
    }

    /// All values that lie packed where the cursor stands, and their size; the cursor then stands on
    /// the last of them.
    pub(crate) fn packed_here(&mut self) -> Result<Option<(&'p [u8], usize)>> {
        self.check_fixed()?;
        let Some((_, value)) = self.pair()? else { return Ok(None) };
        let packed = match &self.state.values {
            ValuePlace::Set(_) => match self.record()? {
                Some(Values::Set(set)) => set,
                _ => return Ok(None),
            },
            ValuePlace::Tree(place) => match self.leaf_of_values(place)? {
                Some(leaf) => leaf,
                None => return Ok(None),
            },
            ValuePlace::One | ValuePlace::Behind => return Ok(Some((value, value.len()))),
        };
        match &mut self.state.values {
            ValuePlace::Set(i) => *i = packed.count() - 1,
            ValuePlace::Tree(place) => place.go_to_edge(true),
            ValuePlace::One | ValuePlace::Behind => {}
        }
        Ok(packed.of_one_size())
    }

    /// The same for the values behind those where the cursor stands, of the same key.
    pub(crate) fn packed_behind(&mut self) -> Result<Option<(&'p [u8], usize)>> {
        match self.next_value()? {
            Some(_) => self.packed_here(),
            None => self.check_fixed().map(|()| None),
        }
    }

    /// The same for the leaf of values before the one where the cursor stands; where there is none it
    /// stays where it is.
    pub(crate) fn packed_before(&mut self) -> Result<Option<(&'p [u8], usize)>> {
        self.check_fixed()?;
        if self.state.stand == Stand::Unset {
            return match self.last()? {
                Some(_) => self.packed_before(),
                None => Ok(None),
            };
        }
        let ValuePlace::Tree(place) = &mut self.state.values else { return Ok(None) };
        let stood = place.clone();
        place.go_to_edge(false);
        if self.step_value(true)? {
            return self.packed_here();
        }
        self.state.values = ValuePlace::Tree(stood);
        Ok(None)
    }
}
