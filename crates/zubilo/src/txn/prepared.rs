//! Two-phase commits: a transaction that has everything of a commit but the decision.

use std::sync::Arc;
use std::time::SystemTime;

use crate::env::mark::{Mark, TAG_MAX};
use crate::env::meta::MARK_ROOM;
use crate::env::prepared::{self, PreparedId};
use crate::env::{EnvInner, checkpoint};
use crate::error::{Error, Result};
use crate::num::TxnId;

use super::redo::Notes;
use super::write::WriteTxn;

impl WriteTxn {
    /// The first half of a commit: all changes go to the disk, and the store goes on without them until somebody decides. After
    /// this nothing but a failing disk can keep [`Prepared::commit`] from succeeding. For transactions over several stores,
    /// or over a store and something else: prepare all, note the decision in one place, carry it out.
    ///
    /// `tag` is at most 64 bytes that say what it belongs to: they are found again by [`Env::prepared`](crate::Env::prepared), in
    /// another process, or after a crash. Until the decision whoever begins to write gets [`Error::Prepared`]. Readers go on,
    /// and see the commit before. Copies of the store have that commit, and nothing of what is prepared.
    ///
    /// Durable in every [`Durability`](crate::Durability): commits before it that are not on disk are flushed, too.
    ///
    /// After an error nothing was changed. Only if the error is that of the disk, and the power is cut before the next
    /// transaction, the transaction may be found prepared all the same: then roll it back.
    ///
    /// # Errors
    /// [`Error::Invalid`] where nothing was changed, where the tag is too long, and for stores that cannot prepare: one that is encrypted,
    /// has a redo log, or is opened without a lock file.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = |name| dir.path().join(name);
    /// # fn show(path: impl Fn(&'static str) -> std::path::PathBuf) -> zubilo::Result<()> {
    /// # let (goods, money) = (zubilo::Options::new().open(path("goods"))?, zubilo::Options::new().open(path("money"))?);
    /// let (mut sale, mut pay) = (goods.write()?, money.write()?);
    /// sale.table_or_create("sold")?.put("4711", "an apple")?;
    /// pay.table_or_create("paid")?.put("4711", "a penny")?;
    /// let sale = sale.prepare("order 4711")?;
    /// let pay = pay.prepare("order 4711")?;
    /// // Both are on disk, neither can fail any more. The first commit is the decision.
    /// sale.commit()?;
    /// pay.commit()?;
    /// assert_eq!(money.read()?.table("paid")?.len(), 1);
    /// # Ok(())
    /// # }
    /// # show(path).unwrap();
    /// ```
    pub fn prepare(mut self, tag: impl AsRef<[u8]>) -> Result<Prepared> {
        let tag = tag.as_ref();
        self.check()?;
        if !self.end_levels() {
            return Err(Error::Invalid("a closure cannot prepare the transaction it runs in"));
        }
        if tag.len() > TAG_MAX {
            return Err(Error::Invalid("the tag of a prepared transaction has more than 64 bytes"));
        }
        if !self.has_changes() {
            return Err(Error::Invalid("a transaction without changes has nothing to prepare"));
        }
        if !self.env.options.lock_file {
            return Err(Error::Invalid(
                "a store without a lock file cannot keep others from writing",
            ));
        }
        if self.env.data.decryption().is_some() {
            return Err(Error::Invalid("an encrypted store cannot prepare transactions"));
        }
        if self.space.meta()?.redo.is_some() {
            return Err(Error::Invalid("a store with a redo log cannot prepare transactions"));
        }
        self.env.check_writable()?;
        // What an open falls back to until the decision.
        if self.env.steady() < self.base.txn {
            checkpoint::checkpoint(&self.env)?;
        }
        self.notes = Notes::default();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_secs());
        self.prepare_in_place(Mark { id: prepared::new_id(), since, tag: tag.to_vec() })
    }

    fn prepare_in_place(&mut self, mark: Mark) -> Result<Prepared> {
        self.clock.start();
        self.space.leave_room(MARK_ROOM)?;
        self.space.begin_commit();
        let id = PreparedId(mark.id);
        let txn = self.make_prepared(mark);
        // It is that of a commit that is none yet.
        self.space.end_commit(false);
        Ok(Prepared { env: Arc::clone(&self.env), id, txn: txn? })
    }
}

/// A transaction that is prepared: on disk, and not yet part of the store.
///
/// Dropping it decides nothing, as the end of the process does: who has promised a commit must not take that back because of
/// a panic. [`Env::prepared`](crate::Env::prepared) finds it again.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// txn.table_or_create("t")?.put("key", "value")?;
/// let prepared = txn.prepare("job 7")?;
/// assert!(matches!(env.write(), Err(zubilo::Error::Prepared { .. })));
/// prepared.roll_back()?;
/// assert!(env.read()?.table("t").is_err());
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "until it is committed or rolled back nobody can write to the store"]
pub struct Prepared {
    env: Arc<EnvInner>,
    id: PreparedId,
    txn: TxnId,
}

impl Prepared {
    /// By what others decide about it: [`Env::commit_prepared`](crate::Env::commit_prepared).
    pub fn id(&self) -> PreparedId {
        self.id
    }

    /// The number that it has when it is committed. After a roll-back it is another transaction's.
    pub fn txn(&self) -> TxnId {
        self.txn
    }

    /// Makes its changes the newest state of the store, for everyone at once; on disk when this returns. One page is
    /// written: it needs no room. After an error it is still prepared, or the next open finds it committed.
    /// [`Error::NotPrepared`] if somebody else has decided.
    pub fn commit(self) -> Result<TxnId> {
        prepared::commit(&self.env, self.id)
    }

    /// Ends it without a trace. After an error it is still prepared, or the next open finds it rolled back.
    /// [`Error::NotPrepared`] if somebody else has decided.
    pub fn roll_back(self) -> Result<()> {
        prepared::roll_back(&self.env, self.id)
    }
}
