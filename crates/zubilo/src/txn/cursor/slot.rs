//! A cursor's place while nobody moves it: its way there, as long as the table does not change, or
//! *parked*, the key and value it stands on, which it seeks again when it is next asked.

use crate::dirty::View;
use crate::error::Result;
use crate::tree::pair_cursor::{Mark, PairCursor, Position, Stand, Successor};
use crate::tree::{Pages, Tree};

/// The place of a cursor.
#[derive(Clone, Default)]
pub(in crate::txn) struct Slot {
    /// Of the write transaction's cursors: which one it is.
    pub(super) serial: u64,
    /// Index of its table.
    pub(super) table: usize,
    pub(super) position: Position,
    /// The position is told by key and value instead of by its way.
    pub(super) parked: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Of a parked cursor: on this value, behind the key's values, or just on the key.
    at: At,
    /// In a caller's order: where it was, to look for the record by its bytes; see `near`.
    near: Option<Box<Position>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Key,
    Value,
    Behind,
}

impl Slot {
    /// Of a cursor that stands nowhere yet.
    pub(super) fn new(serial: u64, table: usize) -> Slot {
        Slot { serial, table, ..Slot::default() }
    }

    /// The cursor at its place.
    pub(in crate::txn) fn resume<'w, P: Pages<'w>>(
        &mut self,
        pages: P,
        tree: &Tree,
    ) -> Result<PairCursor<'w, P>> {
        let position = std::mem::take(&mut self.position);
        if !std::mem::take(&mut self.parked) {
            return PairCursor::resume(pages, tree, position);
        }
        self.sought(pages, tree, &position)
    }

    /// A cursor that has sought the key and value that are noted.
    fn sought<'w, P: Pages<'w>>(
        &self,
        pages: P,
        tree: &Tree,
        position: &Position,
    ) -> Result<PairCursor<'w, P>> {
        let mut cursor = PairCursor::new(pages, tree);
        let value = (self.at == At::Value).then_some(&self.value[..]);
        let found = cursor.seek_back(&self.key, value, self.at == At::Behind)?;
        // Before a record it stays, whatever becomes of the record's values.
        if found || (position.mark == Mark::Key && cursor.mark() == Mark::Value) {
            cursor.set_flags(position.mark, position.eof);
        }
        Ok(cursor)
    }

    /// As `resume`, and a caller's function is not asked: the record is looked for by its bytes, near
    /// where it was.
    pub(in crate::txn) fn near<'w, P: Pages<'w>>(
        &mut self,
        pages: P,
        tree: &Tree,
    ) -> Result<PairCursor<'w, P>> {
        let Some(near) = self.near.take().filter(|_| self.parked) else {
            return self.resume(pages, tree);
        };
        let mut cursor = PairCursor::new(pages, tree);
        let value = (self.at == At::Value).then_some(&self.value[..]);
        let found = cursor.seek_near(&near, &self.key, value, self.at == At::Behind)?;
        let position = std::mem::take(&mut self.position);
        self.parked = false;
        if found || (position.mark == Mark::Key && cursor.mark() == Mark::Value) {
            cursor.set_flags(position.mark, position.eof);
        }
        Ok(cursor)
    }

    /// Keeps the way to a cursor in a caller's order beside what `note` keeps.
    pub(in crate::txn) fn note_near<'w, P: Pages<'w>>(
        &mut self,
        cursor: &PairCursor<'w, P>,
    ) -> Result<()> {
        self.note(cursor)?;
        if self.parked && cursor.is_custom() {
            self.near = Some(Box::new(cursor.place()));
        }
        Ok(())
    }

    /// Whether the parked cursor stands on a pair with these bytes, or without a value on this key.
    pub(in crate::txn) fn is_noted(&self, key: &[u8], value: Option<&[u8]>) -> bool {
        let on = |value| self.at == At::Value && self.value == value;
        self.parked && self.key == key && value.is_none_or(on)
    }

    /// The pair under it was removed at `near`: before what followed.
    pub(in crate::txn) fn place_before(&mut self, next: Option<&Successor>, near: &Position) {
        let before_record = self.position.mark == Mark::Key;
        self.forget();
        let Some(next) = next else {
            self.position = Position::end();
            return;
        };
        let mark = if before_record { Mark::Key } else { next.mark };
        self.place_on(&next.key, next.value.as_deref());
        if next.value.is_none() && next.mark == Mark::Value {
            self.at = At::Behind;
        }
        self.position = Position::parked(mark, false);
        self.near = Some(Box::new(near.clone()));
    }

    /// The cursor at the place that `note` has kept, as often as wanted.
    pub(super) fn again<'w, P: Pages<'w>>(
        &self,
        pages: P,
        tree: &Tree,
    ) -> Result<PairCursor<'w, P>> {
        if self.parked {
            return self.sought(pages, tree, &self.position);
        }
        PairCursor::resume(pages, tree, self.position.clone())
    }

    /// Stands nowhere; the memory for keys and values is kept.
    pub(super) fn forget(&mut self) {
        self.position = Position::default();
        self.parked = false;
        self.near = None;
    }

    /// Whether it stands on a record, or behind the last one.
    pub(super) fn is_placed(&self) -> bool {
        self.position.stand != Stand::Unset
    }

    /// The key that is noted.
    pub(in crate::txn) fn noted_key(&self) -> Option<&[u8]> {
        self.parked.then_some(&self.key[..])
    }

    /// The pair that is noted; no value where the table keeps one under a key.
    pub(super) fn noted_pair(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let on = self.parked && self.at != At::Behind;
        on.then(|| (self.key.clone(), self.value.clone()))
    }

    /// Stands where another does that `note` has kept.
    pub(super) fn place_as(&mut self, other: &Slot) {
        let (serial, table) = (self.serial, self.table);
        *self = Slot { serial, table, ..other.clone() };
    }

    /// Keeps the place of a cursor that was resumed; after an error it stands nowhere.
    pub(super) fn keep<'w, T>(&mut self, cursor: PairCursor<'w, View<'w>>, result: &Result<T>) {
        self.position = if result.is_ok() { cursor.detach() } else { Position::default() };
        self.parked = false;
    }

    /// Replaces the way by key and value.
    pub(super) fn park(&mut self, pages: View<'_>, tree: &Tree) -> Result<()> {
        if self.parked || self.position.stand != Stand::On {
            return Ok(());
        }
        let cursor = self.resume(pages, tree)?;
        self.note(&cursor)
    }

    /// Keeps the key and value that a cursor stands on.
    pub(in crate::txn) fn note<'w, P: Pages<'w>>(
        &mut self,
        cursor: &PairCursor<'w, P>,
    ) -> Result<()> {
        self.forget();
        if cursor.stand() != Stand::On {
            self.position = cursor.off_records();
            return Ok(());
        }
        let Some(key) = cursor.key()? else { return Ok(()) };
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.at = match cursor.pair()? {
            None => At::Behind,
            Some((_, value)) if cursor.has_duplicates() => {
                self.value.extend_from_slice(value);
                At::Value
            }
            Some(_) => At::Key,
        };
        self.position = Position::parked(cursor.mark(), cursor.is_past());
        self.parked = true;
        Ok(())
    }

    /// Stands on a pair that was just stored.
    pub(in crate::txn) fn place_on(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value.unwrap_or_default());
        self.at = if value.is_some() { At::Value } else { At::Key };
        self.position = Position::parked(Mark::None, false);
        self.parked = true;
        self.near = None;
    }

    /// Where it is parked on a value another one is now.
    pub(in crate::txn) fn replace_value(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value);
    }

    /// Whether the parked cursor stands on this pair, or without a value on this key.
    pub(in crate::txn) fn stands_on(&self, tree: &Tree, key: &[u8], value: Option<&[u8]>) -> bool {
        self.parked
            && tree.order.compare(&self.key, key).is_eq()
            && match value.filter(|_| tree.desc.options.has_duplicates()) {
                Some(value) => {
                    self.at == At::Value && tree.values.compare(&self.value, value).is_eq()
                }
                None => true,
            }
    }
}
