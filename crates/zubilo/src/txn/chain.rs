//! Transactions that follow one another without a gap: nobody else commits between the end of the first and
//! the begin of the second.

use crate::error::{Error, Result};
use crate::num::TxnId;

use super::read::ReadTxn;
use super::write::WriteTxn;

const IN_A_CLOSURE: Error = Error::Invalid("a closure cannot end the transaction that it runs in");

impl WriteTxn {
    /// Commits, and begins a read transaction on just this commit: what others commit later is not seen.
    /// (`commit_embark_read` of libmdbx.)
    ///
    /// If it fails nothing was committed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let env = zubilo::Options::new().open(path)?;
    /// let mut write = env.write()?;
    /// write.table_or_create("t")?.put("key", "value")?;
    /// let read = write.commit_and_read()?;
    /// assert_eq!(read.table("t")?.get("key")?, Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn commit_and_read(mut self) -> Result<ReadTxn> {
        // The slot comes first: without one there is no commit. Until then it pins the commit before.
        let mut read = ReadTxn::begin(&self.env)?;
        self.commit_in_place()?;
        read.refresh()?;
        Ok(read)
    }

    /// Commits, and goes on as the next write transaction: nobody else writes in between. Tables, numbers of
    /// tables and cursors end with the commit. Gives the commit's number.
    ///
    /// After an error nothing was changed, and the transaction can only be dropped. If the commit succeeds
    /// and the next transaction cannot begin, that one gives [`Error::TxnBroken`] to all.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// let env = zubilo::Options::new().open(path)?;
    /// let mut write = env.write()?;
    /// for batch in 0..3u32 {
    ///     let mut table = write.table_or_create("t")?;
    ///     table.put(batch.to_be_bytes(), "value")?;
    ///     write.commit_and_continue()?;
    /// }
    /// drop(write);
    /// assert_eq!(env.read()?.table("t")?.len(), 3);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn commit_and_continue(&mut self) -> Result<TxnId> {
        self.check()?;
        if !self.end_levels() {
            return Err(IN_A_CLOSURE);
        }
        let txn = self.commit_in_place().inspect_err(|_| self.soundness.lose())?;
        if self.begin_anew().is_err() {
            self.soundness.lose();
        }
        Ok(txn)
    }

    /// Undoes all changes and goes on as if the transaction had just begun: nobody else writes in between.
    /// Tables, numbers of tables and cursors end, and so does what broke the transaction.
    ///
    /// After an error the transaction can only be dropped.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// txn.table_or_create("t")?.put("key", "wrong")?;
    /// // All of that is undone, and the transaction goes on.
    /// txn.rollback()?;
    /// txn.table_or_create("t")?.put("key", "right")?;
    /// txn.commit()?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn rollback(&mut self) -> Result<()> {
        self.env.check_alive()?;
        if !self.end_levels() {
            return Err(IN_A_CLOSURE);
        }
        self.begin_anew().inspect_err(|_| self.soundness.lose())
    }

    /// Puts a new transaction in the place of this one, with the writer lock that it holds.
    fn begin_anew(&mut self) -> Result<()> {
        self.end_space();
        let next = WriteTxn::begin_locked(&self.env)?;
        let mut before = std::mem::replace(self, next);
        before.handed_on = true;
        // Last, as the tables hold comparators of the program, whose `Drop` may panic.
        drop(before);
        Ok(())
    }
}

impl ReadTxn {
    /// Begins the write transaction on this snapshot: what was read here still holds when it commits. Waits
    /// while another thread or process has it. (`txn_amend` of libmdbx.)
    ///
    /// # Errors
    /// [`Error::Outdated`] if others have committed since the snapshot.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// # let mut write = env.write()?;
    /// # write.table_or_create("t")?.put("stock", [3])?;
    /// # write.commit()?;
    /// let commit = loop {
    ///     let read = env.read()?;
    ///     // A long computation, in which others may write.
    ///     let stock = read.table("t")?.get("stock")?.map_or(0, |value| value[0]);
    ///     match read.write() {
    ///         Ok(mut write) => {
    ///             write.table("t")?.put("stock", [stock - 1])?;
    ///             break write.commit()?;
    ///         }
    ///         Err(zubilo::Error::Outdated { .. }) => continue,
    ///         Err(error) => return Err(error),
    ///     }
    /// };
    /// assert_eq!(env.read()?.id(), commit);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn write(&self) -> Result<WriteTxn> {
        self.begin_write(true)?.ok_or(Error::Busy("the writer lock is taken"))
    }

    /// The same if no one else writes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("stock")?.put("nails", "500"))?;
    /// let read = env.read()?;
    /// let has_nails = read.table("stock")?.contains_key("nails")?;
    /// // What was read is still the newest, and stays so until the commit.
    /// if let Some(mut txn) = read.try_write()? {
    ///     if has_nails {
    ///         txn.table("stock")?.put("nails", "499")?;
    ///     }
    ///     txn.commit()?;
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn try_write(&self) -> Result<Option<WriteTxn>> {
        self.begin_write(false)
    }

    fn begin_write(&self, wait: bool) -> Result<Option<WriteTxn>> {
        // Who is late already need not wait for the lock.
        self.check_newest(self.id().0 + self.lag())?;
        let Some(write) = WriteTxn::begin(self.env(), wait)? else { return Ok(None) };
        self.check_newest(write.base.txn)?;
        Ok(Some(write))
    }

    fn check_newest(&self, newest: u64) -> Result<()> {
        match self.id() {
            snapshot if snapshot.0 == newest => Ok(()),
            snapshot => Err(Error::Outdated { snapshot, newest: TxnId(newest) }),
        }
    }
}
