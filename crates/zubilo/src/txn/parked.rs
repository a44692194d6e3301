//! Read transactions that are parked: they keep their snapshot, but others may end them.

use crate::error::{Error, Result};
use crate::num::TxnId;

use super::read::ReadTxn;

/// A read transaction that nobody reads at the moment: see [`ReadTxn::park`]. It keeps its snapshot as long as
/// its pages are not needed more urgently: who writes may expire it, by
/// [`Env::expire_reader`](crate::Env::expire_reader), by a function for
/// [slow readers](crate::Options::on_slow_reader), or by [bounds](crate::Options::expire_behind).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// env.update(|txn| txn.table_or_create("t")?.put("key", "value"))?;
/// let mut parked = env.read()?.park();
/// let length = parked.with(|txn| Ok(txn.table("t")?.len()))?;
/// assert_eq!(length, 1);
/// assert!(!parked.is_expired());
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "the snapshot ends when it is dropped"]
pub struct ParkedRead {
    /// Nothing may be read of it before its pin was taken up.
    txn: ReadTxn,
}

impl ReadTxn {
    /// Leaves the snapshot for a while: others may end it from now on, until [`ParkedRead::resume`]. Nothing
    /// that was read borrows from it any more. (`txn_park` of libmdbx.)
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// # let mut write = env.write()?;
    /// # write.table_or_create("t")?.put("key", "value")?;
    /// # write.commit()?;
    /// let parked = env.read()?.park();
    /// // Later: the same snapshot, or an error if others needed its pages.
    /// match parked.resume() {
    ///     Ok(read) => assert_eq!(read.table("t")?.get("key")?, Some(&b"value"[..])),
    ///     Err(zubilo::Error::Expired) => println!("begin again"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn park(self) -> ParkedRead {
        self.offer();
        ParkedRead { txn: self }
    }

    fn offer(&self) {
        self.env().shared.offer(self.reader(), self.id().0);
    }

    fn take_up(&self) -> Result<()> {
        self.env().shared.take_up(self.reader(), self.id().0)
    }
}

impl ParkedRead {
    /// Goes on reading the snapshot.
    ///
    /// # Errors
    /// [`Error::Expired`] if others have ended it.
    pub fn resume(self) -> Result<ReadTxn> {
        self.txn.take_up()?;
        Ok(self.txn)
    }

    /// Goes on reading: the same snapshot, or the newest one if others have ended it. Its
    /// [`ReadTxn::id`] says which.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "old"))?;
    /// let read = env.read()?;
    /// let (before, parked) = (read.id(), read.park());
    /// env.update(|txn| txn.table("t")?.put("key", "new"))?;
    /// let read = parked.resume_or_refresh()?;
    /// let is_old = read.id() == before;
    /// assert_eq!(read.table("t")?.get("key")?, Some(if is_old { &b"old"[..] } else { b"new" }));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn resume_or_refresh(mut self) -> Result<ReadTxn> {
        match self.txn.take_up() {
            Err(Error::Expired) => self.txn.repin()?,
            taken => taken?,
        }
        Ok(self.txn)
    }

    /// Reads for as long as `look` runs, and parks again: each look is one that others cannot end, and
    /// between two of them they can.
    ///
    /// # Errors
    /// [`Error::Expired`] if others have ended it, now and from then on.
    pub fn with<T>(&mut self, look: impl FnOnce(&ReadTxn) -> Result<T>) -> Result<T> {
        self.try_with(look)
    }

    /// As [`ParkedRead::with`], with any error that the store's can become; see
    /// [`Env::try_update`](crate::Env::try_update).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// env.update(|txn| txn.table_or_create("t")?.put("key", "17"))?;
    /// let mut parked = env.read()?.park();
    /// let number = parked.try_with(|txn| -> Result<u32, Box<dyn std::error::Error>> {
    ///     let table = txn.table("t")?;
    ///     Ok(std::str::from_utf8(table.get("key")?.unwrap_or_default())?.parse()?)
    /// });
    /// assert_eq!(number.unwrap(), 17);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn try_with<T, E: From<Error>>(
        &mut self,
        look: impl FnOnce(&ReadTxn) -> Result<T, E>,
    ) -> Result<T, E> {
        /// Parks again, also when `look` panics.
        struct Again<'t>(&'t ReadTxn);
        impl Drop for Again<'_> {
            fn drop(&mut self) {
                self.0.offer();
            }
        }
        self.txn.take_up()?;
        let again = Again(&self.txn);
        look(again.0)
    }

    /// Whether others have ended it. If not, they may at any time.
    pub fn is_expired(&self) -> bool {
        self.txn.env().is_forked() || self.txn.env().shared.is_expired(self.txn.reader())
    }

    /// The commit whose state it is.
    pub fn id(&self) -> TxnId {
        self.txn.id()
    }

    /// Commits made since its snapshot.
    pub fn lag(&self) -> u64 {
        self.txn.lag()
    }
}
