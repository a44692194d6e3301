//! Records that are noted before their tree changes, and how they are found again.
//!
//! A noted record is sought by its key and value. In a caller's order the C interface wants its function
//! asked only about what its caller hands in, never about two stored items: there the record is known by
//! its bytes, and the indexes on the way to it, from before the changes, say where to begin to look. Each
//! change of one record moves others by one place at most, so that the search is as long as the number of
//! changes since; splits and a new root are followed exactly.

use crate::error::Result;
use crate::tree::place::Place;
use crate::tree::{Pages, Tree};

use super::{CursorState, Gap, InTable, Stand, ValuePlace};

/// What is noted of the record under a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Noted {
    #[default]
    Nothing,
    /// The key, of which the cursor stands on the first value.
    Key,
    /// Key and value.
    Value,
    /// The key; the cursor stands behind its values.
    Behind,
}

/// A record to be noted: how, its key and its value.
type Seen<'p> = (Noted, &'p [u8], &'p [u8]);

/// The stamp of a place that is right in no version of the tree.
const NEVER: u64 = u64::MAX;

/// What follows a pair that is removed.
#[derive(Clone)]
pub(crate) struct Successor {
    key: Vec<u8>,
    /// None after the last value of the key, and where tables keep one.
    value: Option<Vec<u8>>,
    gap: Gap,
}

/// A pair, or a key with all its values, that was removed, and what followed.
pub(crate) struct Removed {
    pub(crate) key: Vec<u8>,
    /// None where it was a key with all it had.
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) next: Option<Successor>,
    /// Where it was.
    pub(crate) place: (Place, ValuePlace),
}

impl CursorState {
    /// Keeps the key and value it stands on, before the tree changes or its pages go. After an error it
    /// stands nowhere.
    pub(crate) fn note<'p, P: Pages<'p>>(&mut self, pages: P, tree: &Tree) -> Result<()> {
        if self.stand != Stand::On || self.noted != Noted::Nothing {
            return Ok(());
        }
        // Else nobody noted the record before a change.
        let is_right = self.stamp == tree.version;
        let seen = if is_right { self.seen(pages, tree) } else { Ok(None) };
        match seen {
            Ok(Some(seen)) => self.keep(seen),
            Ok(None) => self.leave(),
            Err(error) => {
                self.leave();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Stands where another one does, which it notes. The way leads nowhere.
    pub(crate) fn note_of<'p, P: Pages<'p>>(
        &mut self,
        other: &CursorState,
        pages: P,
        tree: &Tree,
    ) -> Result<()> {
        self.leave();
        self.stamp = NEVER;
        if other.stand == Stand::On {
            let Some(seen) = other.seen(pages, tree)? else { return Ok(()) };
            self.keep(seen);
        }
        (self.stand, self.gap, self.eof) = (other.stand, other.gap, other.eof);
        Ok(())
    }

    /// What there is to be noted, if there is a key.
    fn seen<'p, P: Pages<'p>>(&self, pages: P, tree: &Tree) -> Result<Option<Seen<'p>>> {
        let Some(key) = self.key(pages, tree)? else { return Ok(None) };
        Ok(Some(match self.pair(pages, tree)? {
            None => (Noted::Behind, key, &[]),
            Some((_, value)) if tree.desc.options.has_duplicates() => (Noted::Value, key, value),
            Some(_) => (Noted::Key, key, &[]),
        }))
    }

    fn keep(&mut self, (noted, key, value): Seen<'_>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value);
        self.noted = noted;
    }

    /// The way is right no more, whatever becomes of the tree: its pages go.
    pub(crate) fn lose_way(&mut self) {
        self.stamp = NEVER;
    }

    /// Finds the noted record again, in the tree as it is now.
    #[cold]
    pub(super) fn find_again<'p, P: Pages<'p>>(&mut self, pages: P, tree: &Tree) -> Result<()> {
        let (noted, gap, eof) = (std::mem::take(&mut self.noted), self.gap, self.eof);
        self.stamp = tree.version;
        match (self.stand, noted) {
            (Stand::On, Noted::Nothing) => self.leave(),
            (Stand::On, _) => {}
            _ => return Ok(()),
        }
        let (key, value) = (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
        let sought = (noted == Noted::Value).then_some(&value[..]);
        let found = self.seek_noted(pages, tree, &key, sought, noted == Noted::Behind);
        (self.key, self.value) = (key, value);
        // Before a record it stays, whatever becomes of the record's values.
        match found {
            Ok(found) if found || (gap == Gap::Key && self.gap == Gap::Value) => {
                (self.gap, self.eof) = (gap, eof);
            }
            Ok(_) => {}
            Err(error) => {
                self.leave();
                return Err(error);
            }
        }
        Ok(())
    }

    fn seek_noted<'p, P: Pages<'p>>(
        &mut self,
        pages: P,
        tree: &Tree,
        key: &[u8],
        value: Option<&[u8]>,
        behind: bool,
    ) -> Result<bool> {
        let near = (std::mem::take(&mut self.keys), std::mem::take(&mut self.values));
        let custom = tree.order.is_custom()
            || (tree.desc.options.has_duplicates() && tree.values.is_custom());
        let by_bytes = self.by_bytes && custom && !near.0.is_nowhere();
        let mut cursor = InTable { pages, tree, state: self };
        cursor.seek_from(by_bytes.then_some(&near), key, value, behind)
    }

    /// Stands on a pair that was just stored.
    pub(crate) fn place_on(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.leave();
        let noted = if value.is_some() { Noted::Value } else { Noted::Key };
        self.keep((noted, key, value.unwrap_or_default()));
        (self.stand, self.stamp) = (Stand::On, NEVER);
    }

    /// The pair under it was removed: before what followed.
    fn place_before(&mut self, removed: &Removed) {
        let before_record = self.gap == Gap::Key;
        let Some(next) = &removed.next else {
            self.leave();
            (self.stand, self.eof) = (Stand::End, true);
            return;
        };
        self.place_on(&next.key, next.value.as_deref());
        if next.value.is_none() && next.gap == Gap::Value {
            self.noted = Noted::Behind;
        }
        self.gap = if before_record { Gap::Key } else { next.gap };
        (self.keys, self.values) = removed.place.clone();
    }

    /// Where its record was noted and then removed it stands before what followed.
    pub(crate) fn follow(&mut self, removed: &Removed) {
        if self.is_noted(&removed.key, removed.value.as_deref()) {
            self.place_before(removed);
        }
    }

    /// Its record was removed: to where another cursor of the same table has found what followed.
    pub(crate) fn stand_as(&mut self, other: &CursorState) {
        let before_record = self.gap == Gap::Key;
        (self.keys, self.values) = (other.keys.clone(), other.values.clone());
        (self.stand, self.gap, self.eof) = (other.stand, other.gap, other.eof);
        (self.noted, self.stamp) = (Noted::Nothing, other.stamp);
        if before_record && self.gap == Gap::Value {
            self.gap = Gap::Key;
        }
    }

    /// Where it is noted on a value another one is now.
    pub(crate) fn replace_value(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value);
    }

    /// The key that is noted.
    pub(crate) fn noted_key(&self) -> Option<&[u8]> {
        (self.noted != Noted::Nothing).then_some(&self.key[..])
    }

    /// The pair that is noted; no value where the table keeps one under a key.
    pub(crate) fn noted_pair(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let on = matches!(self.noted, Noted::Key | Noted::Value);
        on.then(|| (self.key.clone(), self.value.clone()))
    }

    /// Whether a pair with these bytes is noted, or without a value this key.
    pub(crate) fn is_noted(&self, key: &[u8], value: Option<&[u8]>) -> bool {
        let on = |value| self.noted == Noted::Value && self.value == value;
        self.noted != Noted::Nothing && self.key == key && value.is_none_or(on)
    }

    /// Whether this pair is noted, or without a value this key; as the table orders them.
    pub(crate) fn stands_on(&self, tree: &Tree, key: &[u8], value: Option<&[u8]>) -> bool {
        self.noted != Noted::Nothing
            && tree.order.compare(&self.key, key).is_eq()
            && match value.filter(|_| tree.desc.options.has_duplicates()) {
                Some(value) => {
                    self.noted == Noted::Value && tree.values.compare(&self.value, value).is_eq()
                }
                None => true,
            }
    }
}

impl<'p, P: Pages<'p>> InTable<'_, P> {
    /// To the place of a pair that may be gone. If it is, the cursor stands at the gap.
    /// Without a value: of a key, or with `behind` to the place behind its last value. True when
    /// what was sought is there.
    pub(crate) fn seek_back(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        behind: bool,
    ) -> Result<bool> {
        self.seek_from(None, key, value, behind)
    }

    /// As `seek_back`; keys and values in a caller's order are looked for by their bytes, near a place of
    /// before.
    fn seek_from(
        &mut self,
        near: Option<&(Place, ValuePlace)>,
        key: &[u8],
        value: Option<&[u8]>,
        behind: bool,
    ) -> Result<bool> {
        let mut found = match near.filter(|_| self.tree.order.is_custom()) {
            Some((near, _)) => self.state.keys.seek_near(&self.keys(), near.path(), key)?,
            None => self.state.keys.seek(&self.keys(), key)?,
        };
        self.on_or_end()?;
        if self.state.stand != Stand::On {
            return Ok(false);
        }
        if !found {
            self.state.gap = Gap::Key;
        } else if let Some(value) = value.filter(|_| self.has_duplicates()) {
            let near = near.map(|(_, near)| near).filter(|_| self.tree.values.is_custom());
            found = self.seek_value_from(near, value)?;
            if !found {
                self.state.gap = Gap::Value;
            }
        } else if behind {
            self.enter(true)?;
            self.state.values.step_behind();
            self.state.gap = Gap::Value;
        }
        Ok(found)
    }

    /// To the first value that is not less than `value`, or after the last one; or near a place to the
    /// one with these bytes, or where it may have been. Whether it is there. The way leads to a record.
    pub(super) fn seek_value_from(
        &mut self,
        near: Option<&ValuePlace>,
        value: &[u8],
    ) -> Result<bool> {
        let Some(values) = self.record()? else { return Ok(false) };
        let (pages, order) = (self.pages, &self.tree.values);
        let (place, found) = match near {
            Some(near) => ValuePlace::at_bytes(pages, values, order, near, value)?,
            None => ValuePlace::at_value(pages, values, order, value)?,
        };
        self.state.values = place;
        Ok(found)
    }

    /// What follows the pair under the cursor, or with `all` its key: where a cursor on it stands when
    /// it is gone. None after the last record.
    pub(crate) fn successor(&self, all: bool) -> Result<Option<Successor>> {
        let mut state = self.state.clone();
        let mut next = InTable { pages: self.pages, tree: self.tree, state: &mut state };
        next.set_flags(Gap::None, false);
        if all || self.count()?.is_none_or(|count| count < 2) {
            let Some((key, value)) = next.next_key()? else { return Ok(None) };
            let value = self.has_duplicates().then(|| value.to_vec());
            return Ok(Some(Successor { key: key.to_vec(), value, gap: Gap::Key }));
        }
        let key = self.key()?.unwrap_or_default().to_vec();
        let value = next.next_value()?.map(|(_, value)| value.to_vec());
        Ok(Some(Successor { key, value, gap: Gap::Value }))
    }

    /// The way to the record, and the place among its values.
    pub(crate) fn place(&self) -> (Place, ValuePlace) {
        (self.state.keys.clone(), self.state.values.clone())
    }
}
