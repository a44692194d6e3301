//! Changing a table through a cursor.

use crate::error::{Error, Result};
use crate::tree::cursor::Stand;
use crate::txn::catalogue::TableRef;
use crate::txn::write::WriteTxn;

use super::parked::ParkedCursor;
use super::registry::CursorId;
use super::{PackedValues, Seek, as_packed, moves};

/// How a record is stored through a cursor; combined with `|`.
///
/// ```
/// use zubilo::PutFlags;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let mut table = txn.table_or_create("t")?;
/// let mut cursor = table.cursor_mut()?;
/// assert!(cursor.put("a", "1", PutFlags::APPEND)?);
/// assert!(!cursor.put("a", "2", PutFlags::NO_OVERWRITE)?);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutFlags(u8);

impl PutFlags {
    /// Replaces the value of a key; adds to its values where there can be many.
    pub const UPSERT: PutFlags = PutFlags(0);
    /// Only if the key is new (`NOOVERWRITE`).
    pub const NO_OVERWRITE: PutFlags = PutFlags(1);
    /// Only if the key does not have the value, where there can be many (`NODUPDATA`).
    pub const NO_DUP_DATA: PutFlags = PutFlags(2);
    /// Only if the key is greater than all (`APPEND`).
    pub const APPEND: PutFlags = PutFlags(4);
    /// Only if the value is greater than all of the key, where there can be many (`APPENDDUP`).
    pub const APPEND_DUP: PutFlags = PutFlags(8);

    /// Whether all of these are set.
    pub fn contains(self, flags: PutFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl std::ops::BitOr for PutFlags {
    type Output = PutFlags;

    fn bitor(self, other: PutFlags) -> PutFlags {
        PutFlags(self.0 | other.0)
    }
}

const NOWHERE: Error = Error::Invalid("the cursor stands on no record");

/// A cursor of the write transaction, through which its table can be changed. What it gives lives
/// until the next call.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// let mut table = txn.table_or_create("t")?;
/// (0..10u8).try_for_each(|n| table.put([n], "value"))?;
/// let mut cursor = table.cursor_mut()?;
/// while let Some((key, _)) = cursor.next()? {
///     if key[0] % 2 == 0 {
///         cursor.delete()?;
///     }
/// }
/// drop(cursor);
/// assert_eq!(table.len(), 5);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
pub struct WriteCursor<'t> {
    txn: &'t mut WriteTxn,
    id: CursorId,
    /// Nobody else knows it.
    own: bool,
}

impl Drop for WriteCursor<'_> {
    fn drop(&mut self) {
        if self.own {
            self.txn.close_cursor(self.id);
        }
    }
}

/// Runs a move on the cursor at its place; after an error it stands nowhere.
macro_rules! at_place {
    ($self:ident, $c:ident => $body:expr) => {{
        let txn = &mut *$self.txn;
        txn.check()?;
        let (table, state) = txn.cursors.place($self.id)?;
        let tree = txn.catalogue.tree(table)?;
        #[allow(unused_mut, reason = "not all moves change it")]
        let mut $c = state.at(txn.ws.view(), tree)?;
        let result = $body;
        if result.is_err() {
            state.leave();
        }
        result
    }};
}

impl<'t> WriteCursor<'t> {
    pub(in crate::txn) fn new(txn: &'t mut WriteTxn, id: CursorId, own: bool) -> WriteCursor<'t> {
        WriteCursor { txn, id, own }
    }

    /// See [`crate::Cursor::next`].
    #[expect(clippy::should_implement_trait, reason = "a cursor also goes back")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        at_place!(self, c => c.next())
    }

    moves!(at_place, '_);

    /// Where the cursor stands, to go on there in another transaction.
    pub fn park(&mut self) -> Result<ParkedCursor> {
        at_place!(self, c => ParkedCursor::of(&c))
    }

    /// The cursor's number in its transaction.
    pub(crate) fn id(&self) -> CursorId {
        self.id
    }

    /// Its table, which may have been dropped since the cursor was opened.
    fn table(&mut self) -> Result<TableRef> {
        let (table, _) = self.txn.cursors.place(self.id)?;
        self.txn.tree(table).map(|_| table)
    }

    fn has_duplicates(&self, table: TableRef) -> Result<bool> {
        Ok(self.txn.tree(table)?.desc.options.has_duplicates())
    }

    /// On a pair that was just stored.
    fn place_on(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.txn.cursors.place(self.id)?.1.place_on(key, value);
        Ok(())
    }

    /// Stores a record and places the cursor on it. If a flag forbids it nothing is stored, and false
    /// given; the cursor then stands on what is in the way where that is a record with this key.
    pub fn put(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        flags: PutFlags,
    ) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let table = self.table()?;
        self.txn.check_record(table, key, value)?;
        if self.in_the_way(table, key, Some(value), flags)? {
            return Ok(false);
        }
        let duplicates = self.has_duplicates(table)?;
        if duplicates {
            let new = self.txn.put_value(table, key, value)?;
            if !new && flags.contains(PutFlags::NO_DUP_DATA) {
                self.seek_pair(key, value)?;
                return Ok(false);
            }
        } else {
            self.txn.put(table, key, value, true)?;
        }
        self.place_on(key, duplicates.then_some(value))?;
        Ok(true)
    }

    /// Whether flags forbid to store a record.
    fn in_the_way(
        &mut self,
        table: TableRef,
        key: &[u8],
        value: Option<&[u8]>,
        flags: PutFlags,
    ) -> Result<bool> {
        if flags.contains(PutFlags::APPEND) {
            let behind = self.txn.is_behind(table, key)?;
            if !behind {
                self.last()?;
            }
            return Ok(!behind);
        }
        if flags.contains(PutFlags::NO_OVERWRITE) && self.txn.get(table, key)?.is_some() {
            self.seek_exact(key)?;
            return Ok(true);
        }
        if let (true, true, Some(value)) =
            (flags.contains(PutFlags::APPEND_DUP), self.has_duplicates(table)?, value)
            && !self.txn.is_value_behind(table, key, value)?
        {
            self.seek_exact(key)?;
            self.last_value()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Makes room for a value of `len` zero bytes under `key`, to be filled, and places the cursor on
    /// it (`RESERVE`); none if a flag forbids it. Not where a key can have many values.
    pub fn reserve(
        &mut self,
        key: impl AsRef<[u8]>,
        len: usize,
        flags: PutFlags,
    ) -> Result<Option<&mut [u8]>> {
        let key = key.as_ref();
        let table = self.table()?;
        if self.in_the_way(table, key, None, flags)? {
            return Ok(None);
        }
        // First the place: the value borrows the transaction.
        self.txn.cursors.note(&self.txn.ws, &self.txn.catalogue, table)?;
        self.place_on(key, None)?;
        self.txn.reserve(table, key, len).map(Some)
    }

    /// Adds many values of `size` bytes each to those of a key, in a table where all have one size
    /// (`MULTIPLE`), and places the cursor on the last one; gives how many were stored before a flag
    /// forbade one.
    ///
    /// ```
    /// use zubilo::{PutFlags, TableOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let options = TableOptions::new().fixed_duplicates();
    /// let mut txn = env.write()?;
    /// let mut numbers = txn.table_or_create_with("numbers", &options)?;
    /// let mut cursor = numbers.cursor_mut()?;
    /// // Three values of two bytes each.
    /// assert_eq!(cursor.put_many("key", b"aabbcc", 2, PutFlags::default())?, 3);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn put_many(
        &mut self,
        key: impl AsRef<[u8]>,
        values: &[u8],
        size: usize,
        flags: PutFlags,
    ) -> Result<usize> {
        let key = key.as_ref();
        let table = self.table()?;
        if !self.txn.tree(table)?.desc.options.is_fixed() {
            return Err(Error::incompatible("the table's values are not all of one size"));
        }
        if size == 0 || !values.len().is_multiple_of(size) {
            return Err(Error::Invalid("many values must be a multiple of their size"));
        }
        for (i, value) in values.chunks_exact(size).enumerate() {
            if !self.put(key, value, flags)? {
                return Ok(i);
            }
        }
        Ok(values.len() / size)
    }

    /// Replaces the value under the cursor (`CURRENT`), which stays on it. Where a key can have many
    /// values the new one goes where it belongs, and the cursor with it.
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut tags = txn.table_or_create_with("tags", &TableOptions::new().duplicates())?;
    /// tags.put("rust", "7")?;
    /// tags.put("rust", "8")?;
    /// let mut cursor = tags.cursor_mut()?;
    /// cursor.first()?;
    /// // Values of a key are sorted: the new one moves, and the cursor with it.
    /// cursor.put_current("9")?;
    /// assert_eq!(cursor.prev()?, Some((&b"rust"[..], &b"8"[..])));
    /// assert!(cursor.delete_key()?);
    /// drop(cursor);
    /// assert!(tags.is_empty());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn put_current(&mut self, value: impl AsRef<[u8]>) -> Result<()> {
        let value = value.as_ref();
        let table = self.table()?;
        let (key, old) = self.txn.under_cursor(self.id)?.ok_or(NOWHERE)?;
        self.txn.check_record(table, &key, value)?;
        let duplicates = self.has_duplicates(table)?;
        if !duplicates {
            self.txn.put(table, &key, value, true)?;
        } else {
            self.txn.swap_value(table, &key, &old, value)?;
        }
        self.place_on(&key, duplicates.then_some(value))
    }

    /// Deletes the record under the cursor, which then stands before the one that followed: the next
    /// step forward leads there. False when the cursor is after all values.
    pub fn delete(&mut self) -> Result<bool> {
        let table = self.table()?;
        if !self.is_placed()? {
            return Err(NOWHERE);
        }
        let Some((key, value)) = self.txn.under_cursor(self.id)? else { return Ok(false) };
        if self.has_duplicates(table)? {
            self.txn.delete_value(table, &key, &value)
        } else {
            self.txn.delete(table, &key)
        }
    }

    /// Deletes the key under the cursor with all its values (`NODUPDATA`).
    pub fn delete_key(&mut self) -> Result<bool> {
        let table = self.table()?;
        if !self.is_placed()? {
            return Err(NOWHERE);
        }
        let Some(key) = at_place!(self, c => c.key().map(|key| key.map(<[u8]>::to_vec)))? else {
            return Ok(false);
        };
        self.txn.delete(table, &key)
    }
}
