//! What is decided about prepared transactions, by whoever has the store open.

use crate::env::prepared::{self, PreparedId, PreparedInfo};
use crate::error::Result;
use crate::num::TxnId;

use super::Env;

impl Env {
    /// The transaction that is [prepared](crate::WriteTxn::prepare) and waits for its decision, if there is one: of this process, of
    /// another one, or left behind by a crash. [`Error::Corrupted`](crate::Error::Corrupted) where one waits whose description is
    /// damaged: then it can only be given up, by its own process or by closing the store everywhere.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// txn.table_or_create("t")?.put("key", "value")?;
    /// drop(txn.prepare("job 7")?);
    ///
    /// // The process ends here, and another one opens the store.
    /// let waiting = env.prepared()?.expect("a transaction that was prepared");
    /// assert_eq!(waiting.tag, b"job 7");
    /// env.commit_prepared(waiting.id)?;
    /// assert_eq!(env.read()?.table("t")?.get("key")?, Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn prepared(&self) -> Result<Option<PreparedInfo>> {
        prepared::info(&self.here()?.inner)
    }

    /// Makes a prepared transaction the newest commit, as [`Prepared::commit`](crate::Prepared::commit) does; gives its number.
    /// [`Error::NotPrepared`](crate::Error::NotPrepared) if it does not wait: somebody else has decided.
    pub fn commit_prepared(&self, id: PreparedId) -> Result<TxnId> {
        prepared::commit(&self.here()?.inner, id)
    }

    /// Ends a prepared transaction without a trace, as [`Prepared::roll_back`](crate::Prepared::roll_back) does.
    /// [`Error::NotPrepared`](crate::Error::NotPrepared) if it does not wait: somebody else has decided.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// if let Some(waiting) = env.prepared()? {
    ///     env.roll_back_prepared(waiting.id)?;
    /// }
    /// env.write()?.abort();
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn roll_back_prepared(&self, id: PreparedId) -> Result<()> {
        prepared::roll_back(&self.here()?.inner, id)
    }
}
