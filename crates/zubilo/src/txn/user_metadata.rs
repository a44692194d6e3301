//! What users keep beside records: three numbers of the store, the sequence of a table. And how far a
//! reader lags, and which bytes may change.

use crate::error::{Error, Result};
use crate::num::TxnId;
use crate::redo::Op;

use super::catalogue::TableRef;
use super::read::{ReadTable, ReadTxn};
use super::write::WriteTxn;
use super::write_table::WriteTable;

/// Three numbers of the user, committed atomically with the transaction that sets them.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// txn.set_user_words([1, 2, 3])?;
/// let commit = txn.commit()?;
/// let words = env.read()?.user_words();
/// assert_eq!((words.words, words.txn), ([1, 2, 3], commit));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserWords {
    /// The numbers; zeros until they are set.
    pub words: [u64; 3],
    /// Transaction that set them; 0 if none has.
    pub txn: TxnId,
}

impl UserWords {
    fn of(stored: &[u64; 4]) -> UserWords {
        let [a, b, c, txn] = *stored;
        UserWords { words: [a, b, c], txn: TxnId(txn) }
    }
}

/// How far a read transaction lags.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let read = env.read()?;
/// env.write()?.commit()?;
/// let lag = read.reader_lag()?;
/// assert!(lag.commits <= 1 && (0.0..=1.0).contains(&lag.used));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReaderLag {
    /// Commits made since its snapshot.
    pub commits: u64,
    /// Share of the store's upper bound that is or was in use, 0 to 1: at 1 it has
    /// reached the upper bound of its geometry, or the end of the reserved address space, and only
    /// pages that come free are left.
    pub used: f64,
}

impl ReadTxn {
    /// The user's three numbers as of this snapshot.
    pub fn user_words(&self) -> UserWords {
        UserWords::of(&self.root().user_words)
    }

    /// How many commits this snapshot lags behind the newest, and how full the store is: whether it
    /// is time to end the transaction or to [`ReadTxn::refresh`] it.
    pub fn reader_lag(&self) -> Result<ReaderLag> {
        let env = self.env();
        env.check_alive()?;
        let newest = env.newest_meta()?;
        let limit = env.page_limit(&newest.geometry).max(1);
        let commits = newest.txn.saturating_sub(self.id().0);
        Ok(ReaderLag { commits, used: newest.end as f64 / limit as f64 })
    }
}

impl WriteTxn {
    /// The user's three numbers, as of now.
    pub fn user_words(&self) -> UserWords {
        UserWords::of(self.catalogue.user_words())
    }

    /// Sets the user's three numbers; this transaction's number goes with it.
    pub fn set_user_words(&mut self, words: [u64; 3]) -> Result<()> {
        self.check()?;
        let [a, b, c] = words;
        self.catalogue.set_user_words([a, b, c, self.id().0]);
        self.note_words(words);
        Ok(())
    }

    /// Whether bytes that this transaction gave may change or go with the next change: those of what
    /// it has changed itself. All others stay as they are until it ends. Also true of bytes that are
    /// not the store's.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
    /// let mut txn = env.write()?;
    /// let mut table = txn.table("t")?;
    /// // A value in the file, and one that this transaction may change in place.
    /// assert!(!table.is_dirty(table.get("key")?.expect("it is there")));
    /// table.put("key", "other")?;
    /// assert!(table.is_dirty(table.get("key")?.expect("it is there")));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn is_dirty(&self, bytes: &[u8]) -> bool {
        // Nothing of an empty value can change, and its address need not be that of its record.
        !bytes.is_empty() && self.ws.is_dirty(bytes.as_ptr())
    }

    pub(super) fn sequence(&mut self, table: TableRef, count: u64) -> Result<u64> {
        let next = self.tree(table)?.desc.sequence;
        if count == 0 {
            self.check()?;
            return Ok(next);
        }
        let after = next.checked_add(count);
        let after = after.ok_or(Error::Invalid("the table's sequence is used up"))?;
        self.set_sequence(table, after)?;
        Ok(next)
    }

    pub(super) fn set_sequence(&mut self, table: TableRef, next: u64) -> Result<()> {
        self.change(table)?;
        self.catalogue.set_sequence(table, next)?;
        self.note(table, Some(Op::Sequence(next)));
        Ok(())
    }
}

impl WriteTable<'_> {
    /// Takes `count` numbers of the table's sequence and gives the first: they are this transaction's
    /// if it commits, and free again if it, or the nested level, is undone. The sequence of a new
    /// table begins at 0. With a count of 0 it returns the number that comes next.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are not so many left; none is taken then.
    pub fn next_sequence(&mut self, count: u64) -> Result<u64> {
        self.txn.sequence(self.table, count)
    }

    /// The number that the table's sequence gives next, as of now.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// let mut table = txn.table_or_create("t")?;
    /// assert_eq!(table.sequence(), 0);
    /// assert_eq!((table.next_sequence(3)?, table.next_sequence(1)?), (0, 3));
    /// assert_eq!(table.sequence(), 4);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn sequence(&self) -> u64 {
        self.txn.tree(self.table).map_or(0, |tree| tree.desc.sequence)
    }

    /// As [`WriteTxn::is_dirty`].
    pub fn is_dirty(&self, bytes: &[u8]) -> bool {
        self.txn.is_dirty(bytes)
    }
}

impl ReadTable<'_> {
    /// The number that the table's sequence gives next.
    pub fn sequence(&self) -> u64 {
        self.tree().desc.sequence
    }
}
